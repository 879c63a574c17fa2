"""Labs: programs run in them, and nothing stays."""

import os
import signal
import subprocess
import time

import pytest
from conftest import alive, below, namespaces_of, script, until

import windtunnel as wt


def test_programs_run_in_both_hosts_and_see_its_names():
    with wt.lab("lan") as lab:
        assert {"client", "server"} <= set(lab.hosts)
        done = lab.run(["sh", "-c", "echo $WT_SERVER; pwd; getent ahostsv4 server | head -n 1 | cut -d' ' -f1; exit 7"], capture_output=True, text=True)
        server, folder, *resolved = done.stdout.split()
        assert (done.returncode, server, folder) == (7, lab.hosts["server"]["ipv4"], os.getcwd())
        assert resolved == [lab.hosts["server"]["ipv4"]]
        addresses = lab.run(["ip", "-4", "-o", "addr"], host="server", capture_output=True, text=True).stdout
        assert lab.hosts["server"]["ipv4"] in addresses and lab.hosts["client"]["ipv4"] not in addresses
        fetched = lab.run(["curl", "-s", "http://server/bytes/100kB"], capture_output=True, check=True)
        assert len(fetched.stdout) == 100_000
        assert lab.run(["cat"], input=b"given", capture_output=True).stdout == b"given"
        # A line for a shell is one of that host's, not of this one's.
        line = lab.run("readlink /proc/self/ns/net; exit 7", shell=True, capture_output=True, text=True)
        assert line.returncode == 7 and line.args == "readlink /proc/self/ns/net; exit 7"
        assert line.stdout.strip() not in ("", os.readlink("/proc/self/ns/net"))
        assert lab.run("true").returncode == 0
        for twice in ({"capture_output": True, "stdout": subprocess.PIPE}, {"input": b"", "stdin": subprocess.DEVNULL}):
            with pytest.raises(ValueError):
                lab.run(["true"], **twice)
        with pytest.raises(subprocess.CalledProcessError) as caught:
            lab.run(["false"], check=True)
        assert caught.value.cmd == ["false"]
        with pytest.raises(wt.UsageProblem, match="no host 'nobody'"):
            lab.run(["true"], host="nobody")
    assert below(os.getpid()) == []
    with pytest.raises(wt.UsageProblem, match="no longer up"):
        lab.run(["true"])


def test_a_path_that_isnt_there_is_a_usage_problem_and_leaves_nothing():
    with pytest.raises(wt.UsageProblem) as caught:
        wt.lab("no-such-path")
    assert "no-such-path" in caught.value.what and caught.value.hint
    assert below(os.getpid()) == []


def test_an_exception_leaves_no_process():
    with pytest.raises(RuntimeError):
        with wt.lab("lan") as lab:
            lab.popen(["sleep", "1000"])
            assert len(namespaces_of(os.getpid()) - {os.readlink("/proc/self/ns/net")}) >= 1
            raise RuntimeError
    # What was started by hand is the caller's to wait for; it has ended.
    assert until(lambda: not [one for one in below(os.getpid()) if alive(one)])


def test_a_timeout_ends_the_program_and_the_lab_stays():
    with wt.lab("lan") as lab:
        with pytest.raises(subprocess.TimeoutExpired):
            lab.run(["sh", "-c", "trap '' INT; sleep 1000 & sleep 1000"], capture_output=True, timeout=0.5)
        assert lab.run(["sh", "-c", "pgrep -x sleep"], capture_output=True).stdout == b""


def test_a_timeout_ends_a_program_in_the_callers_group_too():
    with wt.lab("lan") as lab:
        with pytest.raises(subprocess.TimeoutExpired):
            lab.run(["sleep", "1000"], timeout=0.5, start_new_session=False)


HOLD = """
import sys, windtunnel as wt
with wt.lab("lan") as lab:
    lab.popen(["sleep", "1000"])
    lab.run(["sh", "-c", "echo up; exec sleep 1000"])
"""


@pytest.mark.parametrize("what", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_whatever_ends_python_ends_the_lab(what):
    python = script(HOLD)
    assert python.stdout.readline() == "up\n"
    here = os.readlink("/proc/self/ns/net")
    mine = below(python.pid)
    assert len(mine) >= 3 and namespaces_of(python.pid) - {here}
    python.send_signal(what)
    python.wait()
    python.stdout.close()
    assert until(lambda: not [one for one in mine if alive(one)])


def test_a_program_in_the_lab_gets_sigint_from_ctrl_c():
    python = script(
        "import windtunnel as wt\n"
        "with wt.lab('lan') as lab:\n"
        "    try:\n"
        "        lab.run(['sh', '-c', 'trap \"echo heard; exit 0\" INT; echo up; while :; do sleep 0.05; done'])\n"
        "    except KeyboardInterrupt:\n"
        "        print('stopped', flush=True)\n"
    )
    assert python.stdout.readline() == "up\n"
    python.send_signal(signal.SIGINT)
    assert python.stdout.read() == "heard\nstopped\n"
    assert python.wait() == 0
    python.stdout.close()
