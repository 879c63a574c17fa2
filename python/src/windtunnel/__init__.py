"""Windtunnel from Python: what the program says, as Python's own values.

    import windtunnel as wt

    answers = wt.predict([{"link_rate": "8mbit", "rtt": "40ms"}], set="cc=bbr")
    with wt.lab("adsl") as lab:
        lab.run(["curl", "-so", "/dev/null", "http://server/bytes/1MB"], check=True)
    with wt.tune(lab="adsl", budget="60s") as events:
        for event in events:
            ...
    print(events.verdict)

Every figure comes from the program, as its JSON or CSV says it. Options of the program are keyword arguments with ``_`` for
``-``: ``up_rate="1mbit"`` is ``--up-rate 1mbit``, ``strict=True`` is ``--strict``, a list repeats the option, and a dictionary
is settings: ``set={"cc": "bbr", "sack": False}`` is ``--set cc=bbr,sack=off``. Times may be :class:`datetime.timedelta`.

What stops the program is raised as a :class:`Problem`. Nothing that was started outlives the interpreter, whatever ends it.
"""

from ._journal import journal
from ._lab import Lab, lab
from ._options import Settings
from ._predict import predict
from ._analyse import analyse
from ._problem import EnvironmentProblem, InternalProblem, Problem, RemoteProblem, StoppedProblem, UsageProblem
from ._program import command, program, version
from ._tune import Tune, tune

__all__ = [
    "EnvironmentProblem",
    "InternalProblem",
    "Lab",
    "Problem",
    "RemoteProblem",
    "Settings",
    "StoppedProblem",
    "Tune",
    "UsageProblem",
    "analyse",
    "command",
    "journal",
    "lab",
    "predict",
    "program",
    "tune",
    "version",
]
