"""What other settings would do, by the program's model of Linux TCP."""

from __future__ import annotations

import csv
import io
import os
import re
from typing import Any, List, Tuple

from . import _frames, _options, _program

# Columns of the answer that aren't numbers.
_TEXTS = {"setting", "figure_unit", "problem"}
_WHOLE = re.compile(r"-?[0-9]+")


def predict(table: Any, **options: Any) -> Any:
    """What other settings would do on one path, or on each path of a table. It is no evidence.

    ``table`` is a pandas or polars DataFrame, or rows as dictionaries (a list, or anything that yields them); its columns are
    called as the options of ``windtunnel predict`` are: ``link_rate``, ``rtt``, ``loss``, ``queue``, …, or ``path``. Other columns
    are kept, with their own values. ``options`` hold for rows whose cell is empty. The answer has a row for each setting of
    each row, in the form that the table had: ``row`` (from 1), your columns, ``arm``, ``setting``, ``goodput_bps``, ``figure``,
    ``completion_us``, ``queueing_delay_us``, ``retransmitted_share``, ``gain`` (a share; none for the first, current setting),
    ``worth_measuring``, ``model_error_p90``, ``problem``.

    A string is one path instead, a preset's name or a TOML file, and the answer is the object of ``predict --json``.

    Raises :class:`~windtunnel.UsageProblem` where a row asks for what can't be asked; then nothing was computed.
    """
    if isinstance(table, (str, os.PathLike)):
        return _program.answer(["predict", *_options.flags(options), "--", os.fspath(table)])
    asked, form = _frames.columns(table)
    if not asked:
        return _frames.table({}, form)
    told, _, _ = _program.output(["predict", "--table", "-", *_options.flags(options)], as_csv(asked))
    return _frames.table(_answers(told, asked), form)


def as_csv(asked: _frames.Columns) -> bytes:
    """The question. Every cell is quoted where it must be, and nothing is rounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(asked)
    writer.writerows(zip(*([_options.text(cell) for cell in cells] for cells in asked.values())))
    return text.getvalue().encode()


def _answers(told: bytes, asked: _frames.Columns) -> _frames.Columns:
    """The answer. What was asked stands in it as it was given, not as it was written."""
    names, cells = _by_columns(told.decode())
    numbers = [int(number) - 1 for number in cells[names.index("row")]]
    found: _frames.Columns = {}
    last: List[str] = []
    values: List[Any] = []
    for name, column in zip(names, cells):
        if name in asked and name != "row":
            given = asked[name]
            found[name] = [given[number] for number in numbers]
        elif name in _TEXTS:
            found[name] = [cell or None for cell in column]
        else:
            # With one seed the percentiles are the value itself.
            if column != last:
                last, values = column, _values(column)
            found[name] = list(values)
    return found


def _by_columns(text: str) -> Tuple[List[str], List[List[str]]]:
    """The names and the cells of a CSV table."""
    if '"' not in text:
        # As one list, since a list for each row would take most of the time.
        names = text[: text.index("\n")].split(",")
        cells = text.rstrip("\n").replace("\n", ",").split(",")
        return names, [cells[at :: len(names)][1:] for at in range(len(names))]
    rows = csv.reader(io.StringIO(text, newline=""))
    names = next(rows)
    return names, [list(column) for column in zip(*rows)] or [[] for _ in names]


def _values(column: List[str]) -> List[Any]:
    """Each cell's number, truth or nothing."""
    try:
        return list(map(int, column))
    except ValueError:
        pass
    there = column if "" not in column else [cell for cell in column if cell]
    try:
        numbers = list(map(float, there))
    except ValueError:
        known = {cell: _value(cell) for cell in set(column)}
        return [known[cell] for cell in column]
    # What is written as a whole number stays one.
    values = iter(_value(cell) if number.is_integer() else number for number, cell in zip(numbers, there))
    return list(values) if there is column else [next(values) if cell else None for cell in column]


def _value(cell: str) -> Any:
    if not cell:
        return None
    if cell in ("true", "false"):
        return cell == "true"
    return int(cell) if _WHOLE.fullmatch(cell) else float(cell)
