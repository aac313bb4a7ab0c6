"""Example and SequenceExample against protobuf: the same values, the same bytes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.format.example import (
    classify,
    decode_example,
    decode_payload,
    decode_sequence_example,
    encode_columns,
    encode_example,
    encode_sequence_example,
)
from recordsmith.support.errors import DataError, Defect, OptionError

FLOAT_MAX = 3.4028234663852886e38

# Features { "a": int64 1, -2 }, as the format says: tag and length of each message, outside in
GOLDEN_INT64 = bytes.fromhex("0a160a140a0161120f1a0d0a0b01feffffffffffffffff01")
GOLDEN_FLOAT = bytes.fromhex("0a130a110a0166120c120a0a080000803f000000bf")
GOLDEN_BYTES = bytes.fromhex("0a0f0a0d0a016212080a060a01680a0169")


def attempt(decode: Callable[[bytes], Any], payload: bytes) -> tuple[Any, Defect | None]:
    """Return the decoded features, or the defect."""
    try:
        return decode(payload), None
    except DataError as error:
        return None, error.defect


def is_escaped(key: str) -> bool:
    """Return whether a key stands for bytes that are not UTF-8."""
    return any("\udc80" <= letter <= "\udcff" for letter in key)


def has_prefix_keys(features: dict[str, Any]) -> bool:
    """Whether one key begins with another: protobuf's upb sorts these the other way round."""
    keys = sorted(features)
    return any(after.startswith(before) for before, after in pairwise(keys))


def set_feature(feature: Any, value: Any) -> None:
    """Put a Python value into a protobuf Feature, by the rules that encode_example states."""
    if not isinstance(value, list):
        value = [value]
    if not value:
        return
    if isinstance(value[0], (str, bytes)):
        feature.bytes_list.value.extend(v.encode() if isinstance(v, str) else v for v in value)
    elif any(isinstance(v, float) for v in value):
        feature.float_list.value.extend(value)
    else:
        feature.int64_list.value.extend(map(int, value))


# ---- golden ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "features"),
    [
        (GOLDEN_INT64, {"a": [1, -2]}),
        (GOLDEN_FLOAT, {"f": [1.0, -0.5]}),
        (GOLDEN_BYTES, {"b": [b"h", b"i"]}),
        (b"\n\x00", {}),
    ],
)
def test_golden_bytes(payload: bytes, features: dict[str, list[Any]]) -> None:
    assert encode_example(features) == payload
    decoded = decode_example(payload)
    assert {key: list(value) for key, value in decoded.items()} == features


def test_an_empty_payload_is_an_example_without_features() -> None:
    assert decode_example(b"") == {}
    assert decode_payload(b"") == {}
    assert decode_sequence_example(b"") == ({}, {})


# ---- against protobuf --------------------------------------------------------------------------


@given(data=st.data())
@settings(max_examples=200)
def test_decodes_what_protobuf_decodes(reference: Any, wire: SimpleNamespace, data: Any) -> None:
    payload = data.draw(wire.examples)
    expected = reference.plain_features(reference.parse("Example", payload).features)
    decoded, defect = attempt(decode_example, payload)
    if defect is not None:  # only if nothing shows that it is an Example
        assert defect is Defect.NOT_AN_EXAMPLE
        assert not any(expected.values())
        return
    assert reference.plain(decoded) == expected
    assert reference.plain(decode_payload(payload)) == expected


@given(data=st.data())
@settings(max_examples=100)
def test_decodes_sequences_as_protobuf_does(
    reference: Any, wire: SimpleNamespace, data: Any
) -> None:
    payload = data.draw(wire.sequences)
    message = reference.parse("SequenceExample", payload)
    decoded = decode_sequence_example(payload)
    assert reference.plain(decoded.context) == reference.plain_features(message.context)
    assert {
        key: list(map(reference.plain_value, steps)) for key, steps in decoded.feature_lists.items()
    } == reference.plain_lists(message.feature_lists)


@given(data=st.data())
@settings(max_examples=200)
def test_damaged_payloads_are_refused_where_protobuf_refuses(
    reference: Any, wire: SimpleNamespace, data: Any
) -> None:
    """Never a value that protobuf does not have; any bytes give a value or a DataError."""
    strategy = data.draw(st.sampled_from([wire.examples, wire.sequences]))
    payload = data.draw(wire.mutated(strategy) | st.binary(max_size=60))
    decoded, defect = attempt(decode_example, payload)
    if defect is not None:
        assert defect in (Defect.MALFORMED_EXAMPLE, Defect.NOT_AN_EXAMPLE)
    else:
        message = reference.parse("Example", payload)
        if message is None:  # documented: keys that are not UTF-8 have escapes
            assert any(map(is_escaped, decoded))
        elif not reference.has_entries_aside(message.features):
            assert reference.plain(decoded) == reference.plain_features(message.features)
    decoded, defect = attempt(decode_sequence_example, payload)
    if defect is not None:
        assert defect in (Defect.MALFORMED_EXAMPLE, Defect.NOT_AN_EXAMPLE)
    else:
        context, lists = decoded
        message = reference.parse("SequenceExample", payload)
        if message is None:
            assert any(map(is_escaped, (*context, *lists)))
        elif not reference.has_entries_aside(message.context):
            assert reference.plain(context) == reference.plain_features(message.context)


@given(data=st.data())
@settings(max_examples=100)
def test_encodes_the_bytes_that_protobuf_writes(
    reference: Any, wire: SimpleNamespace, data: Any
) -> None:
    features = data.draw(wire.features)
    message = reference.messages().Example()
    message.features.SetInParent()
    for key, value in features.items():
        message.features.feature[key].SetInParent()
        set_feature(message.features.feature[key], value)
    payload = encode_example(features)
    if not has_prefix_keys(features):
        assert payload == message.SerializeToString(deterministic=True)
    parsed = reference.parse("Example", payload)
    assert reference.plain_features(parsed.features) == reference.plain_features(message.features)
    assert list(decode_example(payload)) == sorted(features)
    assert reference.plain(decode_example(payload)) == reference.plain_features(message.features)


@given(data=st.data())
@settings(max_examples=80)
def test_encodes_the_sequences_that_protobuf_writes(
    reference: Any, wire: SimpleNamespace, data: Any
) -> None:
    context = data.draw(wire.features)
    lists = data.draw(st.dictionaries(wire.keys, st.lists(wire.values, max_size=4), max_size=3))
    message = reference.messages().SequenceExample()
    for key, value in context.items():
        message.context.feature[key].SetInParent()
        set_feature(message.context.feature[key], value)
    for key, steps in lists.items():
        message.feature_lists.feature_list[key].SetInParent()
        for step in steps:
            set_feature(message.feature_lists.feature_list[key].feature.add(), step)
    payload = encode_sequence_example(context, lists)
    if not has_prefix_keys(context) and not has_prefix_keys(lists):
        assert payload == message.SerializeToString(deterministic=True)
    parsed = reference.parse("SequenceExample", payload)
    assert reference.plain_features(parsed.context) == reference.plain_features(message.context)
    assert reference.plain_lists(parsed.feature_lists) == reference.plain_lists(
        message.feature_lists
    )
    decoded = decode_sequence_example(payload)
    assert reference.plain(decoded.context) == reference.plain_features(message.context)
    assert list(decoded.feature_lists) == sorted(lists)


def test_large_features_round_trip(reference: Any) -> None:
    """Lengths that take three and four bytes, and the encoder's memory grown many times."""
    dice = random.Random(1)
    features = {
        "image": dice.randbytes(3_000_000),
        "captions": [dice.randbytes(dice.randint(0, 300)) for _ in range(2000)],
        "ids": [dice.getrandbits(63) * dice.choice([1, -1]) for _ in range(5000)],
        "weights": [dice.random() for _ in range(5000)],
    }
    message = reference.messages().Example()
    for key, value in features.items():
        set_feature(message.features.feature[key], value)
    payload = encode_example(features)
    assert payload == message.SerializeToString(deterministic=True)
    assert reference.plain(decode_example(payload)) == reference.plain_features(message.features)


# ---- decoding: what protobuf's rules are -------------------------------------------------------


@pytest.mark.parametrize("value", [0, 1, 127, 128, 2**31, 2**63 - 1, -1, -(2**63)])
@pytest.mark.parametrize("width", [1, 5, 10])
def test_numbers_in_longer_encodings(value: int, width: int, reference: Any) -> None:
    r = reference
    number = r.varint(value, width)
    for field in (r.tag(1, r.VARINT) + number, r.delimited(1, number)):
        payload = r.example(r.entry(b"n", r.delimited(3, field)))
        assert decode_example(payload)["n"].tolist() == [value]  # type: ignore[union-attr]


def test_an_entry_with_two_keys_or_values(reference: Any) -> None:
    """No writer does this: it is refused, or read like protobuf."""
    r = reference
    key, value = r.delimited(1, b"k"), r.delimited(2, r.delimited(1, r.delimited(1, b"v")))
    other = r.delimited(2, r.delimited(1, r.delimited(1, b"w")))
    for parts in ([r.delimited(1, b"j"), key, value], [key, value, other], [value, other, key]):
        payload = r.example(r.delimited(1, b"".join(parts)))
        decoded, defect = attempt(decode_example, payload)
        if defect is None:
            expected = r.plain_features(r.parse("Example", payload).features)
            assert r.plain(decoded) == expected
        else:
            assert defect in (Defect.MALFORMED_EXAMPLE, Defect.NOT_AN_EXAMPLE)


def test_entries_with_unknown_fields_only(reference: Any) -> None:
    """One rule for all readers: not an Example, unless a feature has a kind."""
    r = reference
    unknown = r.delimited(3, b"what?")
    odd = r.delimited(1, r.delimited(1, b"k") + r.delimited(2, b"") + unknown)
    telling = r.entry(b"j", r.delimited(3, b""))
    for payload, expected in ((r.example(odd), "other"), (r.example(odd, telling), "Example")):
        assert classify(payload) == expected
        _, defect = attempt(decode_example, payload)
        assert defect is (Defect.NOT_AN_EXAMPLE if expected == "other" else None)
    # inside of a feature, where only those pass who read it, they say nothing
    inside = r.example(r.entry(b"k", unknown.replace(b"\x1a", b"\x22")))
    assert classify(inside) == "Example"
    assert decode_example(inside) == {"k": []}


def test_keys_that_are_not_utf_8_are_kept(reference: Any) -> None:
    r = reference
    payload = r.example(r.entry(b"\xff\x00k", r.delimited(1, r.delimited(1, b"v"))))
    decoded = decode_example(payload)
    assert classify(payload) == "Example"
    assert decoded == {"\udcff\x00k": [b"v"]}
    assert encode_example(decoded) == payload


@pytest.mark.parametrize("depth", [1, 50, 90])
def test_nested_groups_are_skipped(depth: int, reference: Any) -> None:
    r = reference
    group = r.tag(9, r.GROUP_START) * depth + r.tag(9, r.GROUP_END) * depth
    payload = GOLDEN_INT64 + group
    assert reference.parse("Example", payload) is not None
    assert decode_example(payload)["a"].tolist() == [1, -2]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (b"\x4b" * 200 + b"\x4c" * 200, "groups too deep"),
        (b"\x4b", "a group without end"),
        (b"\x4b\x54", "a group with another's end"),
        (b"\x4c", "an end without a group"),
        (b"\x4e", "a wire type that does not exist"),
        (b"\x4f", "another wire type that does not exist"),
        (b"\x00\x00", "field number 0"),
        (b"\x02\x00", "field number 0, delimited"),
        (b"\x48", "a varint that is not there"),
        (b"\x48" + b"\xff" * 10 + b"\x01", "a varint of eleven bytes"),
        (b"\x49" + bytes(7), "a fixed64 of seven bytes"),
        (b"\x4d" + bytes(3), "a fixed32 of three bytes"),
        (b"\x4a\x05four", "a length past the end"),
        (b"\x4a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "a length of 2**64-1"),
        (b"\x4a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "a length of 2**63-1"),
        (b"\xff\xff\xff\xff\x7f\x00", "a tag of more than 32 bits"),
        (b"\xc8\x80\x80\x80\x80\x00\x00", "a tag of six bytes"),
        (b"\xc8\x80", "half a tag"),
        (b"\x0a\x7f", "features past the end"),
        (b"\x0a\x02\x0a\x05", "an entry past the end"),
        (b"\x0a\x04\x0a\x02\x0a\x05", "a key past the end"),
        (b"\x0a\x04\x0a\x02\x12\x05", "a value past the end"),
        (b"\x0a\x06\x0a\x04\x12\x02\x1a\x05", "a list past the end"),
        (b"\x0a\x08\x0a\x06\x12\x04\x1a\x02\x0a\x05", "packed values past the end"),
        (b"\x0a\x09\x0a\x07\x12\x05\x1a\x03\x0a\x01\x80", "half a packed varint"),
        (b"\x0a\x0b\x0a\x09\x12\x07\x12\x05\x0a\x03abc", "three bytes of packed floats"),
        (b"\x0a\x0a\x0a\x08\x12\x06\x12\x04\x0dabc", "three bytes of a float"),
    ],
)
def test_malformed_payloads_are_refused(damage: bytes, why: str, reference: Any) -> None:
    """Each alone and after a valid Example; protobuf refuses the same."""
    for payload in (damage, GOLDEN_INT64 + damage):
        assert reference.parse("Example", payload) is None, why
        with pytest.raises(DataError) as caught:
            decode_example(payload)
        assert caught.value.defect in (Defect.MALFORMED_EXAMPLE, Defect.NOT_AN_EXAMPLE)
    with pytest.raises(DataError):
        decode_sequence_example(GOLDEN_INT64 + damage)


def test_a_malformed_list_under_a_later_kind_is_malformed(reference: Any) -> None:
    """protobuf also parses the values that a oneof replaces."""
    r = reference
    feature = r.delimited(2, b"\x0a\x03abc") + r.delimited(3, r.delimited(1, b"\x01"))
    payload = r.example(r.entry(b"k", feature))
    assert reference.parse("Example", payload) is None
    with pytest.raises(DataError):
        decode_example(payload)


def test_another_message_of_one_string_is_not_an_example_without_features() -> None:
    """Field 1 of many messages is a string, whose letters can look like unknown fields."""
    payload = b"\x0a\x02hi"
    assert classify(payload) == "other"
    with pytest.raises(DataError) as caught:
        decode_example(payload)
    assert caught.value.defect is Defect.NOT_AN_EXAMPLE


# ---- decoding: what is not an Example ----------------------------------------------------------


# ---- encoding ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, ("int64", [1])),
        ([True, 2], ("int64", [1, 2])),
        (3, ("int64", [3])),
        (0.5, ("float", ["0.5"])),
        ([1, 0.5], ("float", ["1.0", "0.5"])),
        ((1, 2), ("int64", [1, 2])),
        ("größe", ["größe".encode()]),
        (["a", b"\xff"], [b"a", b"\xff"]),
        (bytearray(b"ab"), [b"ab"]),
        (memoryview(b"ab"), [b"ab"]),
        ([memoryview(b"ab"), b"c"], [b"ab", b"c"]),
        (np.int8(-3), ("int64", [-3])),
        (np.float64(0.5), ("float", ["0.5"])),
        (np.True_, ("int64", [1])),
        (np.str_("x\0"), [b"x\0"]),
        ([np.bytes_(b"x\0"), "y"], [b"x\0", b"y"]),
        ([np.int64(1), 2], ("int64", [1, 2])),
        ([1, np.int64(2)], ("int64", [1, 2])),
        ([np.float32(0.5), 1], ("float", ["0.5", "1.0"])),
        (np.arange(10)[::3], ("int64", [0, 3, 6, 9])),
        (np.array([1, -2], ">i4"), ("int64", [1, -2])),
        (np.array([0.5], ">f8"), ("float", ["0.5"])),
        (np.array([0.5], np.float16), ("float", ["0.5"])),
        (np.array([True, False]), ("int64", [1, 0])),
        (np.array(2**63 - 1, np.uint64), ("int64", [2**63 - 1])),
        (np.array(["a", "ö"]), [b"a", "ö".encode()]),
        (np.array([b"a", "ö"], object), [b"a", "ö".encode()]),
        (np.array([], np.int32), ("int64", [])),
        (np.array([], np.float64), ("float", [])),
        ([math.inf, -math.inf, math.nan], ("float", ["inf", "-inf", "nan"])),
        (np.array([math.inf, math.nan]), ("float", ["inf", "nan"])),
        (-0.0, ("float", ["-0.0"])),
        (FLOAT_MAX, ("float", [repr(FLOAT_MAX)])),
        (1e-46, ("float", ["0.0"])),
        ([], []),
        (b"", [b""]),
    ],
)
def test_kinds_of_values(value: Any, expected: Any, reference: Any) -> None:
    message = reference.parse("Example", encode_example({"k": value}))
    assert reference.plain_features(message.features) == {"k": expected}


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ([], "int64", ("int64", [])),
        ([], "float", ("float", [])),
        ([1, 2], "float", ("float", ["1.0", "2.0"])),
        (2**63, "float", ("float", [repr(float(2**63))])),
        (np.array([1, 2]), "float", ("float", ["1.0", "2.0"])),
        ("a", "bytes", [b"a"]),
    ],
)
def test_declared_kinds(value: Any, kind: Any, expected: Any, reference: Any) -> None:
    for payload in (
        encode_example({"k": value}, {"k": kind}),
        encode_sequence_example({"k": value}, {}, {"k": kind}),
    ):
        message = reference.parse("Example", payload)
        assert reference.plain_features(message.features) == {"k": expected}


def test_an_empty_list_of_bytes_has_a_kind_if_declared(reference: Any) -> None:
    message = reference.parse("Example", encode_example({"k": []}, {"k": "bytes"}))
    assert message.features.feature["k"].WhichOneof("kind") == "bytes_list"
    message = reference.parse("Example", encode_example({"k": []}))
    assert message.features.feature["k"].WhichOneof("kind") is None


def test_a_feature_that_is_none_is_omitted() -> None:
    assert encode_example({"a": None, "b": 1}) == encode_example({"b": 1})


WRONG_VALUES: list[tuple[Any, str]] = [
    ([1, "a"], "int, str"),
    ([b"a", 0.5], "bytes, float"),
    ([None], "NoneType"),
    ([[1], [2]], "list"),
    ({"nested": 1}, "dict"),
    ({1, 2}, "set"),
    (1j, "complex"),
    (object(), "object"),
    (2**63, "9223372036854775808 does not fit int64"),
    (-(2**63) - 1, "-9223372036854775809 does not fit int64"),
    ([1, 2**64], "18446744073709551616 does not fit int64"),
    (memoryview(b"abcd")[::2], "contiguous"),
    (1e39, "1e[+]39"),
    ([0.5, -1e300], "-1e[+]300"),
    ([0.5, 10**400], "too large"),
    (np.array([2**63], np.uint64), "9223372036854775808"),
    (np.array([1e39]), "32-bit float"),
    (np.array([np.inf, -1e300]), "32-bit float"),
    (np.array([1j]), "complex"),
    (np.array(["2020-01-01"], "datetime64[D]"), "datetime64"),
    (np.array([1, None], object), "NoneType"),
    ("\ud800", "surrogates"),
]


@pytest.mark.parametrize(("value", "words"), WRONG_VALUES)
def test_invalid_values_are_refused(value: Any, words: str) -> None:
    """The message has the feature and the problem, both for a feature and for a step."""
    for encode in (
        lambda: encode_example({"good": 1, "the key": value}),
        lambda: encode_sequence_example({"the key": value}, {}),
        lambda: encode_sequence_example({}, {"the key": [1, value]}),
    ):
        with pytest.raises(OptionError, match=rf"'the key'.*({words})"):
            encode()


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (0.5, "int64", "int64"),
        ("a", "int64", "int64"),
        (1, "bytes", "bytes"),
        (b"a", "float", "float"),
        (np.array([0.5]), "int64", "int64"),
        (np.array([1]), "bytes", "tobytes"),
        ([1], "int32", "int32.*bytes, float, int64.*Did you mean 'int64'"),
        ([], "int", "int.*bytes, float, int64"),
        (1, 5, "5.*bytes, float, int64"),
        (np.array([1]), "int32", "int32.*bytes, float, int64"),
        (np.array([0.5]), "double", "double.*bytes, float, int64"),
    ],
)
def test_values_that_do_not_fit_their_declared_kind(value: Any, kind: Any, words: str) -> None:
    with pytest.raises(OptionError, match=rf"'the key'.*{words}"):
        encode_example({"the key": value}, {"the key": kind})


@pytest.mark.parametrize("key", [1, b"bytes", None, "\ud800"])
def test_invalid_keys_are_refused(key: Any) -> None:
    with pytest.raises(OptionError):
        encode_example({key: 1})
    with pytest.raises(OptionError):
        encode_sequence_example({}, {key: [1]})


@pytest.mark.parametrize("features", [[1], "text", None, 5, {1: 1, "a": 2}])
def test_features_are_a_dict_by_name(features: Any) -> None:
    for encode in (encode_example, lambda features: encode_sequence_example({}, features)):
        with pytest.raises(OptionError) as caught:
            encode(features)
        assert caught.value.expected in ("a dict of values by name", "a str")


@pytest.mark.parametrize("steps", ["text", b"bytes", 5, {"a": 1}])
def test_steps_are_a_list(steps: Any) -> None:
    with pytest.raises(OptionError, match=r"'the key'.*a list"):
        encode_sequence_example({}, {"the key": steps})


@given(data=st.data())
@settings(max_examples=100)
def test_fast_and_general_encoding_give_equal_bytes(wire: SimpleNamespace, data: Any) -> None:
    """The kernel encodes plain values, Python those of other types."""

    def other_type(value: Any) -> Any:
        if isinstance(value, list):
            return [other_type(item) for item in value]
        if isinstance(value, bytes):
            return bytearray(value)
        return np.str_(value) if isinstance(value, str) else np.array(value)[()]

    features = data.draw(wire.features)
    payload = encode_example(features)
    assert encode_example({key: other_type(value) for key, value in features.items()}) == payload
    arrays = {
        key: np.array(value) if value and not isinstance(value[0], (str, bytes)) else value
        for key, value in features.items()
        if isinstance(value, list)
    }
    assert encode_example(features | arrays) == payload


@pytest.mark.parametrize(
    "value",
    [
        np.arange(5),
        np.arange(5, dtype=np.float32)[::2],
        np.arange(5, dtype=">i8"),
        np.arange(5, dtype=">f4"),
        np.arange(5, dtype=np.float16),
        np.arange(5, dtype=np.int64).view(np.recarray),
        np.array(7),
        np.float32(0.5),
        np.int32(7),
        np.array([], np.float64),
    ],
)
def test_arrays_of_any_memory(value: Any) -> None:
    plain = value.ravel().tolist()
    kind: Any = "int64" if value.dtype.kind == "i" else "float"
    assert encode_example({"k": value}) == encode_example({"k": plain}, {"k": kind})
    assert encode_example({"k": value}, {"k": kind}) == encode_example({"k": plain}, {"k": kind})


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "f8", "f2", "S1", object])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (0, 3), (16, 16, 3)])
def test_arrays_of_more_axes_are_refused(
    tmp_path: Path, dtype: Any, shape: tuple[int, ...]
) -> None:
    """A flattened image cannot be restored."""
    array = np.ones(shape, dtype)
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for encode in (
            lambda: encode_example({"k": array}),
            lambda: encode_example({"k": array}, {"k": "int64"}),
            lambda: encode_sequence_example({"k": array}, {}),
            lambda: encode_sequence_example({}, {"k": [array]}),
            lambda: writer.write_example({"k": array}),
            lambda: writer.write_columns({"k": np.ones((4, *shape), dtype)}),
        ):
            with pytest.raises(OptionError):
                encode()
    with pytest.raises(rs.SourceError):
        rs.pack(rs.Rows([{"k": array}]), tmp_path / "out")


def test_none_means_missing(tmp_path: Path, tf: Any) -> None:
    expected = encode_example({"a": 1})
    assert encode_example({"a": 1, "b": None}) == expected
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_example({"b": None, "a": 1}, {"b": "float"})
    assert list(rs.open(tmp_path / "a.tfrecord").records()) == [expected]
    rs.pack(rs.Rows([{"a": 1, "b": None}]), tmp_path / "out")
    assert list(rs.open(tmp_path / "out").records()) == [expected]
    payload = encode_sequence_example({"a": 1, "b": None}, {"c": [[2], []], "d": None})
    found = tf.train.SequenceExample.FromString(payload)
    assert list(found.context.feature) == ["a"]
    assert list(found.feature_lists.feature_list) == ["c"]
    assert encode_sequence_example({}, {"d": None}) == encode_sequence_example({}, {})
    for fails in (lambda: encode_sequence_example({}, {"c": [None]}),
                  lambda: encode_example({"a": [1, None]}),
                  lambda: encode_columns({"a": [1, None]})):  # fmt: skip
        with pytest.raises(OptionError):
            fails()


def test_a_failed_encoder_leaves_no_state() -> None:
    with pytest.raises(OptionError):
        encode_example({"a": 1, "b": object()})
    assert encode_example({"a": 1}) == encode_example({"a": 1})


@example(value=3.4028235677973366e38)  # half a step past the largest: rounds to infinity
@example(value=3.4028235677973362e38)  # just below: rounds to the largest
@given(value=st.floats(allow_nan=False))
def test_floats_round_as_numpy_rounds(value: float) -> None:
    with np.errstate(over="ignore"):
        single = np.float64(value).astype(np.float32)
    for given_value in (value, np.array([value])):
        if np.isinf(single) and not np.isinf(value):
            with pytest.raises(OptionError):
                encode_example({"f": given_value})
        else:
            decoded = decode_example(encode_example({"f": given_value}))["f"]
            assert np.array_equal(decoded, [single])
