"""Class folders and any folders: which files are images, their classes, notices about others."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import ModuleType

import pytest

import recordsmith as rs
from recordsmith.sources import ImageFiles, ImageFolder, Listing, Source
from recordsmith.sources.class_folders.layout import find_candidates
from recordsmith.sources.files.file_tree import FileTree

from ..raising import raises
from ..reading import read_sample
from .source_contract import SourceContract, left_out


class TestContract(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:
        return ImageFolder(images.make_folder(folder, {"b b": 3, "a": 4, "é": 2}))


class TestContractOfSplits(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:
        for split in ("train", "test"):
            images.make_folder(folder / "set" / split, {"x": 2, "y": 1})
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
    assert listing.notices == ()


def test_features_agree_with_pillow(tmp_path: Path, images: ModuleType) -> None:
    odd = images.odd()
    for number, (name, data) in enumerate(odd.items()):
        folder = tmp_path / ("even" if number % 2 == 0 else "odd")
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)  # no suffix at all
    (tmp_path / "even" / "x.txt").write_bytes(odd[name])  # a wrong one
    source = ImageFolder(str(tmp_path))
    listing = source.list_samples()
    assert len(listing.samples) == len(odd) + 1
    assert listing.notices == ()
    for sample in listing.samples:
        data = odd.get(sample.name.partition("/")[2], odd[name])
        kind, height, width = images.size_by_pillow(data)
        assert read_sample(source, sample) == {
            "image/encoded": data,
            "image/format": kind,
            "image/height": height,
            "image/width": width,
            "image/filename": sample.name.encode(),
            "image/class/label": sample.label,
            "image/class/text": sample.name.partition("/")[0].encode(),
        }


@pytest.mark.posix
def test_a_file_named_like_an_image_that_is_none_is_an_error(
    tmp_path: Path, images: ModuleType
) -> None:
    images.make_folder(tmp_path, {"a": 1})
    for name in ("words.jpg", "words.PNG", "empty.gif"):
        (tmp_path / "a" / name).write_text("" if "empty" in name else "words, no image")
    (tmp_path / "a" / "gone.jpg").symlink_to("nowhere")
    (tmp_path / "a" / "loop.png").symlink_to("loop.png")
    source = ImageFolder(tmp_path)
    listing = source.list_samples()
    assert listing.notices == ()
    for sample in listing.samples[1:]:
        with pytest.raises((rs.CorruptDataError, rs.FileAccessError)) as caught:
            read_sample(source, sample)
        assert caught.value.path == str(tmp_path / sample.name)
        if sample.name == "a/loop.png":
            assert getattr(caught.value, "errno", None) == errno.ELOOP
        elif sample.name != "a/gone.jpg":
            assert getattr(caught.value, "defect", None) is rs.Defect.UNREADABLE_IMAGE


@pytest.mark.posix
def test_skipped_files_are_noticed(tmp_path: Path, images: ModuleType) -> None:
    image = images.encode(images.noise(3, 2), "PNG")
    images.make_folder(tmp_path, {"a": 1, "b": 1})
    skipped = {
        "a/README.txt": b"words",
        "a/.hidden.png": image,
        "a/nothing": b"",
        "outside.png": image,
        "LICENSE": b"words",
        ".DS_Store": b"x",
    }
    for folder in ("a/deeper", "empty class", ".git"):
        (tmp_path / folder).mkdir()
    for name, data in skipped.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "a" / "deeper" / "x.png").write_bytes(image)
    (tmp_path / "a" / "dangling.txt").symlink_to("nowhere")
    (tmp_path / "a" / "up").symlink_to("..")
    os.mkfifo(tmp_path / "b" / "pipe.png")
    listing = ImageFolder(tmp_path).list_samples()
    assert _names(listing) == ["a/000.png", "b/000.png"]
    assert listing.class_names == ("a", "b")
    assert left_out(listing) == {
        "hidden": [".DS_Store", ".git", "a/.hidden.png"],
        "links to folders, not followed": ["a/up"],
        "not images": ["a/dangling.txt", "a/nothing", "b/pipe.png"],
        "documentation or programs": ["LICENSE", "a/README.txt"],
        "outside what is read": ["a/deeper/x.png", "outside.png"],
    }
    assert [notice for notice in listing.notices if "empty class" in notice]
    assert len(listing.notices) == 1 + len(listing.account.left_out)


def test_what_is_next_to_the_only_folder_with_images_is_noticed(
    tmp_path: Path, images: ModuleType
) -> None:
    images.make_folder(tmp_path / "flower_photos", {"daisy": 2, "rose": 1})
    (tmp_path / "flower_photos" / "LICENSE.txt").touch()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "words.pdf").touch()
    listing = ImageFolder(tmp_path).list_samples()
    assert listing.class_names == ("daisy", "rose")
    documents = ["docs/words.pdf", "flower_photos/LICENSE.txt"]
    assert left_out(listing) == {"documentation or programs": documents}
    given = ImageFolder(tmp_path, images="flower_photos").list_samples()
    assert (given.samples, given.notices) == (listing.samples, listing.notices)


@pytest.mark.parametrize("max_folders", range(1, 12))
def test_splits_beyond_the_summary_of_a_folder(
    tmp_path: Path, images: ModuleType, max_folders: int
) -> None:
    """The detector scans at most 20,000 folders; the others are listed all the same."""
    for split in ("test", "train", "val"):
        images.make_folder(tmp_path / split, {"a": 1, "b": 1, "c": 1})
    source = ImageFolder(tmp_path)
    source.use_tree(FileTree(source.root, max_folders))
    assert source.list_samples() == ImageFolder(tmp_path).list_samples()
    candidates = [*find_candidates(FileTree(source.root, max_folders))]
    assert not candidates or candidates[0].what == rs.detect(tmp_path).reading.what


def test_classes_that_are_named_like_splits_are_noticed(tmp_path: Path, images: ModuleType) -> None:
    images.make_folder(tmp_path, {"train": 1, "test": 1})
    (notice,) = ImageFolder(tmp_path).list_samples().notices
    assert "test and train" in notice


def test_folders_of_splits(tmp_path: Path, images: ModuleType) -> None:
    for split, classes in {"test": {"b": 1}, "train": {"a": 2, "b": 1}, "Val": {"c": 1}}.items():
        images.make_folder(tmp_path / split, classes)
    (tmp_path / "train" / "notes.txt").write_text("x")
    source = ImageFolder(tmp_path)
    listing = source.list_samples()
    assert listing.splits == ("train", "Val", "test")
    assert listing.class_names == ("a", "b", "c")
    assert [(s.name.rpartition("/")[0], s.label, s.split) for s in listing.samples] == [
        ("train/a", 0, "train"),
        ("train/a", 0, "train"),
        ("train/b", 1, "train"),
        ("Val/c", 2, "Val"),
        ("test/b", 1, "test"),
    ]
    assert [notice for notice in listing.notices if "notes.txt" in notice]
    out = tmp_path.parent / f"{tmp_path.name}-out"
    with raises(rs.OptionError, option="splits", value={"x": 1.0}):
        rs.pack(source, out, splits={"x": 1.0})
    report = rs.pack(source, out, splits={"x": 0.5, "y": 0.5}, resplit=["train", "Val"])
    assert report.splits == {"x": 2, "y": 2, "test": 1}
    assert [n for n in report.notices if "train and Val" in n and "x and y" in n]


SPLIT_NAMES = [
    *(("train", "val"), ("train_images", "val_images"), ("WIDER_train", "WIDER_val")),
    *(("seg_train/seg_train", "seg_val/seg_val"), ("set/trainSet", "set/valSet")),
    *(("x/train/train", "x/val/val"), ("WIDER_train/images", "WIDER_val/images")),
]
STRAYS = ["", "preview.png", "docs/fig.png", "IN_TRAIN/sheet.png", "README.md"]


@pytest.mark.parametrize("stray", STRAYS)
@pytest.mark.parametrize("folders", SPLIT_NAMES)
def test_splits_stay_whatever_single_files_are_next_to_them(
    tmp_path: Path, images: ModuleType, folders: tuple[str, str], stray: str
) -> None:
    for folder in folders:
        images.make_folder(tmp_path / folder, {"b": 6, "a": 5})
    path = stray.replace("IN_TRAIN", folders[0])
    if path:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(images.encode(images.noise(3, 2), "PNG"))
    detection = rs.detect(tmp_path)
    assert detection.reading.format == "folder"
    listing = detection.source.list_samples()
    assert (listing.splits, listing.class_names) == (("train", "val"), ("a", "b"))
    for split in ("train", "val"):
        labels = [sample.label for sample in listing.samples if sample.split == split]
        assert labels == [0] * 5 + [1] * 6
    assert sorted(name for names in left_out(listing).values() for name in names) == [path] * bool(
        path
    )


@pytest.mark.parametrize(
    "names", [("bus", "car", "train"), ("bullet_train", "steam_train"), ("train", "tram")]
)
def test_classes_named_like_splits_stay_classes(
    tmp_path: Path, images: ModuleType, names: tuple[str, ...]
) -> None:
    images.make_folder(tmp_path, dict.fromkeys(names, 4))
    listing = rs.detect(tmp_path).source.list_samples()
    assert (listing.splits, listing.class_names) == ((), names)


@pytest.mark.parametrize(
    ("names", "classes", "other"),
    [
        ([str(n) for n in range(12)], [str(n) for n in range(12)], 0),
        ([str(n) for n in range(1, 13)], [str(n) for n in range(1, 13)], 12),
        (["000", "001", "010", "002"], ["000", "001", "002", "010"], 1),
        (["9", "10", "100"], ["9", "10", "100"], 3),
        (["1", "01", "2"], ["01", "1", "2"], 1),
        (["10", "9", "x"], ["10", "9", "x"], 0),
        (["-1", "-2", "10"], ["-1", "-2", "10"], 0),
        (["٣", "10", "2"], ["10", "2", "٣"], 0),
    ],
)
def test_numbers_are_ordered_as_numbers(
    tmp_path: Path, images: ModuleType, names: list[str], classes: list[str], other: int
) -> None:
    """`other`: how many classes have another number than their label."""
    images.make_folder(tmp_path, dict.fromkeys(names, 1))
    listing = ImageFolder(tmp_path).list_samples()
    assert listing.class_names == tuple(classes)
    labels = {sample.name.partition("/")[0]: sample.label for sample in listing.samples}
    assert labels == {name: label for label, name in enumerate(classes)}
    assert len(listing.notices) == (other > 0)
    for notice in listing.notices:
        pairs = [(c, n) for n, c in enumerate(classes) if (c.lstrip("0") or "0") != str(n)]
        assert len(pairs) == other
        assert all(f"{name} has label {label}" in notice for name, label in pairs[:3])
    numbers = ImageFiles(tmp_path, class_pattern="^([^/]+)/").list_samples()
    assert numbers.class_names == tuple(classes)


def test_a_label_map_gives_numbers_another_order(tmp_path: Path, images: ModuleType) -> None:
    images.make_folder(tmp_path / "in", {"1": 1, "2": 1, "10": 1})
    items = "".join(
        f"item {{ id: {label} name: '{name}' }}\n"
        for label, name in ((1, "1"), (2, "10"), (3, "2"))
    )
    (tmp_path / "as_text.pbtxt").write_text(items)
    listing = ImageFolder(tmp_path / "in", label_map=tmp_path / "as_text.pbtxt").list_samples()
    assert listing.class_names == (None, "1", "10", "2")
    assert {s.name.partition("/")[0]: s.label for s in listing.samples} == {
        "1": 1,
        "10": 2,
        "2": 3,
    }


def test_one_class_folder_is_not_nesting(tmp_path: Path, images: ModuleType) -> None:
    images.make_folder(tmp_path, {"only": 2})
    (tmp_path / "only" / "below").mkdir()
    assert ImageFolder(tmp_path).list_samples().class_names == ("only",)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["a.png", "b.png"], r"outside class folders: .*a\.png and .*b\.png"),
        (
            ["spring/daisy/a.png", "spring/rose/a.png", "autumn/daisy/a.png"],
            r"deeper folders.* Pack .*/autumn or .*/spring instead",
        ),
        (["a/words.txt", "b/words.txt"], "found folders without images: a and b"),
        (["words.txt"], r"found only .*words\.txt"),
        ([], "the folder is empty"),
    ],
)
def test_wrong_nesting_shows_what_was_found_and_expected(
    tmp_path: Path, images: ModuleType, names: list[str], found: str
) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(images.jpeg() if name.endswith("png") else b"words")
    with raises(rs.SourceError, path=tmp_path, match=found) as caught:
        ImageFolder(tmp_path).list_samples()
    assert f"{tmp_path}/<class>/<image>" in str(caught.value)


def test_missing_folder_and_file_instead_of_folder(tmp_path: Path) -> None:
    with raises(rs.FileAccessError, path=tmp_path / "missing"):
        ImageFolder(tmp_path / "missing").list_samples()
    (tmp_path / "file").touch()
    with raises(rs.OptionError, value=tmp_path / "file", match="is a file") as caught:
        ImageFolder(tmp_path / "file").list_samples()
    assert "<folder>/<class>" in caught.value.expected
    with raises(rs.OptionError, option="images", match="outside"):
        ImageFolder(tmp_path, images=tmp_path.parent)


@pytest.mark.posix
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


@pytest.mark.posix
def test_names_in_any_encoding(tmp_path: Path, images: ModuleType) -> None:
    names = (b"caf\xe9", "日本".encode(), b"a b")
    for name in names:
        folder = os.path.join(os.fsencode(tmp_path), name)
        os.mkdir(folder)
        with open(os.path.join(folder, b"x\xff y.jpg"), "wb") as file:
            file.write(images.jpeg())
    source = ImageFolder(tmp_path)
    found = [read_sample(source, sample) for sample in source.list_samples().samples]
    assert {features["image/class/text"] for features in found} == {*names}
    for features in found:
        assert features["image/filename"] == features["image/class/text"] + b"/x\xff y.jpg"


@pytest.mark.posix
def test_class_names_with_line_breaks_are_refused(tmp_path: Path, images: ModuleType) -> None:
    images.make_folder(tmp_path, {"a\nb": 1})
    with pytest.raises(rs.SourceError, match="line break"):
        ImageFolder(tmp_path).list_samples()


# -- any folders, with classes from names ---------------------------------------------------------


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


def test_splits_of_any_folders(tmp_path: Path, images: ModuleType) -> None:
    _fill(tmp_path, ["val/a.jpg", "train/x/b.jpg"], images.jpeg())
    listing = ImageFiles(tmp_path).list_samples()
    assert listing.splits == ("train", "val")
    assert [sample.split for sample in listing.samples] == ["train", "val"]
    _fill(tmp_path, ["c.jpg"], images.jpeg())  # a single one is left out
    listing = ImageFiles(tmp_path).list_samples()
    assert listing.splits == ("train", "val")
    assert left_out(listing) == {"outside what is read": ["c.jpg"]}
    _fill(tmp_path, ["d.jpg"], images.jpeg())
    assert ImageFiles(tmp_path).list_samples().splits == ()


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
