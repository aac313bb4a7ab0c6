"""The fields of the first records that are not Examples are counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.examining import inspection


def test_fields_of_other_messages_are_counted(reference: Any, tmp_path: Path) -> None:
    r = reference
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        writer.write_example({"a": 1})
        writer.write(r.delimited(3, b"text") + r.tag(4, r.VARINT) + b"\1")
        writer.write(b"")
        writer.write(r.delimited(3, r.delimited(1, b"in a message")))
        writer.write(b"\xff\xff\xff")
        writer.write(r.tag(3, r.FIXED32) + b"1234" + r.delimited(3, b"text"))
    found = rs.inspect(tmp_path / "x.tfrecord").other_fields
    assert found is not None
    assert (found.record_count, found.message_count) == (4, 3)
    third, fourth = found.fields
    assert (third.number, third.present, third.count) == (3, 3, 4)
    assert third.wire_types == ("delimited", "fixed32")
    assert third.contents == ("text", "message", "number")
    assert (fourth.number, fourth.present, fourth.contents) == (4, 1, ("number",))


def test_only_the_first_records_are_surveyed(
    tmp_path: Path, reference: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        for _ in range(30):
            writer.write(reference.delimited(3, b"text"))
    monkeypatch.setattr(inspection, "MAX_SURVEYED", 7)
    found = rs.inspect(tmp_path / "x.tfrecord").other_fields
    assert found is not None
    assert found.record_count == 7
    monkeypatch.setattr(inspection, "MAX_RECORDS", 5)
    found = rs.inspect(tmp_path / "x.tfrecord").other_fields
    assert found is not None
    assert found.record_count == 5


def test_datasets_of_examples_are_not_surveyed(numbered: Any, tmp_path: Path) -> None:
    assert rs.inspect(numbered.write_shard(tmp_path / "a.tfrecord", range(3))).other_fields is None
