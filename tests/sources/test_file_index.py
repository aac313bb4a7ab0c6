"""Names as annotations have them -> files; nothing outside of the folder is ever found."""

from __future__ import annotations

import itertools
import os
import posixpath
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.sources.files.account import Reason
from recordsmith.sources.files.file_index import (
    FOUND_BY_LAST_PART,
    FOUND_BY_OTHER_SPELLING,
    FOUND_WITH_SUFFIX,
    FileIndex,
    Found,
)
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.stores import Location, MemoryStore, as_folder, write_atomically

pytestmark = pytest.mark.posix  # a file name with a backslash


@pytest.fixture
def index(tmp_path: Path) -> FileIndex:
    root = tmp_path / "root"
    for name in (
        "images/a.jpg",
        "images/train/b.jpg",
        "images/val/b.jpg",
        "images/only.jpg",
        "images/Upper.JPG",
        "images/two.png",
        "images/two.jpg",
        "images/cafe\u0301.jpg",
        "images/back\\slash.jpg",
        "images/my photo.jpg",
        "images/50%20off.jpg",
        "annotations/a.xml",
        ".hidden/x.jpg",
        "images/.x.jpg",
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
    (tmp_path / "outside.jpg").write_bytes(b"x")
    return FileIndex(FileTree(as_folder(root)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.jpg", Found("images/a.jpg")),
        ("../images/a.jpg", Found("images/a.jpg")),
        ("./train/../a.jpg", Found("images/a.jpg")),
        ("back\\slash.jpg", Found("images/back\\slash.jpg")),
        ("my%20photo.jpg", Found("images/my photo.jpg", FOUND_BY_OTHER_SPELLING)),
        ("50 off.jpg", Found("images/50%20off.jpg", FOUND_BY_OTHER_SPELLING)),
        ("50%20off.jpg", Found("images/50%20off.jpg")),
        ("train\\b.jpg", Found("images/train/b.jpg", FOUND_BY_OTHER_SPELLING)),
        (r"C:\Users\me\only.jpg", Found("images/only.jpg", FOUND_BY_LAST_PART)),
        (r"C:\data\train\b.jpg", Found("images/train/b.jpg", FOUND_BY_LAST_PART)),
        ("/home/me/val/b.jpg", Found("images/val/b.jpg", FOUND_BY_LAST_PART)),
        ("/home/me/images/only.jpg", Found("images/only.jpg", FOUND_BY_LAST_PART)),
        ("upper.jpg", Found("images/Upper.JPG", FOUND_BY_OTHER_SPELLING)),
        ("caf\u00e9.jpg", Found("images/cafe\u0301.jpg", FOUND_BY_OTHER_SPELLING)),
        ("../../a.jpg", Found("images/a.jpg", FOUND_BY_LAST_PART)),
        ("b.jpg", ["images/train/b.jpg", "images/val/b.jpg"]),
        ("../../outside.jpg", []),
        ("../outside.jpg", []),
        (".x.jpg", []),
        ("", []),
        ("..", []),
        ("/", []),
        ("train", []),
    ],
)
def test_find(index: FileIndex, name: str, expected: object) -> None:
    assert index.find(name, ["images"]) == expected


def test_absolute_names_are_not_opened(index: FileIndex, tmp_path: Path) -> None:
    assert index.find(str(tmp_path / "outside.jpg"), [""]) == []
    inside = str(tmp_path / "root" / "images" / "a.jpg")
    assert index.find(inside, [""]) == Found("images/a.jpg", FOUND_BY_LAST_PART)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.png", Found("images/a.jpg", FOUND_WITH_SUFFIX)),
        ("a", Found("images/a.jpg", FOUND_WITH_SUFFIX)),
        ("UPPER", Found("images/Upper.JPG", FOUND_WITH_SUFFIX)),
        ("two.jpg", Found("images/two.jpg")),
        ("two", ["images/two.jpg", "images/two.png"]),
        ("a.b", []),
        ("a.xml", Found("annotations/a.xml")),
    ],
)
def test_find_image(index: FileIndex, name: str, expected: object) -> None:
    assert index.find_image(name, ["images"]) == expected


def test_nearest_to_what_names_it(index: FileIndex) -> None:
    assert index.find("b.jpg", [""], "images/val/list.txt") == Found("images/val/b.jpg")
    assert index.find("b.jpg", ["images/train"]) == Found("images/train/b.jpg")


FOLDERS = st.lists(st.sampled_from(["a", "A", "b", "c"]), max_size=4).map("/".join)


@given(
    st.sets(FOLDERS, min_size=1, max_size=12),
    st.lists(FOLDERS, max_size=3),
    st.lists(st.sampled_from(["..", "a", "b", "z"]), max_size=4).map("/".join),
    FOLDERS,
)
def test_the_best_of_all_files_with_a_name(
    folders: set[str], preferred: list[str], named: str, near: str
) -> None:
    """Compares every file with the name, which takes too long for a listing."""
    paths = [posixpath.join(folder, "x.png") for folder in folders]
    index = _index_of(paths)
    name = posixpath.join("/", named, "x.jpg")

    def rank(path: str) -> tuple[int, int, int]:
        folder = posixpath.dirname(path)
        inner = folder.casefold().split("/")[::-1] if folder else []
        outer = folder.split("/") if folder else []
        return (
            _equal_count(inner, posixpath.dirname(name).split("/")[::-1]),
            -preferred.index(folder) if folder in preferred else -len(preferred),
            _equal_count(outer, near.split("/") if near else []),
        )

    best = max(map(rank, paths))
    expected = sorted(path for path in paths if rank(path) == best)
    found = index.find_image(name, preferred, posixpath.join(near, "list.txt"))
    assert found == (Found(expected[0], FOUND_WITH_SUFFIX) if len(expected) == 1 else expected)


def test_of_very_many_equal_names_the_last_folder_decides() -> None:
    index = _index_of([f"images/{number}/x.jpg" for number in range(100)])
    assert index.find("/home/77/x.jpg", [""]) == Found("images/77/x.jpg", FOUND_BY_LAST_PART)
    assert len(index.find("x.jpg", [""], "images/77/list.txt")) == 100


def _index_of(paths: list[str]) -> FileIndex:
    root = Location(MemoryStore(), "root")
    for path in paths:
        write_atomically(root / path, b"")
    return FileIndex(FileTree(root))


def _equal_count(one: list[str], other: list[str]) -> int:
    """How many of the first parts are equal."""
    pairs = zip(one, other, strict=False)
    return len([*itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)])


def test_hidden_and_sizes(index: FileIndex) -> None:
    (hidden,) = index.account.left_out
    assert (hidden.kind, hidden.names) == (Reason.HIDDEN, [".hidden", "images/.x.jpg"])
    assert list(index.paths) == sorted(index.paths)
    assert len(index.paths) == 12
    time = Path(index.root / "images" / "a.jpg").stat().st_mtime_ns
    assert index.size_and_version("images/a.jpg") == (5, time)
    assert index.size_and_version("images/gone.jpg") == (0, 0)


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "x.jpg").touch()
    (tmp_path / "a" / "b" / "up").symlink_to("..")
    (tmp_path / "a" / "self.jpg").symlink_to("self.jpg")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "y.jpg").touch()
    (tmp_path / "a" / "link").symlink_to(tmp_path / "store")
    assert FileIndex(FileTree(as_folder(tmp_path / "a"))).paths == (
        "link/y.jpg",
        "self.jpg",
        "x.jpg",
    )


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(b"")
    (tmp_path / "gone.xml").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.xml")
    index = FileIndex(FileTree(as_folder(tmp_path)))
    assert index.paths == ("a.xml", "gone.xml")
    (pipe,) = index.account.left_out
    assert (pipe.kind, pipe.names, pipe.noun) == (Reason.OTHER_FILE, ["pipe.xml"], "special file")
