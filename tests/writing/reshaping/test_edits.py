"""Edits on the wire, against the same edits of decoded examples; protobuf reads both."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.format.example import (
    KeyAction,
    Rewriter,
    Schema,
    SchemaSurvey,
    classify,
    rewriting,
)
from recordsmith.format.wire import RecordBlock
from recordsmith.support.errors import Defect
from recordsmith.writing import Edits
from recordsmith.writing.reshaping.edits import RecordOptionError

from ...raising import raises


def schema_of(*payloads: bytes) -> Schema:
    survey, data = SchemaSurvey(), b"".join(payloads)
    lengths = np.array(list(map(len, payloads)), np.int64)
    survey.update(data, np.cumsum(lengths) - lengths, lengths)
    return survey.finish()


def edited(example: Mapping[str, Any], **edits: Any) -> dict[str, Any]:
    return plain(rs.decode_example(Edits(**edits).apply(rs.encode_example(example))))


def plain(features: Mapping[str, Any]) -> dict[str, Any]:
    """Lists that can be compared."""
    return {key: v if isinstance(v, list) else v.tolist() for key, v in features.items()}


# ---- against decoded examples ------------------------------------------------------------------

KEYS = ["a", "b", "label", "größe", "😀", "x" * 130, ""]
RECODED = {-3: 7, 0: 1, 1: 0, 2: 2**62, b"a": b"", b"": b"b" * 200}


def all_recoded(value: Any) -> Any:
    """As the table has it, and all others as they are."""
    if isinstance(value, list):
        table = {old: new for old, new in RECODED.items() if isinstance(old, bytes)}
        return [table.get(item, item) for item in value]
    if value.dtype == np.int64:
        return np.array([RECODED.get(item, item) for item in value.tolist()], np.int64)
    return value


@st.composite
def edits(draw: Any) -> dict[str, Any]:
    drop = draw(st.lists(st.sampled_from([*KEYS, "x*", "[ab]"]), max_size=2))
    left = [key for key in KEYS if not any(fnmatchcase(key, name) for name in drop)]
    renamed = draw(st.lists(st.sampled_from(left), unique=True, max_size=2)) if left else []
    names = draw(st.permutations([*KEYS, "new"]))
    rename = {old: new for old, new in zip(renamed, names, strict=False) if old != new}
    recode = draw(st.lists(st.sampled_from(left), unique=True, max_size=1)) if left else []
    added = draw(st.dictionaries(st.sampled_from([*KEYS, "add"]), st.integers(), max_size=2))
    add = {key: value for key, value in added.items() if key not in rename.values()}
    return {"drop": drop, "rename": rename, "recode": recode, "add": {k: v % 9 for k, v in add.items()}}  # noqa: E501 # fmt: skip


def in_plain_python(features: Mapping[str, Any], edit: Mapping[str, Any]) -> dict[str, Any] | None:
    """The decoded features after the edit; None where two would have one name."""
    result: dict[str, Any] = {}
    for key, value in features.items():
        if any(fnmatchcase(key, name) for name in edit["drop"]):
            continue
        name = edit["rename"].get(key, key)
        if name in result or name in edit["add"]:
            return None
        result[name] = all_recoded(value) if key in edit["recode"] else value
    return result | {key: np.array([value]) for key, value in edit["add"].items()}


def test_any_example_is_edited_as_its_features_are(wire: SimpleNamespace, reference: Any) -> None:
    @settings(max_examples=150)
    @given(payload=wire.examples, edit=edits(), data=st.data())
    def check(payload: bytes, edit: dict[str, Any], data: Any) -> None:
        if classify(payload) != "Example":
            with pytest.raises(rs.DataError):
                Edits(drop=["a"]).apply(payload)
            return
        decoded = rs.decode_example(payload)
        ints = {old: new for old, new in RECODED.items() if isinstance(old, int)}
        texts = {old: new for old, new in RECODED.items() if isinstance(old, bytes)}
        tables = {}
        for key in edit["recode"]:
            value = decoded.get(key)
            if isinstance(value, np.ndarray) and value.dtype != np.int64 and len(value):
                return  # floats are refused
            tables[key] = {**(texts if isinstance(value, list) else ints), "*": "*"}
        change = Edits(**{**edit, "recode": tables})
        expected = in_plain_python(decoded, edit)
        if expected is None:
            with pytest.raises(rs.OptionError) as caught:
                change.apply(payload)
            assert caught.value.option in ("add", "rename")
            return
        result = change.apply(payload)
        if classify(result) != "Example":  # only what no writer would write is left
            assert all(isinstance(value, list) and not value for value in expected.values())
            return
        found = rs.decode_example(result)
        assert reference.plain(found) == reference.plain(expected)
        message = reference.parse("Example", result)
        if message is not None:  # it refuses keys that are no UTF-8
            assert reference.plain_features(message.features) == reference.plain(expected)
        if not (edit["drop"] or edit["rename"] or edit["recode"] or edit["add"]):
            assert result == payload

    check()


def test_any_sequence_is_edited_as_its_features_are(wire: SimpleNamespace, reference: Any) -> None:
    @settings(max_examples=60)
    @given(payload=wire.sequences, drop=st.sampled_from(KEYS), old=st.sampled_from(KEYS))
    def check(payload: bytes, drop: str, old: str) -> None:
        if classify(payload) != "SequenceExample" or drop == old:
            return
        context, lists = rs.decode_sequence_example(payload)
        result = Edits(drop=[drop], rename={old: "new name"}, add={"added": 1.5}).apply(payload)
        found = rs.decode_sequence_example(result)

        def renamed(features: Mapping[str, Any]) -> dict[str, Any]:
            return {
                "new name" if key == old else key: value
                for key, value in features.items()
                if key != drop
            }

        expected = {**renamed(context), "added": np.array([1.5], np.float32)}
        assert reference.plain(found.context) == reference.plain(expected)
        assert found.feature_lists.keys() == renamed(lists).keys()
        for key, steps in renamed(lists).items():
            got = found.feature_lists[key]
            assert list(map(reference.plain_value, got)) == list(map(reference.plain_value, steps))

    check()


def test_feature_lists_are_recoded_step_by_step() -> None:
    payload = rs.encode_sequence_example({"id": 1}, {"id": [[1, 2], [], [2]], "text": [["a"]]})
    change = Edits(recode={"id": {1: 10, 2: 20}, "text": {"a": "ö"}})
    context, lists = rs.decode_sequence_example(change.apply(payload))
    assert context["id"].tolist() == [10]  # type: ignore[union-attr]
    assert [list(step) for step in lists["id"]] == [[10, 20], [], [20]]
    assert lists["text"] == [["ö".encode()]]


# ---- casts ---------------------------------------------------------------------------------------


def numbers(dtype: Any, *values: float) -> list[Any]:
    return [np.array([value], dtype) for value in values]


def texts(*values: str) -> list[Any]:
    return [[value.encode()] for value in values]


# by the kinds that they can have
CASTS: dict[tuple[str, ...], list[Any]] = {
    ("int64", "float"): [
        *numbers("int64", 0, -1, 2**24, 2**53, -(2**63)), np.arange(40),
        *numbers("float32", -0.0, 2.0**62, -(2.0**63)), np.arange(40, dtype=np.float32),
        *texts("7", " -7\n", "+0", str(-(2**63)), str(2**62)), [b"1", b"2"],
    ],
    ("int64",): [
        *numbers("int64", 2**24 + 1, 2**63 - 1), *texts("16777217", str(2**63 - 1)),
    ],
    ("float",): [
        *numbers("float32", 0.5, 1e-40, 2.0**63, 3e38, np.nan, np.inf, -np.inf),
        *texts("1.5", ".5", "1e2", "-inf", "nan", "7777777.5", str(2**63)),
    ],
    (): [
        *texts("", "0x1", "1_0", "1e39", "9" * 31, "1e", str(-(2**63) - 1), "٣", "9" * 10**6),
        [b"\xff"],
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", ["int64", "float"])
def test_casts_keep_numbers(kind: Any) -> None:
    """Or are errors. Steps of sequences too."""
    change = Edits(cast={"k": kind}, rename={"k": "new"})
    dtype, parse = (np.int64, int) if kind == "int64" else (np.float32, float)
    for kinds, value in ((kinds, value) for kinds, values in CASTS.items() for value in values):
        payload = rs.encode_example({"k": value, "other": 1})
        steps = rs.encode_sequence_example({"k": value}, {"k": [value, value[:0], value]})
        if kind not in kinds:
            for bad in (payload, steps):
                fields = {"defect": Defect.FEATURE_VALUE, "feature": "k"}
                with raises(rs.CorruptDataError, **fields) as caught:
                    change.apply(bad)
                assert len(str(caught.value)) < 500
            continue
        expected = np.array([*map(parse, value)], dtype)
        made = rs.decode_example(change.apply(payload))["new"]
        context, lists = rs.decode_sequence_example(change.apply(steps))
        first, empty, last = lists["new"]
        for one in (made, context["new"], first, last):
            np.testing.assert_array_equal(one, expected, strict=True)
        np.testing.assert_array_equal(empty, expected[:0], strict=True)


def test_a_cast_comes_after_recoding_and_keeps_what_has_the_kind(reference: Any) -> None:
    change = Edits(recode={"a": {"one": "1"}}, cast={"a": "int64", "b": "float", "c": "int64"})
    made = plain(rs.decode_example(change.apply(rs.encode_example(
        {"a": ["one", "one"], "b": 0.5}, {"c": "float"}
    ))))  # fmt: skip
    assert made == {"a": [1, 1], "b": [0.5]}
    valueless = reference.delimited(1, reference.delimited(1, b"\x0a\x01c\x12\x00"))
    assert change.apply(valueless) == valueless
    schema = schema_of(change.apply(rs.encode_example({"c": []}, {"c": "float"})))
    assert schema.features["c"].kind == "int64"
    with pytest.raises(rs.OptionError):
        Edits(cast={"a": "int64"}).check(schema)


# ---- what stays as it is -----------------------------------------------------------------------


def test_what_is_not_edited_keeps_its_bytes(reference: Any) -> None:
    r = reference
    odd = r.delimited(3, r.delimited(1, r.varint(5, 9)) + r.tag(9, r.VARINT) + r.varint(1))
    entries = [
        r.entry(b"z", odd),
        r.tag(7, r.VARINT) + r.varint(300, 5),
        r.entry(b"a", r.delimited(3, r.tag(1, r.VARINT) + r.varint(1))),
        r.delimited(1, r.delimited(2, odd) + r.delimited(1, b"turned")),
    ]
    behind = r.tag(12, r.FIXED32) + b"abcd"
    payload = r.example(*entries) + behind
    assert classify(payload) == "Example"
    assert Edits(drop=["a"]).apply(payload) == r.example(*entries[:2], entries[3]) + behind
    turned = r.delimited(1, r.delimited(2, odd) + r.delimited(1, b"new"))
    renamed = Edits(rename={"turned": "new"}).apply(payload)
    assert renamed == r.example(*entries[:3], turned) + behind
    added = Edits(add={"n": 5}).apply(payload)
    assert added == r.example(*entries, r.entry(b"n", r.delimited(3, r.delimited(1, b"\5")))) + behind  # noqa: E501 # fmt: skip


def test_of_equal_keys_the_last_one_counts(reference: Any) -> None:
    r = reference

    def label(number: int) -> bytes:
        return r.entry(b"label", r.delimited(3, r.delimited(1, r.varint(number))))  # type: ignore[no-any-return]

    payload = r.example(label(99), label(1)) + r.example(label(2))
    recoded = Edits(recode={"label": {2: 5}}).apply(payload)
    assert rs.decode_example(recoded)["label"] == [5]
    assert Edits(drop=["label"]).apply(payload) == r.example() * 2
    renamed = rs.decode_example(Edits(rename={"label": "l"}).apply(payload))
    assert {key: list(value) for key, value in renamed.items()} == {"l": [2]}


def test_names_can_be_swapped_and_reused() -> None:
    example = {"a": 1, "b": 2, "c": 3}
    assert edited(example, rename={"a": "b", "b": "a"}) == {"a": [2], "b": [1], "c": [3]}
    assert edited(example, drop=["b"], rename={"a": "b"}) == {"b": [1], "c": [3]}
    assert edited(example, rename={"a": "b", "b": "d"}) == {"b": [1], "d": [2], "c": [3]}
    assert edited(example, drop=["a"], add={"a": "x"}) == {"a": [b"x"], "b": [2], "c": [3]}
    assert edited(example, rename={"a": "d"}, add={"a": 0.5})["a"] == [0.5]


def test_kinds_of_what_is_added() -> None:
    add = {"i": 3, "f": [0.5, 1], "t": "ö", "b": b"\xff", "n": np.arange(3), "none": []}
    expected = {"i": [3], "f": [0.5, 1], "t": ["ö".encode()], "b": [b"\xff"], "n": [0, 1, 2]}
    assert edited({}, add=add) == {**expected, "none": []}


# ---- conflicts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "fields"),
    [
        ({"rename": {"a": "b"}}, {"option": "rename", "value": "b"}),
        ({"add": {"a": 1}}, {"option": "add", "value": "a"}),
        ({"recode": {"f": {1: 2}}}, {"option": "recode", "match": "'f' is float"}),
    ],
)
def test_conflicts_with_a_record(edit: dict[str, Any], fields: dict[str, Any]) -> None:
    payload = rs.encode_example({"a": 1, "b": 2, "f": 0.5})
    with raises(rs.OptionError, **fields):
        Edits(**edit).apply(payload)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"drop": "a"}, "list of names"),
        ({"drop": ["a"], "rename": {"a": "b"}}, "removes 'a'"),
        ({"drop": ["a*"], "recode": {"ab": {1: 2}}}, r"removes 'ab' \(by 'a\*'\)"),
        ({"rename": {"a": "c", "b": "c"}}, "the name 'c'"),
        ({"rename": {"a": "a"}}, "the same name"),
        ({"rename": {"a": "b"}, "add": {"b": 1}}, "the feature 'b'"),
        ({"rename": ["a"]}, "a dict"),
        ({"rename": {"a": 3}}, "str"),
        ({"add": {"a": None}}, "value for 'a'"),
        ({"add": {"a": object()}}, "'a'"),
        ({"recode": {"a": {}}}, "no rows"),
        ({"recode": {"a": {1: 0.5}}}, "integer or text"),
        ({"recode": {"a": 3}}, "path"),
        ({"cast": {"a": "int32"}}, "int64.*float"),
        ({"cast": {"a": []}}, "int64.*float"),
        ({"cast": {"a": "float"}, "drop": ["a"]}, "removes 'a'"),
    ],
)
def test_invalid_edits(edit: dict[str, Any], message: str) -> None:
    with pytest.raises(rs.OptionError, match=message):
        Edits(**edit)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"drop": ["image/clas"]}, "'image/clas'"),
        ({"drop": ["masks/*"]}, r"'masks/\*'"),
        ({"rename": {"lable": "l"}}, "'lable'.*'label'"),
        ({"recode": {"lable": {1: 2}}}, "'lable'.*'label'"),
        ({"recode": {"label": {"x": 2}}}, "'x' for int64"),
    ],
)
def test_edits_that_do_not_fit_the_schema(edit: dict[str, Any], message: str) -> None:
    schema = schema_of(
        rs.encode_example({"label": 1, "text": "a", "sometimes": 2}),
        rs.encode_example({"label": 1, "text": "b", "else": 2}),
    )
    with pytest.raises(rs.OptionError, match=message):
        Edits(**edit).check(schema)
    Edits(drop=["some*"], rename={"text": "t"}, recode={"label": {1: 2}}).check(schema)
    Edits(rename={"sometimes": "else"}).check(schema)  # no record has both
    Edits(drop=["anything"]).check(schema_of())


@pytest.mark.parametrize(
    ("payload", "defect"),
    [(b"\x0a\xff", Defect.MALFORMED_EXAMPLE), (b"plain bytes", Defect.NOT_AN_EXAMPLE)],
)
def test_payloads_that_are_no_examples(payload: bytes, defect: Defect) -> None:
    with pytest.raises(rs.DataError) as caught:
        Edits(drop=["a"]).apply(payload)
    assert caught.value.defect in (defect, Defect.NOT_AN_EXAMPLE)


# ---- tables ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "old,new,name\n1,10,ten\n2,20,\n"),
        ("t.csv", "﻿New , old\r\n10,1\r\n\r\n20,2\r\n"),
    ],
)
def test_tables_in_files(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8", newline="")
    assert edited({"label": [2, 1, 1]}, recode={"label": path})["label"] == [20, 10, 10]
    assert edited({"label": ["2", "1"]}, recode={"label": str(path)})["label"] == [b"20", b"10"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "", "names of the columns"),
        ("t.csv", "1,2\n", "names of the columns"),
        ("t.csv", "old,new\n", "no rows"),
        ("t.csv", "old,new\n1,2,3\n", "3 cells"),
        ("t.csv", "old,new\n1,x\n", "line 2: 'x' for int64"),
        ("t.csv", "old,new\n1,\n", "line 2: '' for int64"),
        ("t.csv", "old,new\n1,2\n01,3\n", "line 3: .*'01'"),
        ("t.csv", "old,new\n*,2\n*,3\n", r"line 3: .* \*"),
        ("t.csv", f"old,new\n1,{2**63}\n", "int64"),
        ("t.json", '{"1": 10}', "begins with"),
    ],
)
def test_invalid_tables(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with raises(rs.OptionError, option="recode", match=message) as caught:
        edited({"label": 1}, recode={"label": path})
    assert str(path) in str(caught.value)


def test_tables_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(rs.FileAccessError):
        Edits(recode={"label": tmp_path / "none.csv"})
    (tmp_path / "bytes.csv").write_bytes(b"old,new\n1,\xff\n")
    with raises(rs.OptionError, option="recode", value=None, match="byte 10"):
        Edits(recode={"label": tmp_path / "bytes.csv"})


def test_values_missing_in_a_table() -> None:
    for key, value, table in (("label", 3, {1: 2}), ("text", "rose", {"daisy": "Daisy"})):
        with raises(rs.DataError, defect=Defect.FEATURE_VALUE, feature=key, found=repr(value)):
            edited({key: value}, recode={key: table})
    assert edited({"label": [1, 3]}, recode={"label": {1: 2, "*": 9}})["label"] == [2, 9]
    assert edited({"label": [1, 3]}, recode={"label": {1: 2, "*": "*"}})["label"] == [2, 3]
    assert edited({"label": []}, recode={"label": {1: 2}}) == {"label": []}


# ---- names of classes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({0: 1, 1: 0}, ("rose", "daisy")),
        ({0: 0, 1: 0, 2: 1}, ("daisy", "tulip")),
        ({1: 0, 0: 0}, ("daisy",)),  # a label that stays keeps its name
        ({2: 5, 1: 5}, (None,) * 5 + ("tulip",)),  # else the first row names it
        ({2: 1, "*": "*"}, ("daisy", "rose")),
        ({2: 0, "*": 3}, ("tulip", None, None, "daisy")),
        ({0: -1, 1: 0}, ("rose",)),
    ],
)
def test_names_move_with_their_labels(table: Any, expected: Any) -> None:
    names = ("daisy", "rose", "tulip")
    assert Edits(recode={"image/class/label": table}).class_names(names) == expected
    assert Edits(recode={"other": table}).class_names(names) == names
    assert Edits(recode={"image/class/label": table}).class_names(None) is None


def test_the_column_name_names_classes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("old,new,name\n0,1,plant\n1,1,\n2,0,\n")
    change = Edits(recode={"image/class/label": path})
    assert change.class_names(("daisy", "rose", "tulip")) == ("tulip", "plant")
    assert change.class_names(None) == (None, "plant")


def test_recoded_text_keeps_the_class_names() -> None:
    names = ("daisy", "rose")
    assert Edits(recode={"label": {"daisy": "rose"}}).class_names(names) == names


def test_features_with_class_labels_are_recoded_together() -> None:
    example = {"image/class/label": 1, "image/object/class/label": [1, 2]}
    schema, names = schema_of(rs.encode_example(example)), ("none", "daisy", "rose")
    table = {1: 2, 2: 1}
    with raises(rs.OptionError, value="image/object/class/label"):
        Edits(recode={"image/class/label": table}).check(schema, names)
    Edits(recode={"image/class/label": table}).check(schema, None)
    Edits(recode=dict.fromkeys(example, table)).check(schema, names)
    Edits(recode={"image/class/label": table}, drop=["image/object/*"]).check(schema, names)
    example["image/segmentation/class/encoded"] = b"png"  # type: ignore[assignment]
    with raises(
        rs.OptionError, option="recode", value="image/segmentation/class/encoded", match="masks"
    ):
        Edits(recode=dict.fromkeys(list(example)[:2], table)).check(
            schema_of(rs.encode_example(example)), names
        )


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda edits: pickle.loads(pickle.dumps(edits))])
def test_edits_can_be_copied_when_they_were_used(copied: Callable[[Edits], Edits]) -> None:
    edits = Edits(rename={"a": "b"}, drop=["q*"], recode={"label": {1: 2}})
    payload = rs.encode_example({"a": 1, "q": 2, "label": 1})
    changed = edits.apply(payload)
    assert copied(edits).apply(payload) == changed == edits.apply(payload)


# -- blocks ----------------------------------------------------------------------------------------


def block_of(payloads: Sequence[bytes]) -> RecordBlock:
    """With something between the payloads, as there is in files."""
    lengths = np.array(list(map(len, payloads)), np.int64)
    starts = np.cumsum(lengths + 3) - lengths
    return RecordBlock(
        memoryview(b"".join(b"\xff..%b" % p for p in payloads)), starts, lengths, 5, 0
    )


def changed(change: Edits, payloads: Sequence[bytes]) -> list[bytes]:
    new = []
    for data, offsets in change.rewrite(block_of(payloads)):
        view = memoryview(data)
        assert len(view) == offsets[-1]
        new += [bytes(view[a:b]) for a, b in pairwise(offsets.tolist())]
    return new


@pytest.mark.parametrize("piece_bytes", [1, 60, rewriting._PIECE_BYTES])
def test_a_block_is_rewritten_as_its_records_are(
    monkeypatch: pytest.MonkeyPatch, piece_bytes: int
) -> None:
    examples: list[dict[str, Any]] = [
        {"a": [number % 3] * (number % 4), "b": "x" * number, f"k{number % 7}": number}
        for number in range(100)
    ]
    payloads = [rs.encode_example(example) for example in examples]
    payloads += [rs.encode_sequence_example(example, {"a": [[1], []]}) for example in examples]
    change = Edits(
        drop=["k[0-3]"],
        rename={"b": "new"},
        recode={"a": {0: 2**40, "*": "*"}},
        add={"added": "y" * 40},
    )
    expected = [change.apply(payload) for payload in payloads]
    monkeypatch.setattr(rewriting, "_PIECE_BYTES", piece_bytes)
    for _ in range(2):  # the second time, every key is known
        assert changed(change, payloads) == expected
    bad: list[tuple[bytes, type[Exception]]] = [
        (b"no example", rs.DataError),
        (payloads[5][:-1], rs.DataError),
        (rs.encode_example({"added": 1}), RecordOptionError),
    ]
    for payload, kind in bad:
        with pytest.raises(kind) as caught:
            changed(change, [*payloads[:9], payload])
        error: Any = caught.value
        assert getattr(error, "record", None) == 9 or error.number == 9
    assert changed(change, payloads) == expected


def test_a_record_that_no_reader_takes_is_refused() -> None:
    def doubled(*examples: dict[str, Any], **options: Any) -> list[bytes]:
        actions = [KeyAction(), KeyAction(new_value=lambda value, _: value + value)]
        rewriter = Rewriter(actions, lambda key: int(key == b"v"), {}, lambda _: None, **options)
        block = block_of([rs.encode_example(example) for example in examples])
        pieces = rewriter.rewrite(block.buffer, block.starts, block.lengths)
        return [bytes(data) for data, _ in pieces]

    payload = rs.encode_example({"v": "x" * 50})
    (longer,) = doubled({"v": "x" * 50})
    assert doubled({"v": "x" * 50}, most_bytes=len(longer)) == [longer]
    with pytest.raises(rs.OptionError, match="longer than 100 bytes"):
        doubled({"w": 1}, {"v": "x" * 50}, most_bytes=100)
    with pytest.raises(rs.OptionError, match=f"longer than {len(payload) - 1} bytes"):
        doubled({"w": "x" * 50}, most_bytes=len(payload) - 1)


def test_invalid_numbers_of_actions() -> None:
    block = block_of([rs.encode_example({"a": 1})])
    wrong: Any = KeyAction(new_value=lambda *_: None)
    for actions, number, error in (
        ([KeyAction()], 1, IndexError),
        ([KeyAction()], -1, IndexError),
        ([KeyAction(), wrong], 1, TypeError),
    ):
        rewriter = Rewriter(actions, lambda _, n=number: n, {}, lambda _: None)
        with pytest.raises(error):
            list(rewriter.rewrite(block.buffer, block.starts, block.lengths))
    with pytest.raises(IndexError, match="no action"):
        Rewriter([], lambda _: 0, {}, lambda _: None)
