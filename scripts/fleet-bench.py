#!/usr/bin/env python3
"""How fast a fleet's server is, and what an agent costs while nothing is due: make fleet-bench.

Usage: scripts/fleet-bench.py WINDTUNNEL

Starts a PostgreSQL of its own with fsync on, all of it and its clients on one processor. Counts processor time of server and clients
together, so that a busy machine only takes longer; rates by the clock stand beside it. Each line: figure, goal, and their ratio.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from own_postgres import Server

ROOT = pathlib.Path(__file__).resolve().parent.parent
TICK = os.sysconf("SC_CLK_TCK")
ASK = """
\\if :waiting
\\else
\\set a random(0, 19)
\\set b (:a + random(1, 19)) % 20
\\set ticket -1
\\endif
SELECT own_ticket AS ticket, is_granted::int AS granted FROM ask_turn(nullif(:ticket, -1), ARRAY['link:' || :a, 'link:' || :b], '{}'::text[], 60000, 60000) \\gset
\\if :granted
\\sleep 200 ms
INSERT INTO waits SELECT extract(epoch FROM granted - asked) FROM turns WHERE ticket = :ticket;
SELECT end_turn(:ticket);
\\set waiting 0
\\else
\\set waiting 1
\\sleep 50 ms
\\endif
"""
GRANT = """
\\set a random(1, 1000000)
SELECT own_ticket AS ticket FROM ask_turn(NULL, ARRAY['link:' || :a, 'link:' || -:a], '{}'::text[], 60000, 60000) \\gset
SELECT end_turn(:ticket);
"""
POLL = """
SELECT fleet_hello('bench', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1000, 0, false);
SELECT fleet_rollout_tasks();
SELECT fleet_next(120000);
"""


class MeasuredServer(Server):
    """One whose processor time is counted, with that of its clients."""

    def processor(self):
        """Seconds of processor time of the server and every process of it, ended ones too."""
        def of(pid):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            return fields
        total = sum(int(field) for field in of(self.process.pid)[11:15])
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for child in children:
            try:
                total += sum(int(field) for field in of(child)[11:13])
            except OSError:
                pass
        return total / TICK

    def pgbench(self, script, seconds, clients, *more):
        file = self.folder.parent / "script.sql"
        file.write_text(script)
        command = ["taskset", "-c", "0", self.bin / "pgbench", "-n", "-U", "wt", "-h", self.folder, "-f", file, "-T", str(seconds), "-c", str(clients), *more, "fleet"]
        said, spent = self.run(command)
        figures = dict(line.split(" = ", 1) for line in said.splitlines() if " = " in line)
        done = next(int(line.split(":")[1].split("/")[0]) for line in said.splitlines() if line.startswith("number of transactions actually"))
        return done, spent, figures

    def run(self, command):
        """What it says, and the processor time of it and of the server."""
        before, mine = self.processor(), os.times()
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        # A connection's process ends a moment after its client.
        time.sleep(0.5)
        now = os.times()
        return said, self.processor() - before + now.children_user + now.children_system - mine.children_user - mine.children_system


def line(what, figure, unit, goal, is_least):
    """As wt_testing::Goal prints it."""
    ratio = figure / goal if is_least else goal / figure if figure else float("inf")
    bound = "≥" if is_least else "≤"
    print(f"{what}: {figure:.4g} {unit}, goal {bound} {goal:g}, ratio {ratio:.2f}{'' if ratio >= 1 else ' MISSED'}", flush=True)
    return ratio >= 1


def turns(server):
    done, spent, figures = server.pgbench(GRANT, 10, 1)
    good = line("turns granted and given back, a second of processor time", done / spent, "grants", 300, True)
    print(f"    by the clock, one client: {done / 10:.0f} a second")
    for clients in (10, 50):
        done, spent, _ = server.pgbench(GRANT, 5, clients)
        print(f"    {clients} clients: {done / spent:.0f} a second of processor time, {done / 5:.0f} by the clock")
    return good


def fairness(server):
    server.sql("CREATE TABLE waits (s float8)")
    variables = ["-D", "waiting=0", "-D", "ticket=-1", "-D", "a=0", "-D", "b=0", "-D", "granted=0"]
    def one():
        server.sql("DELETE FROM waits; DELETE FROM turns; UPDATE turn_waits SET mean = '0'")
        server.pgbench(ASK, 30, 80, *variables)
        count, mean, most = server.sql("SELECT count(*), avg(s), max(s) FROM waits").split("|")
        return int(count) / 30, float(mean), float(most)
    as_is = one()
    definition = server.sql("SELECT pg_get_functiondef('ask_turn'::regproc)")
    aged = "(t.ticket < own.ticket AND at - t.asked > aged)"
    assert aged in definition, "the rule of ask_turn is written otherwise now"
    server.sql(definition.replace(aged, "false"))
    greedy = one()
    server.sql(definition)
    print(f"    80 agents, 2 of 20 links each for 200 ms: {as_is[0]:.1f} turns/s, longest wait {as_is[2]:.1f} s; without ageing {greedy[0]:.1f}/s, {greedy[2]:.1f} s")
    return line("use of the links, as a share of what greed makes of them", as_is[0] / greedy[0], "", 0.85, True) & line(
        "longest wait, in mean waits", as_is[2] / as_is[1], "", 5, False)


def pushes(server, binary, home):
    golden = json.loads((ROOT / "crates/windtunnel/tests/golden/journal/live-7.json").read_text())
    text = []
    while sum(map(lambda one: len(one["trials"]), text)) < 3000:
        number = len(text)
        copy = json.loads(json.dumps(golden))
        copy["experiment"]["id"] = f"bench-{number:05}"
        copy["experiment"]["started_unix_us"] += number
        text.append(copy)
    (home / "trials.json").write_text("\n".join(map(json.dumps, text)))
    environment = {**os.environ, "XDG_DATA_HOME": str(home)}
    run = lambda *args: subprocess.run([binary, *args], check=True, capture_output=True, text=True, env=environment).stdout
    run("journal", "import", str(home / "trials.json"))
    os.environ["XDG_DATA_HOME"] = str(home)
    began = time.monotonic()
    said, spent = server.run(["taskset", "-c", "0", binary, "journal", "push", server.url, "--json"])
    took = time.monotonic() - began
    trials = json.loads(said)["trials"]
    print(f"    {trials} trials of {len(text)} experiments, by the clock {trials / took:.0f} a second")
    again = json.loads(server.run([binary, "journal", "push", server.url, "--json"])[0])["trials"]
    return line("trials pushed, a second of processor time", trials / spent, "trials", 1000, True) & line("trials added by pushing again", again, "", 0.5, False)


def agents(server, binary, home):
    server.sql("".join(f"CREATE ROLE s{n} LOGIN IN ROLE windtunnel_agent; INSERT INTO fleet_agents (agent) VALUES ('s{n}');" for n in range(1000)))
    script = "\\if :begun\n\\else\nSELECT set_config('session_authorization', 's' || :client_id, false);\n\\set begun 1\n\\endif\n" + POLL
    done, spent, figures = server.pgbench(script, 30, 1000, "-j", "2", "-R", "50", "-D", "begun=0")
    print(f"    1000 agents connected, {done} polls of three calls in 30 s, mean latency {figures.get('latency average', '?')}")
    return line("processor time of 1000 agents' polls every 20 s, share of one", 50 * spent / done, "", 1, False)


def idle(server, binary, home):
    subprocess.run([binary, "fleet", "add", "idle", server.url], check=True, stdout=subprocess.DEVNULL)
    policy = home / "agent.toml"
    policy.write_text(f'server = "{server.url.replace("wt@", "idle@")}"\njournal = "{home / "idle.sqlite3"}"\n')
    agent = subprocess.Popen([binary, "fleet", "agent", "--policy", policy], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    used = lambda: sum(int(field) for field in pathlib.Path(f"/proc/{agent.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]) / TICK
    try:
        time.sleep(5)
        before = used()
        time.sleep(120)
        share = (used() - before) / 120
        rollup = pathlib.Path(f"/proc/{agent.pid}/smaps_rollup").read_text()
        of = lambda word: next(int(row.split()[1]) for row in rollup.splitlines() if row.startswith(word + ":")) / 1024
        print(f"    of its memory {of('Private_Dirty'):.1f} MB are its own; the rest is the program's file")
        return line("processor time of an idle agent, per cent", 100 * share, "%", 0.5, False) & line("memory of an idle agent (Pss)", of("Pss"), "MB", 20, False)
    finally:
        agent.terminate()
        agent.wait()


def main():
    binary = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else sys.exit(__doc__)).resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fleet-bench-"))
    home = folder / "home"
    home.mkdir()
    server = MeasuredServer(folder, ["taskset", "-c", "0"])
    try:
        subprocess.run([binary, "fleet", "init", server.url], check=True, stdout=subprocess.DEVNULL)
        met = [turns(server), fairness(server), pushes(server, binary, home), agents(server, binary, home), idle(server, binary, home)]
    finally:
        server.stop()
        shutil.rmtree(folder)
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
