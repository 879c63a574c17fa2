"""Experiments: the events, the verdict, the journal; and what ends early leaves nothing."""

import json
import os
import pathlib
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading

import pytest
from conftest import alive, below, program, script, until

import windtunnel as wt
from windtunnel import _program

SHORT = {"lab": "lan", "knobs": "cc", "levels": {"cc": ["reno"]}, "workload": "bulk:size=64KiB", "budget": "12 trials", "no_model": True}
LONG = {"lab": "lan", "knobs": "cc", "levels": {"cc": ["reno"]}, "budget": "10min"}


def test_events_come_while_it_runs_and_every_number_is_the_journals(journal):
    with wt.tune(**SHORT, seed=2**64 - 1) as events:
        seen = []
        for event in events:
            seen.append(event["event"])
            assert events.verdict is None
    assert seen.count("begin") == 1 and seen.count("trial") >= 2 and "round" in seen
    assert events.result is not None and events.verdict == events.result["verdict"]
    said = json.loads(program("report", events.id, "--json"))
    assert said["verdict"] == events.verdict
    assert list(events) == []

    trials = wt.journal(experiment=events.id, form="list")
    with sqlite3.connect(journal) as direct:
        assert len(trials) == direct.execute("SELECT count(*) FROM trials").fetchone()[0] > 0
    assert {trial["experiment"] for trial in trials} == {events.id}
    exported = json.loads(program("journal", "export", events.id, "--format", "json"))
    assert [trial["bytes"] for trial in trials if trial["status"] == "completed"] == [
        trial["outcome"]["bytes"] for trial in exported["trials"] if trial["outcome"]["status"] == "completed"
    ]
    [experiment] = wt.journal(of="experiments", form="list")
    assert experiment["id"] == events.id and experiment["trials"] == len(trials)

    pandas = pytest.importorskip("pandas")
    frame = wt.journal()
    assert isinstance(frame, pandas.DataFrame) and str(frame["started"].dtype) == "datetime64[ns, UTC]"
    # To the microsecond.
    assert (frame["started"].astype("int64") // 1000 == frame["started_unix_us"]).all()
    assert frame["goodput_bps"].tolist() == [trial["goodput_bps"] for trial in trials]
    assert wt.journal(experiment="no-such", form="list") == []


def test_leaving_early_keeps_what_was_measured_and_leaves_no_process(journal):
    with wt.tune(**LONG) as events:
        for event in events:
            if event["event"] == "trial":
                break
    assert below(os.getpid()) == []
    [experiment] = wt.journal(of="experiments", form="list")
    assert experiment["state"] == "stopped" and experiment["trials"] >= 1


def test_closing_from_another_thread_ends_the_iteration(tmp_path, monkeypatch):
    stub = tmp_path / "windtunnel"
    stub.write_text(
        f"#!{sys.executable}\nimport signal, sys, time\n"
        "def end(*_):\n    print('{\"id\": \"one\"}', flush=True)\n    sys.exit(0)\n"
        "signal.signal(signal.SIGINT, end)\nprint('{\"event\": \"begin\"}', flush=True)\n"
        "while True: time.sleep(0.01)\n"
    )
    stub.chmod(0o755)
    monkeypatch.setenv("WINDTUNNEL", str(stub))
    begun, waits, closed, seen = threading.Event(), threading.Event(), threading.Event(), []

    def iterate():
        try:
            for event in events:
                seen.append(event["event"])
                begun.set()
            seen.append("end")
        except BaseException as error:
            seen.append(repr(error))

    reader = threading.Thread(target=iterate)

    # The one that reads waits for the program's end already when the one that closes it asks for it, and hears of it last.
    def waitid(*arguments, real=os.waitid):
        if threading.current_thread() is reader:
            waits.set()
            assert closed.wait(60)
        return real(*arguments)

    def stop(child, real=_program.Child.stop):
        assert waits.wait(60)
        return real(child)

    monkeypatch.setattr(os, "waitid", waitid)
    monkeypatch.setattr(_program.Child, "stop", stop)
    events = wt.tune(lab="lan")
    reader.start()
    assert begun.wait(60)
    events.close()
    closed.set()
    reader.join(60)
    assert (seen, events.result) == (["begin", "end"], {"id": "one"})


def test_an_iterator_that_is_dropped_ends_its_experiment(journal):
    events = wt.tune(**LONG)
    assert "event" in next(events)
    del events
    assert below(os.getpid()) == []


@pytest.mark.parametrize("what", [signal.SIGINT, signal.SIGKILL])
def test_whatever_ends_python_ends_the_experiment_and_the_journal_says_so(journal, what):
    python = script(
        "import windtunnel as wt\n"
        f"for event in wt.tune(**{LONG!r}):\n"
        "    if event['event'] == 'trial': print('trial', flush=True)\n"
    )
    assert python.stdout.readline() == "trial\n"
    mine = below(python.pid)
    assert mine
    python.send_signal(what)
    python.wait()
    python.stdout.close()
    assert until(lambda: not [one for one in mine if alive(one)])
    [experiment] = wt.journal(of="experiments", form="list")
    assert experiment["state"] == "stopped"


def test_what_cant_be_run_is_a_problem_with_a_hint(journal):
    with pytest.raises(wt.UsageProblem) as caught:
        list(wt.tune(lab="no-such-path"))
    assert "no-such-path" in caught.value.what and caught.value.hint
    with pytest.raises(wt.UsageProblem, match="bogus"):
        wt.tune(lab="lan", bogus="x").wait()
    assert below(os.getpid()) == []


def test_a_plan_is_the_answer_of_a_dry_run_and_what_is_no_json_is_a_problem(tmp_path, monkeypatch):
    plan = wt.tune(lab="lan", knobs="cc", levels={"cc": ["reno"]}, dry_run=True).wait()
    assert len(plan["arms"]) == 2
    stub = tmp_path / "windtunnel"
    stub.write_text(f"#!{sys.executable}\nprint('Path: RTT 32.5 ms')\n")
    stub.chmod(0o755)
    monkeypatch.setenv("WINDTUNNEL", str(stub))
    with pytest.raises(wt.InternalProblem, match="Path: RTT 32.5 ms"):
        wt.tune(lab="lan").wait()


def test_a_whole_journal_in_a_folder_that_cant_be_written_is_read():
    folder = tempfile.mkdtemp()
    try:
        file = os.path.join(folder, "journal.sqlite3")
        connection = sqlite3.connect(file)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE VIEW v_trials AS SELECT 'e' AS experiment, 7 AS bytes")
        connection.commit()
        connection.close()
        os.chmod(file, 0o444)
        os.chmod(folder, 0o555)
        assert as_nobody(lambda: wt.journal(file, form="list") == [{"experiment": "e", "bytes": 7}])
        os.chmod(folder, 0o755)
        pathlib.Path(f"{file}-wal").write_bytes(b"more")
        os.chmod(folder, 0o555)

        def is_told():
            try:
                return not wt.journal(file, form="list")
            except wt.EnvironmentProblem as problem:
                return "-wal" in problem.cause

        assert as_nobody(is_told), "trials that aren't in the file yet aren't left out without a word"
    finally:
        os.chmod(folder, 0o755)
        shutil.rmtree(folder)


def as_nobody(holds):
    """Whether something holds in a process that may not write everywhere, as root may."""
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            os._exit(0 if holds() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_journal_that_isnt_there_or_isnt_one_is_a_problem(tmp_path):
    with pytest.raises(wt.UsageProblem, match="there is no journal"):
        wt.journal(tmp_path / "none.sqlite3")
    (tmp_path / "other ?#%.sqlite3").write_text("no journal, but long enough to be read as a header of a file of SQLite " * 20)
    with pytest.raises(wt.EnvironmentProblem, match="not a database"):
        wt.journal(tmp_path / "other ?#%.sqlite3")
    assert not (tmp_path / "none.sqlite3").exists()
    with pytest.raises(wt.UsageProblem, match="postgresql://… is no file"):
        wt.journal("postgresql://u:secret@h/db")
    with pytest.raises(wt.UsageProblem):
        wt.journal(of="nothing")
