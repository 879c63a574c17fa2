"""Trials and experiments from the journal."""

from __future__ import annotations

import os
import pathlib
import sqlite3
import urllib.parse
from typing import Any, List, Optional, Tuple, Union

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
    if isinstance(path, str) and "://" in path:
        hint = "windtunnel.command(\"journal\", \"list\", \"--journal\", \"postgresql://…\") reads one on a server"
        raise UsageProblem(f"{path.split('://')[0]}://… is no file", "this function reads files of SQLite", hint)
    file = pathlib.Path(path) if path is not None else _default()
    if not file.exists():
        raise UsageProblem(f"there is no journal {file}", None, "an experiment of `windtunnel tune` makes one")
    view = _VIEWS[of]
    name = "id" if of == "experiments" else "experiment"
    query, values = f"SELECT * FROM {view}", []
    if experiment is not None:
        query += f" WHERE substr({name}, 1, ?) = ?"
        values = [len(experiment), experiment]
    try:
        names, rows = _read(file, view, query, values)
    except sqlite3.Error as error:
        log = "its latest trials are still in the file beside it that ends in -wal, which only those who may write in its folder can read"
        cause = log if isinstance(error, sqlite3.OperationalError) and "locked" not in str(error) and not _is_whole(file) else None
        raise EnvironmentProblem(f"can't read {file}: {error}", cause, "windtunnel doctor") from error
    cells = [list(column) for column in zip(*rows)] or [[] for _ in names]
    return _times(_frames.table(dict(zip(names, cells)), form))


def _read(file: pathlib.Path, view: str, query: str, values: List[Any]) -> Tuple[List[str], List[Any]]:
    """The names of the columns, and the rows.

    In write-ahead mode even reading makes a file beside the journal, which a read-only medium and a folder of somebody else don't take.
    Such a journal is read as one that nobody writes, if it is whole: if no latest trials are in a file beside it.
    """
    try:
        return _ask(file, "mode=ro", view, query, values)
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or not _is_whole(file):
            raise
    return _ask(file, "mode=ro&immutable=1", view, query, values)


def _is_whole(file: pathlib.Path) -> bool:
    """Whether a journal has nothing that isn't in its own file yet."""
    try:
        return os.path.getsize(f"{file}-wal") == 0
    except OSError:
        return True


def _ask(file: pathlib.Path, how: str, view: str, query: str, values: List[Any]) -> Tuple[List[str], List[Any]]:
    connection = sqlite3.connect(f"file:{urllib.parse.quote(os.path.abspath(file))}?{how}", uri=True, timeout=30)
    try:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'view' AND name = ?", [view]).fetchone():
            raise UsageProblem(f"{file} has no {view}", "it is of an older version", "windtunnel journal list brings it up to date")
        cursor = connection.execute(query, values)
        return [column[0] for column in cursor.description], cursor.fetchall()
    finally:
        connection.close()


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
