"""A missing image, or one that is left out, is not replaced by a file of the same name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.raising import raises

import recordsmith as rs
from recordsmith.sources import Coco, Listing, Table, Voc, Yolo
from recordsmith.sources.files.file_index import (
    FOUND_OUTSIDE,
    FileIndex,
    Found,
    LeftOut,
    Match,
    Namesake,
)
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.files.namesakes import without_namesakes
from recordsmith.stores import Location, MemoryStore, as_folder, write_atomically

from .annotated import coco, image, problems_of, read, voc, write

BOX = ("cat", 4, 5, 14, 15)
ROW = "0 0.5 0.5 0.2 0.2"


def _matches(
    files: str, names: Sequence[str], folders: Sequence[str], leave_out: Sequence[str] = ()
) -> list[Match]:
    root = Location(MemoryStore(), "root")
    for path in files.split():
        write_atomically(root / path, b"")
    index = FileIndex(FileTree(root, leave_out=leave_out))
    found = [(name, index.find_image(name, folders)) for name in names]
    return without_namesakes(index, found, folders)


@pytest.mark.parametrize(
    ("files", "names", "last"),
    [
        # their folders are known
        ("a/1.jpg b/2.jpg", "a/1.jpg a/2.jpg", Namesake("b/2.jpg")),
        ("a/1.jpg b/2.jpg", "a/1.jpg c/2.jpg", "b/2.jpg"),  # a renamed folder
        ("a/i/1.jpg b/i/2.jpg", "a/i/1.jpg a/i/2.jpg", Namesake("b/i/2.jpg")),
        ("a/1.jpg b/2.jpg", "/x/a/1.jpg /x/a/2.jpg", Namesake("b/2.jpg")),
        ("a/1.jpg b/2.jpg", r"C:\x\a\1.jpg C:\x\a\2.jpg", Namesake("b/2.jpg")),
        ("A/1.jpg b/2.jpg", "../a/1.jpg ../a/2.jpg", Namesake("b/2.jpg")),
        ("a/1.jpg b/2.jpg", "a/1.jpg b/2.jpg", "b/2.jpg"),
        ("a/1.jpg x/a/2.jpg", "a/1.jpg a/2.jpg", "x/a/2.jpg"),
        ("a/1.jpg 2.jpg", "/x/a/1.jpg /x/2.jpg", "2.jpg"),
        ("a/1.jpg a/2.jpg", "/x/a/1.jpg /x/2.jpg", "a/2.jpg"),
        ("a/1.jpg b/2.jpg", "a/1.jpg 2.jpg", "b/2.jpg"),
        ("a/1.jpg b/2.jpg", "a/1.jpg /y/2.jpg", "b/2.jpg"),
        # likely folders
        ("images/1.jpg b/2.jpg", "1.jpg 2.jpg", "b/2.jpg"),
        ("images/1.jpg b/2.jpg", "/x/1.jpg /x/2.jpg", "b/2.jpg"),
        ("images/1.jpg images/b/2.jpg", "1.jpg 2.jpg", "images/b/2.jpg"),
        ("images/1.jpg image/2.jpg", "1.jpg 2.jpg", "image/2.jpg"),
        ("images/1.jpg b/2.jpg", "/x/1.jpg /y/2.jpg", "b/2.jpg"),
        ("train/1.jpg val/2.jpg", "1.jpg 2.jpg", "val/2.jpg"),
        # copies
        ("images/1.jpg images/b/1.jpg images/b/2.jpg", "1.jpg 2.jpg", Namesake("images/b/2.jpg")),
        ("images/1.jpg image/1.jpg image/2.jpg", "1.jpg 2.jpg", Namesake("image/2.jpg")),
        ("images/1.jpg images/2.jpg b/2.jpg b/3.jpg b/4.jpg", "1.jpg 2.jpg 3.jpg 4.jpg", "b/4.jpg"),
        ("images/1.jpg image/1.png image/2.png", "1.jpg 2.jpg", Namesake("image/2.png")),
        ("images/1.jpg image/1.png image/2.png", "1 2", Namesake("image/2.png")),
        ("images/1.jpg image/1.png", "1.jpg 1.png", "image/1.png"),
        ("images/1.jpg image/2.jpg", "1 2", "image/2.jpg"),
        ("train/0.jpg train/1.jpg val/0.jpg val/2.jpg", "0.jpg 1.jpg 2.jpg", "val/2.jpg"),
    ],
)
def test_where_the_other_images_are(files: str, names: str, last: Namesake | str) -> None:
    match = _matches(files, names.split(), ["images", "image"])[-1]
    assert (match.path if isinstance(match, Found) else match) == last


@pytest.mark.parametrize(
    ("left_out", "names", "expected"),
    [
        ("a/1.jpg", "a/1.jpg", [LeftOut("a/1.jpg")]),
        ("a", "a/1.jpg a/2.jpg", [LeftOut("a/1.jpg"), Namesake("b/2.jpg")]),
        ("a", "/x/a/1.jpg", [LeftOut("a/1.jpg")]),
        ("images", "3.jpg", [LeftOut("images/3.jpg")]),
        ("a b", "1.jpg", [LeftOut("a/1.jpg")]),
        ("b", "1.jpg", [Found("a/1.jpg")]),  # or there would be two
        ("b/3.jpg", "images/3.jpg b/3.jpg", [Found("images/3.jpg"), LeftOut("b/3.jpg")]),
        ("b/2.jpg", "a/1.jpg a/2.jpg", [Found("a/1.jpg"), Namesake("b/2.jpg")]),
        ("a/1.jpg", "1.jpg", [LeftOut("a/1.jpg")]),  # not the copy of equal rank
    ],
)
def test_images_that_are_left_out(left_out: str, names: str, expected: list[Match]) -> None:
    files = "a/0.jpg a/1.jpg b/1.jpg b/2.jpg images/3.jpg b/3.jpg 3.jpg"
    assert _matches(files, names.split(), ["images", ""], left_out.split()) == expected


def test_many_copies_that_are_left_out() -> None:
    files = " ".join(f"copies/{number}/7.jpg" for number in range(70))
    assert len(_matches(files, ["7.jpg"], [""], ["copies"])) == 1
    assert isinstance(_matches(files, ["7.jpg"], [""], ["copies"])[0], LeftOut)
    assert _matches(f"{files} x/7.jpg", ["7.jpg"], [""], ["copies"]) == [Found("x/7.jpg")]


def _of(listing: Listing) -> tuple[list[str], list[str]]:
    """The names of the samples, and the notices."""
    return [sample.name for sample in listing.samples], [*map(str, listing.notices)]


def _left_out(root: Path, format: Any, *patterns: str) -> tuple[list[str], list[str]]:
    detection = rs.detect(root, format=format, leave_out=patterns)
    return _of(detection.source.list_samples())


def _outside(source: Coco | Voc, folder: Path) -> list[str]:
    """The images that a notice names as outside of the folder of the others."""
    notes = rs.pack(source, folder.with_name(f"{folder.name}_packed")).notes
    return [place.rpartition("used ")[2] for place in notes[FOUND_OUTSIDE].places]


def test_a_file_about_many_images(tmp_path: Path) -> None:
    for path in ("images/a.jpg", "images/b.jpg", "other/c.jpg"):
        image(tmp_path / path)
    item = {"category_id": 1, "bbox": [4, 5, 10, 10]}
    coco(tmp_path / "x.json", {f"{name}.jpg": [item] for name in "abc"}, {1: "cat"})
    names, _ = _of(Coco(tmp_path).list_samples())
    assert names == ["images/a.jpg", "images/b.jpg", "other/c.jpg"]
    assert _outside(Coco(tmp_path), tmp_path) == ["other/c.jpg"]
    names, notices = _left_out(tmp_path, "coco", "images/b.jpg")
    assert names == ["images/a.jpg", "other/c.jpg"]
    assert "1 annotated image left out" in notices
    image(tmp_path / "images" / "c.jpg")
    with raises(rs.SourceError, path=tmp_path, match="all 3 annotated images are left out"):
        _left_out(tmp_path, "coco", "images")
    for name in "ab":
        image(tmp_path / "other" / f"{name}.jpg")
    (tmp_path / "images" / "c.jpg").unlink()
    with raises(rs.SourceError, match="other/c.jpg has the same name"):  # a folder of copies
        read(Coco(tmp_path), 2)


def test_a_file_for_each_image(tmp_path: Path) -> None:
    voc(tmp_path, {name: [BOX] for name in "abc"})
    image(tmp_path / "Drawn" / "a.jpg")
    (tmp_path / "JPEGImages" / "a.jpg").unlink()
    assert _outside(Voc(tmp_path), tmp_path) == ["Drawn/a.jpg"]
    for name in "bc":
        image(tmp_path / "Drawn" / f"{name}.jpg")
    (problem,) = problems_of(Voc(tmp_path))
    assert "Drawn/a.jpg has the same name" in problem
    image(tmp_path / "JPEGImages" / "a.jpg")
    names, notices = _left_out(tmp_path, "voc", "JPEGImages/b.jpg")
    assert names == ["JPEGImages/a.jpg", "JPEGImages/c.jpg"]
    assert any("1 annotation file of images that are left out" in text for text in notices)
    with raises(rs.SourceError, path=tmp_path, match="all 3 annotated images are left out"):
        _left_out(tmp_path, "voc", "JPEGImages")


@pytest.mark.parametrize("path", ["Main/train.txt", "Main/cat_train.txt"])
def test_lists_of_images(tmp_path: Path, path: str) -> None:
    voc(tmp_path, {name: [BOX] for name in "abc"})
    mark = "  1" if "_" in path else ""
    write(tmp_path / "ImageSets" / path, "".join(f"{stem}{mark}\n" for stem in "abc"))
    for name in "abc":
        image(tmp_path / "Drawn" / f"{name}.jpg")
    names, notices = _left_out(tmp_path, "voc", "JPEGImages/b.*", "Annotations/b.*")
    assert names == ["JPEGImages/a.jpg", "JPEGImages/c.jpg"]
    assert "1 listed image left out" in notices
    for file in ("JPEGImages/b.jpg", "Annotations/b.xml"):
        (tmp_path / file).unlink()
    (problem,) = problems_of(Voc(tmp_path), 1)
    assert "Drawn/b.jpg has the same name" in problem


def test_listed_names_that_end_like_marks(tmp_path: Path) -> None:
    voc(tmp_path, {name: [BOX] for name in ("cat 0", "cat 1", "cat 2")})
    write(tmp_path / "ImageSets" / "Main" / "train.txt", "cat 0\ncat 1\n")
    names, _ = _of(Voc(tmp_path).list_samples())
    assert names == ["JPEGImages/cat 0.jpg", "JPEGImages/cat 1.jpg"]


def test_comments_before_the_first_element(tmp_path: Path) -> None:
    voc(tmp_path, {name: [BOX] for name in "ab"})
    for path in (tmp_path / "Annotations").iterdir():
        path.write_text("<!-- by <a@x.org>, - <object> -->" + path.read_text())
    assert rs.detect(tmp_path).reading.format == "voc"


def test_a_folder_of_images_is_listed_without_those_around_it(tmp_path: Path) -> None:
    image(tmp_path / "photos" / "0.jpg")
    tree = FileTree(as_folder(tmp_path))
    below = tree.below("photos")
    assert "folders" not in vars(tree)
    assert [entry.name for entry in below.entries(below.root)] == ["0.jpg"]


def test_lists_of_yolo(tmp_path: Path) -> None:
    write(tmp_path / "obj.data", "classes = 1\ntrain = train.txt\nnames = obj.names\n")
    write(tmp_path / "obj.names", "cat\n")
    write(tmp_path / "train.txt", "data/a.jpg\ndata/b.jpg\ndata/c.jpg\n")
    for path in ("data/a", "data/b", "other/c"):
        image(tmp_path / f"{path}.jpg")
        write(tmp_path / f"{path}.txt", ROW)
    (problem,) = problems_of(Yolo(tmp_path), 2)
    assert "other/c.jpg has the same name" in problem
    names, notices = _left_out(tmp_path, "yolo", "b.jpg")
    assert names == ["data/a.jpg", "train.txt/3"]
    assert "1 listed image left out" in notices
    with raises(rs.SourceError, match="all 2 listed images are left out"):
        write(tmp_path / "train.txt", "data/a.jpg\ndata/b.jpg\n")
        _left_out(tmp_path, "yolo", "data/*.jpg")


def test_a_label_file_of_an_image_that_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "classes.txt", "cat\n")
    for path in ("images/a", "images/b", "other/b"):
        image(tmp_path / f"{path}.jpg")
        write(tmp_path / "labels" / f"{path[-1]}.txt", ROW)
    detection = rs.detect(tmp_path, "yolo", leave_out="images/b.jpg")
    (problem,) = problems_of(detection.source, 1)
    assert "other/b.jpg and of images/b.jpg" in problem
    names, _ = _left_out(tmp_path, "yolo", "b.jpg")
    assert names == ["images/a.jpg"]


@pytest.mark.parametrize(("copy", "is_found"), [("a.png", False), ("c.png", True)])
def test_rows(tmp_path: Path, copy: str, is_found: bool) -> None:
    for path in ("a.png", f"more/{copy}", "more/b.png"):
        image(tmp_path / "images" / path)
    table = write(tmp_path / "t.csv", "file,n\na.png,1\nb.png,2\n")
    listing = Table(table, image_column="file", images=tmp_path / "images").list_samples()
    assert any("1 row without an image" in str(text) for text in listing.notices) != is_found
