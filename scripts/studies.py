#!/usr/bin/env python3
"""Redoes the old studies with the program, and writes one page: their authors' figures, the program's, what may be concluded.

Usage: scripts/studies.py PROGRAM [--full] [--only STUDY|STUDY/ROW,...] [--out FOLDER] [--rows FILE] [--seed N]

What is redone, and what the authors found, stands in studies/studies.toml. Every row is one command of the program whose JSON
is read, or a table that it analyses. A row that can't be measured here says why and the others go on. FOLDER (default
target/studies) gets studies.html, studies.json and the journal of all trials.

Ends with 0 where every difference above the noise has its reason in studies.toml, 1 where one has none or a row couldn't be
measured, 2 for mistakes in what was asked or in studies.toml.
"""

import argparse
import html
import json
import math
import os
import shlex
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The longest that one command may take, s: in full, a table of the dial-up study takes an hour and a half.
PATIENCE = {"short": 600, "full": 6 * 3600}
READERS = {"number", "tune", "controls", "stacks", "finding", "share"}
ROW_WORDS = {
    "study", "name", "question", "author", "factor", "low", "high", "says", "table", "level", "against", "smaller_is_better",
    "command", "full", "read", "key", "times", "within", "figure", "unit", "reason", "conclude",
}


class Mistake(Exception):
    """Something in studies.toml or in what was asked that can't be."""


class NotMeasured(Exception):
    """A row for which this machine has no figure now."""


def student(df: int) -> float:
    """The 97.5 % quantile of Student's t, by the expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5); for few
    degrees of freedom from the table."""
    table = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]
    if df <= len(table):
        return table[df - 1]
    z = 1.959964
    g1 = (z**3 + z) / 4
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + g1 / df + g2 / df**2


def mean_interval(values):
    """The mean with its 95 % interval by Student's t; the ends are None for a single value."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, None, None
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    half = student(len(values) - 1) * deviation / math.sqrt(len(values))
    return mean, mean - half, mean + half


def run(program, words, journal, patience):
    """The JSON of a command; exit code 1 is an answer, too: no difference is shown."""
    command = [str(program), *words]
    environment = {**os.environ, "XDG_DATA_HOME": str(journal), "NO_COLOR": "1"}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=patience)
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"not done after {patience:.0f} s") from None
    except OSError as error:
        raise Mistake(f"{program}: {error.strerror}") from None
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise NotMeasured(f"exit code {done.returncode}: {last}") from None
    if done.returncode not in (0, 1) or "fault" in answer:
        raise NotMeasured(". ".join(filter(None, [answer.get("what"), answer.get("cause"), answer.get("try")])))
    return answer


def at(answer, path):
    """A value by its path: `algorithms.0.name`."""
    for step in path.split("."):
        try:
            answer = answer[int(step)] if isinstance(answer, list) else answer[step]
        except (KeyError, IndexError, TypeError, ValueError):
            raise Mistake(f"the answer has no {path}") from None
    return answer


def one(kind, items, label):
    """The one of these that has the label; what there is otherwise is named."""
    for item in items:
        if item["label"] == label:
            return item
    raise Mistake(f"no {kind} is called {label!r}; there are: {', '.join(item['label'] for item in items)}")


def interval_of_arm(answer, index):
    """The proven interval of a setting, else the model's, else Student's of its rounds, which claim nothing."""
    arm = answer["arms"][index]
    if arm.get("low") is not None and arm.get("high") is not None:
        return arm["low"], arm["high"], True
    if arm.get("model_low") is not None and arm.get("model_high") is not None:
        return arm["model_low"], arm["model_high"], False
    logs = list(paired_logs(answer, index).values())
    if len(logs) < 3:
        return None, None, False
    _, low, high = mean_interval(logs)
    return math.exp(low), math.exp(high), False


def paired_logs(answer, index):
    """Of each round that has both, the log of how many times better the setting was than the first."""
    rounds = {}
    for trial in answer["trial_table"]:
        if trial["phase"] == "round" and trial["status"] == "completed" and trial["figure"]:
            rounds.setdefault(trial["round"], {}).setdefault(trial["arm"], []).append(math.log(trial["figure"]))
    sign = -1 if answer["measured"]["better"] == "smaller" else 1
    both = {number: arms for number, arms in rounds.items() if {0, index} <= set(arms)}
    return {number: sign * (statistics.mean(arms[index]) - statistics.mean(arms[0])) for number, arms in both.items()}


# What each reader returns: `value`, `low` and `high` (None: not known), `proven` (whether a claim may be made of the interval),
# `shown` (the program's own word), `text` (the figures for people).


def read_number(row, answer):
    value = at(answer, row["key"]) * row.get("times", 1)
    return {"value": value, "low": value, "high": value, "proven": True, "shown": "computed", "text": figure(value, row)}


def read_tune(row, answer):
    arm, base = one("setting", answer["arms"], row["key"]), answer["arms"][0]
    if arm.get("ratio") is None:
        raise NotMeasured("no round was complete: this machine was too busy, or the path didn't carry it")
    index = [other["label"] for other in answer["arms"]].index(row["key"])
    low, high, proven = interval_of_arm(answer, index)
    unit = answer["measured"]["unit"]
    text = f"{people(base['figure'], unit)} → {people(arm['figure'], unit)}, ×{arm['ratio']:.2f}"
    return {"value": arm["ratio"], "low": low, "high": high, "proven": proven, "shown": arm["state"],
            "text": text + spread(low, high, proven), "rounds": answer["rounds"]}


def read_controls(row, answer):
    def named(control):
        return control["name"] if control["variant"] in ("kernel", "default") else f"{control['name']}@{control['variant']}"

    controls = [{**control, "label": named(control)} for control in answer["algorithms"]]
    control, first = one("congestion control", controls, row["key"]), controls[0]
    against = control["start_against_first"] if row.get("figure") == "start" else control["against_first"]
    if row.get("figure") == "start":
        words = f"{people(first['first_100kb_s'], 's')} → {people(control['first_100kb_s'], 's')} until 100 kB"
    else:
        words = f"{first['goodput_kBps']['mean']:.1f} → {control['goodput_kBps']['mean']:.1f} kB/s"
    if against is None:
        raise NotMeasured(f"{words}: two rounds are needed for an interval")
    # Times turned over, so that more than 1 is better.
    turn = (lambda x: 1 / x) if row.get("figure") == "start" else (lambda x: x)
    low, high = sorted([turn(against["low"]), turn(against["high"])])
    shown = "faster" if low > 1 else "slower" if high < 1 else "open"
    return {"value": turn(against["ratio"]), "low": low, "high": high, "proven": True, "shown": shown,
            "text": f"{words}, ×{turn(against['ratio']):.2f}" + spread(low, high, True),
            "rounds": len(control["goodput_kBps"]["runs"])}


def read_stacks(row, answer):
    first, second = row["key"].split(" / ")
    for verdict in answer["verdicts"]:
        for a, b, turned in [(first, second, False), (second, first, True)]:
            if (verdict["a"], verdict["b"]) == (a, b) and verdict["workload"] == row["figure"]:
                turn = (lambda x: None if x is None else 1 / x) if turned else (lambda x: x)
                ends = [turn(verdict["low"]), turn(verdict["high"])]
                low, high = (ends[1], ends[0]) if turned else ends
                proven = low is not None and high is not None
                shown = "open" if not proven else "faster" if low > 1 else "slower" if high < 1 else "open"
                return {"value": turn(verdict["ratio"]), "low": low, "high": high, "proven": proven, "shown": shown,
                        "text": f"{verdict['text']}; ×{turn(verdict['ratio']):.2f}" + spread(low, high, proven),
                        "rounds": verdict["rounds"]}
    raise NotMeasured(f"no verdict of {row['figure']} on {row['key']}: a stack isn't there or failed")


def read_finding(row, answer):
    """Whether a stack is blamed for something by name: 1 or 0, and the sentence."""
    stack, kind = row["key"].split(" / ")
    for found in answer["stacks"]:
        if found["name"] == stack or stack.endswith("=SECONDS") and found["name"].startswith(stack[: -len("SECONDS")]):
            texts = [finding["text"] for finding in found["findings"] if finding["kind"] == kind]
            value = float(bool(texts))
            return {"value": value, "low": value, "high": value, "proven": True, "shown": "seen" if texts else "not seen",
                    "text": texts[0] if texts else "nothing of the kind was seen"}
    raise NotMeasured(f"{stack} isn't there")


def read_share(row, answer):
    """A setting's goodput as a share of the link's rate, the mean of its trials that count with its interval."""
    arm = one("setting", answer["arms"], row["key"])
    index = [other["label"] for other in answer["arms"]].index(row["key"])
    trials = [trial["goodput_bps"] for trial in answer["trial_table"]
              if trial["arm"] == index and trial["phase"] == "round" and trial["status"] == "completed"]
    if not trials:
        raise NotMeasured("no trial counts: this machine was too busy")
    value, low, high = (None if x is None else x / row["times"] for x in mean_interval(trials))
    return {"value": value, "low": low, "high": high, "proven": low is not None, "shown": arm["state"],
            "text": f"{people(value * row['times'], 'bit/s')} of {people(row['times'], 'bit/s')}: {value:.1%}"
                    + ("" if low is None else f" ({low:.1%} to {high:.1%})"), "rounds": len(trials)}


READ = {"number": read_number, "tune": read_tune, "controls": read_controls, "stacks": read_stacks,
        "finding": read_finding, "share": read_share}


def people(value, unit):
    """A figure in a unit that suits it."""
    if value is None:
        return "–"
    if unit == "bit/s":
        for size, name in [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")]:
            if value >= size:
                return f"{value / size:.3g} {name}"
    if unit == "s" and value < 1:
        return f"{value * 1e3:.0f} ms"
    return f"{value:.4g} {unit}"


def figure(value, row):
    return f"{value:.6g} {row.get('unit', '')}".strip()


def spread(low, high, proven):
    if low is None or high is None:
        return " (too few rounds for an interval)"
    return f" ({'' if proven else '~'}{low:.2f} to {high:.2f})"


def authors(row, program, journal, patience):
    """The author's factor with its interval: from the study's table, or as it was told."""
    if "table" not in row:
        return {"value": row.get("factor"), "low": row.get("low"), "high": row.get("high"), "shown": None}
    answer = run(program, ["analyse", "--json", row["table"]], journal, patience)
    pairs = answer.get("dunnett") or []
    for pair in pairs:
        if (pair["a"], pair["b"]) == (row["level"], row["against"]):
            shown = "faster" if pair["low"] > 1 else "slower" if pair["high"] < 1 else "nothing shown"
            return {"value": pair["ratio"], "low": pair["low"], "high": pair["high"], "shown": shown}
    raise Mistake(f"{row['table']} has no pair {row['level']} against {row['against']}: "
                  f"{[(pair['a'], pair['b']) for pair in pairs]}")


def judge(row, author, found):
    """Whether author and program agree, as (word, sentence)."""
    expected, value, low, high = author["value"], found["value"], found["low"], found["high"]
    if row.get("says") is not None:
        if row["says"] in ("faster", "slower") and found["shown"] == "open" and found["proven"]:
            return "open", f"the author says: {row['says']}; the interval here allows both"
        if found["shown"] not in ("faster", "slower") and not found["proven"]:
            against = {"faster": high is not None and high < 1, "slower": low is not None and low > 1}
            if against.get(row["says"]):
                return "differs", "by the estimate it is the other way round here"
            return "open", f"the author says: {row['says']}; the rounds here don't suffice to say it"
        agrees = {"faster": found["shown"] == "faster", "slower": found["shown"] == "slower",
                  "nothing": low is not None and low <= 1 <= high, "seen": found["shown"] == "seen",
                  "not seen": found["shown"] == "not seen"}[row["says"]]
        return ("agrees", "what the author says is shown here, too") if agrees else ("differs", "it isn't what is seen here")
    if row["read"] == "number":
        agrees = abs(value - expected) <= row.get("within", 0)
        return ("agrees", "the same figure") if agrees else ("differs", f"the author has {expected:g}")
    if low is None:
        return "open", "too few rounds here for an interval: nothing can be said"
    # The author's own noise counts where it is known; a bare figure is a point.
    author_low, author_high = author["low"] or expected, author["high"] or expected
    if author_low <= high and low <= author_high:
        return "agrees", "both within the noise" if author["low"] else "the author's figure lies within the interval"
    away = low / author_high if low > author_high else high / author_low
    return "differs", f"by a factor of {away:.2f} beyond the noise"


def shown_by(found, row):
    """What the program alone claims."""
    if row["read"] in ("number", "finding", "share"):
        return None
    return {"faster": "shown to be faster", "slower": "shown to be slower", "same": "shown to be within 5 %",
            "current": None}.get(found["shown"], "no difference is shown here")


def redo(row, options, journal):
    """One row with everything that the page says of it."""
    words = row["full"] if options.full and "full" in row else row.get("command")
    patience = PATIENCE["full" if options.full else "short"]
    result = {"study": row["study"], "name": row["name"], "question": row["question"], "author": row["author"]}
    began = time.monotonic()
    try:
        author = authors(row, options.program, journal, patience)
        result["author_says"] = {key: author[key] for key in ("value", "low", "high", "shown")}
        if words is None:
            result["outcome"] = "table"
            result["found"] = {"text": f"×{author['value']:.2f} ({author['low']:.2f} to {author['high']:.2f})"}
            result["conclusion"] = ("by the study's own series this is shown" if author["shown"] != "nothing shown"
                                    else "the study's own series don't show it: chance alone does as much")
            return result
        words = [word.replace("SEED", str(options.seed)) for word in words]
        result["command"] = shlex.join(["windtunnel", *words])
        found = READ[row["read"]](row, run(options.program, words, journal, patience))
        outcome, sentence = judge(row, author, found)
        result.update(outcome=outcome, found=found, conclusion="; ".join(filter(None, [sentence, shown_by(found, row)])))
        if outcome == "differs":
            result["reason"] = row.get("reason")
    except NotMeasured as error:
        result.update(outcome="not measured", conclusion=str(error))
    except Mistake as error:
        # The other rows' hours aren't lost for it.
        result.update(outcome="not measured", conclusion=str(error), mistake=True)
    finally:
        result["seconds"] = round(time.monotonic() - began, 1)
    if row.get("conclude"):
        result["may"] = row["conclude"]
    return result


def load(file):
    """Studies and their rows; every word must be known, every row's study, too."""
    try:
        spec = tomllib.loads(Path(file).read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise Mistake(f"{file}: {error}") from None
    studies = {study["name"]: study for study in spec["study"]}
    for row in spec["row"]:
        name = f"{row.get('study')}/{row.get('name')}"
        if unknown := set(row) - ROW_WORDS:
            raise Mistake(f"{file}: {name}: unknown: {', '.join(sorted(unknown))}")
        if row["study"] not in studies:
            raise Mistake(f"{file}: {name}: there is no such study")
        if "command" in row and row.get("read") not in READERS:
            raise Mistake(f"{file}: {name}: read is one of {', '.join(sorted(READERS))}")
        if "command" not in row and "table" not in row:
            raise Mistake(f"{file}: {name}: it has neither a command nor a table")
    return list(studies.values()), spec["row"]


STYLE = """
:root { color-scheme: light dark; } body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; padding: .5rem .6rem; border-bottom: 1px solid #8884; }
th { font-weight: 600; } code { font-size: .82rem; overflow-wrap: anywhere; } .agrees { color: #0a7d4f; } .differs { color: #c2570c; }
.open, .not { color: #777; } .table { color: #0072b2; } td p { margin: 0 0 .35rem; } .small { font-size: .85rem; color: #777; }
@media (prefers-color-scheme: dark) { .agrees { color: #4cc38a; } .differs { color: #f5a35c; } .table { color: #6cb6f0; } }
@media (max-width: 50rem) { table, tbody, tr, td { display: block; } thead { display: none; } td { border: 0; padding: .2rem 0; } tr { border-bottom: 1px solid #8884; padding: .6rem 0; } }
"""


def page(studies, results, about):
    """One file that needs nothing else."""
    safe = html.escape
    head = "".join(f"<th>{word}</th>" for word in ["Question", "The author", "The program", "What may be concluded"])
    parts = []
    for study in studies:
        own = [result for result in results if result["study"] == study["name"]]
        if not own:
            continue
        rows = []
        for result in own:
            found = safe(result.get("found", {}).get("text", "not measured"))
            command = f"<code>{safe(result['command'])}</code>" if "command" in result else "its table alone"
            reason = ""
            if result["outcome"] == "differs":
                reason = f"<p>Why: {safe(result['reason'] or 'no reason is known')}</p>"
            may = f"<p>{safe(result['may'])}</p>" if "may" in result else ""
            word = {"table": "analysed"}.get(result["outcome"], result["outcome"])
            rows.append(
                f"<tr><td>{safe(result['question'])}</td><td>{safe(result['author'])}</td>"
                f"<td><p>{found}</p><p class=small>{command}</p></td>"
                f"<td><p><strong class='{result['outcome']}'>{safe(word)}</strong>: {safe(result['conclusion'])}</p>{reason}{may}</td></tr>")
        parts.append(f"<h2>{safe(study['title'])}</h2><p>{safe(study['about'])}</p><p class=small>{safe(study['source'])}</p>"
                     f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>")
    return ("<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width'>"
            "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">"
            f"<title>Old studies redone</title><style>{STYLE}</style></head><body><h1>Old studies redone</h1>"
            f"<p>{safe(about)}</p>{''.join(parts)}</body></html>\n")


def arguments():
    parser = argparse.ArgumentParser(description="Redoes the old studies with the program and writes one page.")
    parser.add_argument("program", type=Path)
    parser.add_argument("--full", action="store_true", help="with as many rounds as the studies' questions take")
    parser.add_argument("--only", default="", help="studies or STUDY/ROW, with commas between them")
    parser.add_argument("--out", type=Path, default=ROOT / "target/studies")
    parser.add_argument("--rows", type=Path, default=ROOT / "studies/studies.toml")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def chosen(rows, only):
    """The rows that are named, all without a name."""
    names = [name for name in only.split(",") if name]
    for name in names:
        if not any(name in (row["study"], f"{row['study']}/{row['name']}") for row in rows):
            known = ", ".join(f"{row['study']}/{row['name']}" for row in rows)
            raise Mistake(f"there is no {name}; there are: {known}")
    return [row for row in rows if not names or row["study"] in names or f"{row['study']}/{row['name']}" in names]


def main():
    options = arguments()
    options.program = options.program.resolve()
    studies, rows = load(options.rows)
    rows = chosen(rows, options.only)
    options.out.mkdir(parents=True, exist_ok=True)
    journal = (options.out / "data").resolve()
    began, results = time.monotonic(), []
    for row in rows:
        print(f"{row['study']}/{row['name']} … ", end="", flush=True)
        result = redo(row, options, journal)
        results.append(result)
        print(f"{result['outcome']} ({result['seconds']:.0f} s): {result.get('found', {}).get('text', result['conclusion'])}",
              flush=True)
    took = time.monotonic() - began
    count = {word: sum(result["outcome"] == word for result in results) for word in
             ("agrees", "differs", "open", "not measured", "table")}
    version = subprocess.run([str(options.program), "--version"], capture_output=True, text=True, check=False).stdout.strip()
    about = (f"{len(results)} questions of {len({r['study'] for r in results})} studies, "
             f"{'in full' if options.full else 'shortened'}, in {took / 60:.0f} minutes with {version}: "
             f"{count['agrees']} agree, {count['differs']} differ, {count['open']} stay open, "
             f"{count['table']} were answered by the study's own table, {count['not measured']} couldn't be measured. "
             "Intervals are of 95 %; with a ~ they are an estimate and claim nothing.")
    (options.out / "studies.html").write_text(page(studies, results, about))
    whole = {"schema_version": 1, "full": options.full, "seconds": round(took, 1), "rows": results}
    (options.out / "studies.json").write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    print(f"\n{about}\nThe page: {options.out / 'studies.html'}")
    unexplained = [result for result in results if result["outcome"] == "differs" and not result["reason"]]
    for result in unexplained:
        print(f"without a reason: {result['study']}/{result['name']}: {result['conclusion']}", file=sys.stderr)
    mistakes = [result for result in results if result.get("mistake")]
    for result in mistakes:
        print(f"studies: {result['study']}/{result['name']}: {result['conclusion']}", file=sys.stderr)
    return 2 if mistakes else 1 if unexplained or count["not measured"] else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Mistake as mistake:
        print(f"studies: {mistake}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
