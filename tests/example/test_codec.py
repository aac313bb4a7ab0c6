"""Example and SequenceExample against protobuf: the same values, the same bytes."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.example import (
    classify,
    decode_example,
    decode_payload,
    decode_sequence_example,
    encode_example,
    encode_sequence_example,
)

FLOAT_MAX = 3.4028234663852886e38

# Features { "a": int64 1, -2 }, as the format says: tag and length of each message, outside in
GOLDEN_INT64 = bytes.fromhex(
    "0a16" "0a14" "0a0161" "120f" "1a0d" "0a0b" "01" "feffffffffffffffff01"
)
GOLDEN_FLOAT = bytes.fromhex("0a13" "0a11" "0a0166" "120c" "120a" "0a08" "0000803f" "000000bf")
GOLDEN_BYTES = bytes.fromhex("0a0f" "0a0d" "0a0162" "1208" "0a06" "0a0168" "0a0169")


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


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


def test_types_of_what_is_decoded() -> None:
    decoded = decode_example(encode_example({"i": 1, "f": 1.5, "b": b"x", "none": []}))
    assert isinstance(decoded["i"], np.ndarray)
    assert decoded["i"].dtype == np.int64
    assert isinstance(decoded["f"], np.ndarray)
    assert decoded["f"].dtype == np.float32
    assert decoded["b"] == [b"x"]
    assert decoded["none"] == []
    decoded["i"][0] = 7  # the caller's own
    assert decoded["i"].tolist() == [7]


def test_an_empty_payload_is_an_example_without_features() -> None:
    assert decode_example(b"") == {}
    assert decode_payload(b"") == {}
    assert decode_sequence_example(b"") == ({}, {})


# ---- against protobuf --------------------------------------------------------------------------


@given(data=st.data())
@settings(max_examples=600)
def test_decodes_what_protobuf_decodes(reference: Any, wire: SimpleNamespace, data: Any) -> None:
    payload = data.draw(wire.examples)
    message = reference.parse("Example", payload)
    expected = reference.plain_features(message.features)
    has_kind = any(value != [] for value in expected.values())
    try:
        decoded = decode_example(payload)
    except CorruptDataError as error:
        # allowed only where nothing in it shows that it is an Example
        assert error.defect is Defect.NOT_AN_EXAMPLE
        assert classify(payload) == "other"
        assert not has_kind or any(f.kind_is_lost for f in [_Lost(payload, reference)])
        return
    assert reference.plain(decoded) == expected


class _Lost:
    """Whether some feature with a kind is hidden by a later one of the same key."""

    def __init__(self, payload: bytes, reference: Any) -> None:
        self.kind_is_lost = False
