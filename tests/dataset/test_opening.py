"""`recordsmith.open`: what it checks without reading records."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import recordsmith as rs
from recordsmith.dataset import shard_name
from recordsmith.stores import Location


def test_opening_reads_no_record(place: Location, numbered: SimpleNamespace) -> None:
    folder = numbered.packed(place, {"train": [3]})
    path = folder / shard_name("train", 0, 1)
    good = path.read()
    schema = rs.open(folder).schema
    path.put(b"\0" * len(good))
    dataset = rs.open(folder)
    assert dataset.schema == schema
    assert len(dataset) == 3
    with pytest.raises(rs.CorruptDataError):
        dataset[0]


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_manifest_and_records_agree(
    place: Location, numbered: SimpleNamespace, compression: str
) -> None:
    folder = numbered.packed(place, {"train": [3, 2], "test": [4]}, compression)
    packed, foreign = rs.open(folder), rs.open([*(folder / "train*").glob(), folder / "test-*"])
    assert numbered.ids_of(packed) == numbered.ids_of(foreign) == list(range(9))
    assert len(packed) == len(foreign) == 9
    assert packed.schema == foreign.schema
    assert packed.class_names == foreign.class_names == numbered.class_names


@pytest.mark.parametrize(
    "change",
    [lambda data: data[:-1], lambda data: data + b"\0", lambda _: b""],
    ids=["cut", "grown", "empty"],
)
def test_shard_of_another_size_is_refused(
    place: Location, numbered: SimpleNamespace, change: object
) -> None:
    folder = numbered.packed(place, {"train": [3], "test": [1]})
    path = folder / shard_name("train", 0, 1)
    path.put(change(path.read()))  # type: ignore[operator]
    with pytest.raises(rs.CorruptDataError) as caught:
        rs.open(folder)
    assert caught.value.defect is rs.Defect.SHARD_SIZE
    assert caught.value.path == str(path)
    assert numbered.ids_of(rs.open(folder, split="test")) == [3]
