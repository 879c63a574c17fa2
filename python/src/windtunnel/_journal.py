"""Trials and experiments from the journal."""

from __future__ import annotations

import os
import pathlib
import sqlite3
import urllib.parse
from typing import Any, Optional, Union

from . import _frames
from ._problem import EnvironmentProblem, UsageProblem

_VIEWS = {"trials": "v_trials", "experiments": "v_experiments"}


def journal(
    path: Optional[Union[str, "os.PathLike[str]"]] = None,
    *,
    of: str = "trials",
    experiment: Optional[str] = None,
    form: Optional[str] = None,
) -> Any:
    """Every trial of the journal (``of="experiments"``: every experiment), with the columns that the guide promises.

    The form is ``pandas``, ``polars`` or ``list`` (of dictionaries); without it, the first of these that is imported. ``experiment``
    is a name, or the beginning of one. The file is opened read-only, so an experiment that runs isn't disturbed. In a DataFrame
    ``started`` and ``ended`` are times in UTC; ``…_unix_us`` are the same as whole microseconds.

    Raises :class:`~windtunnel.UsageProblem` where there is no such journal, and :class:`~windtunnel.EnvironmentProblem` where it can't
    be read.
    """
    if of not in _VIEWS:
        raise UsageProblem(f"{of!r} is in no journal", None, "trials or experiments")
    file = pathlib.Path(path) if path is not None else _default()
    if not file.exists():
        raise UsageProblem(f"there is no journal {file}", None, "an experiment of `windtunnel tune` makes one")
    view = _VIEWS[of]
    name = "id" if of == "experiments" else "experiment"
    query, values = f"SELECT * FROM {view}", []
    if experiment is not None:
        query += f" WHERE substr({name}, 1, ?) = ?"
        values = [len(experiment), experiment]
    uri = "file:" + urllib.parse.quote(os.path.abspath(file)) + "?mode=ro"
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=30)
        try:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'view' AND name = ?", [view]).fetchone():
                raise UsageProblem(f"{file} has no {view}", "it is of an older version", "windtunnel journal list brings it up to date")
            cursor = connection.execute(query, values)
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise EnvironmentProblem(f"can't read {file}: {error}", None, "windtunnel doctor") from error
    cells = [list(column) for column in zip(*rows)] or [[] for _ in names]
    return _times(_frames.table(dict(zip(names, cells)), form))


def _default() -> pathlib.Path:
    """Where the program keeps it: `$XDG_DATA_HOME`, if that is an absolute path, or else `~/.local/share`."""
    data = os.environ.get("XDG_DATA_HOME", "")
    folder = pathlib.Path(data) if os.path.isabs(data) else pathlib.Path.home() / ".local/share"
    return folder / "windtunnel/journal.sqlite3"


def _times(table: Any) -> Any:
    """Texts of times become times where the table has such a type."""
    library = type(table).__module__.split(".")[0]
    for name in ("started", "ended"):
        if library == "pandas" and name in table.columns:
            import pandas

            table[name] = pandas.to_datetime(table[f"{name}_unix_us"].astype("Int64"), unit="us", utc=True)
        elif library == "polars" and name in table.columns:
            import polars

            table = table.with_columns(polars.from_epoch(f"{name}_unix_us", time_unit="us").dt.replace_time_zone("UTC").alias(name))
    return table
