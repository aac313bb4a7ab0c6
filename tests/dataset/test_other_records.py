"""Intact records that are not Examples: each entry point reads them, or says what they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

from ..raising import raises
from ..reference import FIXED32, FIXED64, VARINT, delimited, tag, varint

_EXAMPLE = rs.encode_example({"a": 1})
RECORDS = {
    "SequenceExample": [rs.encode_sequence_example({"a": 1}, {"steps": [[1], [2]]})],
    "ELWC": [delimited(1, _EXAMPLE) * 2],
    "Event": [tag(1, FIXED64) + bytes(6) + b"\xf0\x3f" + delimited(3, b"brain.Event:2")],
    "other": [
        # messages that begin with the tags of an Example, as those of Waymo and nucleus do
        delimited(1, delimited(1, b"\x08\x01\x12\x03abc")) + b"\x10\x05",
        delimited(1, delimited(1, b"\x00\xff\xfe")),
        tag(1, VARINT) + varint(2**40) + tag(2, FIXED32) + bytes(4),
        b"plain text",
        b"\xff\xd8\xff\xe0 pixels",
        bytes(100),
    ],
}
DECODED = {
    "SequenceExample": {"one", "in order", "batches", "columns", "loader", "arrow", "export csv"},
    "ELWC": {"arrow", "export csv"},
}


def readers(dataset: rs.Dataset, out: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each way to read a dataset, by name."""
    yield "one", lambda: dataset[0]
    yield "in order", lambda: list(dataset)
    yield "batches", lambda: next(dataset.batches(2))
    yield "columns", lambda: dataset.read_columns(["a"])
    yield "loader", lambda: rs.Loader(dataset, {"a": rs.Scalar("a")}, batch_size=2)
    yield "sheet", lambda: rs.sheet(dataset, out / "sheet.png")
    for name in ("coco", "webdataset", "tfds"):
        yield f"export {name}", lambda name=name: rs.export(dataset, out / name, name)


def arrow_readers(dataset: rs.Dataset, out: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Those that need pyarrow."""
    yield "arrow", lambda: dataset.to_arrow().read_all()
    yield "export csv", lambda: rs.export(dataset, out / "csv", "csv")


@pytest.mark.parametrize(
    ("kind", "payload"), [(kind, payload) for kind in RECORDS for payload in RECORDS[kind]]
)
@pytest.mark.parametrize("ways", [readers, arrow_readers])
def test_records_that_are_not_examples(
    ways: Any, kind: str, payload: bytes, tmp_path: Path
) -> None:
    if ways is arrow_readers:
        pytest.importorskip("pyarrow")
    path = tmp_path / "a.tfrecord"
    with rs.ShardWriter(path) as writer:
        writer.write(payload)
        writer.write(payload)
    assert list(rs.open(path).records()) == [payload, payload]
    assert rs.verify(path).is_good
    for name, read in ways(rs.open(path), tmp_path):
        if name in DECODED.get(kind, ()):
            read()
            continue
        with raises(rs.NotAnExampleError, payload=kind):
            read()


@pytest.mark.parametrize("cut", [1, 3, 10])
def test_an_example_that_is_cut_is_damaged(cut: int) -> None:
    payload = rs.encode_example({"label": 3, "text": "abc"})
    with raises(rs.CorruptDataError, defect="malformed-example"):
        rs.decode_example(payload[:-cut])
