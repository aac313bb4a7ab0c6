"""Compare payloads by content: one canonical form for all payloads of equal content.

Writers put features in any order, pack lists or not, and may repeat keys. The canonical form is
the payload decoded and encoded again, which sorts keys and packs lists. Payloads that are neither
Examples nor SequenceExamples stay unchanged.
"""

from __future__ import annotations

import numpy as np

from recordsmith.format.example.codec import (
    SequenceExample,
    decode_payload,
    encode_example,
    encode_sequence_example,
)
from recordsmith.format.example.spans import (
    InnerSpans,
    field_spans,
    last_field_spans,
    map_entries,
    payload_views,
    whole,
)
from recordsmith.support.buffers import BytesLike, as_view
from recordsmith.support.errors import DataError


def canonical(payload: BytesLike) -> bytes:
    """Return bytes that are equal exactly for payloads of equal content.

    Two Examples or SequenceExamples are equal if they decode to the same features, with the same
    kinds and the same bits in floats; unknown fields are ignored. Other payloads are equal only
    byte for byte. The result is for comparison: it may not be a valid payload.
    """
    try:
        example = decode_payload(payload)
    except DataError:
        return b"\0" + bytes(as_view(payload))  # no tag is 0, so no Example begins like this
    if isinstance(example, SequenceExample):
        encoded = encode_sequence_example(example.context, example.feature_lists)
        steps = (step for steps in example.feature_lists.values() for step in steps)
        values = [*example.context.values(), *steps]
    else:
        encoded = encode_example(example)
        values = list(example.values())
    if any(isinstance(value, list) and not value for value in values):
        sections = (1, 2) if isinstance(example, SequenceExample) else (1,)
        return encoded + b"\0" + _empty_bytes_lists(payload, sections)
    return encoded


def _empty_bytes_lists(payload: BytesLike, sections: tuple[int, ...]) -> bytes:
    """List the features of kind bytes: decoded, an empty one looks like one without a kind."""
    data = as_view(payload)
    kinds_of: dict[tuple[int, bytes], bytes] = {}
    for section in sections:
        entries = map_entries(data, *whole(data), section)
        count = len(entries.owners)
        keys, values = (last_field_spans(data, entries, field) for field in (1, 2))
        steps = InnerSpans(np.arange(count), *values)
        if section == 2:
            steps = field_spans(data, *values, 1)
        starts = [last_field_spans(data, steps, kind)[0] for kind in (1, 2, 3)]
        is_bytes = (starts[0] > starts[1]) & (starts[0] > starts[2])  # the last list counts
        for row, key in enumerate(payload_views(data, *keys)):
            kinds_of[section, bytes(key)] = is_bytes[steps.owners == row].tobytes()
    pieces: list[bytes] = []
    for (section, name), kinds in sorted(kinds_of.items()):
        if any(kinds):
            pieces += [b"%d %d " % (section, len(name)), name, b"%d " % len(kinds), kinds]
    return b"".join(pieces)
