"""Tables that come and go: pandas and polars where the caller has them, otherwise lists of dictionaries. Neither is imported
here unless it is loaded already, or asked for by name."""

from __future__ import annotations

import sys
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from ._problem import UsageProblem

Columns = Dict[str, List[Any]]
"""A table by columns, all of one length."""


def columns(table: Any) -> Tuple[Columns, str]:
    """A table by its columns, and what it was: ``pandas``, ``polars`` or ``list``."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(table, pandas.DataFrame):
        names = [str(name) for name in table.columns]
        _unique(names)
        # As objects, so that numbers of 64 bits don't become floats.
        return {name: table.iloc[:, at].astype(object).tolist() for at, name in enumerate(names)}, "pandas"
    if polars is not None and isinstance(table, (polars.DataFrame, polars.LazyFrame)):
        frame = table.collect() if isinstance(table, polars.LazyFrame) else table
        return {name: frame[name].to_list() for name in frame.columns}, "polars"
    if isinstance(table, Mapping):
        raise UsageProblem("a table is rows, and this is one dictionary", None, "put it into a list")
    return _of_rows(table), "list"


def with_index_of(given: Any, answer: Any, rows: List[int]) -> Any:
    """An answer with the index of the table that was given, if that is one of pandas and has a name; ``rows`` are those of the table that
    the answer's rows are about, from 0."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(given, pandas.DataFrame) and any(name is not None for name in given.index.names):
        answer.index = given.index.take(rows)
    return answer


def _of_rows(rows: Iterable[Any]) -> Columns:
    found: Columns = {}
    count = 0
    for row in rows:
        if not isinstance(row, Mapping):
            raise UsageProblem(f"row {count + 1} is {type(row).__name__}, not a dictionary of column names and values")
        named = {str(name): cell for name, cell in row.items()}
        for name in named:
            if name not in found:
                found[name] = [None] * count
        for name, cells in found.items():
            cells.append(named.get(name))
        count += 1
    return found


def _unique(names: List[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UsageProblem(f"the table has two columns {name!r}")


def table(found: Columns, form: Optional[str]) -> Any:
    """A table in that form; without one, of pandas or else polars where it is loaded, or else a list of dictionaries."""
    if form is None:
        form = next((name for name in ("pandas", "polars") if name in sys.modules), "list")
    if form == "pandas":
        return _pandas(found)
    if form == "polars":
        import polars

        return polars.DataFrame(found, strict=False, infer_schema_length=None)
    if form == "list":
        return [dict(zip(found, row)) for row in zip(*found.values())]
    raise UsageProblem(f"{form!r} is no form of a table", None, "pandas, polars or list")


def _pandas(found: Columns) -> Any:
    import numpy
    import pandas

    series = {}
    for name, cells in found.items():
        kinds = set(map(type, cells))
        if kinds == {int, type(None)}:
            # Whole numbers with gaps stay whole: floats would lose what is beyond 2^53.
            there = [cell for cell in cells if cell is not None]
            kind = "uint64" if min(there) >= 0 and max(there) > 2**63 - 1 else "int64"
            values = numpy.array([0 if cell is None else cell for cell in cells], dtype=kind)
            series[name] = pandas.Series(pandas.arrays.IntegerArray(values, numpy.array([cell is None for cell in cells])))
        elif float in kinds and kinds <= {float, type(None)}:
            series[name] = pandas.Series(cells, dtype="float64")
        else:
            series[name] = pandas.Series(cells)
    return pandas.DataFrame(series)
