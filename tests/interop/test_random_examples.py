"""Validity and values of random Examples, next to protobuf and TensorFlow.

The Examples have repeated keys, features without a kind, empty lists and, some of them, a feature
of another kind.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.format.example import Kind

KEYS: dict[str, Kind] = {"i": "int64", "f": "float", "b": "bytes"}
VALUES = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "bytes": st.binary(max_size=4),
}
DEFAULTS: dict[str, Any] = {"i": -7, "f": 0.25, "b": b"default"}
ZEROS = {"i": 0, "f": 0.0, "b": b""}
Entry = tuple[str, Kind | None, list[Any]]


@st.composite
def entries(draw: st.DrawFn, most_values: int) -> Entry:
    key = draw(st.sampled_from([*KEYS, "other"]))
    own: Kind = KEYS.get(key, "int64")
    kind = draw(st.sampled_from([own] * 20 + [None] * 3 + list(KEYS.values())))
    values = [] if kind is None else draw(st.lists(VALUES[kind], max_size=most_values))
    return key, kind, values


def records(most_values: int = 3) -> st.SearchStrategy[list[list[Entry]]]:
    record = st.lists(entries(most_values), max_size=6)
    return st.lists(record, min_size=1, max_size=9)


def without_later_unset(record: list[Entry]) -> list[Entry]:
    """Leave out repeated keys without a kind.

    Protobuf takes the last entry of a key, TensorFlow the last one that has a kind.
    """
    return [
        entry for at, entry in enumerate(record)
        if entry[1] is not None or entry[0] not in [key for key, _, _ in record[:at]]
    ]  # fmt: skip


def payload(reference: Any, record: list[Entry]) -> bytes:
    """An Example with these map entries, in this order."""
    encoded = []
    for key, kind, values in record:
        feature = reference.messages().Feature()
        if kind is not None:
            getattr(feature, f"{kind}_list").SetInParent()
            getattr(feature, f"{kind}_list").value.extend(values)
        encoded.append(reference.entry(key.encode(), feature.SerializeToString()))
    return reference.example(*encoded)  # type: ignore[no-any-return]


@contextmanager
def opened(payloads: list[bytes]) -> Iterator[rs.Dataset]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tfrecord"
        with rs.ShardWriter(path) as writer:
            for each in payloads:
                writer.write(each)
        yield rs.open(path)


def specs(shape: Any, defaults: dict[str, Any] | None = None) -> dict[str, rs.FeatureSpec]:
    default = (defaults or {}).get
    return {key: rs.FeatureSpec(kind, shape, default(key)) for key, kind in KEYS.items()}


def read(dataset: rs.Dataset, features: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Columns and validity; None if a record does not match."""
    try:
        return dataset.read_columns(features, with_validity=True)
    except rs.CorruptDataError as error:
        if error.defect not in (rs.Defect.FEATURE_KIND, rs.Defect.FEATURE_SHAPE):
            raise
        return None


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=records())
def test_validity_is_the_membership_of_keys_in_protobuf(
    reference: Any, drawn: list[list[Entry]]
) -> None:
    payloads = [payload(reference, record) for record in drawn]
    messages = [reference.parse("Example", each).features.feature for each in payloads]
    members = {key: [key in message for message in messages] for key in KEYS}
    lists: dict[str, list[list[Any] | None]] = {
        key: [
            list(getattr(message[key], f"{kind}_list").value) if key in message else None
            for message in messages
        ]
        for key, kind in KEYS.items()
    }
    has_wrong_kind = any(
        key in message and message[key].WhichOneof("kind") not in (None, f"{kind}_list")
        for message in messages
        for key, kind in KEYS.items()
    )
    with opened(payloads) as dataset:
        found = read(dataset, specs("ragged"))
        assert (found is None) == has_wrong_kind
        if found is not None:
            columns, validity = found
            for key in KEYS:
                assert validity[key].dtype == np.bool_
                assert validity[key].tolist() == members[key]
                assert columns[key].tolist() == [row or [] for row in lists[key]]
            batches = list(dataset.batches(2, specs("ragged"), with_validity=True))
            for key in KEYS:
                assert [row for batch, _ in batches for row in batch[key].tolist()] == [
                    row or [] for row in lists[key]
                ]
                assert [bit for _, valid in batches for bit in valid[key]] == members[key]
        filled = read(dataset, specs(()))
        is_scalar = all(row is None or len(row) == 1 for rows in lists.values() for row in rows)
        assert (filled is None) == (has_wrong_kind or not is_scalar)
        if filled is not None:
            columns, validity = filled
            for key in KEYS:
                expected = [ZEROS[key] if row is None else row[0] for row in lists[key]]
                assert columns[key].tolist() == expected
                assert validity[key].tolist() == members[key]
        # whether a key is there does not depend on the kinds of the others, or on its own
        features = {f"has_{key}": rs.Present(key) for key in KEYS if any(members[key])}
        if features:
            for batch in rs.Loader(dataset, features, batch_size=len(drawn), threads=0):
                for key in KEYS:
                    if any(members[key]):
                        assert batch[f"has_{key}"].tolist() == members[key]


def parsed(tf: Any, payloads: list[bytes], features: dict[str, Any]) -> Any:
    """What TensorFlow makes of the payloads; None if it refuses them."""
    try:
        return tf.io.parse_example(payloads, features)
    except tf.errors.InvalidArgumentError:
        return None


@pytest.mark.parametrize("most_values", [1, 3])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_values_are_those_of_parse_example(
    tf: Any, reference: Any, most_values: int, data: st.DataObject
) -> None:
    drawn = data.draw(records(most_values))
    payloads = [payload(reference, without_later_unset(record)) for record in drawn]
    dtypes = {"i": tf.int64, "f": tf.float32, "b": tf.string}
    parse = partial(parsed, tf, payloads)
    sparse = parse({key: tf.io.VarLenFeature(dtype) for key, dtype in dtypes.items()})
    ragged = parse(
        {
            key: tf.io.RaggedFeature(dtype, row_splits_dtype=tf.int64)
            for key, dtype in dtypes.items()
        }
    )
    fixed = parse(
        {key: tf.io.FixedLenFeature([], dtype, DEFAULTS[key]) for key, dtype in dtypes.items()}
    )
    with opened(payloads) as dataset:
        found = read(dataset, specs("ragged"))
        assert (found is None) == (sparse is None) == (ragged is None)
        if found is not None:
            columns, _ = found
            for key in KEYS:
                column = columns[key]
                np.testing.assert_array_equal(column.row_splits, ragged[key].row_splits.numpy())
                rows = np.repeat(np.arange(len(column)), column.lengths)
                np.testing.assert_array_equal(rows, sparse[key].indices.numpy()[:, 0])
                for theirs in (ragged[key], sparse[key]):
                    assert same_bits(column.values, theirs.values.numpy())
        filled = read(dataset, specs((), DEFAULTS))
        assert (filled is None) == (fixed is None)
        if filled is not None:
            for key in KEYS:
                assert same_bits(filled[0][key], fixed[key].numpy())


def same_bits(ours: Any, theirs: Any) -> bool:
    """Whether all values are equal, where -0.0 is not 0.0."""
    if isinstance(ours, rs.BytesArray):
        return bool(ours.tolist() == theirs.tolist())
    return bool(ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes())
