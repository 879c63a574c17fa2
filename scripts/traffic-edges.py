#!/usr/bin/env python3
"""What is odd about real servers under `windtunnel traffic`: reloads, SYN cookies, IPv6, moved servers, a flood of resets. make traffic-edges.

Usage: scripts/traffic-edges.py WINDTUNNEL [CONNECTIONS]

Root, nginx. In network namespaces of its own; the server's listeners are in a control group of their own, and the server moves to another. CONNECTIONS
(100,000) connections of one client are opened and reset. Ends with code 1 at the first thing that isn't so.
"""
import ctypes
import errno
import json
import os
import pathlib
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

BINARY, FOLDER = None, None
V4, V6, CLIENTS = "192.0.2.1", "2001:db8::1", ("11.0.0.0/8", "2001:db8:1::/48")
BODY = 1000
NGINX = """
user root; worker_processes 2; daemon off; pid {dir}/pid; error_log {dir}/errors; worker_rlimit_nofile 20000; events {{ worker_connections 8192; }}
http {{ access_log off; client_body_temp_path {dir}/a; proxy_temp_path {dir}/b; fastcgi_temp_path {dir}/c; uwsgi_temp_path {dir}/d;
scgi_temp_path {dir}/e; keepalive_timeout 600; server {{ listen 8080 backlog=4096; listen [::]:8081 ipv6only=off backlog=4096; root {dir}/www;
location = / {{ return 200 "{body}"; }} }} }}
"""
LIBC = ctypes.CDLL(None, use_errno=True)


def must(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


def until(what, holds):
    """Looks until it holds; a loaded machine may take a while."""
    end = time.monotonic() + 30
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"{what}: not within 30 s")
        time.sleep(0.005)


class World:
    """nginx here, clients in a namespace beside this one; whatever happens, `end` ends both."""

    def __init__(self):
        self.nginx = self.group = None
        self.beside = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        try:
            self.build()
        except BaseException:
            self.end()
            raise

    def build(self):
        self.here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        mine = os.readlink("/proc/self/ns/net")
        until("the clients' namespace", lambda: os.readlink(f"/proc/{self.beside.pid}/ns/net") != mine)
        self.clients = os.open(f"/proc/{self.beside.pid}/ns/net", os.O_RDONLY)
        there = ["nsenter", "-t", str(self.beside.pid), "-n"]
        must("ip", "link", "set", "lo", "up")
        must("ip", "link", "add", "s0", "type", "veth", "peer", "name", "c0", "netns", str(self.beside.pid))
        for words in (f"addr add {V4}/24 dev s0", f"addr add {V6}/64 dev s0 nodad", "link set s0 up"):
            must("ip", *words.split())
        for words in ("link set lo up", "addr add 192.0.2.2/24 dev c0", "addr add 2001:db8::2/64 dev c0 nodad", "link set c0 up"):
            must(*there, "ip", *words.split())
        for network, gateway in zip(CLIENTS, ("192.0.2.2", "2001:db8::2")):
            must("ip", "route", "add", network, "via", gateway)
            must(*there, "ip", "route", "add", "local", network, "dev", "lo")
        self.groups = next(line.split()[1] for line in open("/proc/self/mounts") if line.split()[2] == "cgroup2")
        self.group = pathlib.Path(self.groups) / f"wt-edges-{os.getpid()}"
        self.group.mkdir()
        (FOLDER / "www").mkdir()
        (FOLDER / "www/large").write_bytes(b"x" * 8_000_000)
        (FOLDER / "nginx.conf").write_text(NGINX.format(dir=FOLDER, body="x" * BODY))
        join = lambda: (self.group / "cgroup.procs").write_text(str(os.getpid()))
        self.nginx = subprocess.Popen(["nginx", "-c", str(FOLDER / "nginx.conf")], preexec_fn=join)
        until("nginx", lambda: len(self.workers()) == 2 and not socket.socket().connect_ex((V4, 8080)))
        # The kernel notices a moment later that both ends of the link are up; then a port without a server refuses.
        until("the way from the clients", lambda: all(self.reaches(address) for address in (V4, V6)))

    def workers(self):
        if self.nginx.poll() is not None:
            return []
        # ps ends with 1 where there is none.
        return subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.nginx.pid)], capture_output=True, text=True, check=False).stdout.split()

    def reaches(self, address):
        """Whether a client's packets get there, and back."""
        try:
            self.connect(address, 9).close()
        except ConnectionRefusedError:
            return True
        except OSError as error:
            if error.errno not in (errno.EHOSTUNREACH, errno.ENETUNREACH):
                raise
        return False

    def connect(self, address, port, client=None, reset=False):
        """A connection from a client's namespace; this process stays in the server's."""
        LIBC.setns(self.clients, 0)
        one = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        LIBC.setns(self.here, 0)
        one.settimeout(30)
        one.setsockopt(socket.IPPROTO_IP, 15, 1)  # IP_FREEBIND
        if reset:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client = client or (f"2001:db8:1::{random.randrange(1, 9999):x}" if ":" in address else f"11.{random.randrange(256)}.{random.randrange(256)}.9")
        one.bind((client, 0))
        one.connect((address, port))
        return one

    def start(self, *words, refused=False):
        argv = [BINARY, "traffic", "start", "--port", "8080", "--port", "8081", "--levels", "initcwnd=10,20", "--no-ramp", "--age", "10s",
                "--beside-programs", "--json-stream", *words]
        traffic = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if refused:
            return traffic.communicate()[1], traffic.returncode
        for line in traffic.stdout:
            if json.loads(line).get("event") == "epoch":
                return traffic
        sys.exit(f"traffic didn't start: {traffic.stderr.read()}")

    def end(self):
        if self.nginx:
            self.nginx.terminate()
            self.nginx.wait()
        self.beside.kill()
        self.beside.wait()
        if self.group:
            until("the control group", lambda: not (self.group / "cgroup.procs").read_text())
            self.group.rmdir()


def get(one, path="/"):
    one.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


def whole(one):
    """Reads one short response; the connection stays open."""
    length = 0
    while length < BODY:
        part = one.recv(65536)
        if not part:
            return False
        length += len(part)
    return True


def ended(traffic):
    traffic.send_signal(signal.SIGINT)
    out = traffic.communicate()[0]
    return json.loads(out.splitlines()[-1])


def count(path, row, name):
    names, values = [line.split() for line in pathlib.Path(path).read_text().splitlines() if line.startswith(row + ":")]
    return int(values[names.index(name)])


def opened():
    return count("/proc/net/snmp", "Tcp", "PassiveOpens")


def edges(world):
    """Keep-alive, a reload amid transfers, cookies, IPv6 and IPv4 over a socket of IPv6, and a server that moves."""
    before = opened()
    traffic = world.start("--unit", "connection", "--epoch", "1h")
    places = [(V4, 8080), (V6, 8081), (V4, 8081)]
    old = [world.connect(*places[n % 3]) for n in range(150)]
    for one in old:
        get(one)
    came = sum(whole(one) for one in old)
    slow = [world.connect(*places[n % 3]) for n in range(12)]
    for one in slow:
        get(one, "/large")
    for pid in [str(world.nginx.pid), *world.workers()]:
        (pathlib.Path(world.groups) / "cgroup.procs").write_text(pid)
    workers = set(world.workers())
    world.nginx.send_signal(signal.SIGHUP)
    until("new workers", lambda: len(set(world.workers()) - workers) == 2)
    # Old workers close their listeners, and then what is idle.
    idle_ended = sum(one.recv(1) == b"" for one in old)
    pathlib.Path("/proc/sys/net/ipv4/tcp_syncookies").write_text("2")
    cookies = count("/proc/net/netstat", "TcpExt", "SyncookiesRecv")
    new = [world.connect(*places[n % 3]) for n in range(300)]
    for one in new:
        get(one)
    came += sum(whole(one) for one in new)
    cookies = count("/proc/net/netstat", "TcpExt", "SyncookiesRecv") - cookies
    pathlib.Path("/proc/sys/net/ipv4/tcp_syncookies").write_text("1")
    lengths = []
    for one in slow:
        length = 0
        while length < 8_000_000 and (part := one.recv(1 << 20)):
            length += len(part)
        lengths.append(length)
    for one in [*old, *slow, *new[:100]]:
        one.close()
    until("the old workers' end", lambda: not workers & set(world.workers()))
    report = ended(traffic)
    came += sum(length >= 8_000_000 for length in lengths)
    for one in new[100:]:
        one.close()
    return {"opened": opened() - before, "came": came, "cookies": cookies, "idle_ended": idle_ended, "report": report}


def flood(world, connections):
    """A client that opens and resets so many connections, and fetches something on every fiftieth, in one epoch: one unit."""
    journal = sum(file.stat().st_size for file in FOLDER.rglob("journal.sqlite3*"))
    before = opened()
    traffic = world.start("--unit", "prefix", "--epoch", "1h")
    memory = lambda: int(pathlib.Path(f"/proc/{traffic.pid}/status").read_text().split("VmRSS:")[1].split()[0])
    at_first, most = memory(), 0
    for number in range(connections):
        one = world.connect(V4, 8080, "11.1.1.1", reset=True)
        if number % 50 == 0:
            get(one)
            assert whole(one)
            most = max(most, memory())
        one.close()
    report = ended(traffic)
    journal = sum(file.stat().st_size for file in FOLDER.rglob("journal.sqlite3*")) - journal
    return {"opened": opened() - before, "memory_kib": [at_first, most], "journal_bytes": journal, "report": report}


def sums(report, *fields):
    return [sum(arm[field] for arm in report["arms"]) for field in fields]


def main():
    global BINARY, FOLDER
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if "WINDTUNNEL_EDGES" not in os.environ:
        os.environ["WINDTUNNEL_EDGES"] = "inside"
        os.environ["PATH"] += ":/usr/sbin:/sbin"
        os.execvp("unshare", ["unshare", "-nm", sys.executable, *sys.argv])
    resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
    connections = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        BINARY, FOLDER = os.path.abspath(sys.argv[1]), pathlib.Path(folder)
        os.environ["XDG_DATA_HOME"] = os.environ["HOME"] = folder
        world = World()
        try:
            found = edges(world)
            report = found.pop("report")
            accounts = sums(report, "assigned", "recorded", "open", "missed", "set_errors")
            print(f"{found}; assigned, recorded, open, missed, refused: {accounts}")
            assert found == {"opened": 462, "came": 462, "cookies": 300, "idle_ended": 150} and accounts == [462, 262, 200, 0, 0], "not all is accounted for"
            found = flood(world, connections)
            report = found.pop("report")
            print(f"{found}; {report['verdict']['text']}")
            assert sums(report, "recorded") == [found["opened"]] and found["opened"] >= connections, "not all is recorded"
            # A unit with a coin of 1 to 1 doubles what is bet at most.
            effect, guards = report["effects"][0], report["guardrails"]
            assert effect["units"] == 1 and max(effect["evidence_faster"], effect["evidence_slower"], *(guard["evidence"] for guard in guards)) <= 2, \
                "it weighs more than one unit"
            first, most = found["memory_kib"]
            assert most < first + 8 * 1024 and found["journal_bytes"] < 64 << 10, "the flood fills memory or the journal"
        except AssertionError as error:
            sys.exit(f"not so: {error}")
        finally:
            world.end()


main()
