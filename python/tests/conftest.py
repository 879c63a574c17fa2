"""What tests share."""

import os
import pathlib
import subprocess
import sys
import time

import pytest

import windtunnel as wt


@pytest.fixture
def journal(tmp_path, monkeypatch):
    """A journal of this test's own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "windtunnel/journal.sqlite3"


def program(*arguments, given=None):
    """What the program itself says: its standard output."""
    done = subprocess.run([wt.program(), *arguments], input=given, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def namespaces_of(pid):
    """The network namespaces of the processes below this one."""
    return {os.readlink(f"/proc/{one}/ns/net") for one in below(pid)}


def below(pid):
    """The processes that descend from this one."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents.setdefault(int(stat.rsplit(")", 1)[1].split()[1]), []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        for child in parents.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return found


def until(holds, patience_s=60.0):
    """Waits until something holds; whether it did."""
    end = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def alive(pid):
    """Whether a process runs; one that nobody has waited for doesn't."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def script(text):
    """A Python that runs this text, with its standard output to read, and that Ctrl-C and SIGHUP end although these tests may run in the
    background of a shell or under nohup, where they are ignored."""
    text = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler); signal.signal(signal.SIGHUP, signal.SIG_DFL)\n" + text
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, start_new_session=True)
