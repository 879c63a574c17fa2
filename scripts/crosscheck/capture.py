#!/usr/bin/env python3
"""Lays the figures of `windtunnel analyse --json` beside those of tshark's TCP analysis, on captures of the lab.

    capture.py BINARY

Every capture is of one end of one connection. Counts must be the same, RTTs within 2 % at the median. Where the two differ on
purpose both figures are shown and what must hold instead is checked: retransmissions and "out of order" together, fast
and spurious retransmissions at least tshark's. Ends with code 1 if something doesn't hold.
"""
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PATH = """title = "crosscheck"
source = "made for the crosscheck"
[[link]]
name = "l"
mtu = 1500
down = { %s }
up = { %s }
"""
CASES = {
    "clean": ('rate = "20mbit", delay = "15ms"', 'rate = "5mbit", delay = "15ms"', "curl -s -o /dev/null http://server/bytes/3MB"),
    "loss": ('rate = "20mbit", delay = "15ms", loss = "1%"', 'rate = "5mbit", delay = "15ms", loss = "0.3%"', "curl -s -o /dev/null http://server/bytes/3MB"),
    "small window": ('rate = "20mbit", delay = "30ms"', 'rate = "5mbit", delay = "30ms"', "sysctl -qw net.ipv4.tcp_rmem='4096 16384 16384'; curl -s -o /dev/null http://server/bytes/500000"),
    "slow reader": ('rate = "20mbit", delay = "15ms"', 'rate = "5mbit", delay = "15ms"', "curl -s http://server/bytes/6MB | (sleep 2; cat > /dev/null)"),
}
SAME = {
    "duplicate_ack": "duplicate_acks",
    "lost_segment": "gaps",
    "ack_lost_segment": "acked_unseen",
    "zero_window": "zero_windows",
    "window_full": "window_full",
    "window_update": "window_updates",
    "zero_window_probe": "zero_window_probes",
    "keep_alive": "keep_alives",
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def tshark(file, condition):
    return len(run("tshark", "-n", "-r", file, "-Y", condition).splitlines())


def values(file, field):
    return [float(line) for line in run("tshark", "-n", "-r", file, "-Y", field, "-T", "fields", "-e", field).split()]


def main():
    binary = str(Path(sys.argv[1]).resolve())
    bad = 0

    def show(case, what, ours, theirs, holds):
        nonlocal bad
        bad += not holds
        print(f"{case:<24} {what:<28} {ours!s:>12} {theirs!s:>12}  {'' if holds else 'DIFFERS'}")

    print(f"{'capture':<24} {'figure':<28} {'windtunnel':>12} {'tshark':>12}")
    with tempfile.TemporaryDirectory() as place:
        for name, (down, up, command) in CASES.items():
            (Path(place) / "path.toml").write_text(PATH % (down, up))
            both = f"{place}/both.pcapng"
            run(binary, "lab", "run", f"{place}/path.toml", "--record", both, "--", "sh", "-c", command)
            for place_of_capture, end in enumerate(["client", "server"]):
                one = f"{place}/one.pcapng"
                run("tshark", "-n", "-r", both, "-Y", f"frame.interface_id == {place_of_capture}", "-w", one)
                seen = json.loads(run(binary, "analyse", one, "--json"))["connections"][0]
                sent = [seen["client"]["sent"], seen["server"]["sent"]]
                case = f"{name}, at the {end}"
                for theirs, ours in SAME.items():
                    ours, theirs_count = sum(s[ours] for s in sent), tshark(one, f"tcp.analysis.{theirs}")
                    show(case, theirs, ours, theirs_count, ours == theirs_count)
                again = "tcp.analysis.retransmission or tcp.analysis.fast_retransmission or tcp.analysis.spurious_retransmission"
                ours = sum(s["retransmissions"] + s["out_of_order"] for s in sent)
                theirs = tshark(one, f"{again} or tcp.analysis.out_of_order")
                show(case, "retransmitted or reordered", ours, theirs, ours == theirs)
                ours, theirs = sum(s["fast_retransmissions"] for s in sent), tshark(one, "tcp.analysis.fast_retransmission")
                show(case, "fast (at least)", ours, theirs, ours >= theirs)
                ours = sum(s["spurious_retransmissions"] for s in sent)
                theirs = tshark(one, "tcp.analysis.spurious_retransmission")
                show(case, "spurious (at least)", ours, theirs, ours >= theirs)
                first = values(one, "tcp.analysis.initial_rtt")
                ours, theirs = seen["handshake"]["rtt_us"] / 1e6, first[0]
                show(case, "handshake RTT, s", f"{ours:.6f}", f"{theirs:.6f}", abs(ours - theirs) < 2e-6)
                port = seen["client"]["address"].rsplit(":", 1)[1]
                acks = [float(line.split("\t")[1]) for line in run(
                    "tshark", "-n", "-r", one, "-Y", f"tcp.analysis.ack_rtt and tcp.srcport == {port}", "-T", "fields",
                    "-e", "frame.number", "-e", "tcp.analysis.ack_rtt").splitlines()]
                ours, theirs = seen["client"]["rtt"]["median_us"] / 1e6, statistics.median(acks)
                show(case, "RTT to the client, median, s", f"{ours:.6f}", f"{theirs:.6f}", abs(ours - theirs) <= 0.02 * theirs + 5e-6)
    print("everything holds" if bad == 0 else f"{bad} figures differ")
    sys.exit(bad > 0)


main()
