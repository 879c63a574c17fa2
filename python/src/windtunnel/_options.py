"""Keyword arguments as options of the program."""

from __future__ import annotations

import datetime
import math
import os
from typing import Any, List, Mapping, Union

Settings = Union[str, Mapping[str, Any]]
"""Levels of several knobs: ``"cc=bbr,initcwnd=20"``, or ``{"cc": "bbr", "initcwnd": 20}``."""


def text(value: Any) -> str:
    """A value in the program's words.

    Whole numbers are exact, floats are written so that they read back the same, and one without a fraction as a whole number,
    since a column of whole numbers with a gap is of floats in pandas. Nothing (``None``, NaN, NaT, ``pandas.NA``) is empty.
    """
    if value is None or missing(value):
        return ""
    if isinstance(value, str):
        return value
    if type(value).__name__ in ("bool", "bool_"):
        return "on" if value else "off"
    if isinstance(value, datetime.timedelta):
        # pandas' Timedelta has nanoseconds beyond; the program's times have microseconds.
        return f"{value // datetime.timedelta(microseconds=1)}us"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(float(value))
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    return str(value)


def missing(value: Any) -> bool:
    """Whether it stands for nothing: NaN, NaT or NA, without asking pandas."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def settings(value: Settings) -> str:
    """Settings as ``KNOB=LEVEL,…``."""
    if isinstance(value, str):
        return value
    return ",".join(f"{knob.replace('_', '-')}={text(level)}" for knob, level in value.items())


def _levels(value: Any) -> str:
    """Levels of one knob: ``"4x,8x"``, or a list."""
    return ",".join(text(level) for level in value) if isinstance(value, (list, tuple)) else text(value)


def flags(options: Mapping[str, Any]) -> List[str]:
    """Options as the program's arguments. ``None`` and ``False`` leave an option out."""
    words: List[str] = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif name == "levels" and isinstance(value, Mapping):
            words += [f"{flag}={knob.replace('_', '-')}={_levels(some)}" for knob, some in value.items()]
        elif name == "arm" and isinstance(value, Mapping):
            words += [f"{flag}={arm}: {settings(some)}" for arm, some in value.items()]
        elif isinstance(value, Mapping):
            words.append(f"{flag}={settings(value)}")
        elif isinstance(value, (list, tuple)):
            words += [f"{flag}={','.join(map(text, value))}"] if name == "knobs" else [f"{flag}={text(one)}" for one in value]
        else:
            words.append(f"{flag}={text(value)}")
    return words
