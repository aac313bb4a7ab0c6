"""Rows of the table: the first values of some features of a record, as a line of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recordsmith.dataset import contents_of, feature_document, key_text
from recordsmith.support.errors import RecordsmithError
from recordsmith.viewing.compressed_stream import Payload
from recordsmith.viewing.tiles import exact, problem_of

MAX_COLUMNS = 50
_MAX_VALUES = 4  # of a feature


def make_row(place: int, position: int, payload: Payload, columns: Sequence[str]) -> dict[str, Any]:
    """Return a row; its cells are None where the record has no such feature, or cannot be read."""
    row: dict[str, Any] = {"place": place, "position": position, "problem": None}
    cells: list[Any] = [None] * len(columns)
    try:
        if isinstance(payload, RecordsmithError):
            raise payload
        cells = _cells(contents_of(payload), columns)
    except RecordsmithError as error:
        row["problem"] = problem_of(error)
    return row | {"cells": cells}


def _cells(contents: dict[str, Any], columns: Sequence[str]) -> list[Any]:
    features = contents.get("features", contents.get("context", {}))
    by_text = {key_text(key): value for key, value in features.items()}
    cells: list[Any] = []
    for column in columns:
        value = by_text.get(column)
        cells.append(None if value is None else exact(feature_document(value, _MAX_VALUES)))
    return cells
