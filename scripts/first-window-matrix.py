#!/usr/bin/env python3
"""First windows of odd servers: is every "exactly" right, and no "at least" too large?

scripts/first-window-matrix.py BIN [--paths 10,20,60,20/2] [--only TEXT] [--json FILE]

Servers that trickle, stream events, run CGI programs, write in pieces, pause, send little or have a short buffer, with windows of 1 to
32 segments and three congestion controls, over paths of so many milliseconds (and per cent lost each way), asked as root and by an
ordinary user's connections. Everything is in a lab of BIN, so it needs neither root nor a network. Ends with 1 if anything was wrong.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WINDOWS = (1, 2, 3, 4, 7, 10, 16, 25, 32)
CONTROLS = ("cubic", "bbr", "reno")
TRICKLES = [f"slow/{size}/{pause}" for size in (1, 7, 40, 60, 63, 64, 65, 200, 1240) for pause in (5, 20, 50, 80, 150, 300)]
EVENTS = [f"{kind}/{pause}" for kind in ("sse", "cgi", "cgi-lines") for pause in (5, 30, 100, 400)]
PIECES = [f"pieces/{count}/{size}/{pause}" for count in (1, 3, 9) for size in (30, 64, 500) for pause in (40, 250)]
PAUSES = [f"pause/{size}/{pause}" for size in (200, 3000, 12000) for pause in (15, 60, 300)]
SIZES = [f"small/{size}" for size in (0, 1, 500, 1400, 3000, 14000, 40000)]
OTHERS = ["big", "chunked/100", "chunked/1400", "chunked/20000", "sndbuf/2000", "sndbuf/20000", "redirect", "missing", "no-length"]
ASKED = TRICKLES + EVENTS + PIECES + PAUSES + SIZES + OTHERS

SCRIPT = r"""
set -e
mkfifo ready
k=0
for cc in %(controls)s; do for iw in %(windows)s; do
    k=$((k+1))
    ip netns exec server ip route add default dev wt0 table $((100 + k)) initcwnd $iw congctl $cc
    ip netns exec server ip addr add 10.3.$k.1/32 dev lo
    ip netns exec server ip rule add from 10.3.$k.1 table $((100 + k))
done; done
ip netns exec server python3 %(server)s ready & served=$!
read -r _ < ready || true
"$WT" first-window %(how)s --file hosts --json-stream > found || echo "ended with $?" >&2
kill $served
"""


def link(rtt, lost):
    loss = f', loss = "{lost}%"' if lost else ""
    way = f'{{ rate = "1gbit", delay = "{rtt / 2}ms"{loss} }}'
    return f'title = "delay"\nsource = "the matrix"\n[[link]]\nname = "d"\nmtu = 1500\ndown = {way}\nup = {way}\n'


def asked(binary, path, how, behaviours):
    rtt, _, lost = path.partition("/")
    with tempfile.TemporaryDirectory(prefix="first-window-") as home:
        folder = pathlib.Path(home)
        (folder / "path.toml").write_text(link(float(rtt), lost))
        rows = [(f"10.3.{k}.1", window) for k, window in enumerate([w for _ in CONTROLS for w in WINDOWS], 1)]
        (folder / "hosts").write_text("".join(f"http://{host}:8080/{what} {window}\n" for what in behaviours for host, window in rows))
        script = SCRIPT % {"controls": " ".join(CONTROLS), "windows": " ".join(map(str, WINDOWS)), "how": how,
                           "server": HERE / "first-window-matrix" / "server.py"}
        env = {**os.environ, "WT": binary, "HOME": home, "XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home, "XDG_STATE_HOME": home,
               "XDG_CACHE_HOME": home}
        ran = subprocess.run([binary, "lab", "run", "path.toml", "--", "sh", "-c", script], env=env, cwd=home, capture_output=True,
                             text=True, check=False)
        found = folder / "found"
        lines = found.read_text().splitlines() if found.exists() else []
    answers = [json.loads(line) for line in lines if line.startswith("{")]
    if len(answers) != len(behaviours) * len(rows):
        print(f"{len(answers)} answers of {len(behaviours) * len(rows)}\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}", file=sys.stderr)
    return answers


def judged(answer):
    window, segments = int(answer["provider"]), answer["segments"]
    if answer["verdict"] == "exact":
        return "exact" if segments == window else "exact, wrong"
    if answer["verdict"] == "at-least":
        return "at least" if segments <= window else "at least, wrong"
    return "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--paths", default="10,20,60,20/2")
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())
    behaviours = [one for one in ASKED if options.only in one]
    names = ["exact", "at least", "unknown", "exact, wrong", "at least, wrong"]
    print(f"{'path, asked as':28} " + " ".join(f"{name:>16}" for name in names))
    wrong, kept, expected = 0, [], len(behaviours) * len(WINDOWS) * len(CONTROLS)
    for path in options.paths.split(","):
        for who, how in (("root", ""), ("an ordinary user", "--unprivileged")):
            answers = asked(binary, path, how, behaviours)
            counts = collections.Counter(map(judged, answers))
            print(f"{path + ' ms, ' + who:28} " + " ".join(f"{counts[name]:16}" for name in names), flush=True)
            for answer in answers:
                if "wrong" in judged(answer):
                    print(f"    {answer['url']} is {answer['provider']}: {answer['verdict']} {answer['segments']}: {answer['why']}")
            wrong += counts["exact, wrong"] + counts["at least, wrong"] + expected - len(answers)
            kept.append({"path": path, "who": who, "answers": answers})
            if options.json:
                pathlib.Path(options.json).write_text(json.dumps(kept, indent=1))
    print(f"{wrong} wrong or missing")
    sys.exit(1 if wrong else 0)


main()
