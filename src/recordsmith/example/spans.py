"""Where in many payloads do the messages of one field lie? Nothing is decoded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from recordsmith.buffers import BytesLike, Int64Array
from recordsmith.example.kernel.payloads import submessages


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
