"""Reads records of TensorFlow Datasets, or windows of steps in them, from ranges of bytes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from recordsmith.buffers import Int64Array
from recordsmith.dataset.tfds.description import TfdsDescription
from recordsmith.dataset.tfds.features import Leaf
from recordsmith.dataset.tfds.records import kinds_of, read_record
from recordsmith.dataset.tfds.steps import cut_steps
from recordsmith.errors import CorruptDataError, DataError, Defect
from recordsmith.example import Features, Kind, decode_example
from recordsmith.sources.files.folders import referenced
from recordsmith.sources.source import Note, Sample, StoredReader, ignore_note, unlisted_error
from recordsmith.stores import Location
from recordsmith.wire import HEADER_BYTES, scan
from recordsmith.wire.framing import describe_defect


def record_reference(file: str, offsets: Int64Array, row: int) -> dict[str, Any]:
    """The reference of a record: its file and the range of its frame."""
    return {
        "file": file,
        "record": row,
        "start_byte": int(offsets[row]),
        "stop_byte": int(offsets[row + 1]),
    }


@dataclass(frozen=True)
class TfdsReader(StoredReader):
    """Reads records with the standard keys.

    root: the folder of the shards.
    description: a `TfdsDescription` as JSON.
    """

    root: Location
    description: str

    @cached_property
    def _parsed(self) -> tuple[TfdsDescription, list[Leaf]]:
        description = TfdsDescription.from_json(json.loads(self.description))
        return description, description.features.leaves()

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        """Read one record, or a window of its steps."""
        if sample.reference is None:
            raise unlisted_error(sample)
        reference = sample.reference
        description, leaves = self._parsed
        location = referenced(self.root, reference["file"])
        with _in_record(location, reference):
            if "start" in reference:
                record = _last_record(location, reference, sample.version)
                record = cut_steps(record, leaves, reference["start"], reference["stop"])
            else:
                record = _record(location, reference)
            return read_record(record, leaves, description.keys, description.class_names)

    def kinds(self) -> Mapping[str, Kind]:
        description, leaves = self._parsed
        return kinds_of(leaves, description.keys, description.class_names)


_last = threading.local()
"""The episode that this thread read last: in order, its windows follow each other."""


def _last_record(location: Location, reference: Mapping[str, Any], version: int | None) -> Features:
    """The record of a window, which is read once for consecutive windows."""
    key = location, reference["start_byte"], reference["stop_byte"], version
    if getattr(_last, "key", None) != key:
        _last.record = _record(location, reference)
        _last.key = key
    return _last.record  # type: ignore[no-any-return]


def _record(location: Location, reference: Mapping[str, Any]) -> Features:
    data = location.read(reference["start_byte"], reference["stop_byte"])
    return decode_example(_payload(data))


@contextmanager
def _in_record(location: Location, reference: Mapping[str, Any]) -> Iterator[None]:
    """Add the file and the place of the record to every CorruptDataError."""
    try:
        yield
    except DataError as error:
        error.path = str(location)
        error.record, error.offset = reference["record"], reference["start_byte"]
        raise


def _payload(frame: bytes) -> memoryview:
    """The payload of a single frame, whose checksums are verified."""
    found = scan(frame, limit=1, expected=1)
    if found.defect is not None:
        raise describe_defect(found, frame, record=0, offset=0)
    if found.stop != len(frame):
        raise CorruptDataError(
            Defect.LENGTH_CRC,
            "the shard changed after it was listed",
            found=f"a record of {found.stop} bytes",
            expected=f"{len(frame)} bytes",
        )
    return memoryview(frame)[HEADER_BYTES : HEADER_BYTES + int(found.lengths[0])]
