"""Which fields do records have that are no Examples? Those of a message of unknown type.

A look at the beginning of a dataset, so that its owner recognises what it holds: not all records
are read, and it is said how many were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset.shard import Shard
from recordsmith.errors import CorruptDataError, OptionError
from recordsmith.example import classify, decode_fields

MAX_RECORDS = 10_000
"""Of so many records, from the first on, those that are no Examples are looked for."""

MAX_SURVEYED = 1000
"""Of so many of those the fields are counted."""


@dataclass(frozen=True)
class FieldCount:
    """A field of the message that records are.

    number: as in a .proto file.
    wire_types: varint, fixed64, delimited, group or fixed32; several, if records disagree.
    contents: number, text, message, numbers or bytes, the most frequent first; mostly guessed.
    present: how many records have it.
    count: how often it is there in all of them.
    """

    number: int
    wire_types: tuple[str, ...]
    contents: tuple[str, ...]
    present: int
    count: int

    def to_json(self) -> dict[str, Any]:
        """number, wire_types, contents, present, count."""
        return {
            **vars(self),
            "wire_types": list(self.wire_types),
            "contents": list(self.contents),
        }


@dataclass(frozen=True)
class FieldSurvey:
    """The fields of the first records that are no Examples.

    record_count: of how many.
    message_count: how many of them hold together as protobuf messages.
    fields: of those, by number.
    """

    record_count: int
    message_count: int
    fields: tuple[FieldCount, ...]

    def to_json(self) -> dict[str, Any]:
        """records, messages, fields."""
        return {
            "records": self.record_count,
            "messages": self.message_count,
            "fields": [field.to_json() for field in self.fields],
        }


def survey_fields(shards: Iterable[Shard]) -> FieldSurvey:
    """Count the fields of the first records that are neither Examples nor known otherwise."""
    record_count = message_count = 0
    present: Counter[int] = Counter()
    wire_types: dict[int, Counter[str]] = {}
    contents: dict[int, Counter[str]] = {}
    for payload in _first_others(shards):
        record_count += 1
        with suppress(CorruptDataError, OptionError):  # no message; more fields than are looked at
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


def _first_others(shards: Iterable[Shard]) -> Iterator[memoryview]:
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
