"""What stops the program, as exceptions."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Optional, Type


class Problem(Exception):
    """What stopped an operation: what happened, the likely cause, what to try.

    ``fault`` is ``usage``, ``environment``, ``remote``, ``internal`` or ``stopped``, and ``code`` the program's exit code. The
    object's field ``try`` is ``hint`` here, since ``try`` is a word of Python's.
    """

    fault = "internal"
    code = 5

    def __init__(self, what: str, cause: Optional[str] = None, hint: Optional[str] = None) -> None:
        super().__init__(what, cause, hint)
        self.what = what
        self.cause = cause
        self.hint = hint

    def __str__(self) -> str:
        text = self.what
        if self.cause:
            text += f"\n  cause: {self.cause}"
        if self.hint:
            text += f"\n  try:   {self.hint}"
        return text


class UsageProblem(Problem, ValueError):
    """The request, or a file it names, is invalid."""

    fault = "usage"
    code = 2


class EnvironmentProblem(Problem):
    """This machine can't: a missing privilege, kernel feature or tool."""

    fault = "environment"
    code = 3


class RemoteProblem(Problem):
    """The remote host failed."""

    fault = "remote"
    code = 4


class InternalProblem(Problem):
    """The program's own fault, or it was killed."""


class StoppedProblem(Problem):
    """It was stopped before there was an answer."""

    fault = "stopped"
    code = 130


_KINDS: List[Type[Problem]] = [UsageProblem, EnvironmentProblem, RemoteProblem, InternalProblem, StoppedProblem]


_MISTYPED = re.compile(r"^error: (.*?)\n\n(.*?)For more information, try '--help'\.\s*\Z", re.MULTILINE | re.DOTALL)
"""What is said of a mistyped command line without ``--json``: what is wrong, and behind an empty line how it is used."""

_HELP = "windtunnel --help, or --help after the command's name"


def from_object(found: Dict[str, Any]) -> Problem:
    """The exception for a problem as JSON."""
    kind = next((kind for kind in _KINDS if kind.fault == found.get("fault")), InternalProblem)
    return kind(str(found.get("what", "")), found.get("cause"), found.get("try"))


def from_text(code: int, text: str) -> Problem:
    """The exception for what a command said on standard error, ending with this exit code.

    With ``--json`` that is an object in the last line, otherwise text whose indented lines begin with ``cause:`` and ``try:``, or what a
    mistyped command line is answered with, which begins with ``error:``.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and lines[-1].startswith("{"):
        try:
            found = json.loads(lines[-1])
        except ValueError:
            found = {}
        if "what" in found:
            return from_object(found)
    mistyped = _MISTYPED.search(text) if code == UsageProblem.code else None
    if mistyped:
        tip = re.search(r"^ *tip: (.*)$", mistyped.group(2), re.MULTILINE)
        return UsageProblem(" ".join(mistyped.group(1).split()), None, tip.group(1) if tip else _HELP)
    # The shell that becomes the program says why it can't, and where in its own line.
    unfit = re.fullmatch(r"\d+: (?:line )?\d+: (?:exec: )?(.*)\s*", text) if code in (126, 127) else None
    if unfit:
        return EnvironmentProblem(f"the program can't be run: {unfit.group(1)}", None, "set WINDTUNNEL to the program's path, or unset it")
    said: Dict[str, List[str]] = {"what": [], "cause": [], "try": []}
    part = "what"
    for line in lines:
        mark = re.match(r"  (cause|try): +", line)
        if mark:
            part, line = mark.group(1), line[mark.end() :]
        elif line.startswith("windtunnel: "):
            # What stands before it is progress, warnings and notes.
            said, part = {"what": [], "cause": [], "try": []}, "what"
            line = line[len("windtunnel: ") :]
        said[part].append(line)
    what = "\n".join(said["what"])
    if code < 0:
        what = f"the program was ended by signal {-code}" + (f": {what}" if what else "")
    kind = next((kind for kind in _KINDS if kind.code == code), InternalProblem)
    return kind(
        what or f"the program ended with code {code} and said nothing",
        "\n".join(said["cause"]) or None,
        "\n".join(said["try"]) or None,
    )
