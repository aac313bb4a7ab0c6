"""Serialised tensors of TensorFlow are recognised and read, and nothing else is.

That they have TensorFlow's values is tested in tests/interop/test_serialized_tensors.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.raising import raises
from tests.serialized_tensors import field, header, serialized

from recordsmith.format.example import FeatureSchema, Schema, SchemaSurvey, encode_example
from recordsmith.format.example.serialized_tensor import (
    TensorSchema,
    describe_tensor,
    read_tensor,
    schema_of_tensor,
)
from recordsmith.support.errors import CorruptDataError

FLOATS = np.arange(12, dtype=np.float32)
GOOD = [
    (serialized(FLOATS.reshape(3, 4)), "float32 [3, 4]"),
    (serialized(np.zeros((200, 300), np.uint8)), "uint8 [200, 300]"),
    (header(14, [5]) + field(4, bytes(10)), "bfloat16 [5]"),
    (serialized(True), "bool []"),
    (serialized(np.zeros((0, 3), np.uint8)), "uint8 [0, 3]"),
    (serialized([b"", b"\xff" * 200], "string"), "string [2]"),
    (header(8, [2]) + field(9, bytes(16)), "complex64 [2]"),
    (header(9, [2]) + field(10, b"\xff\xff\x01\x07"), "int64 [2]"),
    (header(22, []) + field(16, b"\x07"), "uint32 []"),
    (header(5, [3]) + field(7, b"\1\2") + b"\x38\3", "int16 [3]"),
]
MALFORMED = "not a serialised tensor"
REFUSED = [
    (serialized(FLOATS)[:-1], MALFORMED),
    (header(1, [3, 5]) + field(4, FLOATS.tobytes()), "12 values"),
    (header(1, [1 << 30]) + field(5, FLOATS[:1].tobytes()), "repeats"),
    (header(1, [1 << 30]), "repeats"),
    (header(1, [12]) + field(4, FLOATS.tobytes() + b"x"), MALFORMED),
    (header(1, [3]) + field(4, FLOATS[:3].tobytes()) + field(5, FLOATS[:3].tobytes()), MALFORMED),
    (header(1, [3]) + field(5, FLOATS[:3].tobytes()) + field(4, FLOATS[:3].tobytes()), MALFORMED),
    (header(1, [1]) + field(5, bytes(3)), MALFORMED),
    (header(1, [3]) + field(7, b"\1\2\3"), MALFORMED),
    (header(7, []) + field(4, b"\1a"), MALFORMED),
    (header(8, [1]) + field(9, bytes(4)), MALFORMED),
    (header(24, [2]) + field(4, bytes(2)), "float8_e5m2"),
    (header(12, [2]) + field(4, bytes(2)), "quint8"),
    (header(99, [2]) + field(4, bytes(2)), "99"),
    (header(9, [2])[:2] + field(2, b"\x18\1"), "known shape"),
    (header(1, [(1 << 64) - 1]), "known shape"),
    (header(1, [0, 1 << 62]), MALFORMED),
    (header(1, [1] * 33) + field(4, bytes(4)), MALFORMED),
    (header(1, [1])[2:] + field(4, bytes(4)), MALFORMED),
    (FLOATS.tobytes(), ""),
    (b"", MALFORMED),
    (b"\x08" + b"\xff" * 99, MALFORMED),
    (header(10, [2]) + field(4, b"\1\2"), "bool"),
    (header(6, [1]) + field(7, b"\x80\1"), "cannot hold"),
    (header(9, [1]) + field(10, b"\x80" * 10 + b"\1"), MALFORMED),
]


def schema_of(*values: bytes) -> FeatureSchema:
    return survey_of(*values).features["x"]


def survey_of(*values: bytes) -> Schema:
    payloads = [encode_example({"x": value}) for value in values]
    lengths = np.array([*map(len, payloads)], np.int64)
    survey = SchemaSurvey()
    survey.update(b"".join(payloads), np.cumsum(lengths) - lengths, lengths)
    return survey.finish()


@pytest.mark.parametrize(("data", "expected"), GOOD)
def test_tensors_are_recognised(data: bytes, expected: str) -> None:
    if "bfloat16" in expected:
        pytest.importorskip("ml_dtypes")
    assert describe_tensor(data) == f"serialised tensor {expected}"
    if b"\x22" in data[:60]:
        assert schema_of_tensor(data[:60], len(data)) == schema_of_tensor(data)
    known = schema_of(data)
    assert (known.content, known.content_text) == ("tensor", f"tensor {expected}")
    assert len(read_tensor(data).values()) == np.prod(read_tensor(data).shape)
    for stop in range(min(len(data), 80)):
        with raises(CorruptDataError):
            read_tensor(data[:stop])
        assert schema_of(data[:stop]).content != "tensor"


@pytest.mark.parametrize(("data", "words"), REFUSED)
def test_others_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(CorruptDataError) as caught:
        read_tensor(data).values()
    assert words in str(caught.value)
    is_refused_for_its_count = " values" in caught.value.found
    assert ("repeats" in str(caught.value)) == (is_refused_for_its_count and words == "repeats")


def test_what_tensors_have_in_common() -> None:
    """By one survey, by merged ones, and read again from JSON."""
    one = serialized(np.zeros((2, 3), np.float32))
    for others, expected in (
        ([one], TensorSchema("float32", (2, 3))),
        ([serialized(np.zeros((5, 3), np.float32))], TensorSchema("float32", (None, 3))),
        ([serialized(np.zeros((5, 3), np.int32))], TensorSchema(None, (None, 3))),
        ([serialized(np.zeros(3, np.float32)), one], TensorSchema("float32", None)),
        ([serialized(np.zeros((1,) * 7, np.float32))], TensorSchema("float32", None)),
        ([b"\0\1"], None),
        ([b"text"], None),
    ):
        found = survey_of(one, *others)
        assert found.features["x"].tensor == expected
        assert found.features["x"].content == ("raw" if expected is None else "tensor")
        assert Schema.merged([survey_of(one), *map(survey_of, others)]) == found
        assert Schema.from_json(found.to_json()) == found
