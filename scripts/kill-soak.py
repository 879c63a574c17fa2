#!/usr/bin/env python3
"""Kills `windtunnel settings` at random moments, and checks that the host comes back: make kill-soak.

Usage: scripts/kill-soak.py WINDTUNNEL [KILLS] [SEED]

In a network namespace with a device, addresses and routes of both families, each trial applies, confirms, undoes or restores
something, with or without disturbances: a second writer, a device that is renamed, congestion controls that are loaded and unloaded
(as root, and then settings of connections with one target, too, in a control group of its own). Meanwhile the program is killed: the main process only, or everything, its guards too; after a random time, or at its n-th
system call, the guards' counted too (and then the caller, or everything). Once nobody watches any more and one command has run, all is as it was before, or a change is confirmed and whole; and what is confirmed is undone to where it was. So many kills that hit a running process are counted.
Ends with code 1 at the first trial that isn't so, and says how to repeat it.
"""
import fcntl
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from nth_call import Traced

SYSCTLS = ["ip_default_ttl", "tcp_sack", "tcp_rmem", "tcp_timestamps", "tcp_congestion_control", "tcp_ecn"]
CHANGES = [
    "cc=reno ttl=77",
    "sack=off ttl=128 tcp_rmem=4096,65536,131072",
    "mtu=1400 txqueuelen=77 --to {device}",
    "initcwnd=20 --to {device}",
    "mss=from-mtu initcwnd=12 --to default",
    "ecn=on timestamps=off initrwnd=10",
    "--defaults",
]
# What needs root: a control that may be there or go at any moment, and programs that are attached to connections.
OF_ROOT = ["cc=wt_westwood ttl=55", "rwin=65536 sndbuf=65536 --to 198.51.100.7", "cc=wt_westwood rwin=32768 --to 198.51.100.9"]
PINS = pathlib.Path("/sys/fs/bpf/windtunnel-connections")
# Nothing is left to do of a change.
OVER = {"reverted", "undone", "confirmed", "lapsed"}
SECOND = ["ttl=99", "sack=off", "txqueuelen=123 --to {device}", "initcwnd=33 --to 198.51.100.0/24"]


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def must(*argv):
    done = run(*argv)
    if done.returncode:
        sys.exit(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


class World:
    """A device d0, or whatever it is called now, and what is in force."""

    def __init__(self):
        must("ip", "link", "set", "lo", "up")
        must("ip", "link", "add", "d0", "type", "veth", "peer", "name", "p0")
        for device in ("d0", "p0"):
            pathlib.Path(f"/proc/sys/net/ipv6/conf/{device}/addr_gen_mode").write_text("1")
            must("ip", "link", "set", device, "up")
        self.index = self.index_of("d0")
        must("ip", "addr", "add", "192.0.2.1/24", "dev", "d0")
        must("ip", "addr", "add", "2001:db8::1/64", "dev", "d0", "nodad")
        for route in (["default", "via", "192.0.2.2"], ["198.51.100.0/24", "via", "192.0.2.3", "initcwnd", "12"]):
            must("ip", "route", "add", *route)
        must("ip", "-6", "route", "add", "default", "via", "2001:db8::2")

    @staticmethod
    def index_of(name):
        return int(must("ip", "-o", "link", "show", name).split(":")[0])

    def device(self):
        for link in json.loads(must("ip", "-j", "link")):
            if link["ifindex"] == self.index:
                return link["ifname"]
        sys.exit("the device is gone")

    def rename(self):
        """To another name. Before Linux 6.2 a device that is up keeps its own, and nothing happens."""
        run("ip", "link", "set", self.device(), "name", f"d{random.randrange(1000)}")

    def snapshot(self):
        """Everything that a change can touch, whatever the device is called."""
        name = self.device()
        link = next(link for link in json.loads(must("ip", "-j", "link")) if link["ifindex"] == self.index)
        routes = must("ip", "route", "show", "table", "main") + must("ip", "-6", "route", "show", "table", "main")
        values = {s: pathlib.Path(f"/proc/sys/net/ipv4/{s}").read_text().split() for s in SYSCTLS}
        routes = sorted(re.sub(rf"\bdev {re.escape(name)}\b", "dev D", line).strip() for line in routes.splitlines())
        pins = sorted(pin.name for pin in PINS.iterdir()) if PINS.is_dir() else []
        return {"pins": pins, "sysctls": values, "mtu": link["mtu"], "txqlen": link.get("txqlen"), "routes": routes}


class Soak:
    def __init__(self, binary, folder):
        self.binary, self.state = binary, folder / "state"
        (folder / "root/etc/sysctl.d").mkdir(parents=True)
        os.environ |= {"WINDTUNNEL_STATE_DIR": str(self.state), "WINDTUNNEL_ROOT": str(folder / "root"), "HOME": str(folder)}
        self.world = World()
        self.original = self.world.snapshot()
        self.backup = folder / "backup.json"
        self.files = folder / "root/etc"
        must(binary, "settings", "backup", str(self.backup))
        self.tally, self.kind = {}, ""
        # System calls of each operation, where it was let run to its end.
        self.calls = {}
        self.can_load = run(binary, "cc", "load", "westwood", "--", "true").returncode == 0
        can_attach = run(binary, "settings", "plan", *OF_ROOT[1].split()).returncode == 0
        self.changes = CHANGES + (OF_ROOT if self.can_load and can_attach else [])
        # Kills that hit a running process.
        self.hits = 0

    def start(self, words, traced=False):
        argv = [self.binary, "settings", *words.format(device=self.world.device()).split()]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        return Traced(argv, quiet) if traced else subprocess.Popen(argv, start_new_session=True, **quiet)

    def guards(self):
        for process in pathlib.Path("/proc").iterdir():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"guard" in words and str(self.state).encode() in words:
                yield int(process.name)

    def wait_for_guards(self):
        until = time.monotonic() + 60
        while any(True for _ in self.guards()):
            if time.monotonic() > until:
                raise AssertionError("guards still run after a minute")
            # What was being confirmed at once may only now wait for its confirmation, for minutes.
            self.undo_what_waits()
            time.sleep(0.02)
        # One that was killed has lost its command line, but for a moment it may still hold its lock.
        for number, phase in self.phases().items():
            if phase not in OVER:
                with open(self.state / f"checkpoints/{number}/guard.lock", "a", encoding="ascii") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)

    def phases(self):
        phases = {}
        for file in (self.state / "checkpoints").glob("*/state.json"):
            phases[int(file.parent.name)] = json.loads(file.read_text())["phase"]
        return phases

    def trial(self, number, seed):
        random.seed(f"{seed}-{number}")
        what = random.choice(["apply", "apply", "apply-yes", "confirm", "undo", "restore"])
        change = random.choice(self.changes)
        disturbance = random.choice(["none", "none", "rename", "second", "control" if self.can_load else "none"])
        kill = random.choice(["main", "all", "nobody", "call", "call", "call-all"])
        self.kind = f"{what}/{disturbance}/{kill}"
        self.tally[self.kind] = self.tally.get(self.kind, 0) + 1
        within = "--confirm-within 1s"
        control = None
        if disturbance == "control":
            lasts = f"{random.uniform(0.1, 1.5):.2f}"
            # Another one may have it loaded: registered controls are the whole machine's.
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            control = subprocess.Popen([self.binary, "cc", "load", "westwood", "--", "sleep", lasts], **quiet)
            time.sleep(random.uniform(0, 0.3))
        if what in ("confirm", "undo"):
            self.start(f"apply {change} " + ("--confirm-within 20s" if what == "confirm" else "--yes")).wait()
        if what == "restore":
            self.start(f"apply {change} --yes").wait()
        words = {
            "apply": f"apply {change} {within}",
            "apply-yes": f"apply {change} --yes",
            "confirm": "confirm",
            "undo": "undo",
            "restore": f"restore {self.backup} {within}",
        }[what]
        at_call = kill.startswith("call")
        main = self.start(words, traced=at_call)
        other = self.start(f"apply {random.choice(SECOND)} --yes") if disturbance == "second" else None
        if not at_call:
            time.sleep(random.expovariate(1 / 0.08))
        if disturbance == "rename":
            self.world.rename()
        if at_call:
            # The first of each kind is let run to its end, so that it is known how many calls there are.
            known = self.calls.get(what)
            at = random.randint(1, known) if known else 0
            calls = main.run(at, kill)
            self.hits += at > 0 and calls == at
            self.calls[what] = max(known or 0, calls)
            main = main.main
        elif kill != "nobody":
            running = [main.pid] if main.poll() is None else []
            doomed = running + (list(self.guards()) if kill == "all" else [])
            self.hits += bool(doomed)
            for pid in doomed:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        for process in (main, other, control):
            if process:
                process.wait()
        # What was to be confirmed at once, or was being confirmed, may wait for far longer than we do.
        self.undo_what_waits()
        self.wait_for_guards()
        # Where its guards were killed too, a change outlives its time until the next command.
        if "applied" in self.phases().values():
            time.sleep(1.05)
        run(self.binary, "settings", "show")
        self.undo_what_waits()
        self.wait_for_guards()
        self.check()

    def undo_what_waits(self):
        for number, phase in self.phases().items():
            deadline = json.loads((self.state / f"checkpoints/{number}/state.json").read_text())["confirm_within_s"]
            until = time.monotonic() + 60
            while phase == "applied" and deadline > 1:
                undone = run(self.binary, "settings", "undo", str(number))
                # Somebody may still hold the lock, and says so.
                phase = self.phases()[number]
                assert undone.returncode == 0 or time.monotonic() < until, f"undo {number}: {undone.stderr}"

    def check(self):
        phases = self.phases()
        # One that was killed before its state was stored has done nothing.
        stuck = {n: phase for n, phase in phases.items() if phase not in OVER}
        assert not stuck, f"neither back nor confirmed: {stuck}"
        in_force = [n for n, phase in phases.items() if phase == "confirmed"]
        if not in_force:
            self.must_be_original("nothing is in force")
        for n in sorted(in_force, reverse=True):
            undone = run(self.binary, "settings", "undo", str(n))
            assert undone.returncode == 0, f"undo {n}: {undone.stderr}"
            self.wait_for_guards()
        self.must_be_original(f"undone {in_force}")
        left = [str(f) for f in self.files.rglob("*") if f.is_file()]
        assert not left, f"files are left: {left}"
        # The history grows, and with it each command's time.
        if max(phases, default=0) > 50:
            shutil.rmtree(self.state)

    def must_be_original(self, when):
        now = self.world.snapshot()
        differs = {key: (self.original[key], now[key]) for key in now if now[key] != self.original[key]}
        assert not differs, f"{when}, and not as it was: {differs}"


def hierarchy():
    """Where the control groups of version 2 are mounted, or None."""
    mounts = (line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines())
    return next((pathlib.Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)


def apart(argv):
    """Runs it in namespaces of its own, as root in a control group of its own, too; its exit code."""
    if os.geteuid() != 0:
        return subprocess.call(["unshare", "-Urnm", *argv])
    groups = hierarchy()
    group = groups and groups / f"windtunnel-soak-{os.getpid()}"

    def enter():
        if group:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    try:
        if group:
            group.mkdir()
    except OSError:
        group = None
    try:
        return subprocess.call(["unshare", "-nmC", *argv], preexec_fn=enter)
    finally:
        if group:
            while (group / "cgroup.procs").read_text():
                time.sleep(0.02)
            group.rmdir()


def alone_with_programs():
    """As root, in the namespaces: what is attached and pinned stays in the own control group and goes with the mount."""
    groups = hierarchy()
    if os.geteuid() == 0 and groups and run("umount", str(groups)).returncode == 0:
        run("mount", "-t", "cgroup2", "none", str(groups))
        run("mount", "-t", "bpf", "bpf", "/sys/fs/bpf")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    binary = os.path.abspath(sys.argv[1])
    if "WINDTUNNEL_SOAK" not in os.environ:
        os.environ["WINDTUNNEL_SOAK"] = "inside"
        os.environ["PATH"] += ":/usr/sbin:/sbin"
        sys.exit(apart([sys.executable, *sys.argv]))
    alone_with_programs()
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 5000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else time.time_ns() % 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(binary, pathlib.Path(folder))
        number = -1
        while soak.hits < kills:
            number += 1
            hits = soak.hits
            try:
                soak.trial(number, seed)
            except AssertionError as error:
                print(run(binary, "settings", "history").stdout)
                sys.exit(f"trial {number} of seed {seed} ({soak.kind}): {error}")
            if soak.hits % 100 == 0 and soak.hits > hits:
                print(f"{soak.hits} kills in {number + 1} trials, 0 failures", flush=True)
        kinds = {}
        for kind, count in soak.tally.items():
            for word in kind.split("/"):
                kinds[word] = kinds.get(word, 0) + count
        print(f"{soak.hits} kills in {number + 1} trials of seed {seed}, 0 failures: {kinds}")


main()
