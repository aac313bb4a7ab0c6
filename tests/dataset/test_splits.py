"""Of which split are shards that others wrote? As the names say that people give to files."""

from __future__ import annotations

from pathlib import Path

import pytest

import recordsmith as rs
from recordsmith.dataset.splits import is_split_told, split_of


@pytest.mark.parametrize(
    ("name", "split", "is_told"),
    [
        ("train.tfrecord", "train", True),
        ("test.tfrecords.gz", "test", True),
        ("TRAIN.tfrecord", "TRAIN", True),
        ("train-00000-of-00002.tfrecord", "train", True),
        ("mnist-test.tfrecord-00000-of-00001", "mnist-test", True),
        ("flowers_train.tfrecord", "flowers_train", True),
        ("train00-2071.tfrec", "train", True),
        ("validate0001.tfrecord", "validate", True),
        ("train2017.tfrecord", "train", True),
        ("cifar10_eval_batch_1.tfrecord", "cifar10_eval", True),
        ("train_val_1.tfrecord", "train_val", True),
        ("data", "data", False),
        (".hidden", ".hidden", False),
        ("part1.tfrecord", "part1", False),
        ("training_set", "training", True),
        ("contest.tfrecord", "contest", False),
        ("trains.tfrecord", "trains", False),
        ("cats-00000-of-00002.tfrecord", "cats", False),
    ],
)
def test_split_of_a_name(name: str, split: str, is_told: bool) -> None:
    assert split_of(name) == split
    assert is_split_told(name) is is_told


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


def _write(folder: Path, layout: dict[str, list[str]]) -> dict[str, int]:
    """Files of one, two, four, ... records, and how many of each split are to be found."""
    counts = {}
    number = 1
    for split, files in layout.items():
        counts[split] = 0
        for file in files:
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            with rs.ShardWriter(path) as writer:
                for _ in range(number):
                    writer.write_example({"split": split})
            counts[split] += number if "passed over" not in file else 0
            number *= 2
    (folder / "README.txt").write_text("words")
    return counts


@pytest.mark.parametrize("layout", _LAYOUTS.values(), ids=_LAYOUTS)
def test_splits_that_others_wrote(tmp_path: Path, layout: dict[str, list[str]]) -> None:
    """They are the same for whoever opens, packs or reshards them: none are mixed."""
    source = tmp_path / "in"
    counts = _write(source, layout)
    packed = rs.pack(rs.Shards(source), tmp_path / "packed").folder
    resharded = rs.reshard(source, tmp_path / "resharded").folder
    for folder in (source, packed, resharded):
        assert {shard.split for shard in rs.open(folder).shards} == counts.keys()
        for split, count in counts.items():
            dataset = rs.open(folder, split=split)
            assert len(dataset) == count
            assert {example["split"][0] for example in dataset} == {split.encode()}
    assert rs.verify(source).record_count == sum(counts.values())


def test_splits_by_folder_in_a_list_and_a_pattern(tmp_path: Path) -> None:
    source = tmp_path / "in"
    _write(source, {"train": ["train/a.tfrecord"], "val": ["val/a.tfrecord"]})
    for paths in ([source / "train", source / "val"], str(source / "*" / "*.tfrecord")):
        assert len(rs.open(paths, split="val")) == 2  # type: ignore[arg-type]
        report = rs.reshard(paths, tmp_path / "out", split="val", overwrite=True)  # type: ignore[arg-type]
        assert report.record_count == 2


def test_a_folder_that_is_called_like_a_split_alone_tells_nothing(tmp_path: Path) -> None:
    """Many a folder for trying things is called `test`."""
    _write(tmp_path / "test", {"a": ["a.tfrecord"], "b": ["b.tfrecord"]})
    assert {shard.split for shard in rs.open(tmp_path / "test").shards} == {"a", "b"}


def test_datasets_in_folders_of_splits_are_not_taken_for_one(tmp_path: Path) -> None:
    _write(tmp_path / "in", {"train": ["train.tfrecord"]})
    for split in ("train", "val"):
        rs.pack(rs.Shards(tmp_path / "in"), tmp_path / "out" / split)
    with pytest.raises(rs.OptionError, match="holds no TFRecord file"):
        rs.open(tmp_path / "out")


def test_a_missing_shard_in_a_folder_of_splits_is_missed(tmp_path: Path) -> None:
    _write(tmp_path, {"train": ["train/part-00001-of-00002"], "val": ["val/part-00000-of-00001"]})
    assert len(rs.open(tmp_path, split="val")) == 2
    for split in (None, "train"):
        with pytest.raises(rs.CorruptDataError, match="shard 0 of 2") as caught:
            rs.open(tmp_path, split=split)
        assert caught.value.path == str(tmp_path / "train" / "part-00000-of-00002.tfrecord")


def test_what_tells_no_split_beside_what_does_is_told(tmp_path: Path) -> None:
    """It cannot be kept apart, but nobody need find that out by himself."""
    _write(tmp_path / "in", {"train": ["train.tfrecord", "testzz.tfrecord", "testzy.tfrecord"],
                             "test": ["test.tfrecord"]})  # fmt: skip
    for report in (
        rs.pack(rs.Shards(tmp_path / "in"), tmp_path / "packed"),
        rs.reshard(tmp_path / "in", tmp_path / "resharded"),
    ):
        assert any("names of 2 files tell no splits" in notice for notice in report.notices)
