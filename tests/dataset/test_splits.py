"""Splits of foreign shards, inferred from the names of files and folders."""

from __future__ import annotations

import pytest

import recordsmith as rs
from recordsmith.stores import Location

from ..raising import raises

_LAYOUTS = {
    "numbers behind": {
        "train": ["train00-2071.tfrec", "train01-2071.tfrec"],
        "test": ["test00-687.tfrec", "test01-687.tfrec"],
    },
    "words behind": {
        "nsynth-train": ["nsynth-train.tfrecord"],
        "nsynth-valid": ["nsynth-valid.tfrecord"],
    },
    "years": {"train": ["train2017.tfrecord"], "val": ["val2017.tfrecord"]},
    "folders": {
        "train": ["train/Things.tfrecord", "train/more/passed over.tfrecord"],
        "valid": ["valid/Things.tfrecord"],
        "test": ["test/Things.tfrecord"],
    },
    "numbered in folders": {
        "train": ["train/part-00000-of-00002", "train/part-00001-of-00002"],
        "val": ["val/part-00000-of-00001"],
    },
    "names in folders": {
        "cats_train": ["train/cats_train.tfrecord"],
        "cats_test": ["test/cats_test.tfrecord"],
    },
}


def _write(folder: Location, layout: dict[str, list[str]]) -> dict[str, int]:
    """Write files of 1, 2, 4, … records; return the expected number of each split."""
    counts = {}
    number = 1
    for split, files in layout.items():
        counts[split] = 0
        for file in files:
            path = folder / file
            with rs.ShardWriter(path) as writer:
                for _ in range(number):
                    writer.write_example({"split": split})
            counts[split] += number if "passed over" not in file else 0
            number *= 2
    (folder / "README.txt").put(b"words")
    return counts


@pytest.mark.parametrize("layout", _LAYOUTS.values(), ids=_LAYOUTS)
def test_splits_of_foreign_files(place: Location, layout: dict[str, list[str]]) -> None:
    """Opening, packing and resharding find the same splits."""
    source = place / "in"
    counts = _write(source, layout)
    packed = rs.pack(rs.Shards(source), place / "packed").folder
    resharded = rs.reshard(source, place / "resharded").folder
    for folder in (source, packed, resharded):
        assert {shard.split for shard in rs.open(folder).shards} == counts.keys()
        for split, count in counts.items():
            dataset = rs.open(folder, split=split)
            assert len(dataset) == count
            assert {example["split"][0] for example in dataset} == {split.encode()}
    assert rs.verify(source).record_count == sum(counts.values())


def test_splits_by_folder_in_a_list_and_a_pattern(place: Location) -> None:
    source = place / "in"
    _write(source, {"train": ["train/a.tfrecord"], "val": ["val/a.tfrecord"]})
    for paths in ([source / "train", source / "val"], source / "*" / "*.tfrecord"):
        assert len(rs.open(paths, split="val")) == 2  # type: ignore[arg-type]
        report = rs.reshard(paths, place / "out", split="val", overwrite=True)  # type: ignore[arg-type]
        assert report.record_count == 2


def test_a_single_folder_with_the_name_of_a_split_is_ignored(place: Location) -> None:
    """Folders for experiments are often named `test`."""
    _write(place / "test", {"a": ["a.tfrecord"], "b": ["b.tfrecord"]})
    assert {shard.split for shard in rs.open(place / "test").shards} == {"a", "b"}


def test_datasets_in_split_folders_are_not_merged(place: Location) -> None:
    _write(place / "in", {"train": ["train.tfrecord"]})
    for split in ("train", "val"):
        rs.pack(rs.Shards(place / "in"), place / "out" / split)
    with pytest.raises(rs.OptionError) as caught:
        rs.open(place / "out")
    assert (caught.value.option, caught.value.value) == ("paths", f"{str(place / 'out')!r:.80}")


def test_missing_shard_in_a_split_folder_is_detected(place: Location) -> None:
    _write(place, {"train": ["train/part-00001-of-00002"], "val": ["val/part-00000-of-00001"]})
    assert len(rs.open(place, split="val")) == 2
    for split in (None, "train"):
        with raises(
            rs.CorruptDataError,
            defect=rs.Defect.MISSING_SHARD,
            path=place / "train" / "part-00000-of-00002.tfrecord",
        ):
            rs.open(place, split=split)


def test_files_without_split_next_to_files_with_one_are_reported(place: Location) -> None:
    """They cannot be assigned to a split, so a notice counts them."""
    _write(place / "in", {"train": ["train.tfrecord", "testzz.tfrecord", "testzy.tfrecord"],
                             "test": ["test.tfrecord"]})  # fmt: skip
    for report in (
        rs.pack(rs.Shards(place / "in"), place / "packed"),
        rs.reshard(place / "in", place / "resharded"),
    ):
        (notice,) = report.notices
        assert report.splits == {"train": 7, "test": 8}
        assert "2 files" in notice
        assert "split train" in notice
