"""Numbers, sizes and names as people read them."""

from __future__ import annotations

from typing import Any

import pytest

from recordsmith.support import words


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0, "shard"), "0 shards"),
        ((1, "shard"), "1 shard"),
        ((2569, "shard"), "2,569 shards"),
        ((1, "class", "classes"), "1 class"),
        ((2, "class", "classes"), "2 classes"),
    ],
)
def test_count(arguments: Any, expected: str) -> None:
    assert words.count(*arguments) == expected


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, "a and 3 more"),
        (3, "a, b, c and 1 more"),
        (4, "a, b, c, d"),
        (5, "a, b, c, d"),
    ],
)
def test_first_of(most: int, expected: str) -> None:
    assert words.first_of("abcd", most) == expected


@pytest.mark.parametrize(
    ("sequences", "expected"),
    [
        ([], ""),
        (["a/b"], "a/b"),
        (["a/bc", "a/b", "a/d"], "a/"),
        (["a", ""], ""),
        ([["a", "bc"], ["a", "bd"]], ["a"]),
    ],
)
def test_common_prefix(sequences: Any, expected: Any) -> None:
    assert words.common_prefix(sequences) == expected


@pytest.mark.parametrize(
    ("size_bytes", "expected"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (2, "2 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (999_900, "999.9 kB"),
        (999_950, "1.0 MB"),
        (45_900_000, "45.9 MB"),
        (10**15, "1.0 PB"),
        (10**19, "10000.0 PB"),
    ],
)
def test_size(size_bytes: int, expected: str) -> None:
    assert words.size(size_bytes) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("größe 花", "größe 花"), ("a\nb", r"a\nb"), ("\x1b[2J\u202e\udcff", r"\x1b[2J\u202e\udcff")],
)
def test_printable(text: str, expected: str) -> None:
    assert words.printable(text) == expected


@pytest.mark.parametrize(
    ("typed", "known", "similar"),
    [
        ("verfy", ["pack", "verify"], "verify"),
        ("theads", ["threads", "check-images"], "threads"),
        ("lable", ["label", "image"], "label"),
        ("trian", ["train", "test"], "train"),
        ("colors", ["colours"], "colours"),
        ("catt", ["dog", "cat"], "cat"),
        ("imgs", ["images", "masks"], "images"),
        ("flower", ["flowers", "other"], "flowers"),
        ("version", ["verify", "inspect"], None),
        ("test", ["text", "train"], None),
        ("cat", ["bat", "car"], None),
        ("nothing", ["other", "nested"], None),
        ("detach", ["detect", "edit"], None),
        ("pakc", ["detect", "pack"], "pack"),
        ("YOLO", ["voc", "yolo"], "yolo"),
        ("train", ["Train", "test"], "Train"),
        ("", ["a"], None),
        ("", ["a", ""], None),
    ],
)
def test_only_near_names_are_suggested(typed: str, known: list[str], similar: str | None) -> None:
    assert words.similar_name(typed, known) == similar


@pytest.mark.parametrize(
    ("number", "sentence", "text"),
    [
        (41, "JPEGs are progressive, slow", "41 JPEGs are progressive, slow"),
        (1, "JPEGs are progressive, slow", "1 JPEG is progressive, slow"),
        (1, "boxes were clipped to their image", "1 box was clipped to its image"),
        (1, "images have another size; skipped", "1 image has another size; skipped"),
        (1, "masks lost their alpha channel", "1 mask lost its alpha channel"),
        (2000, "features occur in two members", "2,000 features occur in two members"),
        (1, "features occur in two members", "1 feature occurs in two members"),
        (1, "boxes of tags were lost", "1 box of tags was lost"),
        (1, "keys without names are left out", "1 key without names is left out"),
        (1, "anything else", "1 anything else"),
    ],
)
def test_notes_agree_with_their_count(number: int, sentence: str, text: str) -> None:
    assert words.note_text(number, sentence) == text


def test_long_texts_keep_their_end() -> None:
    assert words.shortened("photos/" + "deep/" * 40 + "0.jpg", 20) == "photos/de…deep/0.jpg"
