"""Views: which records of a split match a condition, and in which order they are shown."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import BytesArray, RaggedArray
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import OptionError
from recordsmith.viewing.records import ViewedRecords
from recordsmith.viewing.scans import Scan, ViewKey

_MAX_SORTED = 5_000_000
_MAX_GROUPS = 1000
_TEXT = "S48"  # bytes that decide the order of texts


class Selected(Scan):
    def __init__(self, records: ViewedRecords, key: ViewKey) -> None:
        super().__init__(records, key)
        self._positions: Any = np.empty(0, np.int64)
        self._sorted: Any = None  # the value of each record, of a sorted view
        self._is_plain = self._where is None and not key.sort
        if not self._is_plain:
            self.begin()

    @property
    def positions(self) -> Any:
        """The positions of the records so far: a range or int64."""
        return self._records.positions(self._key.split) if self._is_plain else self._positions

    def describe(self) -> dict[str, Any]:
        is_complete = not self._records.is_counting if self._is_plain else self.is_complete
        positions = self.positions
        total = len(self._records.positions(self._key.split))
        return {
            "count": len(positions),
            "scanned": total if self._is_plain else self.scanned,
            "total": total,
            "is_complete": is_complete,
            "error": None if self.error is None else self.error.to_json(),
        }

    def groups(self) -> list[tuple[int, int, Any]]:
        """Return where groups of equal values begin in a sorted view, their sizes and values.

        There are none if the view is not complete, or has too many different values.
        """
        if self._sorted is None or not self.is_complete:
            return []
        values, missing = self._sorted
        differ = (values[1:] != values[:-1]) & ~missing[1:]  # NaN, which is missing, does always
        starts = np.flatnonzero(differ | (missing[1:] != missing[:-1])) + 1
        if len(starts) >= _MAX_GROUPS or not len(values):
            return []
        bounds = [0, *starts.tolist(), len(values)]
        return [
            (start, stop - start, None if missing[start] else values[start].item())
            for start, stop in itertools.pairwise(bounds)
        ]

    def scan(self) -> None:
        key = self._key.sort.removeprefix("-")
        order = _Order(is_descending=self._key.sort.startswith("-")) if key else None
        pieces: list[Int64Array] = []
        published, count = 0, 0
        for positions, columns in self.columns([key] if key else []):
            pieces.append(positions)
            count += len(positions)
            if order is not None:
                order.add(columns.get(key), len(positions))
            del columns
            if order is not None and count > _MAX_SORTED:
                self._publish(pieces, order)
                raise OptionError(
                    f"only the first {count:,} records are sorted",
                    option="sort",
                    remedy="Choose fewer records with a condition.",
                )
            if count >= 2 * published or count - published > 1 << 20:
                self._publish(pieces, order)
                published = max(count, 64)
        self._publish(pieces, order)
        if self._where is not None and not count:
            self._where.check_features_found()

    def _publish(self, pieces: list[Int64Array], order: _Order | None) -> None:
        joined = np.concatenate([np.empty(0, np.int64), *pieces])
        pieces[:] = [joined]
        if order is None:
            self._positions = joined
        else:
            places = order.places()
            self._positions, self._sorted = joined[places], order.values(places)
        self.notify()


class _Order:
    """The order of records by a feature: that of its first value; records without it are last."""

    def __init__(self, *, is_descending: bool) -> None:
        self._is_descending = is_descending
        self._pieces: list[npt.NDArray[Any]] = []
        self._missing: list[npt.NDArray[np.bool_]] = []

    def add(self, column: RaggedArray | None, count: int) -> None:
        """Add the values of some records; None if none has any."""
        if column is None:
            self._pieces.append(np.zeros(count, np.int8))
            self._missing.append(np.ones(count, np.bool_))
            return
        is_there = column.lengths > 0
        firsts = column.row_splits[:-1][is_there]
        values: Any = column.values
        if isinstance(values, BytesArray):
            first = np.array([values[index] for index in firsts.tolist()], _TEXT)
        else:
            first = values[firsts]
        numbers = np.zeros(count, first.dtype)
        numbers[is_there] = first
        self._pieces.append(numbers)
        self._missing.append(~is_there)

    def places(self) -> Int64Array:
        """Return the places of the records so far, in their order."""
        kinds = {piece.dtype.kind for piece in self._pieces} - {"i"}
        texts = "S" in kinds
        missing = np.concatenate([np.empty(0, np.bool_), *self._missing])
        if texts:
            values: Any = np.concatenate([piece.astype(_TEXT) for piece in self._pieces])
        else:
            values = np.concatenate(self._pieces) if self._pieces else np.empty(0, np.int64)
            if values.dtype.kind == "f":
                missing = missing | np.isnan(values)
        self._pieces, self._missing = [values], [missing]
        if texts:
            values = np.unique(values, return_inverse=True)[1]
        if self._is_descending:
            values = ~values if values.dtype.kind == "i" else -values
        return np.lexsort((values, missing))

    def values(self, places: Int64Array) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return the values at places after `places()`, and whether they are missing."""
        return self._pieces[0][places], self._missing[0][places]
