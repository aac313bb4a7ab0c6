"""Surveys the fields of records that are not Examples but messages of an unknown type.

Reads only the beginning of a dataset, enough for its owner to recognize the type; the result
includes the number of records read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from recordsmith.dataset import AnyShard
from recordsmith.errors import DataError, OptionError
from recordsmith.example import classify, decode_fields

MAX_RECORDS = 10_000
"""How many records are searched for ones that are not Examples."""

MAX_SURVEYED = 1000
"""How many of those records are surveyed."""


@dataclass(frozen=True)
class FieldCount:
    """A field of a message.

    number: field number, as in a .proto file.
    wire_types: varint, fixed64, delimited, group or fixed32; several if records differ.
    contents: number, text, message, numbers or bytes, most frequent first; mostly guessed.
    present: number of records that have the field.
    count: number of occurrences in all records.
    """

    number: int
    wire_types: tuple[str, ...]
    contents: tuple[str, ...]
    present: int
    count: int


@dataclass(frozen=True)
class FieldSurvey:
    """The fields of the first records that are not Examples.

    record_count: number of surveyed records.
    message_count: how many of them are well-formed protobuf messages.
    fields: the fields of those messages, by number.
    """

    record_count: int
    message_count: int
    fields: tuple[FieldCount, ...]


def survey_fields(shards: Iterable[AnyShard]) -> FieldSurvey:
    """Count the fields of the first records of unknown message type."""
    record_count = message_count = 0
    present: Counter[int] = Counter()
    wire_types: dict[int, Counter[str]] = {}
    contents: dict[int, Counter[str]] = {}
    for payload in _first_others(shards):
        record_count += 1
        with suppress(DataError, OptionError):  # not a message, or too many fields
            fields = decode_fields(payload, max_depth=1)
            message_count += 1
            present.update({field.number for field in fields})
            for field in fields:
                wire_types.setdefault(field.number, Counter())[field.wire_type] += 1
                contents.setdefault(field.number, Counter())[field.content] += 1
    return FieldSurvey(
        record_count,
        message_count,
        tuple(
            FieldCount(
                number,
                tuple(sorted(wire_types[number])),
                tuple(content for content, _ in contents[number].most_common()),
                present[number],
                wire_types[number].total(),
            )
            for number in sorted(present)
        ),
    )


def _first_others(shards: Iterable[AnyShard]) -> Iterator[memoryview]:
    seen = found = 0
    for shard in shards:
        for block in shard.blocks() if shard.size_bytes else ():
            for payload in block.payloads():
                seen += 1
                if len(payload) and classify(payload) == "other":
                    found += 1
                    yield payload
                if seen >= MAX_RECORDS or found >= MAX_SURVEYED:
                    return
