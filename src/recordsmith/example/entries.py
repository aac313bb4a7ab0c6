"""Where the features of a payload lie, without decoding them: what an edit goes by.

A payload is walked down to its map entries. Fields that no message here has lie between them and
are passed over. Nothing is said of what features hold: `classify` a payload first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from recordsmith.buffers import BytesLike, as_view
from recordsmith.example.kernel.payloads import find_entries
from recordsmith.example.payload import encode_key, malformed_example

_DELIMITED = 2


class Entry(NamedTuple):
    """One feature, or feature list; places are in bytes of the payload.

    key: its name, as it is stored.
    wanted: what was said of this key.
    start, stop: of the field, with tag and length; `content` is where its content begins.
    key_start, key_stop: of the key's field in it; equal if there is none.
    value_start, value_stop: of the value's field in it; equal if there is none.
    """

    key: bytes
    wanted: Any
    start: int
    content: int
    stop: int
    key_start: int
    key_stop: int
    value_start: int
    value_stop: int


class Section(NamedTuple):
    """A map of features (field 1) or, in a SequenceExample, of feature lists (field 2).

    start, stop: of the field in the payload, with tag and length; `content` is where its content
        begins.
    entries: those that are wanted, in order.
    """

    field: int
    start: int
    content: int
    stop: int
    entries: list[Entry]


class _Everything(dict[bytes, bool]):
    """Wants every key."""

    def __missing__(self, key: bytes) -> bool:
        return True


class _Some(dict[bytes, bool]):
    """Wants no other keys than those it has."""

    def __missing__(self, key: bytes) -> None:
        return None


def sections_of(payload: BytesLike, wanted: Mapping[bytes, Any] | None = None) -> list[Section]:
    """The maps of a payload, in order; a message may have its map in several pieces.

    Args:
        wanted: of which keys the entries are; None as its value leaves them out. None: of all.

    Raises:
        CorruptDataError: malformed-example.
    """
    code, maps = find_entries(payload, _Everything() if wanted is None else wanted)
    if code:
        raise malformed_example()
    return [
        Section(field, start, content, stop, [Entry(*entry) for entry in entries])
        for field, start, content, stop, entries in maps
    ]


def context_payload(payload: BytesLike) -> bytes:
    """The context of a SequenceExample, as an Example.

    Raises:
        CorruptDataError: malformed-example.
    """
    data = as_view(payload)
    return b"".join(
        data[section.start : section.stop] for section in sections_of(data) if section.field == 1
    )


def with_only(payload: BytesLike, keys: Iterable[str]) -> bytes:
    """An Example or SequenceExample with those features and feature lists only that are named.

    Raises:
        CorruptDataError: malformed-example.
    """
    wanted = _Some.fromkeys(map(encode_key, keys), True)
    data = as_view(payload)
    return b"".join(
        delimited(section.field, *(data[entry.start : entry.stop] for entry in section.entries))
        for section in sections_of(data, wanted)
    )


def delimited(number: int, *content: BytesLike) -> bytes:
    """A field with its tag and length."""
    size = sum(map(len, content))
    head = bytearray((number << 3 | _DELIMITED,))
    while size >= 128:
        head.append(size & 127 | 128)
        size >>= 7
    head.append(size)
    return b"".join((head, *content))  # type: ignore[arg-type]
