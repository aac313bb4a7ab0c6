"""Decode ranking lists (ExampleListWithContext of TensorFlow Ranking).

The message has Examples in field 1 and their shared context, also an Example, in field 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recordsmith.buffers import BytesLike, as_view
from recordsmith.example.codec import Features, decode_example
from recordsmith.example.spans import field_spans

_EXAMPLES = 1
_CONTEXT = 2


class RankingList(NamedTuple):
    """The features of the context and of each Example."""

    context: Features
    examples: list[Features]


def decode_ranking_list(payload: BytesLike) -> RankingList:
    """Decode a payload that `classify` detects as ELWC."""
    data = as_view(payload)
    spans = np.zeros(1, np.int64), np.full(1, len(data), np.int64)
    context, examples = (
        [
            data[start : start + length]
            for start, length in zip(found.starts.tolist(), found.lengths.tolist(), strict=True)
        ]
        for found in (field_spans(data, *spans, field) for field in (_CONTEXT, _EXAMPLES))
    )
    # protobuf also merges the pieces of a repeated message
    return RankingList(decode_example(b"".join(context)), list(map(decode_example, examples)))
