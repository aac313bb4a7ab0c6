"""The schema counts the same in wire format as a loop over decoded payloads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordsmith.format.example import (
    FeatureSchema,
    Schema,
    SchemaSurvey,
    classify,
    decode_example,
    encode_example,
    encode_sequence_example,
)
from recordsmith.format.example.kernel.payloads import classify_many
from recordsmith.format.example.kernel.survey import FeatureSurvey
from recordsmith.support.errors import DataError

JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01"
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


def spans(payloads: Iterable[bytes]) -> tuple[bytes, Any, Any]:
    payloads = list(payloads)
    lengths = np.array([len(payload) for payload in payloads], np.int64)
    starts = np.cumsum([1, *(lengths + 1)])[:-1].astype(np.int64)
    return b"-" + b"-".join(payloads), starts, lengths


def survey(*blocks: list[bytes]) -> Schema:
    counted = SchemaSurvey()
    for payloads in blocks:
        counted.update(*spans(payloads))
    return counted.finish()


def features(*rows: dict[str, Any], kinds: dict[str, Any] | None = None) -> Any:
    schema = survey([encode_example(row, kinds) for row in rows])
    assert schema.record_count == len(rows)
    return schema.features


def kind_of(value: Any) -> str:
    if isinstance(value, list):
        return "bytes" if value else "none"
    return "int64" if value.dtype == np.int64 else "float"


@given(data=st.data())
@settings(max_examples=100)
def test_counts_what_decoding_gives(wire: SimpleNamespace, data: Any) -> None:
    """Kind, lengths and presence, for any wire form of lists, keys and unknown fields."""
    payloads = data.draw(st.lists(wire.examples, min_size=1, max_size=5))
    try:
        rows = [decode_example(payload) for payload in payloads]
    except DataError:
        return
    cut = data.draw(st.integers(0, len(payloads)))
    schema = survey(payloads[:cut], payloads[cut:])
    if schema.payload != "Example":  # a payload with nothing but unknown fields is another message
        assert any(not any(len(value) for value in row.values()) for row in rows)
        return
    assert schema.record_count == len(payloads)
    found = schema.features
    assert set(found) == {key for row in rows for key in row}
    for key, feature in found.items():
        values = [row[key] for row in rows if key in row]
        assert feature.present == len(values)
        assert feature.min_length == min(map(len, values))
        assert feature.max_length == max(map(len, values))
        kinds = {kind_of(value) for value in values} - {"none"}
        if len(kinds) == 2:
            assert feature.kind == "mixed"
        elif kinds and all(len(value) for value in values):
            assert {feature.kind} == kinds
        if feature.shape is not None:
            assert len(values) == len(rows)
            assert {len(value) for value in values} == {feature.shape[0] if feature.shape else 1}
        elif feature.kind in ("int64", "float") and len(values) == len(rows):
            assert feature.min_length != feature.max_length


def test_shapes() -> None:
    found = features(
        {"scalar": 1, "pair": [1, 2], "ragged": [1], "some": 1, "empty": [], "kindless": []},
        {"scalar": 2, "pair": [3, 4], "ragged": [1, 2], "empty": [], "kindless": []},
        kinds={"empty": "float"},
    )
    assert {key: feature.shape for key, feature in found.items()} == {
        "scalar": (),
        "pair": (2,),
        "ragged": None,
        "some": None,
        "empty": (0,),
        "kindless": None,
    }
    assert list(found) == sorted(found)
    assert (found["some"].present, found["scalar"].present) == (1, 2)
    assert (found["ragged"].min_length, found["ragged"].max_length) == (1, 2)


def test_kinds() -> None:
    found = features(
        {"i": 1, "f": 1.5, "b": b"x", "mixed": 1, "later": [], "none": []},
        {"i": 2, "f": 2.5, "b": b"y", "mixed": 1.5, "later": 1.5, "none": []},
    )
    assert {key: feature.kind for key, feature in found.items()} == {
        "i": "int64",
        "f": "float",
        "b": "bytes",
        "mixed": "mixed",
        "later": "float",
        "none": "none",
    }


@pytest.mark.parametrize(
    ("values", "content"),
    [
        ([JPEG], "image"),
        ([PNG, JPEG], "image"),
        ([b"GIF89a" + bytes(10), b"GIF87a" + bytes(10)], "image"),
        ([b"RIFF\x00\x00\x00\x00WEBPVP8 "], "image"),
        ([b"II*\0" + bytes(10), b"MM\0*" + bytes(10)], "image"),
        ([b"BM\x36\x00\x00\x00\x00\x00\x00\x00\x36\x00"], "image"),
        (["rose"], "text"),
        (["größe 😀\n\tüber"], "text"),
        ([""], "text"),
        ([b"BM is no image, only text"], "text"),
        ([b"\x00\x01"], "raw"),
        ([b"\xff\xfe"], "raw"),
        ([b"bell \x07"], "raw"),
        ([b"\x7f"], "raw"),
        ([b"\xc3"], "raw"),
        ([b"\xff\xd8\xff"], "raw"),
        (["text", JPEG], "raw"),
        (["text", b"\x00"], "raw"),
        ([JPEG, b"\x00"], "raw"),
    ],
)
def test_contents_of_bytes(values: list[Any], content: str) -> None:
    assert features({"b": values})["b"].content == content
    assert features(*({"b": value} for value in values))["b"].content == content


@given(value=st.binary(max_size=8).filter(lambda value: all(byte > 127 for byte in value)))
def test_text_is_recognised_as_python_does(value: bytes) -> None:
    try:
        value.decode()
    except UnicodeDecodeError:
        assert features({"b": value})["b"].content == "raw"
    else:
        assert features({"b": value})["b"].content == "text"


def test_bytes_of_values_are_counted(reference: Any) -> None:
    found = features({"b": [b"1234", b""], "i": [1, 300]}, {"b": b"12", "i": [7]})
    assert found["b"].value_bytes == (2 + 4) + 2 + (2 + 2)
    assert found["i"].value_bytes == (2 + 3) + (2 + 1)


def test_sequences() -> None:
    payloads = [
        encode_sequence_example({"id": 1}, {"tokens": [[1, 2], [3]], "frames": [JPEG]}),
        encode_sequence_example({"id": 2}, {"tokens": [], "frames": [JPEG, PNG]}),
    ]
    schema = survey(payloads)
    assert schema.payload == "SequenceExample"
    assert schema.features == {}
    assert schema.sections["context"]["id"].shape == ()
    tokens, frames = (schema.sections["feature_lists"][key] for key in ("tokens", "frames"))
    assert (tokens.kind, tokens.min_steps, tokens.max_steps) == ("int64", 0, 2)
    assert (tokens.min_length, tokens.max_length) == (1, 2)
    assert (frames.kind, frames.min_steps, frames.max_steps) == ("bytes", 1, 2)
    assert frames.content == "image"
    assert schema.sections["context"]["id"].min_steps is None


def test_a_sequence_without_lists_among_others_is_one_of_them() -> None:
    payloads = [
        encode_sequence_example({"id": 1}, {}),
        encode_sequence_example({"id": 2}, {"x": [1]}),
    ]
    assert survey(payloads).payload == "SequenceExample"


def test_sequences_without_lists_are_counted_in_the_context() -> None:
    payloads = [encode_sequence_example({"id": 1, "name": "x"}, {"x": [1]})]
    payloads += [encode_sequence_example({"id": 2}, {}) for _ in range(3)]
    schema = survey(payloads)
    assert (schema.payload, schema.record_count) == ("SequenceExample", 4)
    context = schema.sections["context"]
    assert (context["id"].present, context["id"].shape) == (4, ())
    assert (context["name"].present, context["name"].shape) == (1, None)
    assert schema.sections["feature_lists"]["x"].present == 1


@pytest.mark.parametrize("features", [{"label": 1}, {"id": 1, "label": 1}, {"id": "text"}])
def test_examples_among_sequences_are_recognised(features: Any) -> None:
    payloads = [encode_example(features)] * 99 + [encode_sequence_example({"id": 1}, {"x": [1]})]
    schema = survey(payloads)
    assert schema.payload == "mixed"
    assert {key: feature.present for key, feature in schema.features.items()} == dict.fromkeys(
        features, 99
    )


@given(data=st.data())
@settings(max_examples=80)
def test_merged_surveys_equal_one_survey(wire: SimpleNamespace, data: Any) -> None:
    one_kind = data.draw(st.sampled_from([wire.examples, wire.sequences]))
    parts = data.draw(st.lists(st.lists(one_kind, max_size=3), max_size=4))
    whole = survey([payload for part in parts for payload in part])
    merged = Schema.merged([survey(part) for part in parts])
    if whole.payload in ("Example", "none"):
        assert merged == whole
    else:  # a part of Examples only cannot tell which of its features others lack
        assert merged.record_count == whole.record_count
        assert merged.payload in (whole.payload, "mixed")


def test_merged_sequences() -> None:
    def sequence(steps: int, **context: Any) -> bytes:
        return encode_sequence_example(context, {"steps": [[1.0]] * steps} if steps else {})

    one, other, bare = sequence(2, id=1), sequence(5, id=2), sequence(0, id=3)
    expected = survey([one, other, bare])
    assert Schema.merged([survey([one]), survey([other]), survey([bare])]) == expected
    assert Schema.merged([survey([one]), survey([sequence(0, other="x")])]).payload == "mixed"
    assert Schema.merged([]) == survey([])


def test_a_part_without_values_leaves_the_content_of_others() -> None:
    empty = encode_example({"x": []}, {"x": "bytes"})
    for value in (b"\xff\xd8\xff\xe0" + bytes(20), b"\0", b"text"):
        parts = [encode_example({"x": value}), empty]
        assert Schema.merged([survey([part]) for part in parts]) == survey(parts)


def test_threads_that_share_a_survey_wait_for_each_other() -> None:
    shared = SchemaSurvey()
    blocks = [
        spans(encode_example({f"feature/{n + row}": row for n in range(30)}) for row in range(200))
        for _ in range(8)
    ]
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(shared.update, *block) for block in blocks]:
            done.result()
    schema = shared.finish()
    assert schema.record_count == 1600
    assert schema.features["feature/29"].present == 8 * 30
    assert sum(feature.present for feature in schema.features.values()) == 1600 * 30


def test_ranking_lists(reference: Any) -> None:
    r = reference
    payloads = [
        r.delimited(2, encode_example({"query": "shoes"}))
        + b"".join(r.delimited(1, encode_example({"rank": n})) for n in range(count))
        for count in (1, 3)
    ]
    schema = survey(payloads)
    assert (schema.payload, schema.record_count) == ("ELWC", 2)
    assert schema.sections["context"]["query"].present == 2
    assert schema.sections["examples"]["rank"].present == 4
    assert schema.sections["examples"]["rank"].kind == "int64"


@pytest.mark.parametrize(
    ("payloads", "expected"),
    [
        ([], "none"),
        ([b""], "Example"),
        ([b"", b"\x00"], "other"),
        ([encode_example({"a": 1}), b"\x00"], "mixed"),
        ([b"\x09" + bytes(8)], "Event"),
    ],
)
def test_what_the_payloads_are(payloads: list[bytes], expected: str) -> None:
    schema = survey(payloads)
    assert (schema.payload, schema.record_count) == (expected, len(payloads))


def features_one_by_one(payloads: list[bytes]) -> dict[bytes, tuple[Any, ...]]:
    """The sum of surveys of one payload each, given which of them are Examples."""
    total: dict[bytes, tuple[Any, ...]] = {}
    for payload in payloads:
        one = FeatureSurvey()
        if payload and classify(payload) != "Example":
            continue
        assert one.update(*spans([payload]), 1, False) == 1
        for key, kinds, contents, present, (low, high), _, value_bytes, _ in one.finish():
            before = total.get(key, ([0] * 4, [0] * 3, 0, low, high, 0))
            total[key] = (
                [a + b for a, b in zip(before[0], kinds, strict=True)],
                [a + b for a, b in zip(before[1], contents, strict=True)],
                before[2] + present,
                min(before[3], low),
                max(before[4], high),
                before[5] + value_bytes,
            )
    return total


@given(data=st.data())
@settings(max_examples=100)
def test_one_walk_counts_what_two_do(wire: SimpleNamespace, data: Any) -> None:
    """Examples among other payloads, valid or damaged: dropped payloads leave no counts."""
    usual = st.sampled_from(
        [encode_example({"a": 1, "b": "x", "c": [1.5, 2]}), encode_example({"b": [JPEG, b"\0"]})]
    )
    ranking = wire.examples.map(lambda payload: b"\x0a" + bytes([len(payload) % 128]) + payload)
    any_payload = st.one_of(
        usual,
        wire.examples,
        wire.sequences,
        wire.mutated(wire.examples),
        wire.mutated(usual),
        ranking,
        st.binary(max_size=20),
    )
    payloads = data.draw(st.lists(any_payload, max_size=6))
    block = spans(payloads)
    classes, kinds = (np.full(len(payloads), 9, np.uint8) for _ in range(2))
    classify_many(*block, classes)
    counted = FeatureSurvey()
    counted.update_examples(*block, kinds)
    assert kinds.tolist() == classes.tolist()
    assert {
        key: (kinds, contents, present, low, high, value_bytes)
        for key, kinds, contents, present, (low, high), _, value_bytes, _ in counted.finish()
    } == features_one_by_one(payloads)


@given(st.dictionaries(st.text(max_size=3), st.lists(st.integers(-(2**63), 2**63 - 1)), max_size=9))
def test_numbers_of_any_length_are_counted(rows: dict[str, list[int]]) -> None:
    found = features(rows, kinds=dict.fromkeys(rows, "int64"))
    for key, values in rows.items():
        sizes = [max(1, -(-(value % 2**64).bit_length() // 7)) for value in values]
        packed = sum(sizes)
        around = 1 + (1 if packed < 128 else 2) if values else 0  # its tag and its length
        assert (found[key].max_length, found[key].value_bytes) == (len(values), packed + around)


# runs of bytes that go on, and one that ends the number: ten bytes are the most a number has
PACKED = st.lists(
    st.tuples(st.integers(0, 11), st.booleans()).map(
        lambda run: b"\x81" * run[0] + (b"" if run[1] and run[0] else b"\x01")
    ),
    min_size=1,
    max_size=12,
).map(b"".join)


@given(packed=PACKED, kind=st.integers(2, 3))
@settings(max_examples=100)
def test_packed_numbers_are_those_of_protobuf(packed: bytes, kind: int, reference: Any) -> None:
    """Behind a record like it, whose key is the one that is expected."""
    usual = reference.example(
        reference.entry(b"key", reference.delimited(kind, reference.delimited(1, bytes(4))))
    )
    payload = reference.example(
        reference.entry(b"key", reference.delimited(kind, reference.delimited(1, packed)))
    )
    message = reference.messages().Example()
    try:
        message.ParseFromString(payload)
    except Exception:  # its own type differs between its versions
        assert survey([usual, payload]).payload == "mixed"
        return
    feature = message.features.feature["key"]
    values = feature.float_list.value if kind == 2 else feature.int64_list.value
    found = survey([usual, payload]).features["key"]
    assert found.present == 2
    first = 1 if kind == 2 else 4
    assert {found.min_length, found.max_length} == {first, len(values)}


def plain_content(value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return "raw"
    controls = {chr(code) for code in (*range(32), 127)} - set("\t\n\r")
    return "raw" if controls & set(text) else "text"


@given(
    before=st.text(st.characters(codec="ascii", categories=["L", "N", "P", "Zs"]), max_size=40),
    middle=st.binary(max_size=2) | st.sampled_from(["ü", "€", "😀", "\x7f", "\t\n"]),
    after=st.text(max_size=20),
)
@settings(max_examples=80)
def test_content_is_what_python_finds(before: str, middle: bytes | str, after: str) -> None:
    middle = middle.encode() if isinstance(middle, str) else middle
    value = before.encode() + middle + after.encode()
    if value[:2] in (b"BM", b"II", b"MM", b"GI", b"RI"):
        return
    assert features({"b": value})["b"].content == plain_content(value)


@given(data=st.data())
@settings(max_examples=100)
def test_any_payloads_can_be_surveyed(wire: SimpleNamespace, data: Any) -> None:
    any_payload = st.one_of(
        st.binary(max_size=40), wire.mutated(wire.examples), wire.mutated(wire.sequences)
    )
    payloads = data.draw(st.lists(any_payload, max_size=4))
    assert survey(payloads).record_count == len(payloads)
    # the compiled walk alone stops at the first that is malformed, and never goes on in it
    counted = FeatureSurvey().update(*spans(payloads), 1, False)
    assert 0 <= counted <= len(payloads)


def test_through_json_and_back(reference: Any) -> None:
    for schema in (
        survey([encode_example({"a": [1, 2], "b": JPEG, "c": 0.5})]),
        survey([encode_sequence_example({"id": 1}, {"x": [[1], [2, 3]]})]),
        survey([]),
    ):
        document = json.loads(json.dumps(schema.to_json()))
        assert Schema.from_json(document) == schema


GOOD_FEATURE = {"kind": "int64", "min_length": 1, "max_length": 1, "present": 1}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": "int32"}, "int32.*kind"),
        ({"kind": ["int64"]}, "kind"),
        ({"shape": [-1]}, "shape"),
        ({"shape": ["a"]}, "shape"),
        ({"shape": 5}, "shape"),
        ({"present": -1}, "present"),
        ({"present": True}, "present"),
        ({"present": 2**63}, "present"),
        ({"min_length": "1"}, "min_length"),
        ({"max_length": None}, "max_length"),
        ({"value_bytes": 0.5}, "value_bytes"),
        ({"content": "video"}, "video.*content"),
        ({"min_steps": []}, "min_steps"),
    ],
)
def test_invalid_features_in_json_are_refused(changed: dict[str, Any], words: str) -> None:
    document: Any = {"payload": "Example", "records": 1, "features": {"a": GOOD_FEATURE | changed}}
    with pytest.raises(ValueError, match=rf"features: 'a': .*{words}"):
        Schema.from_json(document)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (5, "object"),
        ([], "object"),
        ({"records": 1}, "payload"),
        ({"payload": "Example"}, "records"),
        ({"payload": "Parquet", "records": 1}, "Parquet.*payload"),
        ({"payload": [], "records": 1}, "payload"),
        ({"payload": "Example", "records": -1}, "records"),
        ({"payload": "Example", "records": 1, "features": []}, "features"),
        ({"payload": "Example", "records": 1, "features": {"a": 5}}, "features: 'a': .*object"),
        ({"payload": "Example", "records": 1, "features": {"a": {}}}, "features: 'a': .*kind"),
    ],
)
def test_invalid_json_is_refused(document: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Schema.from_json(document)


def test_unknown_keys_in_json_are_ignored() -> None:
    document = {
        "payload": "Example",
        "records": 1,
        "features": {"a": GOOD_FEATURE | {"new": 1}},
        "new": [1, 2],
    }
    schema = Schema.from_json(document)
    assert schema.features == {"a": FeatureSchema("int64", 1, 1, 1)}
    assert list(schema.sections) == ["features"]
