"""Names of splits: recognition, order, and where they occur in paths and lists."""

from __future__ import annotations

from recordsmith.sources.splits import find_split, sort_splits, split_lists, splits_by_folder


def test_splits() -> None:
    assert find_split("images/Train/a.jpg") == "Train"
    assert find_split("train.jpg") is None
    assert find_split("a/train.jpg/b") is None
    both = {"x/train/a": "train", "x/val/b": "val"}
    assert splits_by_folder(both) == both
    assert splits_by_folder(["x/train/a", "x/b"]) == {}
    names = ["test", "valid", "other", "train2017", "val"]
    assert sort_splits(names) == ("train2017", "val", "valid", "test", "other")


def test_lists_of_splits() -> None:
    paths = ["x/val.txt", "x/Test.TXT", "x/train.txt", "x/aeroplane_train.txt", "x/test.csv"]
    assert list(split_lists(paths).items()) == [
        ("train", "x/train.txt"),
        ("val", "x/val.txt"),
        ("Test", "x/Test.TXT"),
    ]
    assert split_lists([*paths, "x/trainval.txt"]) == split_lists(paths)
    assert list(split_lists(["trainval.txt", "train.txt"])) == ["train", "trainval"]
