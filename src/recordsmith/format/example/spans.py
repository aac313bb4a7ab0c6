"""Find the messages of a field in many payloads, without decoding them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.format.example.kernel.payloads import submessages
from recordsmith.format.example.payload import decode_key
from recordsmith.support.buffers import BytesLike, Int64Array, as_view

_MIN_BYTES = 4  # of an entry with a name; entries without a name share one key


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
    memory: Any = submessages(buffer, starts, lengths, field)
    return InnerSpans(
        *(np.frombuffer(span, np.int64) if len(span) else np.zeros(0, np.int64) for span in memory)
    )


def payload_views(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> Iterator[memoryview]:
    view = as_view(buffer)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        yield view[start : start + length]


def map_entries(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, field: int
) -> InnerSpans:
    """Find the map entries in a field of the payloads: one for each feature of an Example."""
    maps = field_spans(buffer, starts, lengths, field)
    entries = field_spans(buffer, maps.starts, maps.lengths, 1)
    return entries._replace(owners=maps.owners[entries.owners])


def last_field_spans(
    data: memoryview, messages: InnerSpans, field: int
) -> tuple[Int64Array, Int64Array]:
    """Return start and length of the last field of this number in each message; 0 if missing."""
    starts, lengths = np.zeros((2, len(messages.starts)), np.int64)
    spans = field_spans(data, messages.starts, messages.lengths, field)
    starts[spans.owners], lengths[spans.owners] = spans.starts, spans.lengths
    return starts, lengths


def have_many_entries(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, field: int, most: int
) -> npt.NDArray[np.bool_]:
    """Return which payloads have more than `most` map entries, and must be handled in pieces.

    Payloads too short for that many different entries are skipped.
    """
    wide = lengths > most * _MIN_BYTES
    rows = np.flatnonzero(wide)
    if len(rows):
        entries = map_entries(buffer, starts[rows], lengths[rows], field)
        wide[rows] = np.bincount(entries.owners, minlength=len(rows)) > most
    return wide


def step_counts(buffer: BytesLike, starts: Int64Array, lengths: Int64Array, key: str) -> Int64Array:
    """Return how many steps a feature list of some SequenceExamples has: int64, (count,)."""
    entries = map_entries(buffer, starts, lengths, 2)
    keys = field_spans(buffer, entries.starts, entries.lengths, 1)
    names = payload_views(buffer, keys.starts, keys.lengths)
    is_key = np.zeros(len(entries.owners), np.bool_)
    is_key[keys.owners] = [name == key.encode("utf-8", "surrogateescape") for name in names]
    lists = field_spans(buffer, entries.starts[is_key], entries.lengths[is_key], 2)
    steps = field_spans(buffer, lists.starts, lists.lengths, 1)
    owners = entries.owners[is_key][lists.owners[steps.owners]]
    return np.bincount(owners, minlength=len(starts)).astype(np.int64)


_DELIMITED = 2
_FIRST_MAP = 1 << 3 | _DELIMITED


def delimited(number: int, *content: BytesLike) -> bytes:
    """Encode a field with its tag and length."""
    size = sum(map(len, content))
    head = bytearray((number << 3 | _DELIMITED,))
    while size >= 128:
        head.append(size & 127 | 128)
        size >>= 7
    head.append(size)
    return b"".join((head, *content))  # type: ignore[arg-type]


def read_varint(data: bytes | memoryview, start: int) -> tuple[int, int]:
    """Return a number of at most ten bytes, and where it ends; IndexError if it is cut off."""
    value = 0
    for position in range(start, start + 10):
        value |= (data[position] & 127) << 7 * (position - start)
        if data[position] < 128:
            return value, position + 1
    raise IndexError("a number has more than ten bytes")


def context_as_example(payload: BytesLike) -> bytes:
    """Return the context of a SequenceExample as an Example."""
    data = as_view(payload)
    maps = field_spans(data, *whole(data), 1)
    return b"".join(delimited(1, piece) for piece in payload_views(data, maps.starts, maps.lengths))


def join_payloads(payloads: Sequence[Any]) -> tuple[bytes, Int64Array, Int64Array]:
    """Join payloads in one buffer; return it with their starts and lengths."""
    lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
    return b"".join(payloads), np.cumsum(lengths) - lengths, lengths


def select_features(
    payload: BytesLike, takes: Callable[[str], bool], fields: Sequence[int] = (1, 2)
) -> bytes:
    """Return a payload with only some of its features or feature lists."""
    data = as_view(payload)
    pieces = []
    for field in fields:
        spans = map_entries(data, *whole(data), field)
        entries = payload_views(data, spans.starts, spans.lengths)
        names = payload_views(data, *last_field_spans(data, spans, 1))
        taken = [
            delimited(1, entry)
            for entry, name in zip(entries, names, strict=True)
            if takes(decode_key(name))
        ]
        if taken:
            pieces.append(delimited(field, *taken))
    return b"".join(pieces)


def with_features(payload: BytesLike, examples: Sequence[BytesLike]) -> bytes:
    """Return a payload with the features of Examples behind its own, in one map.

    Equal to the payload followed by the Examples; a key that is in several has its last value.
    """
    added: list[memoryview] = []
    for example in examples:
        view = as_view(example)
        added += payload_views(view, *field_spans(view, *whole(view), 1)[1:])
    data = as_view(payload)
    if not added:
        return bytes(data)
    if len(data) and data[0] == _FIRST_MAP:  # the map of features is first, as all writers have it
        size, start = read_varint(data, 1)
        return delimited(1, data[start : start + size], *added) + bytes(data[start + size :])
    return delimited(1, *added) + bytes(data)


def merged(payload: BytesLike) -> bytes:
    """Return an equal payload with one map of features, in which each key is once.

    For programs that expect records as most writers make them. Drops unknown fields.
    """
    data = as_view(payload)
    pieces = []
    for field in (1, 2):
        spans = map_entries(data, *whole(data), field)
        names = map(bytes, payload_views(data, *last_field_spans(data, spans, 1)))
        last = dict(zip(names, payload_views(data, spans.starts, spans.lengths), strict=True))
        if last:
            pieces.append(delimited(field, *(delimited(1, entry) for entry in last.values())))
    return b"".join(pieces)


def whole(data: memoryview) -> tuple[Int64Array, Int64Array]:
    """Return the starts and lengths of a single payload."""
    return np.zeros(1, np.int64), np.full(1, len(data), np.int64)
