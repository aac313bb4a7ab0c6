from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.exporting.safe_names import TakenNames, safe_part, safe_parts

RESERVED = {
    *("con", "prn", "aux", "nul"),
    *(f"{name}{number}" for name in ("com", "lpt") for number in range(1, 10)),
}
NASTY = st.text(st.sampled_from("ab./\\:~ \0\n\x7f\udc80%é\u0301IİßKk-2"), max_size=12)


def is_safe(part: str) -> bool:
    """An independent check for names valid on Windows, macOS and Linux."""
    return (
        0 < len(part.encode()) <= 255
        and not re.search(r'[\x00-\x1f\x7f-\x9f<>:"/\\|?*\ud800-\udfff]', part)
        and part[-1] not in ". "
        and part[0] != "."
        and part.partition(".")[0].strip().lower() not in RESERVED
    )


@given(st.text() | NASTY)
def test_any_text_becomes_a_safe_part(text: str) -> None:
    part = safe_part(text)
    assert is_safe(part)
    assert safe_part(part) == part


@given(st.text() | NASTY)
def test_any_name_stays_inside(name: str) -> None:
    parts = safe_parts(name)
    assert parts
    assert all(map(is_safe, parts))
    assert len("/".join(parts).encode()) < 1000


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a.jpg", ("a.jpg",)),
        ("cat/0 1.jpg", ("cat", "0 1.jpg")),
        ("Ölbild 花.jpg", ("Ölbild 花.jpg",)),
        ("../../x", ("x",)),
        ("a/../b/./x", ("a", "b", "x")),
        ("/etc/passwd", ("passwd",)),
        ("\\\\host\\share\\x.png", ("x.png",)),
        ("C:\\Users\\me\\y.jpg", ("y.jpg",)),
        ("C:y.jpg", ("y.jpg",)),
        ("cat\\1.jpg", ("cat", "1.jpg")),
        ("NUL.txt", ("_NUL.txt",)),
        ("con", ("_con",)),
        ("aux .jpg", ("_aux .jpg",)),
        ("console.jpg", ("console.jpg",)),
        ("name. . ", ("name",)),
        ("10:30.jpg", ("10_30.jpg",)),
        ("a\x00b\nc\udcff.jpg", ("a_b_c_.jpg",)),
        ("gpj.\u202eexe", ("gpj._exe",)),
        (".hidden.jpg", ("_hidden.jpg",)),
        ("", ("_",)),
        ("..", ("_",)),
        ("/", ("_",)),
        ("v1.jpg/x.jpg", ("v1.jpg_", "x.jpg")),
        ("a/" * 1000 + "x.jpg", ("x.jpg",)),
    ],
)
def test_known_names(name: str, parts: tuple[str, ...]) -> None:
    assert safe_parts(name) == parts


def test_a_long_name_keeps_its_suffix_and_whole_characters() -> None:
    part = safe_part("花" * 200 + ".jpeg")
    assert part.endswith("花.jpeg")
    assert 250 < len(part.encode()) <= 255
    assert len(safe_part("x" * 3000).encode()) == 255


FILES = [("images", ".jpg"), ("labels", ".txt")]


def test_taken_names_get_numbers() -> None:
    taken = TakenNames()
    names = [taken.take((name,), FILES) for name in ("a", "a", "A", "a-2", "b")]
    assert names == [("a",), ("a-2",), ("A-3",), ("a-2-4",), ("b",)]


def test_other_normalizations_of_a_name_are_taken() -> None:
    taken = TakenNames()
    composed, decomposed = unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")
    assert taken.take((composed,), FILES) == (composed,)
    assert taken.take((decomposed,), FILES) == (f"{decomposed}-2",)
    assert taken.take(("STRASSE",), FILES) == ("STRASSE",)
    assert taken.take(("straße",), FILES) == ("straße-3",)


def test_one_taken_companion_file_changes_the_name() -> None:
    taken = TakenNames()
    taken.take(("a",), [("images", ".png"), ("labels", ".txt")])
    assert taken.take(("a",), [("images", ".jpg")]) == ("a",)
    assert taken.take(("a",), [("images", ".gif"), ("labels", ".txt")]) == ("a-2",)
    assert taken.take(("a",), [("elsewhere", ".png")]) == ("a",)


def test_numbers_fit_into_long_names() -> None:
    taken = TakenNames()
    names = {taken.take(("x" * 255,), FILES)[0] for _ in range(120)}
    assert len(names) == 120
    assert all(len(f"{name}.jpg") <= 255 for name in names)


@given(st.lists(NASTY, max_size=30))
def test_names_are_unique(wanted: list[str]) -> None:
    taken = TakenNames()
    given_names = ["/".join(taken.take(safe_parts(name), FILES)) for name in wanted]
    assert len({name.casefold() for name in given_names}) == len(wanted)
    assert all(is_safe(part) for name in given_names for part in name.split("/"))


def test_many_equal_names_are_fast() -> None:
    """Twenty thousand records called image.jpg: numbers go on where they were."""
    taken = TakenNames()
    names = [taken.take(("image",), FILES)[0] for _ in range(20_000)]
    assert names[-1] == "image-20000"
