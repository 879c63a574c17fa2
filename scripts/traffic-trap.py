#!/usr/bin/env python3
"""The trap of experiments by connection, on real kernels: what one connection gains, another may lose. make traffic-trap.

Usage: scripts/traffic-trap.py WINDTUNNEL [MINUTES]

Root. Eight clients share a link of 20 Mbit/s with an RTT of 30 ms and a queue of 100 kB, and download 300 kB again and again. In two such labs,
for MINUTES (12):
1. By connection: half of the connections get bbr beside cubic. The ratio is above 1, and the report says that it is claimed beside others only.
2. By slots of 40 s: everybody has cubic or everybody has bbr. If the first ratio were a gain for everybody, it would be here, too.
Says both reports, and ends with code 1 where bbr isn't 15 % ahead by connection, the slots show half of what the connections did, or more, or the
report doesn't say of whom it claims it.
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
    while :; do curl -s -o /dev/null -H 'Connection: close' http://server/bytes/300kB || sleep 1; done & clients="$clients $!"
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
            "--private", "--for", f"{minutes}m", "--quiet", "--json", "--beside-programs", *words]
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
    binary, minutes = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "12"
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = os.environ["HOME"] = folder
        folder = pathlib.Path(folder)
        (folder / "shared.toml").write_text(PATH)
        ways = (("--unit", "connection", "--epoch", "10s", "--age", "30s"), ("--unit", "slot", "--epoch", "40s", "--burn-in", "15s", "--age", "30s"))
        with ThreadPoolExecutor() as both:
            beside, slots = both.map(lambda words: run(binary, folder, minutes, *words), ways)
    ratios = [report["effects"][0]["ratio"] for report in (beside, slots)]
    print(f"by connection ×{ratios[0]:.2f}, claimed {beside['verdict']['claim']}; by slots ×{ratios[1]:.2f}, {slots['verdict']['kind']}")
    if beside["verdict"]["claim"] != "beside" or slots["verdict"]["claim"] != "everybody":
        sys.exit("the reports don't say of whom they claim something")
    if ratios[0] < 1.15 or ratios[1] > 1 + (ratios[0] - 1) / 2:
        sys.exit("the slots show as much as the connections: this isn't the trap")


main()
