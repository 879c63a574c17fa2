#!/usr/bin/python3
"""Builds every test once and runs each in a process of its own: many at once of those that wait, few of those that compute, some
at once of those that want it quiet, and one alone of those that measure closely. As root it runs each as an ordinary user (nobody), and as root what needs that.

scripts/tests.conf says which test is of which kind. Anything else is found out here: the tests of all binaries that cargo builds,
how long each took and how much of that on a processor, and which said that they couldn't be run (wt_testing::not_run).

Usage: scripts/run-tests.py [--only PATTERN] [--list], and for scripts/test.sh --and, --beside, --job
"""
import argparse
import fnmatch
import json
import os
import pathlib
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOBODY = 65534
TUN = "/dev/net/tun"
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
# At once, of each kind.
LIMITS = {"waits": 3, "computes": os.cpu_count() or 2, "beside": 1, "quiet": 4, "loads": 2, "alone": 1}
# More of those that wait, while processors have had this share of the last second for more, up to so many; fewer where they had less than this.
IDLE_ENOUGH, IDLE_TOO_LITTLE, MOST_WAITS = 0.45, 0.2, 8
# Of these together: a test that wants it quiet and loads a processor itself takes the room of two that hardly use one.
ROOM, TAKES = 4, {"quiet": 1, "loads": 2}
# What computes leaves the processors to what waits and has to be woken in time; what is beside takes only what nobody wants.
GIVES_WAY = {"computes": ["nice", "-n", "10"], "beside": ["nice", "-n", "19", "chrt", "--idle", "0"]}
# One stage after the other.
STAGES = [{"waits", "computes", "beside"}, {"quiet", "loads"}, {"alone"}]
USERS = ("nobody", "tun", "root")
KINDS = ("waits", "computes", "quiet", "loads", "alone")
TIMEOUT_S = 600
SLOWEST = 20


class Job:
    """A test, or a command beside the tests, as one user."""

    def __init__(self, name, command, kind="computes", user="", cwd=ROOT, env=None, binary="", first=0):
        self.name, self.command, self.kind, self.user, self.cwd = name, command, kind, user, cwd
        self.env, self.binary, self.first = env or {}, binary, first
        self.process = self.output = self.ends = None
        self.began = self.wall = self.cpu = 0.0
        self.late = self.ok = False
        self.not_run = []

    def title(self):
        return f"{self.name} ({self.user})" if self.user else self.name

    def start(self):
        self.output = tempfile.TemporaryFile()
        self.began = time.monotonic()
        command = self.command
        if self.kind in GIVES_WAY:
            # In this session: priorities count only within one, where the kernel groups by sessions (sched_autogroup_enabled).
            command = GIVES_WAY[self.kind] + command
        self.process = subprocess.Popen(
            command, cwd=self.cwd, env={**os.environ, **self.env}, stdin=subprocess.DEVNULL,
            stdout=self.output, stderr=subprocess.STDOUT, process_group=0)
        # Readable once it has ended.
        self.ends = os.pidfd_open(self.process.pid)

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def ended(self, status, usage):
        self.wall = time.monotonic() - self.began
        self.cpu = usage.ru_utime + usage.ru_stime
        os.close(self.ends)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        text = self.text()
        # A name that the harness doesn't know would pass; a crate without examples is no failure.
        nothing = bool(self.binary) and "running 0 tests" in text
        self.ok = self.process.returncode == 0 and not self.late and not nothing
        if self.binary:
            # Behind the name, if the harness has begun a line with it.
            self.not_run = re.findall(r"^(?:test \S+ \.\.\. )?not run: (.*)", text, re.MULTILINE)
            if "; 1 ignored;" in text:
                self.not_run.append("ignored: marked #[ignore]")

    def text(self):
        self.output.seek(0)
        return self.output.read().decode(errors="replace")


class Table:
    """scripts/tests.conf: a word and a pattern of `binary::module::test`; of each kind of word the first row counts."""

    def __init__(self, path):
        self.rows, self.used = [], set()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            fields = line.split("#")[0].split()
            if not fields:
                continue
            if len(fields) != 2 or not (fields[0] in (*KINDS, "first") or set(fields[0].split("+")) <= set(USERS)):
                words = f"{', '.join(KINDS)}, first, or users ({', '.join(USERS)}, joined by +)"
                sys.exit(f"{path}:{number}: expected {words}, and a pattern")
            self.rows.append((number, *fields))

    def row(self, words, name):
        """Number and word of the first row that says one of these words of this test."""
        for number, word, pattern in self.rows:
            if words(word) and fnmatch.fnmatchcase(name, pattern):
                self.used.add(number)
                return number, word
        return None

    def kind(self, name):
        row = self.row(lambda word: word in KINDS, name)
        return row[1] if row else "computes"

    def first(self, name):
        row = self.row(lambda word: word == "first", name)
        return row[0] if row else 10**6

    def users(self, name):
        """As whom a test is run; as whoever started this, if that isn't root."""
        row = self.row(lambda word: word != "first" and word not in KINDS, name)
        if os.geteuid() != 0:
            return [""]
        return row[1].split("+") if row else ["nobody"]

    def unused(self):
        return [f"{word} {pattern}" for number, word, pattern in self.rows if number not in self.used]


def build(apart):
    """Builds the workspace's tests, and those of packages apart from it; gives (target's name, package's folder, executable) of each, and
    the program."""
    binaries, program = [], None
    for more in [["--workspace"], *(["--manifest-path", manifest, "--target-dir", "target"] for manifest in apart)]:
        command = ["cargo", "test", "--locked", "--no-run", "--message-format=json-render-diagnostics", *more]
        built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
        if built.returncode != 0:
            sys.exit("the tests can't be built")
        for message in map(json.loads, built.stdout.splitlines()):
            if message.get("reason") != "compiler-artifact" or not message.get("executable"):
                continue
            target, folder = message["target"], os.path.dirname(message["manifest_path"])
            # A test with a harness of its own isn't compiled as a test.
            if message["profile"]["test"] or "test" in target["kind"]:
                binaries.append((target["name"], folder, message["executable"]))
            elif target["name"] == "windtunnel":
                program = message["executable"]
    return sorted(binaries), program


def listed(binary, folder):
    told = subprocess.run([binary, "--list", "--format=terse"], cwd=folder, stdout=subprocess.PIPE, check=True, text=True)
    return [line.removesuffix(": test") for line in told.stdout.splitlines() if line.endswith(": test")]


def mounts_for_nobody(place):
    """Shell commands that let nobody reach the checkout: over a closed folder above it comes an open one that only has the checkout."""
    mode = ROOT.stat().st_mode
    if not mode & 0o001 and os.environ.get("CI"):
        # A checkout made for one run, by whatever made it.
        ROOT.chmod(mode & 0o7777 | 0o055)
    elif not mode & 0o001:
        sys.exit(f"tests are run as nobody, who can't read {ROOT}: chmod o+rx {ROOT}")
    closed = [folder for folder in reversed(ROOT.parents) if not folder.stat().st_mode & 0o001]
    if not closed:
        return []
    root, held = shlex.quote(str(ROOT)), place / "checkout"
    held.mkdir()
    return [f"mount --bind {root} {held}", f"mount -t tmpfs -o mode=755 none {shlex.quote(str(closed[0]))}",
            f"mkdir -p {root}", f"mount --bind {held} {root}"]


def as_nobody(command, folder, mounts):
    """The command as an ordinary user, and with mounts of its own, so that nothing stays."""
    command = AS_NOBODY + command
    if not mounts:
        return command
    script = [*mounts, f"cd {shlex.quote(folder)}", f"exec {shlex.join(command)}"]
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", "\n".join(script)]


def tests(table, binaries, program, place, only):
    jobs, mounts = [], mounts_for_nobody(place) if os.geteuid() == 0 else []
    for target, folder, binary in binaries:
        for test in listed(binary, folder):
            name = f"{target}::{test}"
            kind, first = table.kind(name), table.first(name)
            for user in table.users(name):
                if not any(fnmatch.fnmatchcase(name, pattern) for pattern in only):
                    continue
                command = [binary, "--exact", test, "--nocapture", "--test-threads=1"]
                env = {"WINDTUNNEL_TEST_KIND": kind}
                lacks = os.environ.get("WINDTUNNEL_LACKS", "")
                if user in ("nobody", "tun"):
                    env |= {"HOME": str(place / "tmp"), "TMPDIR": str(place / "tmp"), "WINDTUNNEL_BIN": program}
                    lacks += "," + os.environ.get("WINDTUNNEL_LACKS_NOBODY", "") * (user == "nobody")
                    tun = [f"mount --bind {place}/tun {TUN}"] if user == "tun" else []
                    command = as_nobody(command, folder, mounts + tun)
                env["WINDTUNNEL_LACKS"] = lacks
                jobs.append(Job(name, command, kind, user, folder, env, target, first))
    return jobs


class Processors:
    """What processors still had time for in the last second: idle, or with what gives way (the kernel counts what is nice apart)."""

    def __init__(self):
        self.before, self.share = self.times(), 0.0

    @staticmethod
    def times():
        with open("/proc/stat", encoding="ascii") as stat:
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
        return nice + idle + iowait, user + nice + system + idle + iowait + irq + softirq + steal

    def look(self):
        now = self.times()
        passed = now[1] - self.before[1]
        self.share = (now[0] - self.before[0]) / passed if passed else 0.0
        self.before = now


class Runner:
    def __init__(self, jobs):
        # What is beside the tests comes first, so that it is done when they are.
        stages = [[job for job in jobs if job.kind in stage] for stage in STAGES]
        self.stages = [sorted(stage, key=lambda job: (job.kind != "beside", job.first)) for stage in stages]
        self.total, self.running, self.done = len(jobs), {}, []
        self.processors, self.most = Processors(), dict(LIMITS)

    def start_some(self):
        """Starts what may run now: of the first stage that isn't done, as many of each kind as its limit says."""
        while not self.running and self.stages and not self.stages[0]:
            self.stages.pop(0)
        for job in list(self.stages[0]) if self.stages else []:
            kinds = [other.kind for other in self.running.values()]
            room = ROOM - sum(TAKES.get(kind, 0) for kind in kinds)
            if kinds.count(job.kind) < self.most[job.kind] and TAKES.get(job.kind, 0) <= room:
                self.stages[0].remove(job)
                job.start()
                self.running[job.process.pid] = job
        return bool(self.running)

    def run(self):
        looked = time.monotonic()
        try:
            while self.start_some():
                left = looked + 1 - time.monotonic()
                ends = select.poll()
                for job in self.running.values():
                    ends.register(job.ends, select.POLLIN)
                ended = {number for number, _ in ends.poll(max(left, 0) * 1000)}
                for job in [job for job in self.running.values() if job.ends in ended]:
                    del self.running[job.process.pid]
                    self.report(job, *os.wait4(job.process.pid, 0)[1:])
                if time.monotonic() >= looked + 1:
                    looked = time.monotonic()
                    self.each_second()
        finally:
            for job in self.running.values():
                job.kill()

    def each_second(self):
        self.stop_late()
        self.processors.look()
        waits = sum(job.kind == "waits" for job in self.running.values())
        # One more or less at a time, so that what it takes is seen before the next.
        step = (self.processors.share >= IDLE_ENOUGH) - (self.processors.share < IDLE_TOO_LITTLE)
        self.most["waits"] = max(LIMITS["waits"], min(waits + step, MOST_WAITS))

    def stop_late(self):
        for job in list(self.running.values()):
            if job.binary and not job.late and time.monotonic() - job.began > TIMEOUT_S:
                job.late = True
                job.kill()

    def report(self, job, status, usage):
        job.ended(status, usage)
        self.done.append(job)
        word = "ok" if job.ok and not job.not_run else "NOT RUN" if job.ok else "FAILED"
        line = f"[{len(self.done)}/{self.total}] {word:7} {job.wall:7.2f} s  {job.title()}"
        if word != "ok" or job.wall > 5 or sys.stdout.isatty():
            print(line, flush=True)
        if not job.ok:
            why = f"stopped after {TIMEOUT_S} s" if job.late else f"exit code {job.process.returncode}"
            print(f"---- {job.title()}: {why}\n{job.text()}\n----", flush=True)


def summary(done, wall, table_unused):
    ran = [job for job in done if job.binary]
    print(f"\n== where the time went: {wall:.0f} s, {sum(job.cpu for job in done):.0f} s on processors")
    print(f"{'wall s':>8} {'cpu s':>8} {'tests':>6}  binary, and what ran beside")
    sums = {}
    for job in done:
        one = sums.setdefault(job.binary or job.name, [0.0, 0.0, 0])
        one[0], one[1], one[2] = one[0] + job.wall, one[1] + job.cpu, one[2] + 1
    for name, (took, cpu, count) in sorted(sums.items(), key=lambda item: -item[1][0]):
        if took >= 1:
            print(f"{took:8.1f} {cpu:8.1f} {count:6}  {name}")
    for kind in KINDS:
        mine = [job for job in ran if job.kind == kind]
        print(f"{sum(job.wall for job in mine):8.1f} {sum(job.cpu for job in mine):8.1f} {len(mine):6}  of the kind {kind}")
    print(f"\nthe slowest {SLOWEST}:")
    for job in sorted(ran, key=lambda job: -job.wall)[:SLOWEST]:
        print(f"{job.wall:8.1f} {job.cpu:8.1f} {job.kind:>9}  {job.title()}")
    left_out = [job for job in ran if job.ok and job.not_run]
    if left_out:
        print("\nnot run, or not in full:")
        reasons = {}
        for job in left_out:
            for reason in set(job.not_run):
                reasons.setdefault(reason, []).append(job.title())
        for reason, names in sorted(reasons.items()):
            print(f"  {reason}")
            for name in names:
                print(f"    {name}")
    for row in table_unused:
        print(f"scripts/tests.conf: no test is named by: {row}")
    failed = [job for job in done if not job.ok]
    if failed:
        print("\nfailed:")
        for job in failed:
            print(f"  {job.title()}")
    print(f"\n{len(done) - len(failed) - len(left_out)} passed, {len(failed)} failed, {len(left_out)} not run or not in full")
    return 1 if failed or table_unused else 0


def save(done):
    """All times, for whoever wants to look further."""
    rows = [f"{job.wall:.3f}\t{job.cpu:.3f}\t{job.kind}\t{'ok' if job.ok else 'FAILED'}\t{job.title()}\n" for job in done]
    (ROOT / "target/test-times.tsv").write_text("".join(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="tests whose binary::module::test matches")
    parser.add_argument("--beside", nargs=2, action="append", default=[], metavar=("NAME", "COMMAND"), help="runs while tests wait")
    parser.add_argument("--job", nargs=2, action="append", default=[], metavar=("NAME", "COMMAND"), help="runs as a test that loads the machine and wants it quiet, before the others of them")
    parser.add_argument("--and", dest="apart", action="append", default=[], metavar="MANIFEST", help="a package apart from the workspace")
    parser.add_argument("--list", action="store_true", help="shows what would be run, and how")
    parser.add_argument("--at-once", action="append", default=[], metavar="KIND=NUMBER", help=f"how many of a kind: {LIMITS}")
    options = parser.parse_args()
    for words in options.at_once:
        kind, _, number = words.partition("=")
        if kind not in LIMITS or not number.isdecimal() or int(number) < 1:
            parser.error(f"--at-once {words}: expected one of {', '.join(LIMITS)}, = and a number")
        LIMITS[kind] = int(number)

    place = pathlib.Path(tempfile.mkdtemp(prefix="windtunnel-tests."))
    try:
        place.chmod(0o755)
        (place / "tmp").mkdir()
        (place / "tmp").chmod(0o1777)
        if os.geteuid() == 0 and os.path.exists(TUN):
            os.mknod(place / "tun", 0o20666, os.makedev(10, 200))
            (place / "tun").chmod(0o666)
        began = time.monotonic()
        table = Table(ROOT / "scripts/tests.conf")
        binaries, program = build(options.apart)
        print(f"built in {time.monotonic() - began:.0f} s: {len(binaries)} binaries", flush=True)
        jobs = tests(table, binaries, program, place, options.only or ["*"])
        if options.list:
            for job in jobs:
                print(f"{job.kind:9} {job.title()}")
            return 0
        unused = [] if options.only else table.unused()
        jobs += [Job(name, ["sh", "-ec", command], "beside") for name, command in options.beside]
        jobs += [Job(name, ["sh", "-ec", command], "loads", first=-1) for name, command in options.job]
        began = time.monotonic()
        runner = Runner(jobs)
        runner.run()
        save(runner.done)
        return summary(runner.done, time.monotonic() - began, unused)
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nstopped; nothing is left running")
