"""Strategies of payloads, put together on the wire."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy


def strategies(reference: Any) -> SimpleNamespace:
    """Payloads as any writer of the format may put them, not only as protobuf does.

    examples, sequences: bytes with lists packed, unpacked and in pieces, numbers longer than they
        need be, equal keys, entries without key or value, oneofs set twice, unknown fields.
    values: what encode_example takes; features: a dict of these.
    mutated(strategy): the same with some bytes changed, cut out or doubled.
    """
    r = reference
    int64s = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 200)
    keys = st.sampled_from(["", "a", "b", "label", "größe", "😀", "x" * 130]) | st.text(max_size=5)

    floats = st.binary(min_size=4, max_size=4)
    doubles = st.binary(min_size=8, max_size=8)

    def joined(parts: SearchStrategy[bytes], count: int = 4) -> SearchStrategy[bytes]:
        return st.lists(parts, max_size=count).map(b"".join)

    def unknown(lowest: int) -> SearchStrategy[bytes]:
        """A field that no message here has, from field number `lowest` on."""
        fields = st.integers(lowest, 40) | st.just(2**29 - 1)
        simple = st.one_of(
            st.builds(lambda f, v: r.tag(f, r.VARINT) + r.varint(v), fields, int64s),
            st.builds(lambda f, v: r.tag(f, r.FIXED64) + v, fields, doubles),
            st.builds(lambda f, v: r.tag(f, r.FIXED32) + v, fields, floats),
            st.builds(r.delimited, fields, st.binary(max_size=9)),
        )
        group = st.builds(
            lambda f, inside: r.tag(f, r.GROUP_START) + inside + r.tag(f, r.GROUP_END),
            fields,
            joined(simple, 2),
        )
        return simple | group

    varints = st.builds(r.varint, int64s, st.integers(1, 10))
    bytes_values = st.builds(r.delimited, st.just(1), st.binary(max_size=20))
    float_values = st.one_of(
        floats.map(lambda value: r.tag(1, r.FIXED32) + value),
        joined(floats, 5).map(lambda packed: r.delimited(1, packed)),
    )
    int64_values = st.one_of(
        varints.map(lambda value: r.tag(1, r.VARINT) + value),
        joined(varints, 5).map(lambda packed: r.delimited(1, packed)),
    )

    def misfit(field: int, *wire_types: int) -> SearchStrategy[bytes]:
        """A known field number with a wire type that it does not have: unknown to protobuf."""
        content = {
            r.VARINT: varints,
            r.FIXED64: doubles,
            r.DELIMITED: st.binary(max_size=5).map(lambda data: r.varint(len(data)) + data),
            r.FIXED32: floats,
        }
        return st.sampled_from(wire_types).flatmap(
            lambda kind: content[kind].map(lambda data: r.tag(field, kind) + data)
        )

    lists = {  # inside a list message only field 1 is known
        1: joined(bytes_values | unknown(2) | misfit(1, r.VARINT, r.FIXED64, r.FIXED32)),
        2: joined(float_values | unknown(2) | misfit(1, r.VARINT, r.FIXED64)),
        3: joined(int64_values | unknown(2) | misfit(1, r.FIXED32, r.FIXED64)),
    }
    set_kind = st.sampled_from([1, 2, 3]).flatmap(
        lambda kind: lists[kind].map(lambda content: r.delimited(kind, content))
    )
    features = st.one_of(
        set_kind, joined(set_kind, 3), joined(set_kind | unknown(4) | misfit(2, r.VARINT), 3)
    )

    def entries(value: SearchStrategy[bytes]) -> SearchStrategy[bytes]:
        """None with unknown fields: protobuf's implementations differ in what they make of them."""
        key_field = keys.map(lambda key: r.delimited(1, key.encode()))
        value_field = value.map(lambda content: r.delimited(2, content))
        usual = st.tuples(key_field, value_field).map(b"".join)
        odd = st.one_of(
            st.tuples(value_field, key_field).map(b"".join),
            key_field,
            value_field,
            st.just(b""),
        )
        return (usual | usual | odd).map(lambda content: r.delimited(1, content))

    def maps(value: SearchStrategy[bytes]) -> SearchStrategy[bytes]:
        return joined(entries(value)) | joined(entries(value) | unknown(2) | misfit(1, r.VARINT))

    steps = joined(features.map(lambda content: r.delimited(1, content)) | unknown(2))
    plain_values = st.one_of(
        int64s,
        st.floats(width=32),
        st.binary(max_size=30),
        st.text(max_size=10),
        st.booleans(),
        st.lists(int64s, max_size=6),
        st.lists(st.floats(width=32), max_size=6),
        st.lists(st.binary(max_size=9) | st.text(max_size=9), max_size=6),
    )

    @st.composite
    def mutated(draw: Any, strategy: SearchStrategy[bytes]) -> bytes:
        data = bytearray(draw(strategy))
        for _ in range(draw(st.integers(1, 4))):
            at = draw(st.integers(0, len(data)))
            match draw(st.integers(0, 3)):
                case 0:
                    data[at : at + 1] = bytes([draw(st.integers(0, 255))])
                case 1:
                    del data[at : at + draw(st.integers(1, 5))]
                case 2:
                    data[at:at] = data[at : at + draw(st.integers(1, 20))]
                case _ if at < len(data):
                    data[at] = (data[at] + draw(st.sampled_from([-1, 1, 8, 128]))) % 256
        return bytes(data)

    feature_maps = maps(features).map(lambda m: r.delimited(1, m))
    list_maps = maps(steps).map(lambda m: r.delimited(2, m))
    whole_examples = joined(feature_maps | unknown(3), 3) | feature_maps
    whole_sequences = joined(feature_maps | list_maps | unknown(3))
    feature_dicts = st.dictionaries(keys, plain_values, max_size=6)

    # composites, as they have short names: Hypothesis prints what is drawn from
    @st.composite
    def examples(draw: Any) -> bytes:
        return draw(whole_examples)  # type: ignore[no-any-return]

    @st.composite
    def sequences(draw: Any) -> bytes:
        return draw(whole_sequences)  # type: ignore[no-any-return]

    @st.composite
    def feature(draw: Any) -> bytes:
        return draw(features)  # type: ignore[no-any-return]

    @st.composite
    def values(draw: Any) -> Any:
        return draw(plain_values)

    @st.composite
    def dicts(draw: Any) -> dict[str, Any]:
        return draw(feature_dicts)  # type: ignore[no-any-return]

    return SimpleNamespace(
        examples=examples(),
        sequences=sequences(),
        feature=feature(),
        keys=keys,
        values=values(),
        features=dicts(),
        mutated=mutated,
    )
