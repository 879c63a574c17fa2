#!/usr/bin/env python3
"""Runs the benches and writes down what they say: docs/results/measured.json, and the page measured.md made of it.

    scripts/results.py [WORD...]      runs the benches whose names hold one of the words, or all
    scripts/results.py --page         only writes the page anew
    scripts/results.py --check        fails where the page isn't what the figures make

A figure is a line of a bench with a goal beside it. Runs of other machines stay; of this one the last five stay, so that the page
tells ranges. A bench that finds the machine too busy says no figure: its old ones stay, and the exit code is 3.
"""

import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs/results/measured.json"
PAGE = ROOT / "docs/results/measured.md"
TOO_BUSY = 3
# With it benches print figures of a busy machine.
ANYWAY = "WINDTUNNEL_BENCH_ANYWAY"
# Runs of one machine and bench that are kept.
KEPT = 5

# Name, what it is called on the page, and arguments of `cargo bench`.
BENCHES = [
    ("engine", "The transfer engine beside iperf3", ["-p", "wt-load", "--bench", "engine"]),
    ("crowd", "A thousand clients of `serve`", ["-p", "wt-load", "--bench", "crowd"]),
    ("throughput", "The lab beside a bare veth pair", ["-p", "wt-lab", "--bench", "throughput"]),
    ("paths", "How true the lab is", ["-p", "wt-lab", "--bench", "paths"]),
    ("model", "The model beside ns-3.37", ["-p", "wt-sim", "--bench", "speed"]),
    ("probing", "Path MTU and the narrowest link", ["-p", "windtunnel", "--bench", "probing", "--", "mtu", "hosts", "bottleneck"]),
    ("first-window", "First windows of many hosts", ["-p", "windtunnel", "--bench", "first_window", "--", "hosts"]),
    ("settings", "Settings of a host", ["-p", "windtunnel", "--bench", "settings"]),
    ("journal", "A million trials", ["-p", "windtunnel", "--bench", "million"]),
    ("web", "The page's server", ["-p", "windtunnel", "--bench", "web"]),
]

# As wt_testing::Goal writes it.
LINE = re.compile(
    r"^\s*(?P<what>\S.*?)\s+(?P<figure>-?\d+\.\d{3}|NaN|inf) (?P<unit>\S.*?)\s+goal (?P<way>at most|at least) (?P<goal>[\d.]+): x"
)


def machine():
    """This machine in words: what figures depend on."""
    cpu = open("/proc/cpuinfo").read()
    model = re.search(r"model name\s*: (.*)", cpu)
    model = model.group(1).strip() if model else platform.machine()
    guest = "a virtual machine with " if " hypervisor" in cpu else ""
    memory = int(re.search(r"MemTotal:\s+(\d+)", open("/proc/meminfo").read()).group(1)) / 2**20
    kernel = ".".join(platform.release().split(".")[:2])
    return f"{guest}{os.cpu_count()} processors {model}, {memory:.0f} GiB, Linux {kernel}"


def parse(text):
    """The figures of a bench's output."""
    found = []
    for match in map(LINE.match, text.splitlines()):
        if match and match["figure"] not in ("NaN", "inf"):
            goal = {"way": match["way"], "goal": float(match["goal"])}
            found.append({"what": match["what"], "figure": float(match["figure"]), "unit": match["unit"], **goal})
    return found


def run(bench):
    """Runs a bench; its exit code and figures."""
    name, _, arguments = bench
    print(f"== {name}", flush=True)
    done = subprocess.run(["cargo", "bench", "-q", "--locked", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="", flush=True)
    return done.returncode, parse(done.stdout)


def write(file, text):
    """Whole or not at all, whatever happens meanwhile."""
    beside = file.with_suffix(".new")
    beside.write_text(text)
    beside.replace(file)


def read():
    return json.loads(FIGURES.read_text()) if FIGURES.exists() else {"runs": []}


def keep(known, bench, figures):
    """Adds a run, and forgets this machine's oldest of the bench."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    here = machine()
    same = [one for one in known["runs"] if one["bench"] == bench and one["machine"] == here]
    forgotten = same[: max(0, len(same) + 1 - KEPT)]
    known["runs"] = [one for one in known["runs"] if one not in forgotten]
    today = datetime.date.today().isoformat()
    known["runs"].append(
        {"bench": bench, "machine": here, "date": today, "commit": commit.stdout.strip(), "figures": figures}
    )


def number(figure):
    """Three digits that count."""
    if figure == 0:
        return "0"
    if abs(figure) >= 100:
        return f"{figure:,.0f}"
    return f"{figure:.3g}"


def between(figures):
    low, high = number(min(figures)), number(max(figures))
    return low if low == high else f"{low} to {high}"


def page(known):
    """The page: each figure as the range of all runs, beside its goal."""
    machines = sorted({one["machine"] for one in known["runs"]})
    text = [
        "# Results: measured",
        "",
        "What the benches said, as ranges over all runs that are kept: figures of one machine don't tell those of another. A bench that",
        "finds its machine busy says nothing. `make results` runs them and writes this page; nobody edits it.",
        "",
        "Machines:",
        "",
    ]
    for one in machines:
        dates = sorted({run["date"] for run in known["runs"] if run["machine"] == one})
        when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
        text.append(f"- {one} ({when})")
    for name, title, arguments in BENCHES:
        runs = [run for run in known["runs"] if run["bench"] == name]
        if not runs:
            continue
        kept = "one run" if len(runs) == 1 else f"{len(runs)} runs"
        text += ["", f"## {title}", "", f"`cargo bench {' '.join(arguments)}`; {kept}.", ""]
        text += ["| what | measured | goal | reached |", "|---|---|---|---|"]
        # What the newest run says; a figure that a bench no longer has is gone.
        for newest in runs[-1]["figures"]:
            same = [one for run in runs for one in run["figures"] if one["what"] == newest["what"]]
            figures = [one["figure"] for one in same]
            reached = [one for one in figures if (one <= newest["goal"]) == (newest["way"] == "at most") or one == newest["goal"]]
            often = {len(figures): "yes", 0: "no"}.get(len(reached), f"in {len(reached)} of {len(figures)}")
            goal = f"{newest['way']} {newest['goal']:g}"
            text.append(f"| {newest['what']} | {between(figures)} {newest['unit']} | {goal} | {often} |")
    return "\n".join(text) + "\n"


def main(arguments):
    known = read()
    if arguments == ["--check"]:
        if PAGE.read_text() != page(known):
            print("docs/results/measured.md isn't what docs/results/measured.json makes: run scripts/results.py --page", file=sys.stderr)
            return 1
        return 0
    unknown = [word for word in arguments if word != "--page" and not any(word in one[0] for one in BENCHES)]
    if unknown:
        names = " ".join(one[0] for one in BENCHES)
        print(f"No bench has {' or '.join(unknown)} in its name. There are: {names}", file=sys.stderr)
        return 2
    if ANYWAY in os.environ:
        print(f"{ANYWAY} is set: figures of a busy machine aren't written down. Unset it.", file=sys.stderr)
        return 2
    failed, busy = [], []
    if arguments != ["--page"]:
        for bench in [one for one in BENCHES if not arguments or any(word in one[0] for word in arguments)]:
            code, figures = run(bench)
            if figures:
                keep(known, bench[0], figures)
                write(FIGURES, json.dumps(known, indent=1, ensure_ascii=False) + "\n")
            elif code == TOO_BUSY:
                busy.append(bench[0])
            else:
                failed.append(bench[0])
    write(PAGE, page(known))
    if busy:
        print(f"The machine was too busy for: {' '.join(busy)}. Their old figures stay.", file=sys.stderr)
    if failed:
        print(f"No figures: {' '.join(failed)}.", file=sys.stderr)
    return 1 if failed else TOO_BUSY if busy else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
