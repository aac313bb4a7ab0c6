"""Names of splits: recognition, order, and where they occur in paths and lists."""

from __future__ import annotations

import pytest

from recordsmith.sources.splits import (
    find_split,
    folder_splits,
    sort_splits,
    split_lists,
    splits_by_folder,
)


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


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        ("train_images test_images", "train test"),
        ("WIDER_train WIDER_val WIDER_test", "train val test"),
        ("seg_train seg_test seg_pred", "train test -"),
        ("bounding_box_train bounding_box_test query", "train test -"),
        ("trainImages valImages", "train val"),
        ("train-jpg validation-jpg", "train validation"),
        ("TrainImages TestImages sample", "train test -"),
        ("a.train.b a.test.b", "train test"),
        ("train val images_test", "train val -"),
        ("train2017 val2017 other", "train val -"),
        ("bullet_train steam_train", "- -"),
        ("bus car train", "- - train"),
        ("bus bullet_train steam_train test_tube", "- - - -"),
        ("train_images test_masks", "- -"),
        ("trainer tester", "- -"),
        ("train_1 train_2", "- -"),
        ("cat dog", "- -"),
        ("cat bullet_train dog", "- - -"),
    ],
)
def test_folders_that_differ_only_in_a_split(names: str, splits: str) -> None:
    """`bus`, `car`, `train` are left to the counts of images; see the tests of class folders."""
    expected = dict(zip(names.split(), splits.split(), strict=True))
    found = folder_splits(names.split())
    assert {name: split.rstrip("0123456789") for name, split in found.items()} == {
        name: split for name, split in expected.items() if split != "-"
    }
