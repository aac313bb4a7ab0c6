"""Passes over the records of a view: which ones match its condition, with some features.

A scan runs in a thread, and grows while it is read: what it has is right for the records that were
scanned so far.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from recordsmith.dataset import Where, parse_where
from recordsmith.format.example import ColumnDecoder, FeatureSpec
from recordsmith.format.wire import RecordBlock
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import (
    DataError,
    FileAccessError,
    OptionError,
    RecordsmithError,
)
from recordsmith.viewing.records import Columns, ViewedRecords, rows_of


class ViewKey(NamedTuple):
    """What a view is: a split, a condition and an order; empty for all and for the files' order."""

    split: str = ""
    where: str = ""
    sort: str = ""


class Scan(ABC):
    """A pass over the records of a view, in a thread."""

    def __init__(self, records: ViewedRecords, key: ViewKey) -> None:
        """
        Raises:
            OptionError: the condition or the split is invalid.
        """
        self._records = records
        self._key = key
        self._where = parse_where(key.where) if key.where else None
        records.positions(key.split)  # raises if the split does not exist
        if self._where is not None and (known := records.view.outer_schema) is not None:
            self._where.check(known)
        self.scanned = 0
        self.error: RecordsmithError | None = None
        self.is_complete = False
        self._is_stopping = False
        self._changed = threading.Condition()

    def begin(self) -> None:
        threading.Thread(target=self._run, name="scan", daemon=True).start()

    def stop(self) -> None:
        self._is_stopping = True

    @abstractmethod
    def scan(self) -> None:
        """Read the records, in the thread."""

    def _run(self) -> None:
        try:
            self.scan()
        except (DataError, FileAccessError, OptionError) as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - shown on the page
            self.error = RecordsmithError(f"reading failed: {type(error).__name__}: {error}")
        self.is_complete = True
        self.notify()

    def notify(self) -> None:
        """Wake up those who wait for more."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, is_enough: Callable[[], bool], seconds: float) -> None:
        """Wait until there is enough, or all."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_complete or is_enough(), seconds)

    def columns(self, keys: Sequence[str]) -> Iterator[tuple[Int64Array, Columns]]:
        """Yield the positions of matching records, and their features.

        A feature is left out where no record has it. Of SequenceExamples, the context is read.
        """
        needed = {*keys, *(self._where.keys if self._where else ())}
        for positions, block in self._records.blocks(self._key.split, needed):
            for scanned, matching, columns in _match(self._where, keys, positions, block):
                if self._is_stopping:
                    return
                self.scanned += scanned
                yield matching, columns
                del columns
            del block  # a large one is in memory that all threads share


def _match(
    where: Where | None, keys: Sequence[str], positions: Int64Array, block: RecordBlock | Columns
) -> Iterator[tuple[int, Int64Array, Columns]]:
    """Yield how many records were scanned, the positions of those that match, and their features.

    A record that cannot be parsed has no features, and matches no condition.
    """
    count = len(positions)
    rows: Any = slice(None)
    if not isinstance(block, RecordBlock):
        if where is not None:
            rows = np.flatnonzero(where.holds(block, count))
        yield count, positions[rows], {key: block[key][rows] for key in keys}
        return
    try:
        if where is not None:
            rows = np.flatnonzero(where.matches(block))
        columns = _decode(rows_of(block, rows), keys)
    except DataError:
        if count == 1:
            yield 1, positions if where is None else positions[:0], {}
            return
        for half in np.array_split(np.arange(count), 2):
            yield from _match(where, keys, positions[half], rows_of(block, half))
    else:
        yield count, positions[rows], columns


def _decode(block: RecordBlock, keys: Sequence[str]) -> Columns:
    """Return features of records, whose bytes stay in the buffer of the block."""
    if not keys or not len(block):
        return {}
    decoder = ColumnDecoder(
        dict.fromkeys(keys, FeatureSpec(shape="ragged")), borrowed=keys, with_lists=True
    )
    decoder.append(block.buffer, block.starts, block.lengths)
    return decoder.finish(is_strict=False)  # type: ignore[return-value]
