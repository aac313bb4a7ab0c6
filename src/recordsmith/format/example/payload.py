"""Detect the type of a payload by strict rules: a lenient parser accepts most bytes as an Example.

docs/reference/format.md states the rules; classify.h implements them.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from recordsmith.format.example.kernel import payloads
from recordsmith.support.buffers import BytesLike
from recordsmith.support.errors import (
    CorruptDataError,
    DataError,
    Defect,
    NotAnExampleError,
    OptionError,
)

PayloadKind: TypeAlias = Literal["Example", "SequenceExample", "ELWC", "Event", "other"]
Kind: TypeAlias = Literal["bytes", "float", "int64"]

# in the order of the numbers in classify.h
PAYLOAD_KINDS: tuple[PayloadKind, ...] = ("other", "Example", "SequenceExample", "ELWC", "Event")
KIND_NAMES = payloads.KIND_NAMES
KIND_NUMBERS: dict[str, int] = {"bytes": 1, "float": 2, "int64": 3}

_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BEGIN_BYTES = 256
# Features (or FeatureLists), a map entry in it, and its key: three tags with lengths
_BEGIN = re.compile(rb"[\n\x12]" + rb"[\x80-\xff]{0,9}[\0-\x7f]\n" * 2 + rb"([\1-\x7f])", re.DOTALL)

_SIMILAR_KINDS = {
    "int64": ("int", "bool", "long"),
    "float": ("float", "double"),
    "bytes": ("byte", "str", "text"),
}


def encode_key(key: str) -> bytes:
    """Encode a feature's name; surrogate escapes stand for bytes that are not UTF-8."""
    if not isinstance(key, str):
        raise OptionError(
            f"the feature name {key!r:.80} is a {type(key).__name__}", value=key, expected="a str"
        )
    try:
        return key.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise OptionError(
            f"the feature name {key!r} contains surrogates", value=key, expected="Unicode text"
        ) from None


def decode_key(key: BytesLike) -> str:
    """Decode a feature's stored name, which may not be valid UTF-8."""
    return bytes(key).decode("utf-8", "surrogateescape")


def as_text(content: bytes) -> str | None:
    """Decode text, as in `FeatureSchema.content`: UTF-8 without control characters; else None."""
    try:
        return None if _CONTROL.search(content) else content.decode()
    except UnicodeDecodeError:
        return None


def kind_remedy(kind: object) -> str:
    """Suggest a kind for an unknown one."""
    name = str(kind).lower()
    for known, others in _SIMILAR_KINDS.items():
        if any(other in name for other in others):
            return f"Did you mean {known!r}?"
    return ""


def classify(payload: BytesLike) -> PayloadKind:
    """Detect the type of a payload. An empty payload is an Example without features.

    Example:
        payload = rs.encode_example({"id": [1]})
        print(rs.classify(payload))  # Example
    """
    return PAYLOAD_KINDS[payloads.classify(payload)]


def malformed_example_error() -> CorruptDataError:
    """Return the error for a payload that begins like an Example but is malformed."""
    return CorruptDataError(
        Defect.MALFORMED_EXAMPLE,
        "the payload is not a valid Example: a length or a number in it runs past the end",
        remedy="Read the record as bytes; if its checksum is valid, its writer is at fault.",
    )


def unparsable_error(payload: BytesLike) -> DataError:
    """Return the error for a payload that cannot be parsed: a broken Example, or other data."""
    begins_as_example = _begins_as_example(bytes(payload[:_BEGIN_BYTES]))
    return malformed_example_error() if begins_as_example else NotAnExampleError("other")


def _begins_as_example(payload: bytes) -> bool:
    """Whether a payload begins with a feature's whole name of 1 to 127 bytes in UTF-8."""
    match = _BEGIN.match(payload)
    if match is None:
        return False
    key = payload[match.end() : match.end() + match[1][0]]
    try:
        return len(key) == match[1][0] and key.decode().isprintable()
    except UnicodeDecodeError:
        return False
