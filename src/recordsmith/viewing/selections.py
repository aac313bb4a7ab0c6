"""Views: which records of a split match a condition, and in which order they are shown.

A view is computed in a thread, and grows while it is read: what it has is right for the records
that were scanned so far. The last views are kept.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from recordsmith.buffers import Int64Array
from recordsmith.errors import DataError, Defect, FileAccessError, OptionError, RecordsmithError
from recordsmith.example import BytesArray, ColumnDecoder, FeatureSpec, RaggedArray
from recordsmith.example.spans import context_as_example
from recordsmith.viewing.records import ViewedRecords
from recordsmith.where import Where, parse_where
from recordsmith.wire import RecordBlock

_MAX_VIEWS = 12
_MAX_SORTED = 5_000_000
_MAX_GROUPS = 1000
_TEXT_BYTES = 48  # that decide the order of texts


class ViewKey(NamedTuple):
    """What a view is: a split, a condition and an order; empty for all and for the files' order."""

    split: str = ""
    where: str = ""
    sort: str = ""


class Views:
    """The views of some records. Thread-safe."""

    def __init__(self, records: ViewedRecords) -> None:
        self._records = records
        self._views: OrderedDict[ViewKey, Selected] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: ViewKey) -> Selected:
        """Return a view, which begins to be computed if it is new.

        Raises:
            OptionError: the condition or the split is invalid.
        """
        with self._lock:
            view = self._views.get(key)
            if view is None:
                view = Selected(self._records, key)
                self._views[key] = view
                if len(self._views) > _MAX_VIEWS:
                    self._views.popitem(last=False)[1].stop()
            self._views.move_to_end(key)
            return view

    def close(self) -> None:
        """Stop all that are being computed."""
        with self._lock:
            for view in self._views.values():
                view.stop()


class Selected:
    """The records of a view."""

    def __init__(self, records: ViewedRecords, key: ViewKey) -> None:
        self._records = records
        self._key = key
        self._where = parse_where(key.where) if key.where else None
        records.positions(key.split)  # raises if the split does not exist
        if self._where is not None and (known := records.view.outer_schema) is not None:
            self._where.check(known)
        self._positions: Any = np.empty(0, np.int64)
        self._sorted: Any = None  # the value of each record, of a sorted view
        self.scanned = 0
        self.error: RecordsmithError | None = None
        self.is_complete = False
        self._stopping = threading.Event()
        self._grew = threading.Condition()
        if self._where is not None or key.sort:
            threading.Thread(target=self._run, name="view", daemon=True).start()

    def stop(self) -> None:
        """Stop computing."""
        self._stopping.set()

    @property
    def positions(self) -> Any:
        """The positions of the records so far: a range or int64."""
        if self._where is None and not self._key.sort:
            return self._records.positions(self._key.split)
        return self._positions

    def wait(self, count: int, seconds: float) -> None:
        """Wait until there are so many records, or all."""
        with self._grew:
            self._grew.wait_for(lambda: self.is_complete or len(self.positions) >= count, seconds)

    def describe(self) -> dict[str, Any]:
        """Return the state for the page."""
        positions = self.positions
        total = len(self._records.positions(self._key.split))
        is_plain = self._where is None and not self._key.sort
        error = self.error
        return {
            "count": len(positions),
            "scanned": total if is_plain else self.scanned,
            "total": total,
            "is_complete": not self._records.is_counting if is_plain else self.is_complete,
            "error": None if error is None else error.to_json(),
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

    def _run(self) -> None:
        try:
            self._scan()
        except (DataError, FileAccessError, OptionError) as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - shown on the page
            self.error = RecordsmithError(f"the view failed: {type(error).__name__}: {error}")
        with self._grew:
            self.is_complete = True
            self._grew.notify_all()

    def _scan(self) -> None:
        key = self._key.sort.removeprefix("-")
        order = _Order(key, is_descending=self._key.sort.startswith("-")) if key else None
        pieces: list[Int64Array] = []
        published, found = 0, 0
        for scanned, own, chosen in matching_blocks(self._records, self._key.split, self._where):
            if self._stopping.is_set():
                return
            self.scanned += scanned
            pieces.append(own)
            found += len(own)
            if order is not None:
                order.add(chosen)
                if found > _MAX_SORTED:
                    self._publish(pieces, order)
                    raise OptionError(
                        f"only the first {found:,} records are sorted",
                        option="sort",
                        remedy="Choose fewer records with a condition.",
                    )
            if found >= 2 * published or found - published > 1 << 20:
                self._publish(pieces, order)
                published = max(found, 64)
        self._publish(pieces, order)
        if self._where is not None and not found:
            self._where.check_features_found()

    def _publish(self, pieces: list[Int64Array], order: _Order | None) -> None:
        joined = np.concatenate([np.empty(0, np.int64), *pieces])
        pieces[:] = [joined]
        if order is None:
            self._positions = joined
        else:
            places = order.places()
            self._positions, self._sorted = joined[places], order.values(places)
        with self._grew:
            self._grew.notify_all()


class _Order:
    """The order of records by a feature: that of its first value; records without it are last."""

    def __init__(self, key: str, *, is_descending: bool) -> None:
        self._key = key
        self._is_descending = is_descending
        self._pieces: list[npt.NDArray[Any]] = []
        self._missing: list[npt.NDArray[np.bool_]] = []

    def add(self, block: RecordBlock) -> None:
        """Add the values of some records."""
        count = len(block)
        column = decode_ragged(block, [self._key]).get(self._key)
        if column is None:
            self._pieces.append(np.zeros(count, np.int8))
            self._missing.append(np.ones(count, np.bool_))
            return
        is_there = column.lengths > 0
        firsts = column.row_splits[:-1][is_there]
        values: Any = column.values
        if isinstance(values, BytesArray):
            first = np.array(
                [bytes(values[place][:_TEXT_BYTES]) for place in firsts.tolist()] or [b""]
            )
        else:
            first = values[firsts]
        numbers = np.zeros(count, f"S{_TEXT_BYTES}" if first.dtype.kind == "S" else first.dtype)
        numbers[is_there] = first[: len(firsts)]
        self._pieces.append(numbers)
        self._missing.append(~is_there)

    def places(self) -> Int64Array:
        """Return the places of the records so far, in their order."""
        kinds = {piece.dtype.kind for piece in self._pieces} - {"i"}
        texts = "S" in kinds
        missing = np.concatenate([np.empty(0, np.bool_), *self._missing])
        if texts:
            pieces = [p if p.dtype.kind == "S" else np.zeros(len(p), "S1") for p in self._pieces]
            values: Any = np.concatenate(pieces)
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


def matching_blocks(
    records: ViewedRecords, split: str, where: Where | None
) -> Iterator[tuple[int, Int64Array, RecordBlock]]:
    """Yield blocks of the matching records: how many were scanned, positions and records."""
    for positions, block in records.blocks(split):
        if where is None:
            yield len(positions), positions, block
            continue
        rows = _matching_rows(where, block)
        yield len(positions), positions[rows], _rows_of(block, rows)


def _matching_rows(where: Where, block: RecordBlock) -> Int64Array:
    """Return the rows that match; records that cannot be parsed do not."""
    block = replace(block, position=0)
    try:
        return np.flatnonzero(where.matches(block))
    except DataError:
        if len(block) == 1:
            return np.empty(0, np.int64)
    halves = np.array_split(np.arange(len(block)), 2)
    return np.concatenate([half[_matching_rows(where, _rows_of(block, half))] for half in halves])


def _rows_of(block: RecordBlock, rows: Int64Array) -> RecordBlock:
    """Return some of the records of a block."""
    return replace(block, starts=block.starts[rows], lengths=block.lengths[rows])


def decode_ragged(block: RecordBlock, keys: Sequence[str]) -> dict[str, RaggedArray]:
    """Return features of the records of a block, whose bytes stay in its buffer.

    Of SequenceExamples, the context is read. A feature is left out if no record has it, or if its
    kinds differ; all of them if a record cannot be parsed.
    """
    decoder = ColumnDecoder(dict.fromkeys(keys, FeatureSpec(shape="ragged")), borrowed=list(keys))
    try:
        decoder.append(block.buffer, block.starts, block.lengths)
    except DataError as error:
        if error.defect is Defect.NOT_AN_EXAMPLE:
            contexts = _contexts(block)
            return {} if contexts is None else decode_ragged(contexts, keys)
        if error.defect is Defect.FEATURE_KIND and len(keys) > 1:
            columns: dict[str, RaggedArray] = {}
            for key in keys:
                columns |= decode_ragged(block, [key])
            return columns
        return {}
    return decoder.finish(is_strict=False)  # type: ignore[return-value]


def _contexts(block: RecordBlock) -> RecordBlock | None:
    """Return the contexts of SequenceExamples as Examples; None if they are something else."""
    with suppress(DataError):
        pieces = [context_as_example(payload) for payload in block.payloads()]
        if any(pieces):
            lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
            data = memoryview(b"".join(pieces))
            return RecordBlock(data, np.cumsum(lengths) - lengths, lengths, 0, 0)
    return None
