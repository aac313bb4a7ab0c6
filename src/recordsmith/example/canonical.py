"""Compare payloads by content: one canonical form for all payloads of equal content.

Writers put features in any order, pack lists or not, and may repeat keys. The canonical form is
the payload decoded and encoded again, which sorts keys and packs lists. Payloads that are neither
Examples nor SequenceExamples stay unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

from recordsmith.buffers import BytesLike, as_view
from recordsmith.errors import DataError
from recordsmith.example.codec import (
    SequenceExample,
    decode_payload,
    encode_example,
    encode_sequence_example,
)
from recordsmith.example.raw_fields import FieldSpan, iter_fields

_DELIMITED, _BYTES_LIST = 2, 1
_KINDS = (1, 2, 3)  # the fields of a Feature


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
        return encoded + b"\0" + _empty_bytes_lists(bytes(as_view(payload)), sections)
    return encoded


def _empty_bytes_lists(payload: bytes, sections: tuple[int, ...]) -> bytes:
    """List the features of kind bytes: decoded, an empty one looks like one without a kind."""
    found: dict[tuple[int, bytes], bytes] = {}
    whole = FieldSpan(0, _DELIMITED, 0, 0, len(payload))
    for section in sections:
        for features in _delimited(payload, whole, section):
            for entry in _delimited(payload, features, 1):
                key, value = b"", entry._replace(stop=entry.start)
                for part in _delimited(payload, entry, 1):
                    key = payload[part.start : part.stop]
                for part in _delimited(payload, entry, 2):
                    value = part
                steps = [value] if section == 1 else _delimited(payload, value, 1)
                found[section, key] = bytes(_kind(payload, step) for step in steps)
    pieces = []
    for (section, key), kinds in sorted(found.items()):
        if _BYTES_LIST in kinds:
            pieces += [b"%d %d " % (section, len(key)), key, b"%d " % len(kinds), kinds]
    return b"".join(pieces)


def _delimited(payload: bytes, span: FieldSpan, number: int) -> Iterator[FieldSpan]:
    """Yield the length-delimited fields with this number of the message in a span."""
    for field in iter_fields(payload, span.start, span.stop):
        if field.number == number and field.wire_type == _DELIMITED:
            yield field


def _kind(payload: bytes, feature: FieldSpan) -> int:
    """Return 1 for a list of bytes, 0 for any other kind or none; the last list counts."""
    kind = 0
    for field in iter_fields(payload, feature.start, feature.stop):
        if field.wire_type == _DELIMITED and field.number in _KINDS:
            kind = field.number
    return kind if kind == _BYTES_LIST else 0
