"""Add fields to payloads and extract fields from them, in wire format."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.example.payload import decode_key
from recordsmith.example.spans import field_spans, map_entries, payload_views

_DELIMITED = 2


def delimited(number: int, *content: BytesLike) -> bytes:
    """Encode a field with its tag and length."""
    size = sum(map(len, content))
    head = bytearray((number << 3 | _DELIMITED,))
    while size >= 128:
        head.append(size & 127 | 128)
        size >>= 7
    head.append(size)
    return b"".join((head, *content))  # type: ignore[arg-type]


def context_as_example(payload: BytesLike) -> bytes:
    """Return the context of a SequenceExample as an Example."""
    data = as_view(payload)
    maps = field_spans(data, *_whole(data), 1)
    return b"".join(delimited(1, piece) for piece in payload_views(data, maps.starts, maps.lengths))


def select_features(
    payload: BytesLike, takes: Callable[[str], bool], fields: Sequence[int] = (1, 2)
) -> bytes:
    """Return a payload with only some of its features or feature lists."""
    data = as_view(payload)
    pieces = []
    for field in fields:
        found = map_entries(data, *_whole(data), field)
        keys = field_spans(data, found.starts, found.lengths, 1)
        key_starts, key_lengths = np.zeros((2, len(found.owners)), np.int64)
        key_starts[keys.owners], key_lengths[keys.owners] = keys.starts, keys.lengths
        entries = payload_views(data, found.starts, found.lengths)
        names = payload_views(data, key_starts, key_lengths)
        wanted = [
            delimited(1, entry)
            for entry, name in zip(entries, names, strict=True)
            if takes(decode_key(name))
        ]
        if wanted:
            pieces.append(delimited(field, *wanted))
    return b"".join(pieces)


def _whole(data: memoryview) -> tuple[Int64Array, Int64Array]:
    """Return the starts and lengths of a single payload."""
    return np.zeros(1, np.int64), np.full(1, len(data), np.int64)
