"""Inspect summarizes a dataset from its manifest or from its records."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

import recordsmith as rs
from recordsmith.dataset import MANIFEST_NAME, ShardWriter
from recordsmith.format.wire import COMPRESSIONS
from recordsmith.stores import Location


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("with_manifest", [True, False])
def test_counts_and_sizes(
    place: Location, numbered: SimpleNamespace, compression: str, with_manifest: bool
) -> None:
    folder = numbered.packed(place, {"test": [4], "train": [2, 3]}, compression)
    if not with_manifest:
        (folder / MANIFEST_NAME).delete()
    found = rs.inspect(folder)
    paths = (folder / "*.tfrecord*").glob()
    assert found.record_count == 9
    assert found.size_bytes == sum(path.size() for path in paths)
    assert found.compression == compression
    assert found.class_names == numbered.class_names
    assert [(s.path, s.split, s.record_count, s.size_bytes) for s in found.shards] == [
        (str(path), path.name.split("-")[0], count, path.size())
        for path, count in zip(paths, [4, 2, 3], strict=True)
    ]
    assert {split: len(shards) for split, shards in found.splits.items()} == {"test": 1, "train": 2}
    assert found.schema == rs.open(folder).schema


def test_mixed_compressions(place: Location, numbered: SimpleNamespace) -> None:
    numbered.write_shard(place / "a.tfrecord", [1])
    numbered.write_shard(place / "b.tfrecord", [2], "gzip")
    numbered.write_shard(place / "c.tfrecord", [])
    found = rs.inspect(place)
    assert found.compression == "mixed"
    assert [shard.compression for shard in found.shards][:2] == ["none", "gzip"]
    assert found.record_count == 2


def test_json(place: Location, numbered: SimpleNamespace) -> None:
    folder = numbered.packed(place, {"train": [2, 1]})
    document = json.loads(json.dumps(rs.inspect(folder).to_json()))
    assert (document["records"], document["payload"], document["compression"]) == (
        3, "Example", "none",
    )  # fmt: skip
    size = sum(path.size() for path in (folder / "*.tfrecord").glob())
    assert document["splits"] == {"train": {"records": 3, "shards": 2, "size_bytes": size}}
    assert document["class_names"] == list(numbered.class_names)
    assert document["features"].keys() == numbered.features(0).keys()
    assert document["features"]["id"]["kind"] == "int64"
    assert [shard["records"] for shard in document["shards"]] == [2, 1]


def test_sequence_examples_have_their_own_sections(place: Location) -> None:
    with ShardWriter(place / "a.tfrecord") as writer:
        writer.write(rs.encode_sequence_example({"id": 5}, {"words": [["a"], ["b", "c"]]}))
    document = rs.inspect(place).to_json()
    assert document["payload"] == "SequenceExample"
    assert document["features"] == {}
    assert document["context"]["id"]["kind"] == "int64"
    words = document["feature_lists"]["words"]
    assert (words["min_steps"], words["max_steps"], words["max_length"]) == (2, 2, 2)


def test_progress_counts_bytes(place: Location, numbered: SimpleNamespace) -> None:
    path = numbered.write_shard(place / "a.tfrecord", range(9))
    calls: list[tuple[int, int]] = []
    rs.inspect(path, progress=lambda *call: calls.append(call))
    assert calls[-1] == (path.size(),) * 2
