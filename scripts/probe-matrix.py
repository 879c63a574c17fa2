#!/usr/bin/env python3
"""Every row of what can be wrong with a path's MTU, so many runs in each of six modes: is each answer right, or told as not known?

scripts/probe-matrix.py BIN [--runs 20] [--only TEXT] [--json FILE]

Modes: root, an ordinary user without the right to ping, and one with it, over both versions of IP. Six hosts in network namespaces
inside a lab of BIN (probe-matrix/hosts.sh), so it needs neither root nor a network. Ends with 1 if any answer was wrong.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
MATRIX = HERE / "probe-matrix"
V4, V6 = "10.77.4.2", "fd77:4::2"
MODES = ["root", "root 6", "nobody", "nobody 6", "pinging", "pinging 6"]
R1 = {"10.77.0.2", "fd77:0::2", "fd77::2"}
R2 = {"10.77.1.2", "fd77:1::2"}
R3 = {"10.77.2.2", "fd77:2::2"}


@dataclass
class Row:
    name: str
    mtus: list
    # Shell commands after the hosts are there.
    variant: str
    pmtu: object
    # Kinds that are right; by mode where they differ.
    kinds: object
    # Addresses of the hop that is right; None where there is none.
    hop: object = None
    # Modes in which it is asked; all, if not said.
    modes: list = field(default_factory=lambda: MODES)
    port: int = 0
    pause: float = 0.0
    args: str = ""
    # What the answer says of the way back; not looked at, if not said.
    reverse: object = ...
    # Forget what the server has learnt, too, before every run.
    fresh: bool = False
    rtt_ms: float = 20.0


def v4_only(modes=MODES):
    return [mode for mode in modes if not mode.endswith("6")]


def rows():
    listed = []
    add = lambda *args, **more: listed.append(Row(*args, **more))
    path = lambda mtu: [1500, 1500, mtu, 1500, 1500]
    silent_r2, all_silent = "silent r2", "silent r1 r2 r3 r4"
    for mtu in (1280, 1427, 1496):
        add(f"{mtu} clean", path(mtu), "", mtu, {"clean"})
        add(f"{mtu} hole", path(mtu), silent_r2, mtu, {"black-hole"}, R2)
        add(f"{mtu} all silent", path(mtu), all_silent, mtu, {"black-hole"}, R2)
        add(f"{mtu} words rationed, run after run", path(mtu), "ration_words", mtu, {"rate-limited", "clean"})
        add(f"{mtu} words and hops rationed, run after run", path(mtu), "ration_all", mtu, {"rate-limited", "clean"})
    add("1427 words rationed, 3 s between", path(1427), "ration_words", 1427, {"rate-limited", "clean"}, pause=3.0)
    add("1427 the kernel's own limits", path(1427), "usual_limits", 1427, {"clean"})
    for mtu in (576, 577, 800, 1006, 1100, 1200):
        add(f"{mtu} clean", path(mtu), "", mtu, {"clean"}, modes=v4_only())
    add("1006 hole", path(1006), silent_r2, 1006, {"black-hole"}, R2, modes=v4_only())
    add("1006 all silent", path(1006), all_silent, 1006, {"black-hole"}, R2, modes=v4_only())
    for mtu in (575, 552, 296, 68):
        add(f"{mtu} clean", path(mtu), "", mtu, {"clean"}, modes=v4_only())
    for mtu in (552, 296):
        add(f"{mtu} hole", path(mtu), silent_r2, mtu, {"black-hole"}, R2, modes=v4_only())
    # Without ping there are streams and UDP: where the streams' limit is unknown and UDP's answers run out, it isn't known.
    unknown = {"root": 552, "pinging": 552, "nobody": {552, None}}
    kinds = {"root": {"rate-limited", "clean"}, "pinging": {"rate-limited", "clean"}, "nobody": {"rate-limited", "clean", None}}
    add("552 words rationed", path(552), "ration_words", unknown, kinds, modes=v4_only())
    jumbo = lambda mtu: [9000, 9000, mtu, 9000, 9000]
    add("9000 with 8146 clean", jumbo(8146), "", 8146, {"clean"})
    add("9000 with 8146 hole", jumbo(8146), silent_r2, 8146, {"black-hole"}, R2)
    add("9000 with 1427 hole", jumbo(1427), silent_r2, 1427, {"black-hole"}, R2)
    back = "narrow_back 1300"
    add("1400 there, 1300 back, clean", path(1400), back, 1400, {"clean"}, reverse={1300, None}, fresh=True)
    # Who reads no quotations can't tell what the server has learnt from what somebody lowers: `clamped` then names no hop.
    either = {mode: {"clean", "clamped"} if not mode.startswith("root") else {"clean"} for mode in MODES}
    add("1400 there, 1300 back, not forgotten", path(1400), back, 1400, either, reverse={1300, None})
    add("1400 there, 1300 back, holes", path(1400), f"{back}; silent r2 r3", 1400, {"black-hole"}, R2, reverse={1300, None})
    add("passes 1400, says 1300", [1500] * 5, "liar 1400 1300", 1400, {"lying-router"}, R2)
    add("passes 1400, says 1450", [1500] * 5, "liar 1400 1450", 1400, {"lying-router"}, R2)
    for said in (0, 1, 9000, 68):
        modes = v4_only() if said == 1 else MODES
        # Linux takes 0 as 552, and packets get through then: a lie, no silence.
        add(f"passes 1400, says {said}", [1500] * 5, f"liar 1400 {said}", 1400, {"lying-router"}, R2, modes=modes)
    unheard = {mode: {"clean", "icmp-blocked"} if mode.startswith("nobody") else {"icmp-blocked"} for mode in MODES}
    add("no echo", path(1427), "no_echo", 1427, unheard)
    add("no echo, port 443 alone", path(1427), "no_echo", 1427, unheard, port=443)
    add("no echo, hole", path(1427), f"no_echo; {silent_r2}", 1427, {"black-hole"}, R2)
    refused = {mode: {"icmp-blocked"} if mode.startswith("root") else {None} for mode in MODES}
    add("no echo, port closed", path(1427), "closed", {mode: 1427 if mode.startswith("root") else None for mode in MODES},
        refused, port=81)
    add("no answer at all", path(1427), "dead", None, {None}, port=81)
    add("two holes, 1496 and 1427", [1500, 1496, 1500, 1427, 1500], "silent r1 r3", 1427, {"black-hole"}, R3)
    add("told of 1496, then a hole of 1427", [1500, 1496, 1500, 1427, 1500], "silent r3", 1427, {"black-hole"}, R3)
    add("a hole of 1496, then told of 1427", [1500, 1496, 1500, 1427, 1500], "silent r1", 1427, {"black-hole"}, R1)
    clamp = "rules r2 forward 'tcp flags syn tcp option maxseg size set 1200'"
    add("MSS clamped to 1200", [1500] * 5, clamp, 1500, {"clamped"})
    clamp = "rules r2 forward 'tcp flags syn tcp option maxseg size set 1360'"
    add("clamped to 1360, and 1427", path(1427), clamp, 1427, {"clamped"})
    cleared = {mode: {"df-cleared"} if mode.startswith("root") else {"df-cleared", "clean"} for mode in MODES}
    clear = "rules r1 forward 'ip frag-off set 0'"
    add("DF cleared before 1400", path(1400), clear, 1500, cleared, modes=v4_only(), fresh=True)
    add("DF cleared before 1400, not forgotten", path(1400), clear, 1500, cleared, modes=v4_only())
    narrow = {"narrow-branch", "black-hole", "size-dependent-loss"}
    add("a narrow branch, 24 connections", [1500] * 5, "balanced 1400", {1500, 1400}, narrow, args="--flows 24", hop=...)
    for lost in (2, 5, 10):
        add(f"{lost} % lost each way, hole", path(1427), f"{silent_r2}; lose {lost}", 1427, {"black-hole"}, ...)
        add(f"{lost} % lost each way, clean", path(1427), f"lose {lost}", 1427, {"clean", "rate-limited"})
    return listed


def right(expected, mode, got):
    expected = expected.get(mode) if isinstance(expected, dict) else expected
    return got in expected if isinstance(expected, (set, frozenset)) else got == expected


def link(row):
    half = row.rtt_ms / 2
    ways = "\n".join(f'{way} = {{ rate = "1gbit", delay = "{half}ms" }}' for way in ("down", "up"))
    return f'title = "delay"\nsource = "the matrix"\n[[link]]\nname = "d"\nmtu = {row.mtus[1]}\n{ways}\n'


def script(row, runs):
    ports = "80 443"
    lines = ["set -eu", f'. "{MATRIX}/hosts.sh"', "hosts " + " ".join(map(str, row.mtus)), f"serve {ports}", row.variant]
    for mode in row.modes:
        who, version = mode.split()[0], V6 if mode.endswith("6") else V4
        to = version if not row.port else f"[{version}]:{row.port}" if ":" in version else f"{version}:{row.port}"
        group = "0 0" if who == "pinging" else "1 0"
        lines.append(f"at c sysctl -qw net.ipv4.ping_group_range='{group}'")
        call = "at c" if who == "root" else "unprivileged"
        lines.append("forget")
        for run in range(runs):
            if row.fresh:
                lines.append("forget")
            elif run % 2 == 0:
                lines.append("flush")
            if row.pause:
                lines.append(f"sleep {row.pause}")
            lines.append(f"printf '\\036%s\\n' '{mode}'")
            lines.append(f'{call} "$WT" mtu --json {row.args} {to} || echo "{{\\"exit\\": $?}}"')
    return "\n".join(lines)


def asked(binary, row, runs):
    with tempfile.TemporaryDirectory(prefix="probe-matrix-") as home:
        scenario = pathlib.Path(home) / "link.toml"
        scenario.write_text(link(row))
        env = {**os.environ, "WT": binary, "TMPDIR": home, "MATRIX": str(MATRIX), "HOME": home, "XDG_STATE_HOME": home,
               "XDG_DATA_HOME": home, "XDG_CACHE_HOME": home}
        ran = subprocess.run([binary, "lab", "run", str(scenario), "--", "sh", "-c", script(row, runs)], env=env,
                             capture_output=True, text=True, check=False)
    answers = []
    for part in ran.stdout.split("\x1e")[1:]:
        mode, _, text = part.partition("\n")
        try:
            answers.append((mode, json.JSONDecoder().raw_decode(text.lstrip())[0]))
        except ValueError:
            answers.append((mode, {"garbled": text}))
    if len(answers) != runs * len(row.modes):
        print(f"{row.name}: {len(answers)} answers\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}", file=sys.stderr)
    return answers


def wrong(row, mode, answer):
    """What is wrong with an answer, in a few words."""
    faults = []
    if "garbled" in answer:
        return ["garbled"]
    if not right(row.pmtu, mode, answer.get("pmtu")):
        faults.append(f"pmtu {answer.get('pmtu')}")
    kind = answer.get("kind") if answer.get("pmtu") is not None else None
    if not right(row.kinds, mode, kind):
        faults.append(f"kind {answer.get('kind')}")
    hop = (answer.get("black_hole_hop") or {}).get("address")
    if row.hop is not ... and (hop is None) != (row.hop is None) or isinstance(row.hop, set) and hop not in row.hop:
        faults.append(f"hop {hop}")
    if row.reverse is not ... and answer.get("reverse_pmtu") not in row.reverse:
        faults.append(f"reverse {answer.get('reverse_pmtu')}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())
    total, all_faults, kept = 0, 0, []
    print(f"{'path':44} " + " ".join(f"{mode:>15}" for mode in MODES))
    for row in rows():
        if options.only not in row.name:
            continue
        answers = asked(binary, row, options.runs)
        cells, examples = [], {}
        for mode in MODES:
            of_mode = [answer for asked_as, answer in answers if asked_as == mode]
            if mode not in row.modes:
                cells.append("–")
                continue
            faults = [wrong(row, mode, answer) for answer in of_mode]
            bad = sum(bool(one) for one in faults) + options.runs - len(of_mode)
            for one in faults:
                if one:
                    text = ", ".join(one)
                    examples[f"{mode}: {text}"] = examples.get(f"{mode}: {text}", 0) + 1
            total, all_faults = total + options.runs, all_faults + bad
            seconds = [answer["seconds"] for answer in of_mode if "seconds" in answer]
            packets = [answer["packets"] for answer in of_mode if "packets" in answer]
            took = f" {statistics.median(seconds):.2f}s {max(packets)}p" if seconds else ""
            cells.append(f"{options.runs - bad}/{options.runs}{took}")
        kept.append({"row": row.name, "answers": answers})
        print(f"{row.name:44} " + " ".join(f"{cell:>15}" for cell in cells), flush=True)
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(kept, indent=1))
        for text, count in sorted(examples.items()):
            print(f"    {count} times {text}", flush=True)
    print(f"{all_faults} of {total} answers wrong")
    sys.exit(1 if all_faults else 0)


main()
