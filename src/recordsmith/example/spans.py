"""Find the messages of a field in many payloads, without decoding them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.example.kernel.payloads import submessages

_LONGER_FROM = 1 << np.arange(7, 63, 7)  # lengths from which their varint takes another byte
_LEAST_BYTES = 4  # of an entry with a name; entries without a name share one key


class InnerSpans(NamedTuple):
    """The positions of messages in some payloads: int64, (count,).

    owners: the payload of each message.
    """

    owners: Int64Array
    starts: Int64Array
    lengths: Int64Array


def field_spans(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, field: int
) -> InnerSpans:
    """Find the messages in a field of the payloads buffer[starts[i]:starts[i] + lengths[i]].

    In a malformed payload, finds those before the defect.
    """
    found: Any = submessages(buffer, starts, lengths, field)
    return InnerSpans(
        *(np.frombuffer(each, np.int64) if len(each) else np.zeros(0, np.int64) for each in found)
    )


def payload_views(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> Iterator[memoryview]:
    """Yield a view of each payload."""
    view = as_view(buffer)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        yield view[start : start + length]


def field_sizes(lengths: Int64Array) -> Int64Array:
    """Return the size of fields with contents of these lengths, with a tag of one byte."""
    return lengths + 2 + np.searchsorted(_LONGER_FROM, lengths, side="right")


def map_entries(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, field: int
) -> InnerSpans:
    """Find the map entries in a field of the payloads: one for each feature of an Example."""
    maps = field_spans(buffer, starts, lengths, field)
    entries = field_spans(buffer, maps.starts, maps.lengths, 1)
    return entries._replace(owners=maps.owners[entries.owners])


def have_many_entries(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, field: int, most: int
) -> npt.NDArray[np.bool_]:
    """Return which payloads have more than `most` map entries, and must be handled in pieces.

    Payloads too short for that many different entries are skipped.
    """
    wide = lengths > most * _LEAST_BYTES
    rows = np.flatnonzero(wide)
    if len(rows):
        entries = map_entries(buffer, starts[rows], lengths[rows], field)
        wide[rows] = np.bincount(entries.owners, minlength=len(rows)) > most
    return wide
