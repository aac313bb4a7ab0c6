"""Detect the type of a payload by strict rules: a lenient parser accepts most bytes as an Example.

docs/format.md states the rules; classify.h implements them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from recordsmith.buffers import BytesLike
from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.example.kernel import payloads

PayloadKind: TypeAlias = Literal["Example", "SequenceExample", "ELWC", "Event", "other"]
Kind: TypeAlias = Literal["bytes", "float", "int64"]

# in the order of the numbers in classify.h
PAYLOAD_KINDS: tuple[PayloadKind, ...] = ("other", "Example", "SequenceExample", "ELWC", "Event")
PAYLOAD_NAMES: dict[str, tuple[str, str]] = {  # singular and plural
    "Example": ("an Example", "Examples"),
    "SequenceExample": ("a SequenceExample", "SequenceExamples"),
    "ELWC": ("a ranking list (ELWC)", "ranking lists (ELWC)"),
    "Event": ("a TensorBoard event", "TensorBoard events"),
    "other": ("another message or plain data", "other messages or plain data"),
}
KIND_NAMES = payloads.KIND_NAMES
KIND_NUMBERS: dict[str, int] = {"bytes": 1, "float": 2, "int64": 3}

_SIMILAR_KINDS = {
    "int64": ("int", "bool", "long"),
    "float": ("float", "double"),
    "bytes": ("byte", "str", "text"),
}
_REMEDIES = {
    "SequenceExample": "Read it with decode_sequence_example.",
    "ELWC": "Read the records as bytes, and decode them as ranking lists.",
    "Event": "Read this log with TensorBoard, or its records as bytes.",
    "other": "Read the records as bytes.",
}


def encode_key(key: str) -> bytes:
    """Encode a feature's name; surrogate escapes stand for bytes that are not UTF-8.

    Raises:
        OptionError: it is not a str, or contains other surrogates.
    """
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


def kind_remedy(kind: object) -> str:
    """Suggest a kind for an unknown one."""
    name = str(kind).lower()
    for known, others in _SIMILAR_KINDS.items():
        if any(other in name for other in others):
            return f"Did you mean {known!r}?"
    return ""


def classify(payload: BytesLike) -> PayloadKind:
    """Detect the type of a payload. An empty payload is an Example without features."""
    return PAYLOAD_KINDS[payloads.classify(payload)]


def not_an_example_error(found: PayloadKind) -> CorruptDataError:
    """Return the error for a payload that is not an Example."""
    return CorruptDataError(
        Defect.NOT_AN_EXAMPLE,
        f"the payload is {PAYLOAD_NAMES[found][0]}, not an Example",
        remedy=_REMEDIES[found],
    )


def malformed_example_error() -> CorruptDataError:
    """Return the error for a payload that begins like an Example but is malformed."""
    return CorruptDataError(
        Defect.MALFORMED_EXAMPLE,
        "the payload is not a valid Example: a length or a number in it runs past the end",
        remedy="Read the record as bytes; if its checksum is valid, its writer is at fault.",
    )
