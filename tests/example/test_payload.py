"""What a payload is: no message may be taken for another, whatever a lenient parser says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordsmith.errors import CorruptDataError
from recordsmith.example import (
    classify,
    decode_example,
    encode_example,
    encode_sequence_example,
)
from recordsmith.example.kernel import payloads as kernel
from recordsmith.example.kernel.columns import ColumnBuilder
from recordsmith.example.kernel.survey import FeatureSurvey
from recordsmith.example.payload import PAYLOAD_KINDS


def classify_many(payloads: list[bytes]) -> list[str]:
    """The compiled loop over a buffer, with the payloads apart from each other."""
    buffer = b"--".join(payloads)
    lengths = np.array([len(payload) for payload in payloads], np.int64)
    starts = np.cumsum([0, *(lengths[:-1] + 2)]).astype(np.int64)
    kinds = np.full(len(payloads), 255, np.uint8)
    kernel.classify_many(buffer, starts, lengths, kinds)
    return [PAYLOAD_KINDS[kind] for kind in kinds]


@given(data=st.data())
@settings(max_examples=200)
def test_an_example_is_an_example(wire: SimpleNamespace, data: Any) -> None:
    features = data.draw(wire.features)
    payload = encode_example(features)
    has_kind = any(value != [] for value in features.values())
    assert classify(payload) == "Example"
    assert classify_many([payload, b"", payload]) == ["Example"] * 3
    # fields that a later version of the message may have
    later = payload + b"\x1a\x03new"
    assert classify(later) == ("Example" if has_kind else "other")


@given(data=st.data())
@settings(max_examples=200)
def test_a_sequence_with_lists_is_never_an_example(wire: SimpleNamespace, data: Any) -> None:
    context = data.draw(wire.features)
    lists = data.draw(
        st.dictionaries(wire.keys, st.lists(wire.values, max_size=3), min_size=1, max_size=3)
    )
    payload = encode_sequence_example(context, lists)
    assert classify(payload) == "SequenceExample"
    assert classify_many([payload]) == ["SequenceExample"]
    with pytest.raises(CorruptDataError, match="SequenceExample"):
        decode_example(payload)


@given(data=st.data())
@settings(max_examples=200)
def test_a_ranking_list_is_never_an_example(
    reference: Any, wire: SimpleNamespace, data: Any
) -> None:
    """As long as one of its Examples says something."""
    r = reference
    examples = data.draw(st.lists(wire.features.map(encode_example), min_size=1, max_size=4))
    telling_value = data.draw(wire.values.filter(lambda value: value != []))
    telling = encode_example({data.draw(wire.keys): telling_value})
    examples.insert(data.draw(st.integers(0, len(examples))), telling)
    payload = b"".join(r.delimited(1, content) for content in examples)
    if data.draw(st.booleans()):
        payload += r.delimited(2, data.draw(wire.features.map(encode_example)))
    assert r.parse("ExampleListWithContext", payload) is not None
    assert classify(payload) == "ELWC"
    with pytest.raises(CorruptDataError, match="ELWC"):
        decode_example(payload)


def test_a_ranking_list_of_a_context_alone(reference: Any) -> None:
    payload = reference.delimited(2, encode_example({"query": "shoes"}))
    assert classify(payload) == "ELWC"


@given(
    step=st.integers(0, 2**63 - 1),
    wall_time=st.floats(min_value=1e9, max_value=2e9),
    value=st.floats(width=32, allow_nan=False),
)
def test_an_event_is_an_event(reference: Any, step: int, wall_time: float, value: float) -> None:
    messages = reference.messages()
    events = [
        messages.Event(wall_time=wall_time, file_version="brain.Event:2"),
        messages.Event(wall_time=wall_time, step=step, graph_def=b"\n\x00"),
        messages.Event(wall_time=wall_time, step=step),
        messages.Event(wall_time=wall_time, meta_graph_def=b"graph"),
    ]
    summary = messages.Event(wall_time=wall_time, step=step)
    summary.summary.value.add(tag="loss", simple_value=value)
    for event in [*events, summary]:
        payload = event.SerializeToString()
        assert classify(payload) == "Event"
        with pytest.raises(CorruptDataError, match="Event"):
            decode_example(payload)


@pytest.mark.parametrize(
    "payload",
    [
        b"plain text, not a message",
        b"\xff\xd8\xff\xe0\x00\x10JFIF",
        b'{"json": 1}',
        b"\x00",
        bytes(100),
        b"\x08\x01",  # field 1, but a number
        b"\x0a\x02hi",  # field 1, but text
        b"\x12\x02hi",
        b"\x09" + bytes(7),  # half an Event
        b"\x10\x05",
        b"\x0a",
    ],
)
def test_other_bytes_are_something_else(payload: bytes) -> None:
    assert classify(payload) == "other"
    assert classify_many([payload]) == ["other"]


def test_a_key_that_is_itself_an_entry_makes_no_ranking_list() -> None:
    """One level down it reads as an Example, but for the value that stands beside it."""
    features = {"\n\x01a\x12\x05\x1a\x03\n\x01\x05": 1}
    assert classify(encode_example(features)) == "Example"


@given(key=st.binary(max_size=8))
def test_a_key_may_be_any_bytes(reference: Any, key: bytes) -> None:
    """As for TensorFlow's parser, and for every reader here; protobuf wants UTF-8."""
    r = reference
    payload = r.example(r.entry(key, r.delimited(1, r.delimited(1, b"v"))))
    assert classify(payload) == "Example"
    name = key.decode("utf-8", "surrogateescape")
    assert decode_example(payload) == {name: [b"v"]}
    assert encode_example({name: b"v"}) == payload


@given(data=st.data())
@settings(max_examples=300)
def test_any_bytes_are_something(wire: SimpleNamespace, data: Any) -> None:
    """And what is no Example by its strict form is decoded as one by no one, but for odd keys."""
    strategy = data.draw(st.sampled_from([wire.examples, wire.sequences]))
    payload = data.draw(st.binary(max_size=60) | wire.mutated(strategy))
    kind = classify(payload)
    assert classify_many([b"", payload]) == ["Example", kind]
    if kind in ("SequenceExample", "ELWC", "Event"):
        with pytest.raises(CorruptDataError, match=kind):
            decode_example(payload)


@pytest.mark.parametrize(
    ("starts", "lengths"),
    [
        ([-1], [1]),
        ([0], [9]),
        ([9], [0]),
        ([0], [-1]),
        ([2**62], [2**62]),
        ([0, 1], [1]),
        ([8], [1]),
        ([0], [2**63 - 1]),
    ],
)
def test_payloads_outside_the_buffer_are_refused(starts: list[int], lengths: list[int]) -> None:
    kinds = np.zeros(len(starts), np.uint8)
    arrays = np.array(starts, np.int64), np.array(lengths, np.int64)
    buffer = bytes(8)
    with pytest.raises(IndexError):
        kernel.classify_many(buffer, *arrays, kinds)
    with pytest.raises(IndexError):
        FeatureSurvey().update(buffer, *arrays, 1, False)
    with pytest.raises(IndexError):
        kernel.submessages(buffer, *arrays, 1)
    builder = ColumnBuilder([b"a"], [3], [-1], [None], [False])
    with pytest.raises(IndexError):
        builder.append(buffer, *arrays)


@given(data=st.data())
@settings(max_examples=200)
def test_fields_of_a_later_version_make_no_example_of_another_message(
    reference: Any, wire: SimpleNamespace, data: Any
) -> None:
    """Unknown fields may hide what it is, but never turn it into an Example."""
    r = reference
    context = encode_example({"id": data.draw(wire.values.filter(lambda value: value != []))})
    lists = encode_sequence_example({}, {"tokens": [[1, 2], [3]]})
    unknown = data.draw(
        st.sampled_from([b"", b"\x18\x05", b"\x22\x03new", b"\x29" + bytes(8), b"\x08\x05"])
    )
    ranking = r.delimited(1, context) + r.delimited(1, context)
    for payload in (
        unknown + context + lists,
        lists + unknown + context,
        context + lists + unknown,
        unknown + ranking,
        ranking + unknown,
        unknown + r.delimited(2, context),
    ):
        assert classify(payload) != "Example"
        with pytest.raises(CorruptDataError):
            decode_example(payload)
