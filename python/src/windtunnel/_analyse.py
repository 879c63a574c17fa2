"""Whether a table of measurements shows a difference."""

from __future__ import annotations

import os
from typing import Any, Dict, cast

from . import _frames, _options, _predict, _program


def analyse(table: Any, **options: Any) -> Dict[str, Any]:
    """What ``windtunnel analyse --json`` says of a table, or of a capture.

    ``table`` is a pandas or polars DataFrame, rows as dictionaries, or the path of a file, CSV or a capture. ``value``, ``factor``
    and ``block`` name columns: ``wt.analyse(df, value="goodput_mbps", factor="mtu", block="day")``. That no difference is shown
    is an answer like any other.
    """
    values = _options.several(options.get("value"))
    if values is not None:
        options["value"] = ",".join(map(_options.text, values))
    words = ["analyse", *_options.flags(options)]
    if isinstance(table, (str, os.PathLike)):
        return cast(Dict[str, Any], _program.answer([*words, "--", os.fspath(table)]))
    columns, _ = _frames.columns(table)
    return cast(Dict[str, Any], _program.answer([*words, "--", "-"], _predict.as_csv(columns, _cell)))


def _cell(value: Any) -> str:
    """A level or an outcome in the table's own words: what is true there isn't a setting that is on."""
    return str(value) if _options.is_truth(value) else _options.text(value)
