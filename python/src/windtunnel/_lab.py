"""Programs over an emulated path, without root."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import time
import weakref
from types import TracebackType
from typing import Any, Dict, List, Mapping, Optional, Sequence, Type, Union

from . import _options, _program
from ._problem import EnvironmentProblem, InternalProblem, UsageProblem, from_text

Argument = Union[str, "os.PathLike[str]"]

# Programs begin where the caller is, and find what only root can use: one is root in the lab.
_BEGIN = 'cd -- "$0" && PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin && export PATH && exec "$@"'
# How long a program gets once it was asked to end.
_PATIENCE_S = 3.0


def lab(path: Argument, **options: Any) -> "Lab":
    """Keeps an emulated path up: two network namespaces of this machine's own kernel and what lies between them.

    ``path`` is a preset's name or a TOML file; the options are those of ``windtunnel lab up``: ``seed``, ``backend``, ``record``,
    ``cc``, ``server``. It is up when this returns, and gone with all that runs in it when ``with`` is left, when
    :meth:`Lab.close` is called, or when this interpreter ends in whatever way.

    >>> with lab("adsl") as path:  # doctest: +SKIP
    ...     path.run(["curl", "-so", "/dev/null", "http://server/bytes/1MB"], check=True)

    Raises a :class:`~windtunnel.Problem` where the path is invalid, or this machine can't.
    """
    return Lab(path, options)


class Lab:
    """A lab that is up.

    ``facts`` is what ``lab up --json`` said, ``hosts`` its hosts by name (``client``, ``server`` and those between), each with
    ``ipv4`` and ``ipv6``.
    """

    def __init__(self, path: Argument, options: Mapping[str, Any]) -> None:
        if shutil.which("nsenter") is None:
            raise EnvironmentProblem("nsenter isn't here", None, "apt-get install util-linux")
        child = _program.Child(["lab", "up", *_options.flags(options), "--json", "--", os.fspath(path)])
        self._finalizer = weakref.finalize(self, _end, child)
        try:
            assert child.process.stdout is not None
            line = child.process.stdout.readline()
            if not line:
                raise from_text(child.ended(), child.said())
            try:
                self.facts: Dict[str, Any] = json.loads(line)
            except ValueError:
                raise InternalProblem(f"windtunnel lab up said what is no JSON: {line[:200]!r}") from None
            self.hosts: Dict[str, Dict[str, Any]] = {host["name"]: host for host in self.facts["hosts"]}
        except BaseException:
            self._finalizer()
            raise

    def popen(self, argv: Union[Argument, Sequence[Argument]], host: str = "client", **how: Any) -> "subprocess.Popen[Any]":
        """Starts a program in a host of the lab; ``how`` is what :class:`subprocess.Popen` takes. It ends with the lab.

        With ``shell=True`` it is a line for the shell of that host. The lab's names (``server``, ``client6``, …) resolve, and
        ``$WT_SERVER``, ``$WT_CLIENT6`` and so on are set, as for ``lab run``. The program is in a session of its own.
        """
        if not self._finalizer.alive:
            raise UsageProblem("the lab is no longer up", None, "run programs within its with")
        if host not in self.hosts:
            raise UsageProblem(f"the lab has no host {host!r}: it has {', '.join(self.hosts)}")
        words = _words(argv)
        if not words:
            raise UsageProblem("there is no program to run")
        if how.pop("shell", False):
            words = ["sh", "-c", *words]
        folder = os.fspath(how.pop("cwd", None) or os.getcwd())
        known = dict(os.environ if how.get("env") is None else how["env"])
        for name, facts in self.hosts.items():
            variable = "WT_" + name.upper().replace("-", "_")
            known[variable], known[variable + "6"] = facts["ipv4"], facts["ipv6"]
        how["env"] = known
        how.setdefault("start_new_session", True)
        return subprocess.Popen([*self._enter(host), "sh", "-c", _BEGIN, folder, *words], **how)

    def run(
        self,
        argv: Union[Argument, Sequence[Argument]],
        host: str = "client",
        *,
        check: bool = False,
        capture_output: bool = False,
        timeout: Optional[float] = None,
        input: Any = None,
        **how: Any,
    ) -> "subprocess.CompletedProcess[Any]":
        """Runs a program in a host of the lab and waits for it, as :func:`subprocess.run` does.

        A program that isn't there ends with code 127, as in a shell. What ends the wait early (a timeout, Ctrl-C) ends the
        program and whatever it started in its session: with SIGINT, and with SIGKILL where that isn't heeded.

        Raises :class:`subprocess.CalledProcessError` with ``check`` and a code other than 0, and
        :class:`subprocess.TimeoutExpired`.
        """
        if capture_output:
            if how.get("stdout") is not None or how.get("stderr") is not None:
                raise ValueError("stdout and stderr arguments may not be used with capture_output.")
            how["stdout"] = how["stderr"] = subprocess.PIPE
        if input is not None:
            if how.get("stdin") is not None:
                raise ValueError("stdin and input arguments may not both be used.")
            how["stdin"] = subprocess.PIPE
        with self.popen(argv, host, **how) as process:
            try:
                out, err = process.communicate(input, timeout)
            except BaseException:
                if _is_leader(process):
                    _end_group(process)
                else:
                    # It is of a group that isn't its own, where others are.
                    process.kill()
                raise
        done: subprocess.CompletedProcess[Any] = subprocess.CompletedProcess(
            argv if isinstance(argv, str) else _words(argv), process.returncode, out, err
        )
        if check:
            done.check_returncode()
        return done

    def _enter(self, host: str) -> List[str]:
        """What enters a host, as the program says it, without the shell at its end."""
        return shlex.split(self.hosts[host]["enter"])[:-1]

    def close(self) -> None:
        """Takes the lab down, with all that runs in it, and waits; does nothing if it is down."""
        self._finalizer()

    def __enter__(self) -> "Lab":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


def _words(argv: Union[Argument, Sequence[Argument]]) -> List[str]:
    """The program and its arguments; one word alone is the program, as for :class:`subprocess.Popen`."""
    return [os.fspath(word) for word in ([argv] if isinstance(argv, (str, bytes, os.PathLike)) else argv)]


def _is_leader(process: "subprocess.Popen[Any]") -> bool:
    """Whether a program has a group of its own, which one that has ended but wasn't waited for still has."""
    try:
        return os.getpgid(process.pid) == process.pid
    except ProcessLookupError:
        return True


def _end_group(process: "subprocess.Popen[Any]") -> None:
    """Ends a program and its session. nsenter ends at once and forwards nothing, so the whole group gets the signal, and it is
    the group's end that is waited for."""
    for what in (signal.SIGINT, signal.SIGKILL):
        end = time.monotonic() + _PATIENCE_S
        try:
            os.killpg(process.pid, what)
            while time.monotonic() < end:
                process.poll()
                os.killpg(process.pid, 0)
                time.sleep(0.01)
        except ProcessLookupError:
            break
    process.wait()


def _end(child: _program.Child) -> None:
    child.stop()
    child.close()
