"""Columns have the same values as single Examples, and encode to the same bytes."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordsmith.format.example import (
    BytesArray,
    ColumnDecoder,
    ColumnEncoder,
    FeatureSpec,
    RaggedArray,
    decode_columns,
    decode_example,
    encode_columns,
    encode_example,
    encode_sequence_example,
)
from recordsmith.support.errors import DataError, Defect, OptionError

from ...raising import raises

Spans = tuple[bytes, Any, Any]
KINDS = {"int64": np.int64, "float": np.float32}


def spans(payloads: Iterable[bytes]) -> Spans:
    """The payloads in one buffer, apart from each other."""
    payloads = list(payloads)
    lengths = np.array([len(payload) for payload in payloads], np.int64)
    starts = np.cumsum([3, *(lengths + 3)])[:-1].astype(np.int64)
    return b"---" + b"---".join(payloads), starts, lengths


def decode(payloads: Iterable[bytes], features: Any) -> dict[str, Any]:
    return decode_columns(*spans(payloads), features)


def attempt(decode_all: Callable[[], Any]) -> tuple[Any, Defect | None]:
    """What is decoded, or the defect."""
    try:
        return decode_all(), None
    except DataError as error:
        return None, error.defect


def rows_of(columns: Any) -> list[bytes]:
    data, offsets = encode_columns(columns)
    assert data.dtype == np.uint8
    assert offsets.dtype == np.int64
    assert (offsets[0], offsets[-1]) == (0, len(data))
    return [data[a:b].tobytes() for a, b in pairwise(offsets.tolist())]


def comparable(value: Any) -> Any:
    """Floats as text, so that NaN equals NaN."""
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return repr(value) if isinstance(value, float) else value


def _plain(value: Any) -> list[Any]:
    return value if isinstance(value, list) else value.tolist()


# ---- decoding ----------------------------------------------------------------------------------


@given(data=st.data())
@settings(max_examples=150)
def test_a_column_has_the_values_of_each_record(
    reference: Any, wire: SimpleNamespace, data: Any
) -> None:
    """In any wire form; features that are missing or have no kind are empty rows."""
    payloads = data.draw(st.lists(wire.examples, min_size=1, max_size=5))
    rows, defect = attempt(lambda: [decode_example(payload) for payload in payloads])
    if defect is not None:
        # alone: next to others, a kind that differs may be found first
        wrong = next(
            each for each in payloads if attempt(lambda each=each: decode_example(each))[1]
        )
        assert attempt(lambda: decode([wrong], ["a", "b"])) == (None, defect)
        return
    parsed = [reference.parse("Example", payload).features.feature for payload in payloads]
    for key in ("", "a", "label"):
        values = [row.get(key, []) for row in rows]
        lists = {features[key].WhichOneof("kind") for features in parsed if key in features}
        kinds = [name.removesuffix("_list") for name in lists - {None}]
        if len(kinds) != 1:
            continue
        (kind,) = kinds
        lengths = {len(value) for value in values}
        plain = list(map(_plain, values))
        column = decode(payloads, {key: FeatureSpec(kind=kind, shape="ragged")})[key]
        assert isinstance(column, RaggedArray)
        assert comparable(column.tolist()) == comparable(plain)
        undeclared = decode(payloads, {key: None})[key]
        if isinstance(undeclared, RaggedArray):
            assert comparable(undeclared.tolist()) == comparable(plain)
        else:
            flat = [v[0] for v in plain] if lengths == {1} else plain
            assert len(lengths) == 1
            assert comparable(undeclared.tolist()) == comparable(flat)


@given(
    rows=st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3), max_size=6)
)
def test_fixed_shapes(rows: list[list[int]]) -> None:
    payloads = [encode_example({"x": row, "other": b"?"}) for row in rows]
    for shape in [(3,), (1, 3), (3, 1)]:
        column = decode(payloads, {"x": FeatureSpec("int64", shape)})["x"]
        assert column.dtype == np.int64
        assert column.tolist() == np.array(rows, np.int64).reshape(len(rows), *shape).tolist()


def test_shapes_inferred_from_records() -> None:
    payloads = [
        encode_example(
            {
                "scalar": n,
                "pair": [n, n],
                "ragged": [n] * n,
                "text": f"t{n}",
                "texts": ["a", "b"],
                "some": [n] if n else None,
                "empty": [],
            },
            {"empty": "float"},
        )
        for n in range(3)
    ]
    columns = decode(payloads, ["scalar", "pair", "ragged", "text", "texts", "some", "empty"])
    assert list(columns) == ["scalar", "pair", "ragged", "text", "texts", "some", "empty"]
    assert columns["scalar"].tolist() == [0, 1, 2]
    assert columns["pair"].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert columns["ragged"].tolist() == [[], [1], [2, 2]]
    assert isinstance(columns["text"], BytesArray)
    assert columns["text"].tolist() == [b"t0", b"t1", b"t2"]
    assert columns["texts"].tolist() == [[b"a", b"b"]] * 3
    assert isinstance(columns["some"], RaggedArray)
    assert columns["some"].tolist() == [[], [1], [2]]
    assert columns["empty"].shape == (3, 0)
    assert columns["empty"].dtype == np.float32


def test_no_records() -> None:
    columns = decode(
        [],
        {"a": FeatureSpec("int64", ()), "b": FeatureSpec("bytes"), "c": FeatureSpec("float", (2,))},
    )
    assert columns["a"].shape == (0,)
    assert columns["b"].tolist() == []
    assert columns["c"].shape == (0, 2)
    assert decode([], []) == {}
    with pytest.raises(DataError) as caught:
        decode([], ["a"])
    assert (caught.value.defect, caught.value.feature) == (Defect.MISSING_FEATURE, "a")


def test_columns_own_their_memory() -> None:
    buffer, starts, lengths = spans([encode_example({"a": [1, 2], "b": b"xy"})])
    memory = bytearray(buffer)
    columns = decode_columns(memory, starts, lengths, ["a", "b"])
    memory[:] = bytes(len(memory))
    columns["a"][0, 0] = 5  # type: ignore[index]
    assert columns["a"].tolist() == [[5, 2]]
    assert columns["b"].tolist() == [b"xy"]


def test_borrowed_bytes_share_the_buffer() -> None:
    rows = [{"a": [b"one", b""], "n": 1}, {"a": [], "n": 2}, {"n": 3}, {"a": [b"four"], "n": 4}]
    payloads = BytesArray.from_values([encode_example(row) for row in rows])
    starts, stops = payloads.offsets[:-1], payloads.offsets[1:]
    decoder = ColumnDecoder({"a": FeatureSpec("bytes", "ragged"), "n": None}, borrowed=["a"])
    for chosen in ([0, 1, 2, 3], [3, 0]):  # the decoder can be used again
        decoder.append(payloads.buffer, starts[chosen], (stops - starts)[chosen])
        columns: Any = decoder.finish()
        assert columns["a"].tolist() == [rows[row].get("a", []) for row in chosen]
        assert columns["n"].tolist() == [rows[row]["n"] for row in chosen]
        assert np.shares_memory(columns["a"].values.buffer, payloads.buffer)
        assert columns["a"].values.packed().tolist() == columns["a"].values.tolist()
    decoder.append(payloads.buffer, starts, stops - starts)
    with pytest.raises(OptionError, match="one buffer") as caught:
        decoder.append(payloads.buffer, starts, stops - starts)
    assert caught.value.option == "borrowed"
    with pytest.raises(OptionError, match="default") as caught:
        ColumnDecoder({"a": FeatureSpec("bytes", (), b"x")}, borrowed=["a"])
    assert caught.value.option == "borrowed"


def test_many_columns_in_any_order() -> None:
    """The order of keys differs between records, and many keys share a prefix."""
    keys = [f"feature/{number}" for number in range(100)]
    payloads = []
    for shift in range(5):
        turned = keys[shift * 20 :] + keys[: shift * 20]
        entries = [encode_example({key: [shift, keys.index(key)]}) for key in turned]
        payloads.append(b"".join(entries))  # messages end to end are merged
    columns = decode(payloads, list(reversed(keys)))
    for number, key in enumerate(keys):
        assert columns[key].tolist() == [[shift, number] for shift in range(5)]


def test_the_last_of_equal_keys_counts(reference: Any) -> None:
    r = reference

    def ints(*values: int) -> bytes:
        packed = b"".join(map(r.varint, values))
        return r.entry(b"k", r.delimited(3, r.delimited(1, packed)))

    def text(*values: bytes) -> bytes:
        return r.entry(b"t", r.delimited(1, b"".join(r.delimited(1, v) for v in values)))

    payloads = [
        r.example(ints(1, 2, 3), text(b"a"), ints(4), text(b"b", b"c")),
        r.example(text(b"d"), ints(5)) + r.example(ints(6, 7), text()),
        r.example(ints(8), text(b"e")),
    ]
    columns = decode(payloads, ["k", "t"])
    assert columns["k"].tolist() == [[4], [6, 7], [8]]
    assert columns["t"].tolist() == [[b"b", b"c"], [], [b"e"]]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (FeatureSpec(shape=(), default=-1), [5, -1, -1]),
        (FeatureSpec("int64", (), default=np.int32(7)), [5, 7, 7]),
        (FeatureSpec(shape=(1,), default=[3]), [[5], [3], [3]]),
        (FeatureSpec(shape="ragged", default=[1, 2]), [[5], [1, 2], [1, 2]]),
        (FeatureSpec(shape="ragged", default=[]), [[5], [], []]),
        (FeatureSpec("int64", "ragged", default=[]), [[5], [], []]),
        (FeatureSpec(shape=(2, 1), default=[[1], [2]]), None),
        (FeatureSpec("int64", "ragged"), [[5], [], []]),
        (FeatureSpec("int64", "ragged", default=np.array([], np.int64)), [[5], [], []]),
    ],
)
def test_defaults_of_numbers(spec: FeatureSpec, expected: Any) -> None:
    """Used if a record lacks the feature, or has it without a kind."""
    payloads = [encode_example({"x": 5}), encode_example({}), encode_example({"x": []})]
    if expected is None:
        with raises(
            DataError,
            defect="feature-shape-mismatch",
            record=0,
            feature="x",
            match="1 value",
        ) as caught:
            decode(payloads, {"x": spec})
        error = caught.value
        assert (error.defect, error.feature, error.found) == (Defect.FEATURE_SHAPE, "x", "1 value")
        return
    assert decode(payloads, {"x": spec})["x"].tolist() == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (FeatureSpec(shape=(), default="none"), [b"x", b"none"]),
        (FeatureSpec(shape=(), default=b""), [b"x", b""]),
        (FeatureSpec(shape="ragged", default=["a", b"bc"]), [[b"x"], [b"a", b"bc"]]),
        (FeatureSpec(shape="ragged", default=[b"a\0", b"b"]), [[b"x"], [b"a\0", b"b"]]),
        (FeatureSpec(shape=(1,), default=[b"end\x00"]), [[b"x"], [b"end\x00"]]),
        (FeatureSpec(shape=(), default=b"end\x00"), [b"x", b"end\x00"]),
    ],
)
def test_defaults_of_bytes(spec: FeatureSpec, expected: Any) -> None:
    payloads = [encode_example({"t": "x"}), encode_example({})]
    assert decode(payloads, {"t": spec})["t"].tolist() == expected


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (FeatureSpec("bytes", (), default=1), "'k'.*int64.*bytes"),
        (FeatureSpec("int64", (), default=0.5), "'k'.*float.*int64"),
        (FeatureSpec("int64", (), default="a"), "'k'.*bytes.*int64"),
        (FeatureSpec("int64", (3,), default=[1, 2]), "'k'.*2 values"),
        (FeatureSpec(shape=(), default=object()), "'k'"),
        (FeatureSpec(shape=(2,), default=["a", 3]), "'k'.*row 1.*3"),
        (FeatureSpec(shape="ragged", default=[[1], [1, 2]]), "'k'.*differ"),
        (FeatureSpec(shape=(), default=2**64), "'k'"),
        (FeatureSpec(shape=(), default=1e39), "'k'"),
        (FeatureSpec("float", (), default=1e39), "'k'"),
    ],
)
def test_defaults_that_do_not_fit(spec: FeatureSpec, words: str) -> None:
    with pytest.raises(OptionError, match=words) as caught:
        ColumnDecoder({"k": spec})
    assert caught.value.option == "default"


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        ({"kind": "int32"}, "int64"),
        ({"kind": "float64"}, "float"),
        ({"kind": "string"}, "bytes"),
        ({"kind": np.int64}, "int64"),
        ({"kind": 3}, None),
        ({"shape": (-1,)}, None),
        ({"shape": "any"}, None),
        ({"shape": [2]}, None),
        ({"shape": 2}, None),
        ({"shape": (None,)}, None),
        ({"shape": (2**40, 2**40)}, None),
    ],
)
def test_invalid_feature_specs_are_refused(arguments: Any, suggestion: str | None) -> None:
    with pytest.raises(OptionError) as caught:
        FeatureSpec(**arguments)
    ((option, value),) = arguments.items()
    error = caught.value
    assert (error.option, error.value) == (option, repr(value))
    assert ("bytes, float, int64" if option == "kind" else "'ragged'") in error.expected
    assert error.remedy == (f"Did you mean {suggestion!r}?" if suggestion else "")


@pytest.mark.parametrize("spec", ["int64", (), {"kind": "int64"}, 5])
def test_requests_other_than_a_feature_spec_are_refused(spec: Any) -> None:
    with pytest.raises(OptionError, match="'k'") as caught:
        ColumnDecoder({"k": spec})
    assert (caught.value.option, caught.value.value) == ("features", repr(spec))
    assert "FeatureSpec" in caught.value.expected


GOOD = encode_example({"n": 1, "t": "x", "l": [1, 2]})


@pytest.mark.parametrize(
    ("payload", "features", "defect", "fields"),
    [
        (
            encode_example({"n": 0.5}),
            ["n"],
            Defect.FEATURE_KIND,
            ("n", "float", "int64 as in the records before"),
        ),
        (
            encode_example({"n": "x"}),
            {"n": FeatureSpec("int64")},
            Defect.FEATURE_KIND,
            ("n", "bytes", "int64"),
        ),
        (
            encode_example({}),
            {"n": FeatureSpec(shape=())},
            Defect.MISSING_FEATURE,
            ("n", "", "shape ()"),
        ),
        (
            encode_example({"n": []}),
            {"n": FeatureSpec(shape=())},
            Defect.MISSING_FEATURE,
            ("n", "", "shape ()"),
        ),
        (
            encode_example({"n": [1, 2]}),
            {"n": FeatureSpec(shape=())},
            Defect.FEATURE_SHAPE,
            ("n", "2 values", "shape ()"),
        ),
        (
            encode_example({"n": []}, {"n": "int64"}),
            {"n": FeatureSpec(shape=())},
            Defect.FEATURE_SHAPE,
            ("n", "0 values", "shape ()"),
        ),
        (
            encode_example({"t": ["a"] * 3}),
            {"t": FeatureSpec(shape=(1,))},
            Defect.FEATURE_SHAPE,
            ("t", "3 values", "shape (1,)"),
        ),
        (
            encode_sequence_example({}, {"n": [[1], [2, 3], [1.5]]}),
            {"n": FeatureSpec(shape=(1,), in_steps=True)},
            Defect.FEATURE_SHAPE,
            ("n", "2 values", "shape (1,)"),
        ),
        (
            encode_sequence_example({}, {"n": [[1], [1.5], [1, 2]]}),
            {"n": FeatureSpec(shape=(1,), in_steps=True)},
            Defect.FEATURE_KIND,
            ("n", "float", "int64 as in the records before"),
        ),
        (b"\x09" + bytes(8) + b"\x10\x05", ["n"], Defect.NOT_AN_EXAMPLE, (None, "", "")),
        (GOOD[:-1], ["n"], Defect.MALFORMED_EXAMPLE, (None, "", "")),
        (GOOD + b"\x0a", ["n"], Defect.MALFORMED_EXAMPLE, (None, "", "")),
    ],
)
def test_a_record_that_does_not_fit(
    payload: bytes, features: Any, defect: Defect, fields: tuple[str | None, str, str]
) -> None:
    """The error has the defect, the record in the call, and what was found and expected."""
    with pytest.raises(DataError) as caught:
        decode([GOOD, GOOD, payload, GOOD], features)
    error = caught.value
    assert (error.defect, error.record) == (defect, 2)
    assert (error.feature, error.found, error.expected) == fields


@given(data=st.data())
@settings(max_examples=100)
def test_any_payloads_give_columns_or_a_defect(wire: SimpleNamespace, data: Any) -> None:
    payloads = data.draw(
        st.lists(wire.mutated(wire.examples) | st.binary(max_size=40), min_size=1, max_size=4)
    )
    spec = st.sampled_from(
        [
            None,
            FeatureSpec("int64"),
            FeatureSpec("float", (2,)),
            FeatureSpec("bytes", "ragged"),
            FeatureSpec(default=0),
            FeatureSpec("bytes", (), default="x"),
        ]
    )
    request = data.draw(st.dictionaries(wire.keys, spec, max_size=4))
    try:
        columns = decode(payloads, request)
    except DataError:
        return
    assert list(columns) == list(request)
    assert all(len(column) == len(payloads) for column in columns.values())


def test_a_wrong_length_takes_no_memory() -> None:
    """A packed list claims to have 2**60 bytes, for which no memory is reserved."""
    payload = bytes.fromhex("0a20 0a1e 0a0161 1219 1a17 0a".replace(" ", ""))
    payload += b"\xff" * 8 + b"\x0f" + bytes(13)
    tracemalloc.start()
    with pytest.raises(DataError):
        decode([payload], ["a"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.posix
def test_memory_of_defaults_is_released() -> None:
    """It is not Python's, so no leak of it shows in tracemalloc; and a process of its own, as all
    threads of this one take memory and give it back.
    """
    if not Path("/proc/self/statm").exists():
        pytest.skip("only Linux tells how much memory a process has now")
    program = """
import os
import numpy as np
from recordsmith.format.example import ColumnDecoder, FeatureSpec

spec = FeatureSpec("int64", "ragged", default=np.ones(500_000, np.int64))
for _ in range(2):
    for _ in range(20):
        ColumnDecoder({"x": spec}).finish()
    with open("/proc/self/statm") as statistics:
        print(int(statistics.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    first, second = map(int, done.stdout.split())
    assert second - first < 40_000_000  # twenty more defaults are 80 MB


# ---- encoding ----------------------------------------------------------------------------------

column_kinds = st.sampled_from(["int64", "float", "bytes"])


@given(data=st.data())
@settings(max_examples=100)
def test_each_row_is_what_encode_example_gives(wire: SimpleNamespace, data: Any) -> None:
    row_count = data.draw(st.integers(0, 5))
    rows: list[dict[str, Any]] = [{} for _ in range(row_count)]
    columns: dict[str, Any] = {}
    values = {
        "int64": st.integers(-(2**63), 2**63 - 1),
        "float": st.floats(width=32),
        "bytes": st.binary(max_size=9),
    }
    kinds = {}
    for key in data.draw(st.lists(wire.keys, max_size=4, unique=True)):
        kind = data.draw(column_kinds)
        kinds[key] = kind
        length = data.draw(st.none() | st.integers(0, 3))
        size = {"max_size": 4} if length is None else {"min_size": length, "max_size": length}
        lists = data.draw(
            st.lists(st.lists(values[kind], **size), min_size=row_count, max_size=row_count)
        )
        for row, value in zip(rows, lists, strict=True):
            row[key] = value
        flat = [value for value_list in lists for value in value_list]
        array: Any = (
            BytesArray.from_values(flat) if kind == "bytes" else np.array(flat, KINDS[kind])
        )
        if length is None:
            columns[key] = RaggedArray(array, np.cumsum([0, *map(len, lists)]))
        else:
            columns[key] = array.reshape(row_count, length)
            if length == 1 and data.draw(st.booleans()):
                columns[key] = array.reshape(row_count)
    if not columns:
        rows = []
    assert rows_of(columns) == [encode_example(row, kinds) for row in rows]


@pytest.mark.parametrize(
    ("column", "rows"),
    [
        ([1, 2], [1, 2]),
        ([True, False], [1, 0]),
        ([0.5, 1], [0.5, 1.0]),
        (["a", "ö"], ["a", "ö"]),
        ([b"a\x00", b"\xff"], [b"a\x00", b"\xff"]),
        ((b"a\x00", b"\xff"), [b"a\x00", b"\xff"]),
        (["a", b"\xff"], ["a", b"\xff"]),
        ([["a", "b"], ["c", "d"]], [["a", "b"], ["c", "d"]]),
        (np.array(["a", "bcd"]), ["a", "bcd"]),
        (np.array([b"a\x00", "x"], object), [b"a\x00", "x"]),
        (np.array([["a", "b"], ["c", "d"]], object), [["a", "b"], ["c", "d"]]),
        (np.array([b"a\x00", b"b"], object), [b"a\x00", b"b"]),
        ([bytearray(b"a\x00"), memoryview(b"b")], [b"a\x00", b"b"]),
        ([[b"a\x00", "x"], [b"c", b"\x00"]], [[b"a\x00", "x"], [b"c", b"\x00"]]),
        ([[1], [1, 2], []], [[1], [1, 2], []]),
        ([["a"], (), ["b\x00", "c"]], [["a"], [], ["b\x00", "c"]]),
        ([[0.5], [], [1, 2.5]], [[0.5], [], [1.0, 2.5]]),
        ([np.array([1, 2]), np.array([3])], [[1, 2], [3]]),
        ([np.array([1, 2]), np.array([3, 4], np.uint8)], [[1, 2], [3, 4]]),
        ([np.array([0.5]), np.array([], np.float32)], [[0.5], []]),
        ([np.array(["a"]), ["b", "c"]], [["a"], ["b", "c"]]),
        (BytesArray.from_values([b"x", b"y"]).reshape(2, 1), [[b"x"], [b"y"]]),
        ([np.int64(1), 2], [1, 2]),
        (range(3), [0, 1, 2]),
        ([2**63 - 1, -(2**63)], [2**63 - 1, -(2**63)]),
        (np.array([[1, 2], [3, 4]], ">i2"), [[1, 2], [3, 4]]),
        (np.arange(8).reshape(2, 4)[:, ::2], [[0, 2], [4, 6]]),
        (np.arange(6).reshape(3, 2).T, [[0, 2, 4], [1, 3, 5]]),
        (BytesArray.from_values([b"x", b"y", b"z"])[::2], [b"x", b"z"]),
        (BytesArray.from_values([b"x", b"y", b"z"])[::-1][:2], [b"z", b"y"]),
        (RaggedArray(np.arange(5), np.array([0, 2, 5]))[1:], [[2, 3, 4]]),
        (RaggedArray(np.arange(5, dtype=np.uint8), np.array([0, 2, 5])), [[0, 1], [2, 3, 4]]),
        (RaggedArray(np.array(["a", "b"]), np.array([0, 2, 2])), [["a", "b"], []]),
        (RaggedArray(np.arange(5.0)[::-1], np.array([0, 2, 5])), [[4.0, 3.0], [2.0, 1.0, 0.0]]),
        (
            RaggedArray(BytesArray.from_values([b"x", b"y"]), np.array([0, 2, 2])),
            [[b"x", b"y"], []],
        ),
    ],
)
def test_valid_columns(column: Any, rows: list[Any]) -> None:
    assert rows_of({"k": column}) == [encode_example({"k": r}, {"k": _kind(rows)}) for r in rows]


def _kind(rows: list[Any]) -> Any:
    flat = [v for row in rows for v in (row if isinstance(row, list) else [row])]
    return (
        "bytes"
        if isinstance(flat[0], (str, bytes))
        else ("float" if isinstance(flat[0], float) else "int64")
    )


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (5, "is a int"),
        (np.int64(5), "single value"),
        ([1, "a"], r"row 1 .*'a' \(str\), others are int"),
        (["x", 3], r"row 1 .*3 \(int\), others are str"),
        ([b"a", None], "row 1 .*None"),
        ([None, 1], "row 0 .*None"),
        ([[1], None], "row 1 .*None"),
        ([[1, 2], [3], ["a"]], r"row 2 .*'a' \(str\), others are int"),
        (np.array([3, 4], object), r"row 0 .*3 \(int\)"),
        (np.array([1, None], object), "row 0 .*1"),
        (np.array([["a", "b"], ["c", None]], object), "row 1 .*None"),
        ([2**63, -1], "9223372036854775808 in row 0 does not fit int64"),
        ([[1], [2, 2**70]], f"{2**70} in row 1 does not fit int64"),
        (np.array([2**63], np.uint64), "9223372036854775808"),
        (np.array([1e39]), "32-bit float"),
        ([1e39], "32-bit float"),
        (np.array([1j]), "complex"),
        ([1j], "complex"),
        (np.array(["2020"], "datetime64[Y]"), "datetime64"),
        ([[[1], [1, 2]], [[3]]], "nested lists"),
        ({"a": 1}, "is a dict"),
        ({1, 2}, "is a set"),
        ("text", "is a str"),
        (b"bytes", "is a bytes"),
        (None, "is a NoneType"),
        (["\ud800"], "surrogates"),
    ],
)
def test_invalid_columns_are_refused(column: Any, words: str) -> None:
    """The error has the name of the column; no value is converted silently."""
    with pytest.raises(OptionError, match=rf"'the key'.*({words})"):
        encode_columns({"the key": column})


@given(data=st.data())
@settings(max_examples=100)
def test_some_rows_at_a_time(data: Any) -> None:
    """The same bytes as all at once, for every kind of column."""
    lists = st.lists(st.binary(max_size=4), max_size=3)
    texts = data.draw(st.lists(lists, max_size=9))
    count = len(texts)
    lengths = np.array([len(row) for row in texts], np.int64)
    columns = {
        "fixed": np.arange(2.0 * count).reshape(count, 2),
        "small": np.arange(count, dtype=np.uint8),
        "bytes": [b"%d" % row for row in range(count)],
        "text": texts if count else RaggedArray(BytesArray.from_values([]), np.zeros(1, np.int64)),
        "ragged": RaggedArray(np.arange(lengths.sum()), np.cumsum([0, *lengths])),
    }
    expected = rows_of(columns)
    encoder = ColumnEncoder(columns)
    assert encoder.row_count == count
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=3)))
    rows = []
    for start, stop in pairwise([0, *cuts, count]):
        rows_data, offsets = encoder.encode(start, stop)
        assert (len(offsets), offsets[0], offsets[-1]) == (stop - start + 1, 0, len(rows_data))
        rows += [rows_data[a:b].tobytes() for a, b in pairwise(offsets.tolist())]
    assert rows == expected


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 4), (2, 1), (4, 4)])
def test_rows_outside_the_columns_are_refused(start: int, stop: int) -> None:
    with pytest.raises(OptionError) as caught:
        ColumnEncoder({"a": [1, 2, 3]}).encode(start, stop)
    assert caught.value.expected == "rows within 0:3"


def test_invalid_values_are_refused_before_the_first_row() -> None:
    for wrong in (np.array([1.0, 1e39]), np.array([1, 2**63], np.uint64), [b"x", 1]):
        with pytest.raises(OptionError, match="'b'"):
            ColumnEncoder({"a": [1, 2], "b": wrong})


def test_encoding_some_rows_takes_memory_for_these_only() -> None:
    encoder = ColumnEncoder({"a": np.ones((200_000, 10), np.uint8)})
    tracemalloc.start()
    for start in range(0, 200_000, 1000):
        encoder.encode(start, start + 1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000  # as int64, all rows take 16 MB


@pytest.mark.parametrize("odd", [None, 0, 1, 2])
def test_rows_that_are_ragged_by_request_or_from_some_row_on(odd: int | None) -> None:
    """While all rows are equally long, the decoder does not store their starts."""
    rows = [[n] if n == odd else [n, n] for n in range(3)]
    payloads = [encode_example({"a": row}) for row in rows]
    requested = decode(payloads, {"a": FeatureSpec(shape="ragged")})["a"]
    assert isinstance(requested, RaggedArray)
    assert requested.tolist() == rows
    assert isinstance(decode(payloads, ["a"])["a"], np.ndarray if odd is None else RaggedArray)
    assert decode(payloads, ["a"])["a"].tolist() == rows
    missing = decode([encode_example({})] * 3, {"a": FeatureSpec("int64")})["a"]
    assert missing.tolist() == [[], [], []]


def test_threads_that_share_a_decoder_wait_for_each_other() -> None:
    payloads = spans(encode_example({"a": list(range(20)), "b": "text"}) for _ in range(2000))
    decoder = ColumnDecoder(["a", "b"])
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(decoder.append, *payloads) for _ in range(20)]:
            done.result()
    columns = decoder.finish()
    assert columns["a"].shape == (40_000, 20)  # type: ignore[union-attr]
    assert (columns["b"] == b"text").all()


def test_a_decoder_is_reused_for_the_next_batch() -> None:
    decoder = ColumnDecoder({"a": None, "b": FeatureSpec("int64", (2,), default=7)})
    decoder.append(*spans([encode_example({"a": 1, "b": [2, 3]})]))
    first = decoder.finish()
    decoder.append(*spans([encode_example({"a": 0.5}), encode_example({"a": 1.5})]))
    second = decoder.finish()
    assert (first["a"].tolist(), first["b"].tolist()) == ([1], [[2, 3]])
    assert (second["a"].tolist(), second["b"].tolist()) == ([0.5, 1.5], [[7, 7], [7, 7]])


def test_a_failed_decoder_cannot_be_used() -> None:
    decoder = ColumnDecoder(["a"])
    with pytest.raises(DataError):
        decoder.append(*spans([b"\x00"]))
    with pytest.raises(OptionError, match="failed"):
        decoder.append(*spans([encode_example({"a": 1})]))
    with pytest.raises(OptionError, match="failed"):
        decoder.finish()


def test_a_later_equal_key_replaces_the_kind(reference: Any) -> None:
    """The last key counts, but replaced ones must be well-formed too."""
    r = reference
    one = r.entry(b"k", r.delimited(3, r.delimited(1, b"\x01")))
    text = r.entry(b"k", r.delimited(1, r.delimited(1, b"x")))
    broken = r.entry(b"k", r.delimited(2, r.delimited(1, b"abc")))
    spec = {"k": FeatureSpec("int64")}
    assert decode([r.example(text, one), r.example(one)], spec)["k"].tolist() == [1, 1]
    for payloads, defect in (
        ([r.example(one, text)], Defect.FEATURE_KIND),
        ([r.example(text, one, text)], Defect.FEATURE_KIND),
        ([r.example(broken, one)], Defect.MALFORMED_EXAMPLE),
    ):
        assert attempt(partial(decode, payloads, spec)) == (None, defect)
