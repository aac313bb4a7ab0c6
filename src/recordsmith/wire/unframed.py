"""Detect protobuf without frames: one message as a whole file, or many with varint lengths.

Follows the wire format of the first bytes (https://protobuf.dev/programming-guides/encoding):
consecutive fields, all but the last one complete. An Example is detected by its contents; other
messages, which resemble many formats, must have several fields.
"""

from __future__ import annotations

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_FEWEST_FIELDS = 3  # of a message that is not an Example, and of messages with lengths
_HIGHEST_FIELD = 200  # that is plausible
_LONGEST_BYTES = 1 << 31  # of any message


def detect_unframed_messages(head: bytes) -> str | None:
    """Return the kind of protobuf that a file begins with, or None if it is not protobuf."""
    if _is_example(head, 0, None):
        return "a serialized tf.train.Example without the frame of a record"
    length, start = _read_varint(head, 0)
    if length is not None and 0 < length < _LONGEST_BYTES:
        if _is_example(head, start, length):
            return "tf.train.Examples with varint lengths in front, not framed records"
        if _count_delimited(head) >= _FEWEST_FIELDS:
            return "protobuf messages with varint lengths in front, not framed records"
    if _count_fields(head, 0, len(head)) >= _FEWEST_FIELDS:
        return "a serialized protobuf message without the frame of a record"
    return None


def _is_example(head: bytes, start: int, length: int | None) -> bool:
    """Features (1) { map entry (1) { key (1), Feature (2) { list of kind 1, 2 or 3 } } }."""
    at, stop = start, len(head)
    sizes = [] if length is None else [length]
    for _ in range(2):  # the features, and the first entry of them
        if at >= stop or head[at] != 0x0A:
            return False
        size, at = _read_varint(head, at + 1)
        if size is None or (sizes and size >= sizes[-1]):
            return False
        sizes.append(size)
    if length is not None and not length - 6 <= sizes[1] < length:
        return False
    entry_stop = at + sizes[-1]
    if at >= stop or head[at] != 0x0A:
        return False
    size, at = _read_varint(head, at + 1)
    if size is None or at + size >= min(entry_stop, stop):
        return False
    key = head[at : at + size]
    if not key or any(byte < 32 for byte in key):
        return False
    at += size
    if head[at] != 0x12:
        return False
    size, at = _read_varint(head, at + 1)
    return (
        size is not None
        and at + size == entry_stop
        and (size == 0 or (at < stop and head[at] in (0x0A, 0x12, 0x1A)))
    )


def _count_fields(head: bytes, at: int, stop: int) -> int:
    """Count the consecutive fields from `at`; 0 if the bytes are not a message.

    The last one may be cut off. Writers put fields in ascending order, unlike other data.
    """
    count, before = 0, 0
    while at < stop:
        tag, at = _read_varint(head, at)
        if tag is None:
            return count if at >= stop else 0
        number, wire = tag >> 3, tag & 7
        if not 0 < number <= _HIGHEST_FIELD or number < before:
            return 0
        before = number
        if wire == _VARINT:
            value, at = _read_varint(head, at)
            if value is None:
                return count if at >= stop else 0
        elif wire == _DELIMITED:
            size, at = _read_varint(head, at)
            if size is None or size > _LONGEST_BYTES:
                return count if at >= stop and size is None else 0
            at += size
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            return 0
        count += 1
    return count


def _count_delimited(head: bytes) -> int:
    """Count the consecutive messages with lengths; 0 if one of them is not a message."""
    at = count = 0
    while at < len(head):
        length, at = _read_varint(head, at)
        if length is None or not 0 < length < _LONGEST_BYTES:
            return count if length is None and at >= len(head) else 0
        if not _count_fields(head, at, min(len(head), at + length)):
            return 0
        if at + length <= len(head) and _ends_late(head, at, at + length):
            return 0
        at += length
        count += 1
    return count


def _ends_late(head: bytes, at: int, stop: int) -> bool:
    """Return whether the last field of a complete message ends after the message."""
    while at < stop:
        tag, at = _read_varint(head, at)
        if tag is None:
            return True
        wire = tag & 7
        if wire == _VARINT:
            value, at = _read_varint(head, at)
            if value is None:
                return True
        elif wire == _DELIMITED:
            size, at = _read_varint(head, at)
            if size is None:
                return True
            at += size
        else:
            at += 8 if wire == _FIXED64 else 4
    return at != stop


def _read_varint(head: bytes, at: int) -> tuple[int | None, int]:
    """Read a varint and its end; None if it is cut off or longer than ten bytes."""
    value = shift = 0
    for place in range(at, min(at + 10, len(head))):
        value |= (head[place] & 127) << shift
        shift += 7
        if head[place] < 128:
            return value, place + 1
    return None, max(at, min(at + 10, len(head)))
