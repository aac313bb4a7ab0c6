"""Literals give back what they are of; comments are one line."""

from __future__ import annotations

import ast
import tokenize
from io import StringIO

import hypothesis.strategies as st
from hypothesis import given

from recordsmith.readers.source_text import comment, dict_lines, literal

ODD = st.text(st.sampled_from("a'\"\\\n\r\t\x00\x0c{}#é\u2028\u202e\udcff"), max_size=8)


@given(st.text(max_size=8) | ODD | st.binary(max_size=8))
def test_literals_round_trip(value: str | bytes) -> None:
    assert ast.literal_eval(literal(value)) == value
    assert len(literal(value).splitlines()) == 1


def test_double_quotes_are_preferred() -> None:
    assert [literal(text) for text in ("a", "a'", 'a"', "'\"")] == [
        '"a"',
        '"a\'"',
        "'a\"'",
        "'\\'\"'",
    ]
    assert literal(b"a") == 'b"a"'


@given(st.text(max_size=300) | ODD, ODD)
def test_comments_stay_in_one_line(one: str, other: str) -> None:
    source = f"x = 1{comment(one, other)}\n"
    kinds = [token.type for token in tokenize.generate_tokens(StringIO(source).readline)]
    assert kinds.count(tokenize.NEWLINE) == 1
    assert kinds.count(tokenize.COMMENT) == bool(one or other)
    assert len(source.splitlines()) == 1


def test_dicts() -> None:
    assert dict_lines("x", []) == "x = {}"
    assert dict_lines("x", [("a", "1", "  # b")]) == 'x = {\n    "a": 1,  # b\n}'
