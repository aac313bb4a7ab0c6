"""Where expressions, against the same conditions in plain Python over decoded examples."""

from __future__ import annotations

import io
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.dataset import parse_where
from recordsmith.format.example import Schema, SchemaSurvey
from recordsmith.format.wire import RecordBlock, encode_records, read_blocks
from recordsmith.support.errors import Defect

from ...raising import raises

Holds: TypeAlias = Callable[[dict[str, Any]], bool]

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def block_of(payloads: Sequence[bytes], position: int = 0) -> RecordBlock:
    """The payloads as a reader hands them on."""
    if not payloads:
        none = np.empty(0, np.int64)
        return RecordBlock(memoryview(b""), none, none, position, 0)
    (block,) = read_blocks(io.BytesIO(encode_records(payloads)))
    return RecordBlock(block.buffer, block.starts, block.lengths, position, 0)


def chosen(text: str, *examples: dict[str, Any]) -> list[bool]:
    payloads = [rs.encode_example(example) for example in examples]
    return parse_where(text).matches(block_of(payloads)).tolist()  # type: ignore[no-any-return]


def schema_of(*payloads: bytes) -> Schema:
    survey, block = SchemaSurvey(), block_of(payloads)
    survey.update(block.buffer, block.starts, block.lengths)
    return survey.finish()


# ---- against plain Python ----------------------------------------------------------------------

INTS = st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1])
FLOATS = st.sampled_from([0.0, -1.5, 0.1, 2.0, math.inf, math.nan]) | st.floats(width=32)
TEXTS = st.sampled_from([b"", b"a", b"b", b"ab", "ö".encode(), b"\xff\0", b"'\"\\", b"x" * 40])
VALUES = {"i": INTS, "image/f.1": FLOATS, "a text": TEXTS}
WRITTEN = {"i": "i", "image/f.1": "image/f.1", "a text": "`a text`"}
LITERALS = {
    "i": INTS | st.sampled_from([2**70, -(2**64), 0.5, -1.5, 2.0**53, 1e300, 3.0]),
    "image/f.1": st.sampled_from([0.1, 2, -1.5, 0.0]),
    "a text": TEXTS,
}
KINDS: Any = {"i": "int64", "image/f.1": "float", "a text": "bytes"}

RECORDS = st.lists(
    st.fixed_dictionaries(
        {}, optional={key: st.lists(values, max_size=3) for key, values in VALUES.items()}
    ),
    max_size=6,
)


def written(literal: Any) -> str:
    """A literal in another spelling than recordsmith's own."""
    if not isinstance(literal, bytes):
        return f"+{literal!r}" if literal > 0 else repr(literal)
    return "b'" + "".join(f"\\x{byte:02X}" for byte in literal) + "'"


def stored(value: Any, literal: Any) -> Any:
    """A literal as the feature of a value stores it."""
    return np.float32(literal) if isinstance(value, np.floating) else literal


@st.composite
def expressions(draw: Any, depth: int = 2) -> tuple[str, Holds]:
    """A text, and what it means for a decoded example."""
    form = draw(st.integers(0, 6 if depth else 3))
    if form == 4:
        text, part = draw(expressions(depth - 1))
        return f"not({text})", lambda example: not part(example)
    if form > 4:
        parts = [draw(expressions(depth - 1)) for _ in range(draw(st.integers(1, 3)))]
        word, decide = ("and", all) if form == 5 else ("or", any)
        text = f" {word}  ".join(f"({text})" for text, _ in parts)
        return text, lambda example: decide(part(example) for _, part in parts)
    key = draw(st.sampled_from(list(VALUES)))
    if form == 0:
        word = draw(st.sampled_from(["has", "missing"]))
        return f"{word} ({WRITTEN[key]})", lambda e: bool(len(e.get(key, ()))) == (word == "has")
    compare = OPERATORS[name := draw(st.sampled_from(list(OPERATORS)))]
    if form == 1:
        number = draw(st.integers(-1, 3))
        return f"len({WRITTEN[key]}){name}{number}", lambda e: compare(len(e.get(key, ())), number)
    decide = all if (of_all := draw(st.booleans())) else any
    measured = f"all({WRITTEN[key]})" if of_all else WRITTEN[key]
    wanted = draw(st.lists(LITERALS[key], min_size=1, max_size=8))
    if form == 2:
        is_in = draw(st.booleans())
        begin, end = draw(st.sampled_from(["()", "[]", "{}"]))
        values = f"{begin}{', '.join(map(written, wanted))},{end}"
        text = f"{measured} {'in' if is_in else 'not  in'} {values}"
    else:
        text = f"{measured} {name} {written(wanted[0])}"
    below = OPERATORS[left := draw(st.sampled_from(list(OPERATORS)))]
    if is_chain := draw(st.booleans()):
        text = f"{written(wanted[-1])} {left} {text}"
    elif key == "a text" and not of_all and draw(st.booleans()):
        method = draw(st.sampled_from(["startswith", "endswith"]))
        text = f"{measured}.{method} ({written(wanted[0])})"
        return text, lambda e: any(getattr(value, method)(wanted[0]) for value in e.get(key, ()))

    def hits(value: Any) -> bool:
        if isinstance(value, np.floating) and math.isnan(value):
            return False
        if is_chain and not below(stored(value, wanted[-1]), value):
            return False
        if form == 2:
            return any(value == stored(value, literal) for literal in wanted) == is_in
        return bool(compare(value, stored(value, wanted[0])))

    return text, lambda e: bool(len(e.get(key, ()))) and decide(hits(v) for v in e[key])


def decoded(payload: bytes) -> dict[str, Any]:
    """With Python's ints, which compare exactly with floats."""
    return {
        key: [int(v) for v in values] if key == "i" else list(values)
        for key, values in rs.decode_example(payload).items()
    }


@settings(max_examples=300)
@given(records=RECORDS, expression=expressions())
def test_as_plain_python_has_it(
    records: list[dict[str, Any]], expression: tuple[str, Holds]
) -> None:
    text, holds = expression
    payloads = [rs.encode_example(record, KINDS) for record in records]
    expected = [holds(decoded(payload)) for payload in payloads]
    where = parse_where(text)
    assert where.matches(block_of(payloads)).tolist() == expected
    again = parse_where(str(where))
    assert again == where
    assert again.to_json() == where.to_json()


def test_and_binds_closer_than_or_and_not_closest() -> None:
    records = [{"a": a, "b": b, "c": c} for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    found = chosen("not a == 1 or b == 1 and c == 1", *records)
    assert found == [not r["a"] or (bool(r["b"]) and bool(r["c"])) for r in records]


def test_numbers_that_do_not_fit() -> None:
    values = [{"f": value} for value in (3e38, -3e38, math.inf, -math.inf, math.nan)]
    assert chosen("f < 1e39", *values) == [True, True, False, True, False]
    assert chosen(f"f > -{10**400}", *values) == [True, True, True, False, False]
    assert chosen("f != 1e39", *values) == [True, True, True, True, False]
    assert chosen("f == 1e39", *values) == [False] * 5
    largest = [{"i": 2**63 - 1}, {"i": -(2**63)}]
    assert chosen("i < 9223372036854775808", *largest) == [True, True]
    assert chosen("i > 9223372036854775806.5", *largest) == [False, False]  # it is 2.0**63
    assert chosen("i >= -9223372036854775808", *largest) == [True, True]


def test_values_are_compared_without_looking_at_others() -> None:
    """Features outside of the expression may have any kind."""
    assert chosen("a == 1", {"a": 1, "b": "x"}, {"a": 1, "b": 2.0}) == [True, True]


def test_keys_in_backticks() -> None:
    record = {"a`b": 1, "in": 2, "größe": 3, "1": 4, "a-b:c": 5}
    text = "`a``b` == 1 and `in` == 2 and größe == 3 and `1` == 4 and a-b:c == 5"
    assert chosen(text, record) == [True]
    assert chosen("`\udcff` == 1", {"\udcff": 1}) == [True]
    words = {"order": 1, "android": 2, "nothing": 3, "inside": 4, "not.in": 5, "in/a": 6, "or-b": 7}
    assert chosen(" and ".join(f"{word} == {words[word]}" for word in words), words) == [True]
    words = {"class": 1, "lambda": 2, "None": 3, "ﬁ": 4, "x.endswith": 5}
    text = "class == 1 and lambda == 2 and None == 3 and ﬁ == 4 and x.endswith == 5"
    assert chosen(text, words, {"fi": 4}) == [True, False]


def test_text_is_that_of_python() -> None:
    records = [{"t": "ÿ"}, {"t": b"\xff"}, {"t": "a\tb"}]
    assert chosen(r"t == '\xff'", *records) == [True, False, False]
    assert chosen(r"t == b'\xff'", *records) == [False, True, False]
    assert chosen("t == '\udcff'", *records) == [False, True, False]  # an argument of the shell
    assert chosen(r't in ("a\tb", "\u00ff")', *records) == [True, False, True]


def test_a_chain_is_about_one_value() -> None:
    records = [{"a": [-1, 5]}, {"a": [-1, 1, 5]}, {"a": []}, {}]
    assert chosen("0 < a < 3", *records) == [False, True, False, False]
    assert chosen("0 < a and a < 3", *records) == [True, True, False, False]
    assert chosen("1 <= len(a) < 3", *records) == [True, False, False, False]
    assert chosen("-2 <= all(a) <= 5", *records) == [True, True, False, False]


# ---- what cannot be understood -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("", 1, "expected a feature"),
        ("a", 2, r"comparison.*has\(a\)"),
        ("not a and b == 1", 6, r"comparison.*has\(a\)"),
        ("len(a)", 7, r"comparison.*after len\(a\)\n"),
        ("a = 1", 3, "=="),
        ("a === 1", 3, "=="),
        ("a == 1 && b == 2", 8, r"mean and\?"),
        ("a == daisy", 6, 'in quotes: "daisy"'),
        ("3 == 3", 6, "expected a feature"),
        ("a < 1 < 2", 9, "at most two"),
        ("a == (1, 2)", 6, "expected a number"),
        ("a == not b", 6, "found not"),
        ("(a == 1) == 1", 2, "expected a feature"),
        ("has(a) == 1", 1, "expected a feature"),
        ("a + 1 == 2", 3, r"found \+"),
        ("a[0] == 1", 1, r"found a\[0\]"),
        ('a == "x', 6, "not closed"),
        ("`a == 3", 1, "not closed"),
        ("(a == 1", 8, r"or \), found the end"),
        ("(a == 1]", 8, r"or \), found \]"),
        ("a == 1, b == 1", 7, "or the end"),
        ("(a == 1, b == 1)", 1, "expected a feature"),
        ("a in 1", 6, "in parentheses"),
        ("1 in a", 1, "on the left"),
        ("a in ()", 7, "expected a feature"),
        ('a in (1, "x")', 1, "not both"),
        ("1a == 1", 1, "backticks"),
        ("a == 007", 6, "leading zeros"),
        ("a == 1j", 6, "complex"),
        ("a == 1e999", 6, "too large"),
        (f"a == {'9' * 5000}", 6, "too large"),
        ('len(a) == "x"', 1, "with numbers"),
        ("len > 3", 1, "or `len`"),
        ("in == 3", 1, "expected a feature"),
        ("a not == 3", 3, "expected a comparison"),
        ("has(1)", 5, "expected a feature"),
        ("a.startswith(1)", 1, "one text"),
        ("a.upper('x')", 1, "expected a feature"),
        ('a == "\\q"', 6, r"\\q is not"),
        ("a == b'\\u0031'", 6, r"\\u is not"),
        ("a == b'ö'", 6, "ASCII"),
        ("a == '\ud800'", 6, "surrogates"),
        ("`a`not in (1,)", 1, "not closed"),
        ("a == 1 and`b` == 1", 8, "found and"),
        ("a == 1;", 7, "found ;"),
        ("a == f'{b}'", 7, "found '{b}'"),
        ("(a := 3) == 3", 4, "found :"),
        ("lambda: 3", 9, "found 3"),
        ("__import__('os')", 1, "expected a feature"),
        ("(a == 1)(b)", 9, r"found \("),
    ],
)
def test_invalid_expressions(text: str, place: int, expected: str) -> None:
    with raises(rs.OptionError, option="where", match=expected) as caught:
        parse_where(text)
    message, shown, caret = caught.value.lines
    assert f"at character {place}:" in message
    if len(text) < 60:  # longer ones are cut
        assert shown[2:] == text
        assert caret.index("^") - 2 == place - 1


@pytest.mark.parametrize("opening", ["(", "not ", "not (", "[", "{", "len("])
def test_nested_too_deep(opening: str) -> None:
    with raises(rs.OptionError, option="where", match="at most 100"):
        parse_where(opening * 10_000 + "a == 1")
    if opening[0] in "n(":
        text = opening * 49 + "a == 1" + ")" * 49 * opening.count("(")
        assert parse_where(" and ".join([text] * 3))


TOKENS = re.findall(
    r"\S+",
    r"""a b/c `d` .endswith( len( has( all( ( ) [ ] { } , == < in not and or 1 -2.5 'x' b'' 0
    : . + - * \ # ' ` = é if lambda 9e9""",
)


@settings(max_examples=500)
@given(st.lists(st.sampled_from([*TOKENS, "not\tin", " ", "\n", "a == 1"]), max_size=14))
def test_any_tokens_are_a_condition_or_an_error(tokens: list[str]) -> None:
    for text in (" ".join(tokens), "".join(tokens)):
        try:
            where = parse_where(text)
        except rs.OptionError:
            continue
        assert parse_where(str(where)) == where


def test_as_long_as_an_expression_can_be() -> None:
    with raises(rs.OptionError, option="where"):
        parse_where("a == 1 or " * 100_001 + "a == 1")


@pytest.mark.slow
def test_long_without_being_deep() -> None:
    text = " or ".join(f"a == {number}" for number in range(1000))
    assert chosen(text, {"a": 999}, {"a": 1000}) == [True, False]
    with raises(rs.OptionError, option="where", match=r"1,000 comparisons; use in"):
        parse_where(f"{text} or a == 1000")
    text = f"a in ({', '.join(map(str, range(30_000)))})"
    assert chosen(text, {"a": 29_999}, {"a": 30_000}) == [True, False]


@pytest.mark.parametrize("word", ["in", "not in"])
@pytest.mark.parametrize(
    "values",
    [
        [2**53, 2**53 + 1, 2**63 - 1, -(2**63), 3, 0, -1],
        [0.1, 3.0, 2.0**24, 16_777_217.0, 3.4e38, math.inf, math.nan],
    ],
)
def test_many_values_are_compared_like_single_ones(word: str, values: list[Any]) -> None:
    numbers = [0.1, 3, 2**53 + 1, 2**63, -(2**63), 2**64, 16_777_217, 1e39, 1e300, -0.0, 10**400]
    single = " or ".join(f"a == {number}" for number in numbers)
    examples = [{"a": value} for value in values]
    expected = [
        hit == (word == "in") and not math.isnan(value)
        for hit, value in zip(chosen(single, *examples), values, strict=True)
    ]
    assert chosen(f"a {word} ({', '.join(map(str, numbers))})", *examples) == expected


# ---- features that do not match ---------------------------------------------------------------


def test_kinds_that_cannot_be_compared() -> None:
    with raises(rs.OptionError, option="where", value="t == 3", match="'t' is bytes"):
        chosen("t == 3", {"t": "x"})
    with raises(rs.OptionError, option="where", value="i in ('x', 'y')", match="'i' is int64"):
        chosen("i in ('x', 'y')", {"i": 3})
    with raises(rs.OptionError, option="where", value="f < 'x'", match="'f' is float"):
        chosen("not f < 'x'", {"f": 0.5})
    assert chosen("len(t) == 1 and has(t)", {"t": "x"}) == [True]


def test_features_of_several_kinds() -> None:
    assert chosen("a > 1", {"a": 2}, {"a": 0.5}, {}, {"a": 1.5}) == [True, False, False, True]
    with raises(rs.OptionError, option="where", value="a > 1", match="'a' is bytes"):
        chosen("a > 1", {"a": 2}, {"a": "x"})


def test_checked_with_the_schema() -> None:
    schema = schema_of(rs.encode_example({"image/class/label": 1, "image/class/text": "x"}))
    parse_where("image/class/label == 1 and image/class/text == 'x'").check(schema)
    with raises(
        rs.OptionError,
        option="where",
        value="image/clas/label",
        match=r"'image/clas/label'.*'image/class/l",
    ):
        parse_where("image/clas/label == 1").check(schema)
    with raises(rs.OptionError, option="where", value="image/class/text == 1", match="is bytes"):
        parse_where("image/class/text == 1").check(schema)
    parse_where("image/clas/label == 1").check(schema_of())  # no records: features are unknown


def test_context_and_lists_of_sequences() -> None:
    def sequence(number: int) -> bytes:
        return rs.encode_sequence_example({"id": number, "t": "x"}, {"steps": [[1], [2, 3]]})

    payloads = [sequence(1), rs.encode_example({"id": 2}), sequence(3)]
    where = parse_where("id in (2, 3) and missing(steps)")
    assert where.matches(block_of(payloads)).tolist() == [False, True, False]
    for condition in ("len(steps) == 3", "steps == 3", "steps < 2 and id < 4", "has(steps)"):
        assert parse_where(condition).matches(block_of(payloads)).tolist() == [True, False, True]
    parse_where("id == 1").check(schema_of(*payloads))
    parse_where("steps == 1").check(schema_of(*payloads))
    with raises(rs.OptionError, option="where", value="step", match="steps"):
        parse_where("step == 1").check(schema_of(*payloads))


@pytest.mark.parametrize(
    ("payload", "defect"),
    [(b"\x0a\xff", Defect.MALFORMED_EXAMPLE), (b"plain bytes", Defect.NOT_AN_EXAMPLE)],
)
def test_payloads_that_are_no_examples(payload: bytes, defect: Defect) -> None:
    good = [rs.encode_example({"a": 1}), rs.encode_sequence_example({"a": 1}, {"b": [1]})]
    for before in (good[:1], good):
        with pytest.raises(rs.DataError) as caught:
            parse_where("a == 1").matches(block_of([*before, payload], position=100))
        assert caught.value.defect in (defect, Defect.NOT_AN_EXAMPLE)
        assert caught.value.record is not None
