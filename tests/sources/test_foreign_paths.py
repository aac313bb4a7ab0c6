"""Paths of other machines: seen for what they are, and cut to what may be here."""

from __future__ import annotations

import pytest

from recordsmith.sources.files.paths import is_absolute, leaves_folder, path_endings, with_slashes


def test_windows_paths_get_slashes() -> None:
    assert with_slashes(r"C:\data\x.jpg") == "C:/data/x.jpg"
    assert with_slashes(r"train\x.jpg") == "train/x.jpg"
    assert with_slashes("a/x.jpg") == "a/x.jpg"


@pytest.mark.parametrize(
    ("path", "absolute", "out"),
    [
        ("a/b.jpg", False, False),
        ("a/../b.jpg", False, False),
        ("..a/b.jpg", False, False),
        ("C:b.jpg", False, False),
        ("/a/b.jpg", True, True),
        ("//server/a/b.jpg", True, True),
        ("C:/a/b.jpg", True, True),
        ("../b.jpg", False, True),
        ("a/../../b.jpg", False, True),
        ("..", False, True),
    ],
)
def test_paths_that_leave_the_folder(path: str, absolute: bool, out: bool) -> None:
    assert (is_absolute(path), leaves_folder(path)) == (absolute, out)


def test_tails() -> None:
    assert list(path_endings("C:/a/./b//x.jpg")) == ["a/b/x.jpg", "b/x.jpg", "x.jpg"]
    assert list(path_endings("/a/../b/x.jpg")) == ["b/x.jpg", "x.jpg"]
    assert list(path_endings("../..")) == []
