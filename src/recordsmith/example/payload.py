"""What is a payload? Told by its strict wire form, where a lenient parser takes all for Examples.

The rules are in message.h, `classify`: the messages differ in what their fields hold, one level
down; the deepest that fits without anything unknown in it is the answer.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from recordsmith.buffers import BytesLike
from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.example.kernel import payloads

PayloadKind: TypeAlias = Literal["Example", "SequenceExample", "ELWC", "Event", "other"]
Kind: TypeAlias = Literal["bytes", "float", "int64"]

# in the order of the numbers in message.h
PAYLOAD_KINDS: tuple[PayloadKind, ...] = ("other", "Example", "SequenceExample", "ELWC", "Event")
PAYLOAD_WORDS: dict[str, tuple[str, str]] = {  # as people say it: of one, and of several
    "Example": ("an Example", "Examples"),
    "SequenceExample": ("a SequenceExample", "SequenceExamples"),
    "ELWC": ("a ranking list (ELWC)", "ranking lists (ELWC)"),
    "Event": ("a TensorBoard event", "TensorBoard events"),
    "other": ("some other message or plain data", "other messages or plain data"),
}
KIND_NAMES = payloads.KIND_NAMES
KIND_NUMBERS: dict[str, int] = {"bytes": 1, "float": 2, "int64": 3}

_SIMILAR_KINDS = {
    "int64": ("int", "bool", "long"),
    "float": ("float", "double"),
    "bytes": ("byte", "str", "text"),
}
_WHAT_TO_DO = {
    "SequenceExample": "Read it with decode_sequence_example.",
    "ELWC": "It is a ranking list (ExampleListWithContext); read the records as bytes.",
    "Event": "It is a TensorBoard log; read it with TensorBoard, or the records as bytes.",
    "other": "Its bytes are some other message or plain data; read the records as bytes.",
}


def encode_key(key: str) -> bytes:
    """A feature's name as it is stored; surrogate escapes stand for bytes that are no UTF-8.

    Raises:
        OptionError: it is no str, or has surrogates that stand for nothing.
    """
    if not isinstance(key, str):
        raise OptionError(f"the feature name {key!r} is a {type(key).__name__}; expected a str")
    try:
        return key.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise OptionError(f"the feature name {key!r} has surrogates, which are no text") from None


def decode_key(key: BytesLike) -> str:
    """A feature's name from how it is stored, which need be no text."""
    return bytes(key).decode("utf-8", "surrogateescape")


def did_you_mean(kind: object) -> str:
    """What to write instead of a kind that does not exist."""
    name = str(kind).lower()
    for known, others in _SIMILAR_KINDS.items():
        if any(other in name for other in others):
            return f"; did you mean {known!r}?"
    return ""


def classify(payload: BytesLike) -> PayloadKind:
    """Which message a payload is. An empty payload is an Example without features."""
    return PAYLOAD_KINDS[payloads.classify(payload)]


def not_an_example(found: PayloadKind) -> CorruptDataError:
    """The error for a payload that is read as an Example and is something else."""
    name = "not a TensorFlow Example" if found == "other" else f"{_article(found)} {found}"
    return CorruptDataError(
        Defect.NOT_AN_EXAMPLE,
        f"the payload is {name}, not an Example. {_WHAT_TO_DO[found]}"
        if found != "other"
        else f"the payload is {name}. {_WHAT_TO_DO[found]}",
    )


def malformed_example() -> CorruptDataError:
    """The error for a payload that begins like an Example and does not hold together."""
    return CorruptDataError(
        Defect.MALFORMED_EXAMPLE,
        "the payload is no well-formed Example: a length or a number in it runs past its end. If "
        "its checksum is right, it was written like this, or is other data: read it as bytes.",
    )


def _article(word: str) -> str:
    return "an" if word[0] in "AEIO" else "a"
