"""What other settings would do, by the program's model of Linux TCP."""

from __future__ import annotations

import csv
import io
import os
import re
from typing import Any, Callable, List, Literal

from . import _frames, _options, _program
from ._problem import InternalProblem

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
    ``worth_measuring``, ``model_error_p90``, ``problem``. The index of a DataFrame of pandas, if it has a name, is the index of the answer;
    it asks for nothing.

    A string is one path instead, a preset's name or a TOML file, and the answer is the object of ``predict --json``.

    Raises :class:`~windtunnel.UsageProblem` where a row asks for what can't be asked; then nothing was computed.
    """
    if isinstance(table, (str, os.PathLike)):
        return _program.answer(["predict", *_options.flags(options), "--", os.fspath(table)])
    asked, form = _frames.columns(table)
    if not asked:
        return _frames.table({}, form)
    answers = _Answers(asked)
    # A scheduler's environment, which names a part of a table that lies in a file, says nothing of these rows.
    whole = [] if options.get("shard") else ["--shard=1/1"]
    _program.output(["predict", "--table", "-", *whole, *_options.flags(options)], as_csv(asked), take=answers.take)
    found = answers.columns()
    return _frames.with_index_of(table, _frames.table(found, form), [int(number) - 1 for number in found["row"]])


def as_csv(asked: _frames.Columns, text: Callable[[Any], str] = _options.text) -> bytes:
    """The question, with each cell's text. Every cell is quoted where it must be, and nothing is rounded."""
    rows = [list(asked), *zip(*([text(cell) for cell in cells] for cells in asked.values()))]

    def written(quoting: Literal[0, 1]) -> str:
        lines = io.StringIO()
        csv.writer(lines, lineterminator="\n", quoting=quoting).writerows(rows)
        return lines.getvalue()

    lines = written(csv.QUOTE_MINIMAL)
    # Before Python 3.13 a carriage return isn't quoted, and ends the line for who reads it; a line that begins with # is a comment.
    plain = "\r" not in lines and not lines.startswith("#") and "\n#" not in lines
    return (lines if plain else written(csv.QUOTE_ALL)).encode()


class _Answers:
    """The answer, read while it is computed. What was asked stands in it as it was given, not as it was written."""

    def __init__(self, asked: _frames.Columns) -> None:
        self._asked = asked
        self._names: List[str] = []
        self._found: _frames.Columns = {}
        self._rest = b""
        self._quoted: List[bytes] = []

    def take(self, part: bytes) -> None:
        """Reads the lines that are whole by now."""
        if self._quoted or b'"' in part:
            # A line may go on behind its end within quotes: from here on all is read in the end.
            self._quoted.append(part)
            return
        told = self._rest + part
        end = told.rfind(b"\n") + 1
        self._rest = told[end:]
        lines = told[:end].decode().rstrip("\n")
        if lines and not self._names:
            head, _, lines = lines.partition("\n")
            self._head(head.split(","))
        if lines:
            # As one list, since a list for each row would take most of the time.
            cells = lines.replace("\n", ",").split(",")
            self._add([cells[at :: len(self._names)] for at in range(len(self._names))])

    def columns(self) -> _frames.Columns:
        """All of it, once there is no more."""
        rows = csv.reader(io.StringIO(b"".join([self._rest, *self._quoted]).decode(), newline=""))
        if not self._names:
            self._head(next(rows, []))
        left = [list(column) for column in zip(*rows)]
        if left:
            self._add(left)
        return self._found

    def _head(self, names: List[str]) -> None:
        if "row" not in names:
            raise InternalProblem(f"windtunnel predict answered no table: {','.join(names)[:200]!r}")
        self._names = names
        self._found = {name: [] for name in names}

    def _add(self, cells: List[List[str]]) -> None:
        numbers = [int(number) - 1 for number in cells[self._names.index("row")]]
        last: List[str] = []
        values: List[Any] = []
        for name, column in zip(self._names, cells):
            if name in self._asked and name != "row":
                given = self._asked[name]
                self._found[name] += [given[number] for number in numbers]
            elif name in _TEXTS:
                self._found[name] += [cell or None for cell in column]
            else:
                # With one seed the percentiles are the value itself.
                if column != last:
                    last, values = column, _values(column)
                self._found[name] += values


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
