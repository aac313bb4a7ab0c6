"""Ranking lists (ExampleListWithContext of TensorFlow Ranking): Examples, and what they share.

The message has the Examples in field 1 and their context, an Example too, in field 2. What is in
them is decoded as in any Example.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.example.codec import Features, decode_example
from recordsmith.example.spans import InnerSpans, spans_of_field

_EXAMPLES = 1
_CONTEXT = 2


class RankingList(NamedTuple):
    """The features of the context, and of each Example."""

    context: Features
    examples: list[Features]


def decode_ranking_list(payload: BytesLike) -> RankingList:
    """The features of a payload that `classify` calls ELWC.

    Raises:
        CorruptDataError: malformed-example, not-an-example: it is none, after all.
    """
    data = as_view(payload)
    spans = np.zeros(1, np.int64), np.full(1, len(data), np.int64)
    context, examples = (
        [
            data[start : start + length]
            for start, length in zip(found.starts.tolist(), found.lengths.tolist(), strict=True)
        ]
        for found in inner_spans(data, *spans)
    )
    # protobuf, too, joins the pieces of a message that is there several times
    return RankingList(decode_example(b"".join(context)), list(map(decode_example, examples)))


def inner_spans(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> tuple[InnerSpans, InnerSpans]:
    """(contexts, examples) of the ranking lists at buffer[starts[i]:starts[i] + lengths[i]]."""
    return (
        spans_of_field(buffer, starts, lengths, _CONTEXT),
        spans_of_field(buffer, starts, lengths, _EXAMPLES),
    )
