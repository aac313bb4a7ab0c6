"""Pieces of payloads, as they lie on the wire: put into a field, or taken out."""

from __future__ import annotations

import numpy as np

from recordsmith.buffers import BytesLike, as_view
from recordsmith.example.kernel.payloads import submessages

_DELIMITED = 2


def delimited(number: int, *content: BytesLike) -> bytes:
    """A field with its tag and length."""
    size = sum(map(len, content))
    head = bytearray((number << 3 | _DELIMITED,))
    while size >= 128:
        head.append(size & 127 | 128)
        size >>= 7
    head.append(size)
    return b"".join((head, *content))  # type: ignore[arg-type]


def context_payload(payload: BytesLike) -> bytes:
    """The context of a payload that `classify` calls a SequenceExample, as an Example."""
    data = as_view(payload)
    whole = np.array([0], np.int64), np.array([len(data)], np.int64)
    starts, lengths = (
        memoryview(memory).cast("q")  # type: ignore[arg-type]
        for memory in submessages(data, *whole, 1)[1:]
    )
    return b"".join(
        delimited(1, data[start : start + length])
        for start, length in zip(starts, lengths, strict=True)
    )
