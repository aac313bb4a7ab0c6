"""Edits of one payload once more, in plain Python: what the kernel is held against.

Every feature is found by a walk over the bytes, and the payload put together again from pieces of
it. Slow, and without any memory of what came before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

VARINT, FIXED64, DELIMITED, GROUP_START, GROUP_END, FIXED32 = range(6)
FIELD_1, FIELD_2 = 1 << 3 | DELIMITED, 2 << 3 | DELIMITED


class Clash(Exception):
    """Two features of a record would have one name; its text is what a user is told."""


class Field(NamedTuple):
    """A field in the bytes from `start` to `stop`; its content begins at `content`."""

    tag: int
    start: int
    content: int
    stop: int


class Entry(NamedTuple):
    """A map entry, and the fields of its key and value; empty where it has none."""

    whole: Field
    key: bytes
    key_field: Field
    value_field: Field


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
        shift += 7


def skip(data: bytes, tag: int, at: int) -> int:
    """Where the field ends, the tag of which ends at `at`."""
    if tag & 7 == VARINT:
        return read_varint(data, at)[1]
    if tag & 7 == DELIMITED:
        size, at = read_varint(data, at)
        return at + size
    if tag & 7 == GROUP_START:
        while True:
            inner, at = read_varint(data, at)
            if inner & 7 == GROUP_END:
                return at
            at = skip(data, inner, at)
    return at + {FIXED64: 8, FIXED32: 4}[tag & 7]


def fields(data: bytes, at: int, stop: int) -> Iterator[Field]:
    while at < stop:
        tag, inside = read_varint(data, at)
        end = skip(data, tag, inside)
        content = read_varint(data, inside)[1] if tag & 7 == DELIMITED else inside
        yield Field(tag, at, content, end)
        at = end


def delimited(number: int, content: bytes) -> bytes:
    head = bytearray((number << 3 | DELIMITED,))
    size = len(content)
    while size >= 128:
        head.append(size & 127 | 128)
        size >>= 7
    return bytes((*head, size)) + content


def map_entries(data: bytes, section: Field) -> Iterator[Entry]:
    for field in fields(data, section.content, section.stop):
        if field.tag == FIELD_1:
            key, key_field = b"", Field(0, field.content, field.content, field.content)
            value_field = Field(0, field.stop, field.stop, field.stop)
            for part in fields(data, field.content, field.stop):
                if part.tag == FIELD_1:
                    key, key_field = data[part.content : part.stop], part
                elif part.tag == FIELD_2:
                    value_field = part
            yield Entry(field, key, key_field, value_field)


def edited(
    data: bytes,
    *,
    drop: Collection[str] = (),
    rename: Mapping[str, str] | None = None,
    added: Mapping[str, bytes] | None = None,
    recoders: Mapping[str, Callable[[bytes, int], bytes]] | None = None,
) -> bytes:
    """An Example or SequenceExample with other features.

    Args:
        drop: names or patterns.
        rename: new names by old ones.
        added: map entries by the names of their features.
        recoders: by names: the field of a value, and 1 or 2 for a feature or a list -> the new one.

    Raises:
        Clash: two features would have one name.
    """
    rename, added, recoders = rename or {}, added or {}, recoders or {}
    sections = [field for field in fields(data, 0, len(data)) if field.tag in (FIELD_1, FIELD_2)]
    entries = {section: list(map_entries(data, section)) for section in sections}
    everything = [(part.tag >> 3, entry) for part in sections for entry in entries[part]]

    def is_dropped(key: str) -> bool:
        return any(key == name or fnmatchcase(key, name) for name in drop)

    kept, made = set(), []
    for number, entry in everything:
        key = text(entry.key)
        if is_dropped(key):
            continue
        if key in rename:
            made.append((number, rename[key], key))
        else:
            kept.add((number, key))
    made.sort(key=lambda clash: clash[0])  # features are told before feature lists
    for number, new, old in made:
        if (number, new) in kept:
            raise Clash(
                f"{old!r} cannot be renamed to {new!r}: a record has a feature of that name, too. "
                "Drop it as well, or choose another name."
            )
    for key in added:
        if (1, key) in kept:
            raise Clash(
                f"{key!r} cannot be added: a record has a feature of that name. To replace it, "
                "drop it as well."
            )

    last = {(number, entry.key): entry for number, entry in everything}
    owner = next((part for part in reversed(sections) if part.tag == FIELD_1), None)
    news = b"".join(added.values())
    result, at = b"", 0
    for section in sections:
        content, inside, is_changed = b"", section.content, False
        for entry in entries[section]:
            key = text(entry.key)
            if not (is_dropped(key) or key in rename or key in recoders):
                continue
            is_changed = True
            content += data[inside : entry.whole.start]
            inside = entry.whole.stop
            if not is_dropped(key):
                counts = last[section.tag >> 3, entry.key] is entry
                recoder = recoders.get(key) if counts else None
                content += new_entry(data, entry, rename.get(key), recoder, section.tag >> 3)
        content += data[inside : section.stop]
        if section is owner and news:
            content += news
            is_changed = True
        if is_changed:
            result += data[at : section.start] + delimited(section.tag >> 3, content)
            at = section.stop
    result += data[at:]
    return result + delimited(1, news) if news and owner is None else result


def new_entry(
    data: bytes,
    entry: Entry,
    name: str | None,
    recoder: Callable[[bytes, int], bytes] | None,
    number: int,
) -> bytes:
    replaced = []
    if name is not None:
        new = delimited(1, name.encode("utf-8", "surrogateescape"))
        replaced.append((entry.key_field.start, entry.key_field.stop, new))
    value = data[entry.value_field.start : entry.value_field.stop]
    if recoder is not None and value:
        replaced.append((entry.value_field.start, entry.value_field.stop, recoder(value, number)))
    content, at = b"", entry.whole.content
    for start, stop, new in sorted(replaced):
        content += data[at:start] + new
        at = stop
    return delimited(1, content + data[at : entry.whole.stop])


def text(key: bytes) -> str:
    return key.decode("utf-8", "surrogateescape")
