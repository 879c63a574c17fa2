#!/usr/bin/env python3
"""How much faster a table of predictions is on all processors than on one: make sweep-bench.

Usage: scripts/sweep-bench.py WINDTUNNEL [ROWS [TURNS]]

ROWS (1,000,000) paths with three predictions each, in turn on one processor, on all of them, and as one process for each processor, which is
what the machine itself allows: processors share memory and clock. Tables and answers are in memory (/dev/shm). The answers must be the same.
"""
import filecmp
import os
import statistics
import subprocess
import sys
import tempfile
import time


def main():
    program = os.path.realpath(sys.argv[1])
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    turns = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    processors = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        with open(f"{folder}/paths.csv", "w", encoding="ascii") as table:
            table.write("link_rate,rtt\n")
            for row in range(rows):
                table.write(f"{10 + row % 1000}mbit,{5 + row // 1000 % 1000 * 0.1:.1f}ms\n")
        command = [program, "predict", "--table", f"{folder}/paths.csv", "--knobs", "cc", "--size", "30kB"]

        def took(*commands):
            began = time.monotonic()
            started = [subprocess.Popen(one, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for one in commands]
            if any(one.wait() != 0 for one in started):
                sys.exit(f"failed: {commands}")
            return time.monotonic() - began

        times = []
        count = len(processors)
        for turn in range(turns):
            one = took(["taskset", "-c", str(processors[turn % count]), *command, "--out", f"{folder}/one.csv"])
            together = took([*command, "--out", f"{folder}/all.csv"])
            if not filecmp.cmp(f"{folder}/one.csv", f"{folder}/all.csv", shallow=False):
                sys.exit("the answers differ")
            apart = took(*([*command, "--threads", "1", "--shard", f"{shard}/{count}", "--out", f"{folder}/{shard}.csv"] for shard in range(1, count + 1)))
            times.append((one, together, apart))
            print(f"    one processor {one:.2f} s, all {count} {together:.2f} s, a process for each {apart:.2f} s", flush=True)
    one, together, apart = (statistics.median(column) for column in zip(*times))
    goal = 0.95 * count
    print(f"{rows} rows on {count} processors: ×{one / together:.2f} the rows a second of one (goal ≥ {goal:.2f}, ratio {one / together / goal:.2f}); processes apart ×{one / apart:.2f}")
    sys.exit(0 if one / together >= goal else 1)


if __name__ == "__main__":
    main()
