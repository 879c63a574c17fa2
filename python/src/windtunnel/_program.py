"""The program: where it is, and how it is run so that it never outlives this interpreter."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
from typing import IO, Any, Callable, Iterator, Optional, Sequence, Tuple

from ._problem import EnvironmentProblem, InternalProblem, from_text

PATIENCE_S = 30.0
"""How long the program gets to end by itself once it was asked to."""

# A watcher that the shell leaves behind when it becomes the program, with the shell's own number. It reads a pipe whose other
# end only this interpreter has: one line says that the program has ended, the end of the pipe that the interpreter has, by
# whatever way. Then the program gets what Ctrl-C sends, and where that isn't enough, the second one, and then SIGKILL.
_WATCH = (
    '( exec >/dev/null 2>&1 </dev/fd/"$0"; trap "" INT TERM HUP; read -r ended && exit 0; '
    "kill -INT $$; n=0; while kill -0 $$; do n=$((n+1)); "
    "[ $n = 50 ] && kill -INT $$; [ $n -ge 100 ] && { kill -KILL $$; exit 0; }; sleep 0.1; done ) & "
    'exec "$@"'
)


def program() -> str:
    """The path of the program: ``$WINDTUNNEL``, the one installed with this package, or the first in ``$PATH``.

    Raises :class:`EnvironmentProblem` where there is none, and where ``$WINDTUNNEL`` names what can't be run.
    """
    named = os.environ.get("WINDTUNNEL")
    if named:
        return _named(named)
    for folder in _folders():
        path = os.path.join(folder, "windtunnel")
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("windtunnel")
    if found is None:
        raise EnvironmentProblem(
            "the program windtunnel isn't here",
            "the package was installed without its scripts, or from a folder",
            "pip install --force-reinstall windtunnel, or set WINDTUNNEL to the program's path",
        )
    return found


def _named(name: str) -> str:
    """The program that ``$WINDTUNNEL`` names: a path, or a name to look for in ``$PATH``."""
    found = shutil.which(name)
    if found is not None:
        return found
    if not os.path.dirname(name):
        why = "$PATH has no such program"
    elif not os.path.exists(name):
        why = "no such file"
    else:
        why = "it is a folder" if os.path.isdir(name) else "it isn't executable"
    raise EnvironmentProblem(
        f"WINDTUNNEL names {name}, which can't be run: {why}",
        None,
        "set WINDTUNNEL to the program's path, or unset it: then the program that was installed with this package is run",
    )


def _folders() -> Iterator[str]:
    yield sysconfig.get_path("scripts")
    yield sysconfig.get_path("scripts", f"{os.name}_user")
    # pip install --target FOLDER puts it into FOLDER/bin.
    yield os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")
    yield os.path.join(sys.prefix, "bin")


class Child:
    """The program, running. It is in a session of its own, so that Ctrl-C reaches it once: from :meth:`stop`."""

    def __init__(self, arguments: Sequence[str], stdin: Any = subprocess.DEVNULL) -> None:
        self.errors: IO[bytes] = tempfile.TemporaryFile()
        watched, self._alive = os.pipe()
        self._lock = threading.Lock()
        try:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                ["/bin/sh", "-c", _WATCH, str(watched), program(), *arguments],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                pass_fds=(watched,),
                start_new_session=True,
            )
        except BaseException:
            os.close(self._alive)
            self.errors.close()
            raise
        finally:
            os.close(watched)

    def ended(self) -> int:
        """Waits for the end; the exit code."""
        # The watcher is told before the number may be another process's.
        if self.process.returncode is None:
            try:
                os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
            except ChildProcessError:
                # Another thread has waited for it, and told the watcher.
                pass
        with self._lock:
            if self._alive >= 0:
                try:
                    os.write(self._alive, b"ended\n")
                except BrokenPipeError:
                    pass
                os.close(self._alive)
                self._alive = -1
            return self.process.wait()

    def stop(self, patience_s: float = PATIENCE_S) -> int:
        """Asks the program to end as Ctrl-C does, and waits for it; kills it where that takes too long."""
        assert self.process.stdout is not None
        self.interrupt()
        late = threading.Timer(patience_s, self.process.kill)
        late.daemon = True
        late.start()
        try:
            # What it still says must not fill the pipe.
            while not self.process.stdout.closed and self.process.stdout.read(65536):
                pass
            return self.ended()
        finally:
            late.cancel()

    def interrupt(self) -> None:
        """What Ctrl-C sends."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)

    def said(self) -> str:
        """What it said on standard error."""
        self.errors.seek(0)
        return self.errors.read().decode("utf-8", "replace")

    def close(self) -> None:
        """Forgets it, once it has ended."""
        self.errors.close()
        for end in (self.process.stdout, self.process.stdin):
            if end is not None:
                try:
                    end.close()
                except BrokenPipeError:
                    pass


def output(
    arguments: Sequence[str], given: Optional[bytes] = None, no: bool = True, take: Optional[Callable[[bytes], None]] = None
) -> Tuple[bytes, int, str]:
    """Runs a command to its end: its standard output, its exit code (0, or 1 with ``no``), its standard error. With ``take`` that is
    given each part of the output when it comes, and none is returned.

    Raises a :class:`~windtunnel.Problem` for every other code.
    """
    child = Child(arguments, subprocess.DEVNULL if given is None else subprocess.PIPE)
    try:
        feeder = None
        if given is not None:
            feeder = threading.Thread(target=_feed, args=(child.process.stdin, given), daemon=True)
            feeder.start()
        assert child.process.stdout is not None
        out = child.process.stdout.fileno()
        told = b""
        if take is None:
            told = child.process.stdout.read()
        else:
            for part in iter(lambda: os.read(out, 1 << 20), b""):
                take(part)
        code = child.ended()
        if feeder is not None:
            feeder.join()
        errors = child.said()
    except BaseException:
        child.stop()
        raise
    finally:
        child.close()
    if code != 0 and not (no and code == 1):
        raise from_text(code, errors)
    return told, code, errors


def _feed(pipe: IO[bytes], given: bytes) -> None:
    try:
        pipe.write(given)
        pipe.close()
    except BrokenPipeError:
        # It ended early, and says why.
        pass


def answer(arguments: Sequence[str], given: Optional[bytes] = None) -> Any:
    """The one JSON object that a command answers with ``--json``."""
    words = list(arguments)
    # Behind -- are no options.
    words.insert(words.index("--") if "--" in words else len(words), "--json")
    told, _, errors = output(words, given)
    try:
        return json.loads(told)
    except ValueError:
        raise InternalProblem(f"windtunnel {' '.join(arguments)} answered no JSON: {errors or told[:200]!r}") from None


def command(*arguments: str) -> Any:
    """What any command answers with ``--json``: ``wt.command("lab", "show", "adsl")``.

    An answer of "no" (exit code 1) is an answer, too. Raises a :class:`~windtunnel.Problem` where the command fails.
    """
    return answer(list(arguments))


def version() -> str:
    """The version of the program."""
    told = output(["--version"])[0].decode("utf-8", "replace")
    words = told.split()
    if words[:1] != ["windtunnel"] or len(words) < 2:
        raise InternalProblem(f"{program()} answered no version: {told[:200]!r}", None, "set WINDTUNNEL to the program's path, or unset it")
    return words[1]
