#!/usr/bin/env python3
"""Agents of a fleet under attack, in full: make fleet-soak (root).

Usage: scripts/fleet-soak.py WINDTUNNEL [SECONDS [AWAY]]

Eight agents in network namespaces of their own measure to one server over three links of 8 Mbit/s, each agent over two of them. Every second one
of them is killed with -9 (with the experiment it runs) and started again, or stopped for longer than its turn lasts; the wall clocks of two are
an hour wrong; PostgreSQL is killed with -9 twice, and after SECONDS (300) is away for AWAY (120): no data may pass once the turns of then
are over, and what had ended is there 30 s after its return. Every data packet on the links is noted where the link begins. At the end:
no two agents were on a link within a round trip of each other; both journals hold the same trials; pushing again adds none; nothing is left
as running. Prints the figures; exit code 1 if something doesn't hold.
"""
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from own_postgres import Server

AGENTS = [f"a{n}" for n in range(8)]
LINKS = 3
TURN = 2.0
STOP = 3.0
# Ends with this script, whatever ends it.
WITH_US = ["setpriv", "--pdeathsig", "KILL"]
# What waits in a link's queue is older than this never: the longest that a round trip can be on it.
QUEUE_MS = 40
# Shorter packets are requests, acknowledgements and answers.
DATA = 500
WRONG = {"a1": "+1h", "a2": "-1h"}


class Namespace:
    """A network namespace that lives as long as a process of ours."""

    def __init__(self):
        self.holder = subprocess.Popen([*WITH_US, "unshare", "--net", "sleep", "infinity"])
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        self.run("ip", "link", "set", "lo", "up")

    def prefix(self):
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net"]

    def run(self, *words):
        subprocess.run([*self.prefix(), *words], check=True, stdout=subprocess.DEVNULL)


def join(one, name, other, peer):
    one.run("ip", "link", "add", "name", name, "type", "veth", "peer", "name", peer, "netns", str(other.holder.pid))
    for space, device in ((one, name), (other, peer)):
        # As on a wire: one packet is one packet.
        space.run("ip", "link", "set", "dev", device, "up", "gso_max_segs", "1")


class Wire(threading.Thread):
    """Notes when whose data passes a link, at the server's end of it."""

    def __init__(self, space, device):
        super().__init__(daemon=True)
        self.passed, self.ends = [], False
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        there = os.open(f"/proc/{space.holder.pid}/ns/net", os.O_RDONLY)
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        libc.setns(there, 0x40000000)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
        self.socket.bind((device, 0))
        libc.setns(own, 0x40000000)
        os.close(own)
        os.close(there)
        self.socket.settimeout(0.5)
        # The kernel's own time of each packet.
        self.socket.setsockopt(socket.SOL_SOCKET, 35, 1)

    def run(self):
        while not self.ends:
            try:
                packet, extra, _, _ = self.socket.recvmsg(96, 64)
            except TimeoutError:
                continue
            except OSError:
                # The link went down with the script.
                return
            if packet[12:14] != b"\x08\x00" or packet[23] != 6:
                continue
            length = struct.unpack(">H", packet[16:18])[0]
            if length < DATA:
                continue
            seconds, nanoseconds = struct.unpack("qq", extra[0][2][:16])
            # The agent is whoever isn't the server, whose address ends with 1.
            host = packet[29] if packet[29] != 1 else packet[33]
            self.passed.append((seconds + nanoseconds / 1e9, host))


class Fleet:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.postgres = Server(folder)
        self.home = folder / "home"
        self.home.mkdir()
        self.run("fleet", "init", self.postgres.url)
        self.server = Namespace()
        self.spaces = {agent: Namespace() for agent in AGENTS}
        self.wires, self.switches = [], []
        for link in range(LINKS):
            switch = Namespace()
            switch.run("ip", "link", "add", "name", "wire", "type", "bridge")
            switch.run("ip", "link", "set", "wire", "up")
            join(switch, "server", self.server, f"link{link}")
            switch.run("ip", "link", "set", "server", "master", "wire")
            self.server.run("ip", "addr", "add", f"10.0.{link}.1/24", "dev", f"link{link}")
            for space, device in ((self.server, f"link{link}"), (switch, "server")):
                space.run("tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", "8mbit", "burst", "3200", "latency", f"{QUEUE_MS}ms")
            for number, agent in enumerate(AGENTS):
                if link in self.links_of(number):
                    join(switch, agent, self.spaces[agent], f"link{link}")
                    switch.run("ip", "link", "set", agent, "master", "wire")
                    self.spaces[agent].run("ip", "addr", "add", f"10.0.{link}.{number + 10}/24", "dev", f"link{link}")
            self.switches.append(switch)
            self.wires.append(Wire(switch, "server"))
        serve = [*WITH_US, *self.server.prefix(), binary, "serve", "--max-tests", "32"]
        serve += [word for link in range(LINKS) for word in ("--listen", f"10.0.{link}.1:7411")]
        self.serve = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.environment())
        key = next(line.strip().removeprefix("wt://").split("@")[0] for line in self.serve.stdout if line.strip().startswith("wt://"))
        (folder / "key").write_text(key)
        self.agents = {}
        for agent in AGENTS:
            self.run("fleet", "add", agent, self.postgres.url)
            keys = "".join(f'"10.0.{link}.1" = "{folder}/key"\n' for link in range(LINKS))
            (folder / f"{agent}.toml").write_text(
                f'server = "{self.postgres.url.replace("wt@", agent + "@")}"\njournal = "{folder}/{agent}.sqlite3"\n'
                f'targets = ["10.0.0.0/8"]\nturn = "{TURN:g}s"\npoll = "400ms"\n[keys]\n{keys}'
            )

    @staticmethod
    def links_of(number):
        return {number % LINKS, (number + 1) % LINKS}

    def environment(self):
        return {**os.environ, "XDG_DATA_HOME": str(self.home), "XDG_STATE_HOME": str(self.home), "HOME": str(self.home)}

    def run(self, *words):
        done = subprocess.run([self.binary, *words], check=False, capture_output=True, text=True, env=self.environment())
        if done.returncode:
            sys.exit(f"{' '.join(words)}: {done.stderr}")
        return done.stdout

    def mesh(self):
        text = 'name = "soak"\n'
        for number, agent in enumerate(AGENTS):
            for link in sorted(self.links_of(number)):
                text += (
                    f'[[measure]]\nfrom = ["{agent}"]\nto = ["wt://10.0.{link}.1"]\nlinks = ["link:{link}"]\nwithin = "0s"\nevery = "1min"\n'
                    'with = { levels = ["rwin=32KiB"], budget = "30 trials", trial = "300ms" }\n'
                )
        (self.folder / "mesh.toml").write_text(text)
        self.run("fleet", "run", str(self.folder / "mesh.toml"), self.postgres.url)

    def experiments(self, journal):
        return json.loads(self.run("journal", "list", "--limit", "100000", "--json", "--journal", str(journal)))["experiments"]

    def start(self, agent):
        environment = self.environment()
        if agent in WRONG:
            library = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
            environment.update(LD_PRELOAD=str(library), FAKETIME=WRONG[agent], FAKETIME_DONT_FAKE_MONOTONIC="1")
        with open(self.folder / f"{agent}.log", "a") as log:
            self.agents[agent] = subprocess.Popen(
                [*self.spaces[agent].prefix(), self.binary, "fleet", "agent", "--policy", str(self.folder / f"{agent}.toml")],
                stdout=subprocess.DEVNULL, stderr=log, env=environment,
            )

    def family(self, agent):
        """The agent and the experiment that it runs."""
        pid = self.agents[agent].pid
        try:
            return [pid, *map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
        except OSError:
            return [pid]

    def signal(self, agent, number):
        for pid in reversed(self.family(agent)):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def kill(self, agent):
        self.signal(agent, signal.SIGKILL)
        self.agents[agent].wait()

    def stop(self):
        for process in [*self.agents.values(), self.serve, *(space.holder for space in [self.server, *self.spaces.values(), *self.switches])]:
            process.kill()
            process.wait()
        self.postgres.stop()


def attack(fleet, seconds):
    """Kills and stops for so long; how often which."""
    counts = {"killed": 0, "stopped": 0, "servers killed": 0}
    begun, stopped = time.monotonic(), {}
    while (passed := time.monotonic() - begun) < seconds:
        for agent, until in list(stopped.items()):
            if time.monotonic() > until:
                fleet.signal(agent, signal.SIGCONT)
                del stopped[agent]
        if counts["servers killed"] < 2 and passed > seconds * (counts["servers killed"] + 1) / 3:
            fleet.postgres.kill_and_restart()
            counts["servers killed"] += 1
        agent = random.choice([agent for agent in AGENTS if agent not in stopped])
        # Every fifth is stopped beyond its turn, with what it runs.
        if (counts["killed"] + counts["stopped"]) % 5 == 4 and len(fleet.family(agent)) > 1:
            fleet.signal(agent, signal.SIGSTOP)
            stopped[agent] = time.monotonic() + STOP
            counts["stopped"] += 1
        else:
            fleet.kill(agent)
            fleet.start(agent)
            counts["killed"] += 1
        time.sleep(1)
    for agent in stopped:
        fleet.signal(agent, signal.SIGCONT)
    return counts


def away(fleet, seconds):
    """The server is gone for so long: how long data went on passing, and which experiments that had ended aren't there 30 s after its return."""
    # While somebody measures.
    until = time.monotonic() + 60
    while time.monotonic() < until and not any(wire.passed and wire.passed[-1][0] > time.time() - 0.1 for wire in fleet.wires):
        time.sleep(0.01)
    fleet.postgres.kill()
    gone = time.time()
    time.sleep(seconds)
    last = max((when for wire in fleet.wires for when, _ in wire.passed if when > gone), default=gone) - gone
    ended = {one["id"]: one["trials"] for agent in AGENTS for one in fleet.experiments(fleet.folder / f"{agent}.sqlite3") if one["state"] != "running"}
    fleet.postgres.start()
    time.sleep(30)
    there = {one["id"]: one["trials"] for one in fleet.experiments(fleet.postgres.url)}
    return last, len(ended), [name for name, trials in ended.items() if there.get(name) != trials]


def nearest(wires, attacked):
    """How near each other data of two agents came on any link, ms; how often they took turns, and the longest that a link stood idle while they
    were attacked."""
    gaps, idle = [], 0.0
    for wire in wires:
        passed = sorted(wire.passed)
        for (before, one), (after, other) in zip(passed, passed[1:]):
            idle = max(idle, after - before) if after < attacked else idle
            if one != other:
                gaps.append((after - before) * 1000)
    return min(gaps), len(gaps), idle


def journals(fleet):
    """Whether every agent's journal is in the common one to the byte, after which pushing again adds nothing."""
    same, trials = True, 0
    count = "SELECT (SELECT count(*) FROM trials), (SELECT count(*) FROM trials WHERE status = 'running'), (SELECT count(*) FROM experiments WHERE state = 'running')"
    for agent in AGENTS:
        subprocess.run([fleet.binary, "fleet", "agent", "--once", "--policy", str(fleet.folder / f"{agent}.toml")], env=fleet.environment(), capture_output=True, check=False)
    there = fleet.postgres.sql(count)
    for agent in AGENTS:
        local = str(fleet.folder / f"{agent}.sqlite3")
        for one in fleet.experiments(local):
            trials += one["trials"]
            here, common = (fleet.run("journal", "export", one["id"], "--journal", place) for place in (local, fleet.postgres.url))
            if here != common:
                same = False
                print(f"    {agent}: {one['id']} isn't the same there")
        for _ in range(3):
            fleet.run("journal", "push", fleet.postgres.url, "--site", agent, "--journal", local)
    again = fleet.postgres.sql(count)
    return same, trials, there, again


def main():
    if os.getuid() != 0 or len(sys.argv) < 2:
        sys.exit(__doc__)
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    seconds, pause = (float(sys.argv[n]) if len(sys.argv) > n else usual for n, usual in ((2, 300), (3, 120)))
    seed = random.randrange(1 << 32)
    random.seed(seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fleet-soak-"))
    fleet = None
    try:
        fleet = Fleet(binary, folder)
        fleet.mesh()
        for wire in fleet.wires:
            wire.start()
        for agent in AGENTS:
            fleet.start(agent)
        counts = attack(fleet, seconds)
        attacked = time.time()
        last, ended, missing = away(fleet, pause)
        # In peace what was begun comes to its end; nothing new begins.
        fleet.run("fleet", "stop", fleet.postgres.url)
        time.sleep(15)
        status = json.loads(fleet.run("fleet", "status", fleet.postgres.url, "--json"))
        for agent in AGENTS:
            fleet.kill(agent)
        for wire in fleet.wires:
            wire.ends = True
            wire.join()
        gap, turns, idle = nearest(fleet.wires, attacked)
        same, trials, there, again = journals(fleet)
        skews = {one["agent"]: one["skew_s"] for one in status["agents"]}
        wrong = {agent: skew for agent, skew in skews.items() if abs(skew - {"+1h": 3600, "-1h": -3600}.get(WRONG.get(agent), 0)) > 1}
        packets = sum(len(wire.passed) for wire in fleet.wires)
        checks = {
            f"the server away for {pause:.0f} s: data for {last:.1f} s, then none": last < TURN + 0.1,
            f"30 s after its return {ended - len(missing)} of {ended} experiments that had ended are there as they are here": not missing,
            f"two agents on a link, the nearest {gap:.0f} ms apart ({turns} changes, {packets} data packets)": gap > QUEUE_MS,
            f"the longest that a link stood idle under attack: {idle:.1f} s": True,
            f"{trials} trials of the agents' journals are the same in the common one ({there})": same and there == f"{trials}|0|0",
            f"pushing three times more adds none ({again})": again == there,
            f"clocks: {', '.join(f'{agent} {skew:+.1f} s' for agent, skew in sorted(skews.items()))}": not wrong,
        }
        print(f"seed {seed}, {seconds:.0f} s: {', '.join(f'{count} {what}' for what, count in counts.items())}")
        for what, holds in checks.items():
            print(f"{'ok    ' if holds else 'FAILED'} {what}")
        sys.exit(0 if all(checks.values()) else 1)
    finally:
        if fleet:
            fleet.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
