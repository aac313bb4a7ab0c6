"""Class folders: which files are images, which folders are classes, and notices about others."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import recordsmith as rs
from recordsmith.sources import ImageFolder, Listing, Source

from ..raising import raises
from ..reading import read_sample
from .source_contract import SourceContract


class TestContract(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:
        return ImageFolder(images.make_folder(folder, {"b b": 3, "a": 4, "é": 2}))


class TestContractOfTheNestedLayout(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:
        images.make_folder(folder / "only one", {"x": 3, "y": 2})
        return ImageFolder(folder)


def _names(listing: Listing) -> list[str]:
    return [sample.name for sample in listing.samples]


def test_order_is_by_class_then_by_name(tmp_path: Path, images: ModuleType) -> None:
    names = ["b/2.png", "b/10.png", "a/z.png", "a/B.png", "C/x.png", "é/1.png"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(images.encode(images.noise(3, 2), "PNG"))
    listing = ImageFolder(tmp_path).list_samples()
    assert _names(listing) == sorted(names)
    assert listing.class_names == ("C", "a", "b", "é")
    assert [sample.label for sample in listing.samples] == [0, 1, 1, 2, 2, 3]
    for sample in listing.samples:
        assert sample.size_bytes == (tmp_path / sample.name).stat().st_size
    assert listing.notices == ()


def test_features_agree_with_pillow(tmp_path: Path, images: ModuleType) -> None:
    odd = images.odd()
    for number, (name, data) in enumerate(odd.items()):
        folder = tmp_path / ("even" if number % 2 == 0 else "odd")
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)  # no suffix at all
    source = ImageFolder(str(tmp_path))
    listing = source.list_samples()
    assert len(listing.samples) == len(odd)
    assert listing.notices == ()
    for sample in listing.samples:
        name = sample.name.partition("/")[2]
        features = read_sample(source, sample)
        kind, height, width = images.size_by_pillow(odd[name])
        assert features == {
            "image/encoded": odd[name],
            "image/format": kind,
            "image/height": height,
            "image/width": width,
            "image/filename": sample.name.encode(),
            "image/class/label": sample.label,
            "image/class/text": sample.name.partition("/")[0].encode(),
        }


def test_wrong_suffix_does_not_matter(tmp_path: Path, images: ModuleType) -> None:
    (tmp_path / "a").mkdir()
    for name in ("x.jpg", "x.txt", "x.JPEG", "x.tfrecord"):
        (tmp_path / "a" / name).write_bytes(images.encode(images.noise(3, 2), "PNG"))
    source = ImageFolder(tmp_path)
    samples = source.list_samples().samples
    assert len(samples) == 4
    assert {read_sample(source, sample)["image/format"] for sample in samples} == {"png"}


def test_file_that_promises_a_image_and_is_none_is_an_error(
    tmp_path: Path, images: ModuleType
) -> None:
    images.make_folder(tmp_path, {"a": 1})
    for name in ("words.jpg", "words.PNG", "empty.gif"):
        (tmp_path / "a" / name).write_text("" if "empty" in name else "words, no image")
    source = ImageFolder(tmp_path)
    listing = source.list_samples()
    assert len(listing.samples) == 4
    assert listing.notices == ()
    for sample in listing.samples[1:]:
        with pytest.raises(rs.CorruptDataError) as caught:
            read_sample(source, sample)
        assert caught.value.defect is rs.Defect.UNREADABLE_IMAGE
        assert caught.value.path == str(tmp_path / sample.name)


def test_skipped_files_are_noticed(tmp_path: Path, images: ModuleType) -> None:
    image = images.encode(images.noise(3, 2), "PNG")
    images.make_folder(tmp_path, {"a": 1, "b": 1})
    passed_over = {
        "a/README.txt": b"words",
        "a/.hidden.png": image,
        "a/nothing": b"",
        "outside.png": image,
        "LICENSE": b"words",
        ".DS_Store": b"x",
    }
    for name, data in passed_over.items():
        (tmp_path / name).write_bytes(data)
    for folder in ("a/deeper", "empty class", ".git"):
        (tmp_path / folder).mkdir()
    (tmp_path / "a" / "deeper" / "x.png").write_bytes(image)
    (tmp_path / "a" / "dangling.txt").symlink_to("nowhere")
    os.mkfifo(tmp_path / "b" / "pipe.png")
    listing = ImageFolder(tmp_path).list_samples()
    assert _names(listing) == ["a/000.png", "b/000.png"]
    assert listing.class_names == ("a", "b")
    about = {notice.partition(":")[0].partition(" (")[0]: notice for notice in listing.notices}
    for reason, names in {
        "3 hidden files skipped": (".DS_Store", ".git", "a/.hidden.png"),
        "5 non-image files skipped": ("LICENSE",),
        "1 image outside class folders skipped": ("outside.png",),
        "1 image in folders inside class folders skipped": ("a/deeper/x.png",),
        "1 class folder without images skipped": ("empty class",),
    }.items():
        for name in names:
            assert str(tmp_path / name) in about[reason]
    assert len(about) == len(listing.notices) == 5


def test_many_skipped_files_are_one_notice(tmp_path: Path, images: ModuleType) -> None:
    images.make_folder(tmp_path, {"a": 1})
    for number in range(200):
        (tmp_path / "a" / f"{number:03d}.xml").write_bytes(b"<annotation/>")
    (tmp_path / "a" / "words.txt").write_bytes(b"words")
    (notice,) = ImageFolder(tmp_path).list_samples().notices
    assert notice.startswith("201 ")
    assert "(200 .xml, 1 .txt): " in notice


def test_classes_that_are_called_like_splits_are_noticed(
    tmp_path: Path, images: ModuleType
) -> None:
    images.make_folder(tmp_path, {"train": 1, "test": 1})
    (notice,) = ImageFolder(tmp_path).list_samples().notices
    assert "test and train" in notice


def test_a_link_to_nothing_that_is_named_like_a_image_is_an_error(
    tmp_path: Path, images: ModuleType
) -> None:
    images.make_folder(tmp_path, {"a": 1})
    (tmp_path / "a" / "gone.jpg").symlink_to("nowhere")
    source = ImageFolder(tmp_path)
    samples = source.list_samples().samples
    assert [sample.name for sample in samples] == ["a/000.png", "a/gone.jpg"]
    with raises(rs.FileAccessError, path=tmp_path / "a/gone.jpg"):
        read_sample(source, samples[1])


def test_nested_layout(tmp_path: Path, images: ModuleType) -> None:
    """As the archives of the tutorials unpack: root/flower_photos/<class>/<image>."""
    images.make_folder(tmp_path / "flower_photos", {"daisy": 2, "rose": 1})
    (tmp_path / "flower_photos" / "LICENSE.txt").write_text("words")
    (tmp_path / "archive.tgz").write_bytes(b"words")
    source = ImageFolder(tmp_path)
    listing = source.list_samples()
    assert listing.class_names == ("daisy", "rose")
    assert len(listing.samples) == 3
    (notice,) = listing.notices
    assert "archive.tgz" in notice
    assert "LICENSE.txt" in notice
    for sample in listing.samples:
        assert read_sample(source, sample)["image/encoded"]


def test_folders_of_splits(tmp_path: Path, images: ModuleType) -> None:
    for split, classes in {"test": {"b": 1}, "train": {"a": 2, "b": 1}, "Val": {"c": 1}}.items():
        images.make_folder(tmp_path / split, classes)
    (tmp_path / "train" / "notes.txt").write_text("x")
    listing = ImageFolder(tmp_path).list_samples()
    assert listing.splits == ("train", "Val", "test")
    assert listing.class_names == ("a", "b", "c")
    found = [(sample.name, sample.label, sample.split) for sample in listing.samples]
    assert [(name.rpartition("/")[0], label, split) for name, label, split in found] == [
        ("train/a", 0, "train"),
        ("train/a", 0, "train"),
        ("train/b", 1, "train"),
        ("Val/c", 2, "Val"),
        ("test/b", 1, "test"),
    ]
    assert [notice for notice in listing.notices if "notes.txt" in notice]
    source = ImageFolder(tmp_path)
    source.list_samples()
    assert read_sample(source, listing.samples[-1])["image/class/text"] == b"b"
    out = tmp_path.parent / f"{tmp_path.name}-out"
    with raises(rs.OptionError, option="splits", value={"x": 1.0}):
        rs.pack(ImageFolder(tmp_path), out, splits={"x": 1.0})
    report = rs.pack(
        ImageFolder(tmp_path), out, splits={"x": 0.5, "y": 0.5}, resplit=["train", "Val"]
    )
    assert report.splits == {"x": 2, "y": 2, "test": 1}
    assert [n for n in report.notices if "train and Val" in n and "x and y" in n]


def test_one_class_folder_is_not_nesting(tmp_path: Path, images: ModuleType) -> None:
    images.make_folder(tmp_path, {"only": 2})
    (tmp_path / "only" / "below").mkdir()
    assert ImageFolder(tmp_path).list_samples().class_names == ("only",)


def _images_in_root(root: Path, image: bytes) -> str:
    (root / "a.png").write_bytes(image)
    (root / "b.png").write_bytes(image)
    return r"outside class folders: a\.png and b\.png"


def _too_deep(root: Path, image: bytes) -> str:
    for name in ("spring/daisy", "spring/rose", "autumn/daisy"):
        (root / name).mkdir(parents=True)
        (root / name / "a.png").write_bytes(image)
    return r"deeper folders.* Pack .*/autumn or .*/spring instead"


def _no_images(root: Path, image: bytes) -> str:
    for name in ("a", "b"):
        (root / name).mkdir()
        (root / name / "words.txt").write_text("words")
    return "found folders without images: a and b"


def _only_words(root: Path, image: bytes) -> str:
    (root / "words.txt").write_text("words")
    return r"found no folders, only .*words\.txt"


def _nothing(root: Path, image: bytes) -> str:
    return "the folder is empty"


@pytest.mark.parametrize("make", [_images_in_root, _too_deep, _no_images, _only_words, _nothing])
def test_wrong_nesting_shows_what_was_found_and_expected(
    tmp_path: Path, images: ModuleType, make: Callable[[Path, bytes], str]
) -> None:
    found = make(tmp_path, images.jpeg())
    with pytest.raises(rs.SourceError, match=found) as caught:
        ImageFolder(tmp_path).list_samples()
    assert f"{tmp_path}/<class>/<image>" in str(caught.value)
    assert caught.value.path == str(tmp_path)


def test_missing_folder_and_file_instead_of_folder(tmp_path: Path) -> None:
    with raises(rs.FileAccessError, path=tmp_path / "missing") as missing:
        ImageFolder(tmp_path / "missing").list_samples()
    assert missing.value.path == str(tmp_path / "missing")
    (tmp_path / "file").touch()
    with raises(rs.OptionError, value=tmp_path / "file", match="is a file") as caught:
        ImageFolder(tmp_path / "file").list_samples()
    assert "<folder>/<class>" in caught.value.expected


def test_circular_links_are_reported(tmp_path: Path, images: ModuleType) -> None:
    images.make_folder(tmp_path, {"a": 1})
    (tmp_path / "a" / "up").symlink_to("..")
    listing = ImageFolder(tmp_path).list_samples()
    assert _names(listing) == ["a/000.png"]
    assert str(tmp_path / "a" / "up") in listing.notices[0]
    (tmp_path / "a" / "up").unlink()
    (tmp_path / "a" / "loop.png").symlink_to("loop.png")
    source = ImageFolder(tmp_path)
    loop = source.list_samples().samples[1]
    with raises(rs.FileAccessError, path=tmp_path / "a/loop.png", operation="read") as caught:
        read_sample(source, loop)
    assert caught.value.errno == errno.ELOOP


def test_links_to_images_are_followed(tmp_path: Path, images: ModuleType) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "x").write_bytes(images.jpeg())
    (tmp_path / "root" / "a").mkdir(parents=True)
    (tmp_path / "root" / "a" / "x.jpg").symlink_to(tmp_path / "store" / "x")
    (tmp_path / "root" / "b").symlink_to(tmp_path / "store")
    source = ImageFolder(tmp_path / "root")
    listing = source.list_samples()
    assert _names(listing) == ["a/x.jpg", "b/x"]
    for sample in listing.samples:
        assert read_sample(source, sample)["image/encoded"] == images.jpeg()
        assert sample.size_bytes == len(images.jpeg())


def test_names_in_any_encoding(tmp_path: Path, images: ModuleType) -> None:
    for name in (b"caf\xe9", "日本".encode(), b"a b"):
        folder = os.path.join(os.fsencode(tmp_path), name)
        os.mkdir(folder)
        with open(os.path.join(folder, b"x\xff y.jpg"), "wb") as file:
            file.write(images.jpeg())
    source = ImageFolder(tmp_path)
    listing = source.list_samples()
    texts = {read_sample(source, sample)["image/class/text"] for sample in listing.samples}
    assert texts == {b"caf\xe9", "日本".encode(), b"a b"}
    for sample in listing.samples:
        features = read_sample(source, sample)
        name = features["image/class/text"] + b"/x\xff y.jpg"
        assert features["image/filename"] == name


def test_class_names_with_line_breaks_are_refused(tmp_path: Path, images: ModuleType) -> None:
    images.make_folder(tmp_path, {"a\nb": 1})
    with pytest.raises(rs.SourceError, match="line break"):
        ImageFolder(tmp_path).list_samples()


def test_image_that_vanished_after_the_listing(tmp_path: Path, images: ModuleType) -> None:
    source = ImageFolder(images.make_folder(tmp_path, {"a": 1}))
    listing = source.list_samples()
    (sample,) = listing.samples
    (tmp_path / sample.name).unlink()
    with raises(rs.FileAccessError, path=tmp_path / "a/000.png"):
        listing.reader.read(sample)
