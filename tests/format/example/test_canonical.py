"""Two payloads have the same canonical form exactly if protobuf reads the same content."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from recordsmith.format.example import canonical, classify, encode_example, encode_sequence_example


def told_by_protobuf(reference: Any, name: str, payload: bytes) -> bytes:
    """Serialize a message by protobuf, without unknown fields, in one order."""
    message = reference.parse(name, payload)
    message.DiscardUnknownFields()
    if name == "Example":
        message.features.SetInParent()  # an empty message equals a missing one
    else:
        message.context.SetInParent()
        message.feature_lists.SetInParent()
    return message.SerializeToString(deterministic=True)  # type: ignore[no-any-return]


@given(data=st.data())
@settings(max_examples=80)
def test_what_protobuf_writes_again_is_the_same(
    reference: Any, wire: SimpleNamespace, data: Any
) -> None:
    """Unusual encodings: unpacked lists, equal keys, oneofs set twice, unknown fields."""
    payload = data.draw(wire.examples)
    again = told_by_protobuf(reference, "Example", payload)
    assume(classify(payload) == "Example")
    assert canonical(payload) == canonical(again)
    assert canonical(memoryview(payload)) == canonical(payload)


def spellings(r: Any) -> list[bytes]:
    """A few Features: no kind, empty ones of each, and some values packed and not."""
    one, two = r.varint(1), r.varint(2)
    return [
        b"",
        *(r.delimited(kind, b"") for kind in (1, 2, 3)),
        r.delimited(1, r.delimited(1, b"")),
        r.delimited(1, r.delimited(1, b"a")),
        r.delimited(2, r.delimited(1, bytes(4))),
        r.delimited(2, r.delimited(1, b"\0\0\0\x80")),  # -0.0
        r.delimited(2, r.tag(1, r.FIXED32) + bytes(4)),
        r.delimited(2, r.delimited(1, b"\0\0\xc0\x7f")),  # two kinds of NaN
        r.delimited(2, r.delimited(1, b"\1\0\xc0\x7f")),
        r.delimited(3, r.delimited(1, one + two)),
        r.delimited(3, r.tag(1, r.VARINT) + one + r.tag(1, r.VARINT) + two),
        r.delimited(3, r.delimited(1, one)) + r.delimited(3, r.delimited(1, two)),
        r.delimited(3, r.delimited(1, one)) + r.delimited(1, b""),
    ]


def assert_alike(forms: set[tuple[bytes, bytes]]) -> None:
    """Of pairs of two forms each belongs to one only."""
    assert len(forms) > 10
    assert len({ours for ours, _ in forms}) == len({theirs for _, theirs in forms}) == len(forms)


def test_equal_exactly_if_protobuf_reads_equal_content(reference: Any) -> None:
    """Every two features after each other, of the same key and of different ones."""
    r = reference
    entries = [r.entry(key, feature) for key in (b"a", b"b") for feature in spellings(r)]
    payloads = [r.example(*both) for both in product([b"", *entries], entries)]
    assert_alike(
        {(canonical(payload), told_by_protobuf(r, "Example", payload)) for payload in payloads}
    )


def test_steps_of_sequences_too(reference: Any) -> None:
    """Every two steps after each other."""
    r = reference
    steps = [b"", *(r.delimited(1, step) for step in spellings(r))]
    lists = (r.entry(b"a", b"".join(both)) for both in product(steps, steps))
    payloads = [r.delimited(2, one) for one in lists]
    sequences = [payload for payload in payloads if classify(payload) == "SequenceExample"]
    assert len(sequences) > len(payloads) / 2
    assert_alike(
        {
            (canonical(payload), told_by_protobuf(r, "SequenceExample", payload))
            for payload in sequences
        }
    )


@given(order=st.permutations(range(6)))
def test_the_order_of_a_map_does_not_matter(reference: Any, order: list[int]) -> None:
    """protobuf's C++ writes maps in any order."""
    r = reference
    features = {f"key {number}": [number] * number for number in range(6)}
    message = r.messages().Example()
    for key, value in features.items():
        message.features.feature[key].int64_list.value.extend(value)
    entries = [
        r.entry(
            f"key {number}".encode(),
            message.features.feature[f"key {number}"].SerializeToString(),
        )
        for number in order
    ]
    payload = r.example(*entries)
    assert r.parse("Example", payload) == message
    assert canonical(payload) == canonical(message.SerializeToString())
    assert canonical(payload) == encode_example(features, {"key 0": "int64"})


def test_other_payloads_are_equal_byte_for_byte(reference: Any) -> None:
    r = reference
    texts = [b"hello", b"hellp", r.tag(9, r.VARINT) + b"\1", b"\xff"]
    assert all(classify(text) == "other" for text in texts)
    forms = {canonical(text) for text in texts}
    assert len(forms) == len(texts)
    assert canonical(texts[0]) == canonical(bytearray(texts[0]))
    # and none looks like that of an Example
    assert canonical(encode_example({"a": 1})) not in {b"\0" + form for form in forms}


def test_an_example_is_the_sequence_of_its_context() -> None:
    """A SequenceExample without lists has the same bytes as an Example."""
    assert canonical(encode_sequence_example({"a": 1}, {})) == canonical(encode_example({"a": 1}))


def test_malformed_payloads_are_compared_byte_for_byte() -> None:
    payload = encode_example({"a": [b"text"]})[:-1]
    assert canonical(payload) == canonical(bytearray(payload)) != canonical(payload[:-1])
