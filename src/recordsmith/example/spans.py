"""Where in many payloads do the messages of one field lie? Nothing is decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.example.kernel.payloads import submessages

_LONGER_FROM = 1 << np.arange(7, 63, 7)  # of which lengths the number takes a byte more
_LEAST_BYTES = 4  # of an entry with a name: those without are all of one


class InnerSpans(NamedTuple):
    """Where messages in some payloads lie: int64, (count,).

    owners: in which of the payloads each is.
    """

    owners: Int64Array
    starts: Int64Array
    lengths: Int64Array


def spans_of_field(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, field: int
) -> InnerSpans:
    """The messages in a field of the payloads buffer[starts[i]:starts[i] + lengths[i]], in order.

    Of a payload that does not hold together, those before it breaks.
    """
    found: Any = submessages(buffer, starts, lengths, field)
    return InnerSpans(
        *(np.frombuffer(each, np.int64) if len(each) else np.zeros(0, np.int64) for each in found)
    )


def payloads_of(buffer: BytesLike, starts: Int64Array, lengths: Int64Array) -> Iterator[memoryview]:
    """Each of them, as a view."""
    view = as_view(buffer)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        yield view[start : start + length]


def field_bytes(lengths: Int64Array) -> Int64Array:
    """How many bytes fields with such contents take, with a tag of one byte and their length."""
    return lengths + 2 + np.searchsorted(_LONGER_FROM, lengths, side="right")


def entries_of(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, field: int
) -> InnerSpans:
    """The entries of the maps in a field of the payloads: one for each feature of an Example."""
    maps = spans_of_field(buffer, starts, lengths, field)
    entries = spans_of_field(buffer, maps.starts, maps.lengths, 1)
    return entries._replace(owners=maps.owners[entries.owners])


def are_wide(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, field: int, most: int
) -> npt.NDArray[np.bool_]:
    """Which payloads have more than `most` entries in their maps, so that they are to be taken in
    pieces. Short ones, which cannot have so many different ones, are passed over.
    """
    wide = lengths > most * _LEAST_BYTES
    rows = np.flatnonzero(wide)
    if len(rows):
        entries = entries_of(buffer, starts[rows], lengths[rows], field)
        wide[rows] = np.bincount(entries.owners, minlength=len(rows)) > most
    return wide
