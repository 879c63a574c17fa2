"""Experiments while they run."""

from __future__ import annotations

import json
import weakref
from types import TracebackType
from typing import Any, Dict, Iterator, Optional, Type, cast

from . import _options, _program
from ._problem import InternalProblem, StoppedProblem, from_text


def tune(target: Optional[str] = None, **options: Any) -> "Tune":
    """Finds the fastest settings, and whether the gain is real: the events of ``windtunnel tune --json-stream``, while it runs.

    ``target`` is a server on the real path; ``lab="adsl"`` rehearses over an emulated one. The options are those of
    ``windtunnel tune``: ``knobs=["rwin", "cc"]``, ``levels={"rwin": ["4x", "8x"]}``, ``budget="60s"``, ``hold={"cc": "cubic"}``,
    ``journal=…``.

    >>> with tune(lab="adsl", budget="60s") as events:  # doctest: +SKIP
    ...     for event in events:
    ...         print(event["event"])
    >>> events.verdict["headline"]  # doctest: +SKIP
    """
    return Tune(target, options)


class Tune:
    """An experiment that runs: an iterator of its events, each a dictionary whose ``event`` says what it is (``begin``, ``trial``,
    ``round``, ``sample``, …).

    When the iterator ends, ``result`` is the whole answer (as ``--json``) and ``verdict`` its verdict. Leaving it early, by
    :meth:`close`, the end of ``with`` or Ctrl-C, sends the program SIGINT and waits for it: what was measured stays in the
    journal, and ``result`` is the answer so far, where there is one.
    """

    def __init__(self, target: Optional[str], options: Dict[str, Any]) -> None:
        words = ["tune", *_options.flags(options), "--json-stream"]
        self.result: Optional[Dict[str, Any]] = None
        self._child = _program.Child(words + ([] if target is None else ["--", target]))
        # Who drops the iterator half-way ends the experiment, too.
        self._finalizer = weakref.finalize(self, _end, self._child)

    @property
    def verdict(self) -> Optional[Dict[str, Any]]:
        """What the trials allow one to say; ``None`` until there is an answer."""
        return None if self.result is None else cast("Optional[Dict[str, Any]]", self.result.get("verdict"))

    @property
    def id(self) -> Optional[str]:
        """The experiment's name in the journal, once there is an answer."""
        return None if self.result is None else cast("Optional[str]", self.result.get("id"))

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return self

    def __next__(self) -> Dict[str, Any]:
        if not self._finalizer.alive:
            raise StopIteration
        try:
            event = self._read()
        except BaseException as error:
            if isinstance(error, ValueError) and not self._finalizer.alive:
                raise StopIteration from None
            self.close()
            raise
        if event is not None:
            return event
        code = self._child.ended()
        # Where another thread has closed it, that one has seen to the rest.
        if self._finalizer.detach() is None:
            raise StopIteration
        said = self._child.said()
        self._child.close()
        if code not in (0, 1):
            raise from_text(code, said)
        raise StopIteration

    def _read(self) -> Optional[Dict[str, Any]]:
        """The next event. A line that is no event is the result."""
        assert self._child.process.stdout is not None
        for line in self._child.process.stdout:
            try:
                found: Dict[str, Any] = json.loads(line)
            except ValueError:
                raise InternalProblem(f"windtunnel tune said what is no JSON: {line[:200]!r}") from None
            if "event" in found:
                return found
            self.result = found
        return None

    def close(self) -> None:
        """Ends the experiment if it still runs, and waits; does nothing if it has ended."""
        if not self._finalizer.alive:
            return
        self._child.interrupt()
        try:
            while self._read() is not None:
                pass
        except (ValueError, InternalProblem):
            pass
        finally:
            self._finalizer()

    def wait(self) -> Dict[str, Any]:
        """Runs it to its end; the whole answer, as ``--json``."""
        for _ in self:
            pass
        if self.result is None:
            raise StoppedProblem("the experiment was stopped before there was an answer")
        return self.result

    def __enter__(self) -> "Tune":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


def _end(child: _program.Child) -> None:
    child.stop()
    child.close()
