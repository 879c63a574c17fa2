#!/usr/bin/python3
"""What Python costs on top of the program, and how fast metrics are read while a trial runs: make adoption-bench.

Usage: scripts/adoption-bench.py WINDTUNNEL

Each line: figure, goal, and their ratio. Commands and their Python are run in turn, so that a busy machine slows both.
"""
import csv
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = 10_000
TURNS = 5
SCRAPES = 200


def line(what, figure, unit, goal):
    """One figure that should be at most its goal; whether it is."""
    print(f"{what:<62} {figure:9.2f} {unit:<3} goal ≤ {goal:g}, ratio {figure / goal:.2f}", flush=True)
    return figure <= goal


def rows():
    """Paths of a table: 10 to 109 Mbit/s, 10 to 109 ms."""
    return [{"link_rate": f"{10 + row % 100}mbit", "rtt": f"{10 + row // 100}ms"} for row in range(ROWS)]


def python(program):
    """The ratio of predict() to its command, for the same table; memory and start of the interpreter aside."""
    import pandas
    import windtunnel

    asked = rows()
    frame = pandas.DataFrame(asked)
    text = io.StringIO()
    writer = csv.DictWriter(text, ["link_rate", "rtt"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asked)
    given = text.getvalue().encode()
    command = [program, "predict", "--table", "-", "--knobs=cc", "--size=300kB"]
    ratios = []
    for turn in range(TURNS + 1):
        began = time.perf_counter()
        said = subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True).stdout
        middle = time.perf_counter()
        answer = windtunnel.predict(frame, knobs="cc", size="300kB")
        ended = time.perf_counter()
        if len(answer) != said.count(b"\n") - 1:
            sys.exit(f"{len(answer)} rows in Python, {said.count(10) - 1} by the command")
        # The first turn brings both into the cache.
        if turn > 0:
            ratios.append((ended - middle) / (middle - began))
            print(f"    the command {middle - began:.2f} s, Python {ended - middle:.2f} s", flush=True)
    return line(f"predict of {ROWS} rows in Python, of the command's own time", statistics.median(ratios), "", 1.2)


def scrapes(program, home):
    """How long /metrics of web takes while a trial runs and its journal is written."""
    environment = dict(os.environ, HOME=home, XDG_DATA_HOME=home, XDG_RUNTIME_DIR=home)
    server = subprocess.Popen([program, "web", "--listen", "127.0.0.1:0", "--json"], env=environment, stdout=subprocess.PIPE, text=True)
    trial = None
    try:
        url = json.loads(server.stdout.readline())["url"].rstrip("/") + "/metrics"
        # Something must have been measured for a target to have series.
        tune = [program, "tune", "--lab", "adsl", "--knobs", "cc", "--trial", "500ms", "--quiet"]
        subprocess.run([*tune, "--budget", "8 trials"], env=environment, stdout=subprocess.DEVNULL, check=False)
        trial = subprocess.Popen([*tune, "--budget", "5min"], env=environment, stdout=subprocess.DEVNULL)
        time.sleep(2)
        took = []
        for _ in range(SCRAPES):
            began = time.perf_counter()
            text = urllib.request.urlopen(url).read().decode()
            took.append(1e3 * (time.perf_counter() - began))
            if trial.poll() is not None:
                sys.exit("the experiment ended before all scrapes were done")
            time.sleep(0.05)
        if 'tunnel="lab"' not in text or "windtunnel_journal_up 1" not in text:
            sys.exit("the metrics don't tell of the experiment")
    finally:
        for process in filter(None, (trial, server)):
            process.terminate()
            process.wait()
    took.sort()
    print(f"    {SCRAPES} scrapes: median {statistics.median(took):.2f} ms, longest {took[-1]:.2f} ms", flush=True)
    return line("a scrape of /metrics during a trial, 99 of 100 within", took[len(took) * 99 // 100 - 1], "ms", 10)


def main():
    program = os.path.realpath(sys.argv[1])
    os.environ["WINDTUNNEL"] = program
    sys.path.insert(0, str(ROOT / "python" / "src"))
    with tempfile.TemporaryDirectory() as home:
        held = [python(program), scrapes(program, home)]
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
