#!/usr/bin/env python3
"""The trap of experiments by connection, on real kernels: what one connection gains, another may lose. make traffic-trap.

Usage: scripts/traffic-trap.py WINDTUNNEL [MINUTES]

Root. Eight clients share a link of 20 Mbit/s with an RTT of 30 ms and a queue of 100 kB (1.3 times the bandwidth-delay product), and download 600 kB
again and again. In two such labs at once, for MINUTES (14.4):
1. By connection: half of the connections get bbr beside cubic.
2. By slots of 36 s, of which the first 8 s don't count: everybody has cubic, or everybody has bbr.

Why so, decided before the first run in this form: a download's fair share of 2.5 Mbit/s takes it 2 s, 65 round trips, in which bbr, which doesn't heed
the losses of a queue so short, goes through its cycle of 8 round trips several times. If times spread by a third, nine of ten downloads take less than 3.1 s: a slot is
ten times that and more, its burn-in twice. 24 slots are 12 pairs; fewer than 8 can show nothing. Whoever has which: the link is full, so that all
together get the same.

Says both reports, and ends with code 1 unless, with all intervals at evidence 40 : 1,
- bbr is at least 1.2 times as fast by connection, and the report says that it is claimed beside others only;
- the slots' whole interval lies below the connections' whole interval: no such gain is there for everybody, and they say that they speak of everybody.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

PATH = """title = "a shared link"
source = "an example"
[[link]]
name = "shared"
mtu = 1500
down = { rate = "20mbit", delay = "15ms", queue = "100kB" }
up = { rate = "20mbit", delay = "15ms", queue = "100kB" }
"""
# Ends when its standard input does.
INSIDE = """
ip netns exec server sleep infinity & keeper=$!
echo "keeper $keeper"
for client in 1 2 3 4 5 6 7 8; do
    while :; do curl -s -o /dev/null -H 'Connection: close' http://server/bytes/600kB || sleep 1; done & clients="$clients $!"
done
cat
kill $clients $keeper
"""


def servers_network(lab):
    """The network of the server, as a file that `nsenter` takes: where the keeper of the lab's server runs."""
    line = lab.stdout.readline().split()
    assert line[:1] == ["keeper"], line
    until = time.monotonic() + 20
    mine = os.readlink("/proc/self/ns/net")
    of_lab = os.readlink(f"/proc/{lab.pid}/ns/net")
    while time.monotonic() < until:
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                arguments = (process / "cmdline").read_bytes().split(b"\0")
                network = os.readlink(process / "ns/net")
            except OSError:
                continue
            if arguments[:2] == [b"sleep", b"infinity"] and network not in (mine, of_lab) and descends(process.name, lab.pid):
                return f"{process}/ns/net"
        time.sleep(0.05)
    sys.exit("the lab's server wasn't found")


def descends(pid, ancestor):
    while pid not in ("0", ""):
        if int(pid) == ancestor:
            return True
        try:
            pid = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
        except OSError:
            return False
    return False


def run(binary, folder, minutes, *words):
    lab = subprocess.Popen([binary, "lab", "run", str(folder / "shared.toml"), "--", "sh", "-c", INSIDE], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True)
    network = servers_network(lab)
    argv = ["nsenter", f"--net={network}", binary, "traffic", "start", "--port", "80", "--levels", "cc=cubic,bbr", "--no-ramp",
            "--private", "--for", f"{60 * float(minutes):.0f}s", "--quiet", "--json", "--beside-programs", *words]
    report = json.loads(subprocess.run(argv, capture_output=True, text=True, check=False).stdout)
    lab.stdin.close()
    lab.wait()
    print(subprocess.run([binary, "traffic", "report", report["id"]], capture_output=True, text=True, check=False).stdout, flush=True)
    return report


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if os.geteuid():
        sys.exit("this needs root: BPF programs are attached to a server's connections")
    binary, minutes = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "14.4"
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = os.environ["HOME"] = folder
        folder = pathlib.Path(folder)
        (folder / "shared.toml").write_text(PATH)
        ways = (("--unit", "connection", "--epoch", "10s", "--age", "20s"), ("--unit", "slot", "--epoch", "36s", "--burn-in", "8s", "--age", "20s"))
        with ThreadPoolExecutor() as both:
            beside, slots = both.map(lambda words: run(binary, folder, minutes, *words), ways)
    found = [report["effects"][0] for report in (beside, slots)]
    for name, report, effect in zip(("by connection", "by slots"), (beside, slots), found):
        low, high = (f"{effect[end]:.2f}" if effect[end] is not None else "?" for end in ("low", "high"))
        overall = [sum(one["arms"][arm]["overall_bps"] or 0 for one in report["classes"]) for arm in (0, 1)]
        print(f"{name} ×{effect['ratio']:.2f} ({low} to {high}), {report['verdict']['kind']}, claimed {report['verdict']['claim']}; "
              f"all bytes over all time {overall[0] / 1e6:.2f} and {overall[1] / 1e6:.2f} Mbit/s")
    if beside["verdict"]["claim"] != "beside" or slots["verdict"]["claim"] != "everybody":
        sys.exit("the reports don't say of whom they claim something")
    if found[0]["low"] is None or found[0]["low"] < 1.2:
        sys.exit("bbr isn't shown to be 1.2 times as fast by connection")
    if found[1]["high"] is None or found[1]["high"] >= found[0]["low"]:
        sys.exit("the slots don't exclude what the connections show: the trap isn't shown")


main()
