"""Reports and options as JSON."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

import recordsmith as rs
from recordsmith.support.serialization import fields_to_json, to_json


class Span(NamedTuple):
    start: int
    defect: rs.Defect


@dataclass
class Part:
    record_count: int
    path: Path = Path("a/b")

    @property
    def doubled(self) -> int:
        return 2 * self.record_count


@dataclass
class Whole:
    parts: tuple[Part, ...]
    spans: list[Span] = field(default_factory=list)
    skipped_count: int = 0
    splits: Mapping[str, float] | None = None


class Own:
    def to_json(self) -> Any:
        return ["own"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((plain, plain) for plain in (None, True, 0, -1.5, "x", [], {})),
        ((1, (2, None)), [1, [2, None]]),
        (MappingProxyType({"a": (1,)}), {"a": [1]}),
        (OrderedDict(b=Path("x")), {"b": "x"}),
        (Span(3, rs.Defect.LENGTH_CRC), {"start": 3, "defect": "length-crc-mismatch"}),
        ([Own()], [["own"]]),
        (
            Whole((Part(2),), [Span(0, rs.Defect.MISSING_SHARD)], 4, {"train": 0.5}),
            {
                "parts": [{"records": 2, "path": "a/b"}],
                "spans": [{"start": 0, "defect": "missing-shard"}],
                "skipped_count": 4,
                "splits": {"train": 0.5},
            },
        ),
    ],
)
def test_values_become_those_of_json(value: Any, expected: Any) -> None:
    found = to_json(value)
    assert found == expected
    assert json.loads(json.dumps(found)) == expected  # no types that only look equal


def test_named_attributes_in_order() -> None:
    assert list(fields_to_json(Part(2), ("doubled", "record_count")).items()) == [
        ("doubled", 4),
        ("records", 2),
    ]
