"""Images in any folders, with classes from their names."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import recordsmith as rs
from recordsmith.sources import ImageFiles, Source

from ..raising import raises
from ..reading import read_sample
from .source_contract import SourceContract


def _fill(root: Path, names: list[str], image: bytes) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(image)
    return root


CATS_AND_DOGS = ["cat_0.jpeg", "cat_1.png", "deep/er/dog_0.jpg", "dog_1"]


class TestContractWithClasses(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:
        _fill(folder, CATS_AND_DOGS, images.jpeg())
        return ImageFiles(folder, class_pattern=r"([a-z]+)_\d")


def test_classes_from_names(tmp_path: Path, images: ModuleType) -> None:
    source = ImageFiles(_fill(tmp_path, CATS_AND_DOGS, images.jpeg()), class_pattern=r"([a-z]+)_\d")
    listing = source.list_samples()
    assert listing.class_names == ("cat", "dog")
    assert [(sample.name, sample.label) for sample in listing.samples] == [
        ("cat_0.jpeg", 0),
        ("cat_1.png", 0),
        ("deep/er/dog_0.jpg", 1),
        ("dog_1", 1),
    ]
    features = read_sample(source, listing.samples[2])
    assert features["image/class/text"] == b"dog"
    assert features["image/class/label"] == 1
    assert features["image/filename"] == b"deep/er/dog_0.jpg"
    assert listing.splits == ()


def test_pattern_without_groups_uses_the_whole_match(tmp_path: Path, images: ModuleType) -> None:
    _fill(tmp_path, ["a/1.jpg", "b/1.jpg"], images.jpeg())
    assert ImageFiles(tmp_path, class_pattern="^[^/]+").list_samples().class_names == ("a", "b")


def test_images_without_a_class_are_all_listed(tmp_path: Path, images: ModuleType) -> None:
    _fill(tmp_path, ["cat_0.jpg", "x.jpg", "y.jpg"], images.jpeg())
    with raises(rs.SourceError, path=tmp_path, match="2 of 3 images") as e:
        ImageFiles(tmp_path, class_pattern="(cat)?").list_samples()
    assert e.value.problems == ("x.jpg", "y.jpg")


def test_folders_of_splits(tmp_path: Path, images: ModuleType) -> None:
    _fill(tmp_path, ["val/a.jpg", "train/x/b.jpg"], images.jpeg())
    listing = ImageFiles(tmp_path).list_samples()
    assert listing.splits == ("train", "val")
    assert [sample.split for sample in listing.samples] == ["train", "val"]
    _fill(tmp_path, ["c.jpg"], images.jpeg())
    assert ImageFiles(tmp_path).list_samples().splits == ()


def test_skipped_files_are_noticed(tmp_path: Path, images: ModuleType) -> None:
    _fill(tmp_path, ["a.jpg", ".hidden/b.jpg"], images.jpeg())
    _fill(tmp_path, ["words.txt"], b"words")
    notices = ImageFiles(tmp_path).list_samples().notices
    assert [notice.partition(":")[0] for notice in notices] == [
        "1 hidden file skipped",
        "1 non-image file skipped",
    ]


def test_circular_links_are_not_followed(tmp_path: Path, images: ModuleType) -> None:
    _fill(tmp_path, ["x/a.jpg"], images.jpeg())
    (tmp_path / "x" / "up").symlink_to(tmp_path)
    listing = ImageFiles(tmp_path).list_samples()
    assert len(listing.samples) == 1
    (notice,) = listing.notices
    assert notice.endswith(f"not followed: {tmp_path}/x/up")


@pytest.mark.parametrize(("names", "words"), [([], "is empty"), (["a.txt"], r"found .*a\.txt")])
def test_nothing_to_pack(tmp_path: Path, names: list[str], words: str) -> None:
    _fill(tmp_path, names, b"words")
    with pytest.raises(rs.SourceError, match=words) as caught:
        ImageFiles(tmp_path).list_samples()
    assert caught.value.path == str(tmp_path)


def test_invalid_class_pattern() -> None:
    with pytest.raises(rs.OptionError) as caught:
        ImageFiles("x", class_pattern="(")
    assert (caught.value.option, caught.value.value) == ("class_pattern", "'('")
