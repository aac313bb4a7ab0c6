"""Feature lists of many records at once: the same values as protobuf finds in each of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.checking.statistics import feature_blocks, record_builder
from recordsmith.format.example import BytesArray

INT64S = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 300)
FLOATS = st.floats(width=32)
STEP = st.one_of(
    st.just(("none", [])),
    st.tuples(st.just("int64"), st.lists(INT64S, max_size=4)),
    st.tuples(st.just("float"), st.lists(FLOATS, max_size=4)),
    st.tuples(st.just("bytes"), st.lists(st.binary(max_size=200), max_size=3)),
)
OF_A_KIND = st.sampled_from(["int64", "float", "bytes"]).flatmap(
    lambda kind: st.lists(STEP.filter(lambda step: step[0] in (kind, "none")), max_size=5)
)
RECORD = st.dictionaries(st.sampled_from("abc"), OF_A_KIND | st.lists(STEP, max_size=4))
FIELDS = {"int64": "int64_list", "float": "float_list", "bytes": "bytes_list"}


@pytest.fixture(scope="module")
def encode(reference: Any) -> Callable[[dict[str, Any]], bytes]:
    def encode_lists(lists: dict[str, Any]) -> bytes:
        message = reference.messages().SequenceExample()
        for key, steps in lists.items():
            message.feature_lists.feature_list[key].SetInParent()
            for kind, values in steps:
                step = message.feature_lists.feature_list[key].feature.add()
                if kind != "none":
                    field = getattr(step, FIELDS[kind])
                    field.SetInParent()
                    field.value.extend(values)
        return message.SerializeToString()

    return encode_lists


def _blocks(payloads: list[bytes]) -> dict[str, Any]:
    buffer = b"".join(payloads)
    lengths = np.array([len(payload) for payload in payloads], np.int64)
    found = feature_blocks.list_blocks(
        buffer, np.cumsum(lengths) - lengths, lengths, lambda _: True
    )
    assert found is not None
    plain = {}
    for key, block in found.items():
        values = {}
        for kind, those in block.values.items():
            each = (
                those.tolist() if isinstance(those, BytesArray) else list(map(repr, those.tolist()))
            )
            values[kind] = list(zip(block.rows[kind].tolist(), each, strict=True))
        assert block.steps is not None
        plain[key] = (block.present, block.steps.tolist(), block.lengths.tolist(), values)
    return plain


def _expected(payloads: list[bytes], reference: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for row, payload in enumerate(payloads):
        lists = reference.parse("SequenceExample", payload).feature_lists.feature_list
        for key in lists:
            present, steps, lengths, values = plain.get(key, (0, [], [], {}))
            steps.append(len(lists[key].feature))
            for step in lists[key].feature:
                field = step.WhichOneof("kind")
                those = [] if field is None else list(getattr(step, field).value)
                lengths.append(len(those))
                if those:
                    kind = field.removesuffix("_list")
                    each = those if kind == "bytes" else map(repr, those)
                    values.setdefault(kind, []).extend((row, one) for one in each)
            plain[key] = (present + 1, steps, lengths, values)
    return plain


@given(records=st.lists(RECORD, min_size=1, max_size=6))
def test_messages_written_by_protobuf(records: list[Any], encode: Any, reference: Any) -> None:
    payloads = [encode(record) for record in records]
    assert _blocks(payloads) == _expected(payloads, reference)


def test_unusual_encodings(encode: Any, reference: Any) -> None:
    """Legal, and not as protobuf writes it: each alone, and all between plain ones."""
    delimited, varint, tag = reference.delimited, reference.varint, reference.tag

    def sequence(*entries: bytes) -> bytes:
        return delimited(2, b"".join(delimited(1, entry) for entry in entries))

    def entry(*steps: bytes, key: bytes = b"a") -> bytes:
        return delimited(1, key) + delimited(2, b"".join(delimited(1, step) for step in steps))

    def ints(content: bytes) -> bytes:
        return delimited(3, content)

    packed = ints(delimited(1, b"\x01\x02"))
    unpacked = ints(tag(1, reference.VARINT) + varint(5) + tag(1, reference.VARINT) + varint(6))
    unpacked_floats = delimited(2, tag(1, reference.FIXED32) + b"\0\0\x80\x3f")
    unknown = delimited(9, b"?")
    odd = {
        "unpacked": sequence(entry(unpacked)),
        "unpacked floats": sequence(entry(unpacked_floats, key=b"f")),
        "packed twice": sequence(entry(ints(delimited(1, b"\x01") + delimited(1, b"\x02\x03")))),
        "both": sequence(entry(ints(delimited(1, b"\x01") + tag(1, 0) + b"\x07"))),
        "list twice in a step": sequence(entry(packed + packed)),
        "the last kind counts": sequence(entry(delimited(2, b"") + packed)),
        "unknown in a step": sequence(entry(packed + unknown)),
        "unknown in an entry": sequence(entry(packed) + unknown),
        "value before key": sequence(delimited(2, delimited(1, packed)) + delimited(1, b"a")),
        "no key": sequence(delimited(2, delimited(1, packed))),
        "no value": sequence(delimited(1, b"a")),
        "the same key twice": sequence(entry(packed), entry(packed, packed)),
        "in two maps": sequence(entry(packed)) + sequence(entry(packed, key=b"b")),
        "long length": sequence(delimited(1, b"a") + tag(2, 2) + varint(len(packed) + 2, 4)
                                + delimited(1, packed)),
    }  # fmt: skip
    plain = encode({"a": [("int64", [7])], "f": [("float", [2.0])]})
    for payload in odd.values():
        if reference.has_entries_aside(
            reference.parse("SequenceExample", payload).feature_lists
        ):  # where protobuf itself is of two minds
            continue
        assert _blocks([payload]) == _expected([payload], reference)
        among = [plain, payload, plain]
        assert _blocks(among) == _expected(among, reference)


def test_contexts_of_all_sorts(write: Any, tmp_path: Path, reference: Any) -> None:
    """In pieces, with a long length, or none: as if they were Examples of their own."""
    context = rs.encode_example({"id": 1, "name": "one"})
    features = context[2:]
    long = reference.tag(1, 2) + reference.varint(len(features), 5) + features
    pieces = rs.encode_example({"id": 2}) + rs.encode_example({"name": "two"})
    lists = rs.encode_sequence_example({}, {"steps": [[1], [2]]})
    payloads = [head + lists for head in (context, long, pieces, b"", context)]
    found = rs.stats(write(tmp_path / "a.tfrecord", payloads)).to_json()
    joined = rs.encode_example({"id": 2, "name": "two"})
    plain = [head + lists for head in (context, context, joined, b"", context)]
    same = rs.stats(write(tmp_path / "b.tfrecord", plain)).to_json()
    assert found["context"] == same["context"]
    assert found["context"]["id"]["present"] == 4
    assert found["context"]["id"]["values"]["int64"]["sample"]["top"][0] == {"value": 1, "count": 3}
    assert found["feature_lists"] == same["feature_lists"]


def test_any_number_of_features_at_a_time(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wide records are narrowed to the features that have figures; the figures are the same."""
    payloads = []
    for number in range(12):
        lists = {f"l{(key + number) % 10}": [[key], [2] * (key % 3)] for key in range(number % 9)}
        context = {f"c{(key + number) % 10}": number for key in range(number % 7)}
        payloads += [
            rs.encode_sequence_example(context, lists | {"all": [[1]]}),
            rs.encode_sequence_example({}, {"all": []}),
        ]
    path = write(tmp_path / "a.tfrecord", payloads)
    examples = [
        {f"f{(key + number) % 30}": key / 2 for key in range(number % 11)} for number in range(40)
    ]
    other = write(tmp_path / "b.tfrecord", examples)
    for most in (100, 4):
        monkeypatch.setattr(record_builder, "MAX_FEATURES", most)
        monkeypatch.setattr(feature_blocks, "FEATURES_AT_A_TIME", 1 << 14)
        whole = [rs.stats(each).to_json() for each in (path, other)]
        assert (whole[1]["left_out"] > 0) == (most == 4)
        if most == 4:
            assert [len(whole[0][name]) for name in ("context", "feature_lists")] == [4, 4]
            monkeypatch.setattr(feature_blocks, "FEATURES_AT_A_TIME", 5)
        monkeypatch.setattr(feature_blocks, "CELLS_AT_A_TIME", 7)
        assert [rs.stats(each).to_json() for each in (path, other)] == whole
