"""Types of payloads: no message is mistaken for another, as by a lenient parser."""

from __future__ import annotations

from collections import Counter
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordsmith.format.example import (
    classify,
    decode_example,
    encode_example,
    encode_sequence_example,
)
from recordsmith.format.example.kernel import payloads as kernel
from recordsmith.format.example.kernel.columns import ColumnBuilder
from recordsmith.format.example.kernel.survey import FeatureSurvey
from recordsmith.format.example.payload import PAYLOAD_KINDS
from recordsmith.support.errors import NotAnExampleError

from ...raising import raises


def classify_many(payloads: list[bytes]) -> list[str]:
    """The compiled loop over a buffer, with the payloads apart from each other."""
    buffer = b"--".join(payloads)
    lengths = np.array([len(payload) for payload in payloads], np.int64)
    starts = np.cumsum([0, *(lengths[:-1] + 2)]).astype(np.int64)
    kinds = np.full(len(payloads), 255, np.uint8)
    kernel.classify_many(buffer, starts, lengths, kinds)
    return [PAYLOAD_KINDS[kind] for kind in kinds]


@given(data=st.data())
@settings(max_examples=80)
def test_an_example_is_an_example(wire: SimpleNamespace, data: Any) -> None:
    payload = encode_example(data.draw(wire.features))
    assert classify(payload) == "Example"
    assert classify_many([payload, b"", payload]) == ["Example"] * 3
    # fields that a later version of the message may have
    later = payload + b"\x1a\x03new"
    assert classify(later) == "Example"


class Rules:
    """The rules of docs/reference/format.md for what a payload is, over what protobuf parses."""

    def __init__(self, reference: Any) -> None:
        from google.protobuf.unknown_fields import UnknownFieldSet

        self._parse = reference.parse
        self._unknown = UnknownFieldSet

    def kind(self, payload: bytes) -> str | None:
        """The answer for all but events and other data, which are None."""
        ranking = self._parse("OpenExampleListWithContext", payload)
        examples = [] if ranking is None else [*ranking.examples, *ranking.context]
        has_kind = all(map(self._is_example, examples)) and self._has_kind(examples)
        if has_kind and self._is_plain(ranking, self._below_examples(examples)):
            return "ELWC"
        sequence = self._parse("OpenSequenceExample", payload)
        if sequence is not None and sequence.feature_lists:
            below = self._below([*sequence.context, *sequence.feature_lists])
            is_sequence = (
                not any(len(self._unknown(one)) for one in [sequence, *below])
                and not self._has_double(below)
                and not (self._lacks_value(below) and has_kind)
            )
            return "SequenceExample" if is_sequence else None
        example = self._parse("OpenExample", payload)
        if example is None or not self._is_example(example):
            return None
        if self._has_kind([example]):
            return "Example"
        entries = [entry for features in example.features for entry in features.feature]
        if any(len(self._unknown(one)) for one in [*example.features, *entries]):
            return None
        if not len(self._unknown(example)) and not self._lacks_value(entries):
            return "Example"
        return "Example" if example.features and not has_kind else None

    def _is_example(self, example: Any) -> bool:
        """No other message's fields, and no entry with two keys or two values."""
        if any(field.field_number <= 2 for field in self._unknown(example)):
            return False
        return not self._has_double(self._below(list(example.features)))

    def _is_plain(self, message: Any, below: list[Any]) -> bool:
        """All that protobuf knows, and all of it there."""
        return not any(
            len(self._unknown(one)) for one in [message, *below]
        ) and not self._lacks_value(below)

    @staticmethod
    def _has_kind(examples: list[Any]) -> bool:
        return any(
            value.WhichOneof("kind")
            for example in examples
            for features in example.features
            for entry in features.feature
            for value in entry.value
        )

    @staticmethod
    def _lacks_value(messages: list[Any]) -> bool:
        return any(not one.value for one in messages if _is_entry(one))

    @staticmethod
    def _has_double(messages: list[Any]) -> bool:
        return any(len(one.key) > 1 or len(one.value) > 1 for one in messages if _is_entry(one))

    def _below_examples(self, examples: list[Any]) -> list[Any]:
        return [*examples, *self._below([one for each in examples for one in each.features])]

    @staticmethod
    def _below(maps: list[Any]) -> list[Any]:
        """All messages in some maps, the maps as well."""
        found = list(maps)
        for message in found:
            for field, value in message.ListFields():
                if field.message_type is not None:
                    found += [value] if not field.is_repeated else list(value)
        return found


def _is_entry(message: Any) -> bool:
    return message.DESCRIPTOR.name in ("OpenEntry", "OpenListEntry")


def _small_messages(r: Any) -> list[bytes]:
    """Messages with up to two fields on each level, empty, unknown and missing ones among them."""

    def joined(fields: list[bytes]) -> list[bytes]:
        return [b"", *fields, *(one + other for one in fields for other in fields)]

    unknown = r.delimited(15, b"")
    number = r.tag(3, r.VARINT) + b"\x01"
    values = [b"", r.delimited(1, b""), r.delimited(3, b"\x08\x01"), unknown]
    entries = [b"", r.delimited(1, b""), r.delimited(1, b"a"), unknown, number]
    entries += [r.delimited(2, value) for value in values]
    entries += [r.delimited(1, b"a") + r.delimited(2, value) for value in values]
    entries.append(r.delimited(1, b"a") * 2)
    maps = joined([*(r.delimited(1, entry) for entry in entries), unknown, number])
    outside = [unknown, number, r.delimited(2, b""), r.tag(2, r.VARINT) + b"\x01"]
    fields = [r.delimited(1, inner) for inner in maps]
    deeper = [r.delimited(2, r.delimited(1, entry)) for entry in entries]
    messages = joined([*fields[:8], *outside]) + fields + deeper
    messages += [one + other for one in fields for other in outside]
    messages += [other + one for one in fields for other in outside]
    # the same a level further in: ranking lists, with fields of a later version
    return messages + [b + r.delimited(1, m) + e for m in messages for b, e in _ENDS]


_ENDS = [(b"", b""), (b"", b"\x7a\x00"), (b"\x18\x01", b"")]


def test_small_messages_are_classified_by_the_rules(reference: Any) -> None:
    """Of all small messages; and what is an Example is decoded as protobuf does."""
    rules = Rules(reference)
    few = [bytes(one) for n in range(5) for one in product(b"\x00\x01\x02\n\x12za", repeat=n)]
    payloads = list(dict.fromkeys(few + _small_messages(reference)))
    found = classify_many(payloads)
    assert Counter(found).keys() == {"Example", "SequenceExample", "ELWC", "other"}
    for payload, kind in zip(payloads, found, strict=True):
        assert (None if kind == "other" else kind) == rules.kind(payload), payload.hex()
        parsed = reference.parse("Example", payload) if kind == "Example" else None
        if parsed is not None and not reference.has_entries_aside(parsed.features):
            expected = reference.plain_features(parsed.features)
            assert reference.plain(decode_example(payload)) == expected, payload.hex()


@given(data=st.data())
@settings(max_examples=80)
def test_a_sequence_with_lists_is_never_an_example(wire: SimpleNamespace, data: Any) -> None:
    context = data.draw(wire.features)
    lists = data.draw(
        st.dictionaries(wire.keys, st.lists(wire.values, max_size=3), min_size=1, max_size=3)
    )
    payload = encode_sequence_example(context, lists)
    assert classify(payload) == "SequenceExample"
    assert classify_many([payload]) == ["SequenceExample"]
    with raises(NotAnExampleError, payload="SequenceExample"):
        decode_example(payload)


@given(data=st.data())
@settings(max_examples=80)
def test_a_ranking_list_is_never_an_example(
    reference: Any, wire: SimpleNamespace, data: Any
) -> None:
    """If one of its Examples has a feature."""
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
    with raises(NotAnExampleError, payload="ELWC"):
        decode_example(payload)


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
        with raises(NotAnExampleError, payload="Event"):
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
    """One level deeper it looks like an Example, except for the value next to it."""
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
@settings(max_examples=100)
def test_any_bytes_are_something(wire: SimpleNamespace, data: Any) -> None:
    """A payload that is not a strict Example is not decoded as one, except for odd keys."""
    strategy = data.draw(st.sampled_from([wire.examples, wire.sequences]))
    payload = data.draw(st.binary(max_size=60) | wire.mutated(strategy))
    kind = classify(payload)
    assert classify_many([b"", payload]) == ["Example", kind]
    if kind in ("SequenceExample", "ELWC", "Event"):
        with raises(NotAnExampleError, payload=kind):
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
    builder = ColumnBuilder([b"a"], [3], [-1], [None], [False], [False], [False])
    with pytest.raises(IndexError):
        builder.append(buffer, *arrays)


@given(data=st.data())
@settings(max_examples=80)
def test_fields_of_a_later_version_do_not_make_another_message_an_example(
    reference: Any, wire: SimpleNamespace, data: Any
) -> None:
    """Unknown fields may hide the type, but never make it an Example."""
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
        with raises(NotAnExampleError, payload=classify(payload)):
            decode_example(payload)


def test_values_are_copied_only_where_they_fit() -> None:
    buffer, out = bytes(range(8)), np.full((2, 2, 3), 9, np.uint8)
    kernel.copy_padded(buffer, np.array([0, 5, 2]), np.array([2, 1]), out)
    assert out.tolist() == [[[0, 1, 2], [5, 6, 7]], [[2, 3, 4], [0, 0, 0]]]
    for starts, counts in (
        ([6], [1, 0]), ([-1], [1, 0]), ([2**62], [1, 0]), ([0], [0, 0]), ([0], [2, 0]),
        ([0] * 3, [3, 0]), ([0], [1]), ([0], [-1, 2]), ([], [1, 0]),
    ):  # fmt: skip
        with pytest.raises(IndexError):
            kernel.copy_padded(buffer, np.array(starts, np.int64), np.array(counts), out)
