"""Keyword arguments as options of the program."""

from __future__ import annotations

import datetime
import math
import os
from typing import Any, Iterable, List, Mapping, Optional, Union

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
    if is_truth(value):
        return "on" if value else "off"
    if isinstance(value, datetime.timedelta):
        # pandas' Timedelta has nanoseconds beyond; the program's times have microseconds.
        return f"{value // datetime.timedelta(microseconds=1)}us"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(float(value))
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    return str(value)


def is_truth(value: Any) -> bool:
    """Whether it is true or false, without asking numpy, whose type has had two names."""
    return type(value).__name__ in ("bool", "bool_")


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


def several(value: Any) -> Optional[List[Any]]:
    """The members of a list, a tuple, a set or whatever else yields some; ``None`` for one value, such as a text or a dictionary.

    A set has no order, and gets that of its members' words, so that the same call asks the same.
    """
    if isinstance(value, (str, bytes, Mapping, os.PathLike)) or not isinstance(value, Iterable):
        return None
    return sorted(value, key=text) if isinstance(value, (set, frozenset)) else list(value)


def _levels(value: Any) -> str:
    """Levels of one knob: ``"4x,8x"``, or a list."""
    levels = several(value)
    return text(value) if levels is None else ",".join(map(text, levels))


def _words(name: str, value: Any) -> List[str]:
    """What an option says, a word for each time that it stands there."""
    members = several(value)
    if members is not None:
        # Knobs stand in one word; any other option is repeated.
        return [",".join(map(text, members))] if name == "knobs" else [word for one in members for word in _words_of_member(name, one)]
    if not isinstance(value, Mapping):
        return [text(value)]
    if name == "levels":
        return [f"{knob.replace('_', '-')}={_levels(some)}" for knob, some in value.items()]
    if name == "arm":
        return [f"{arm}: {settings(some)}" for arm, some in value.items()]
    return [settings(value)]


def _words_of_member(name: str, one: Any) -> List[str]:
    """The same of one in a list: an arm there may be settings without a name."""
    if isinstance(one, Mapping) and name == "arm" and not any(isinstance(some, Mapping) or "=" in text(some) for some in one.values()):
        return [settings(one)]
    return _words(name, one) if isinstance(one, Mapping) else [text(one)]


def flags(options: Mapping[str, Any]) -> List[str]:
    """Options as the program's arguments. ``None`` and ``False`` leave an option out."""
    words: List[str] = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        words += [flag] if value is True else [f"{flag}={word}" for word in _words(name, value)]
    return words
