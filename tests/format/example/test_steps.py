"""Feature lists of SequenceExamples as columns: equal to single records.

That they equal TensorFlow's parsing is tested in tests/loading/test_step_features.py.
"""

from __future__ import annotations

import random
from itertools import chain
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.format.example import ColumnDecoder, FeatureSpec, RaggedArray

from ...reading import written
from ...reference import delimited
from .test_columns import attempt, decode, encode_sequence_example, spans

KEYS = {"words": "bytes", "speed": "float", "ids": "int64"}


def random_value(kind: str, dice: random.Random) -> Any:
    if kind == "bytes":
        return dice.randbytes(dice.choice((0, 1, 3, 200)))
    if kind == "int64":
        return dice.choice((0, 1, -1, 2**63 - 1, -(2**63), dice.getrandbits(40)))
    return float(np.float32(dice.uniform(-9, 9)))


def random_sequence(dice: random.Random, *, width: int | None = None) -> bytes:
    """A SequenceExample with some of the keys as feature lists, in any order, some more than once.

    width: how many values each step has; None for 0 to 3.
    """
    context = {"id": dice.getrandbits(20)} | ({"tags": [1] * dice.randrange(3)} if width else {})
    parts = []
    for _ in range(dice.choice((1, 1, 1, 2))):  # merged as protobuf merges messages
        lists = {
            key: [
                [random_value(kind, dice) for _ in range(width or dice.randrange(4))]
                for _ in range(dice.choice((0, 1, 2, 5, 30)))
            ]
            for key, kind in dice.sample(sorted(KEYS.items()), dice.randrange(4))
        }
        kinds: Any = KEYS if width is None else None
        parts.append(encode_sequence_example(context, lists, kinds and {k: KEYS[k] for k in lists}))
    unasked = delimited(2, delimited(1, delimited(1, b"unasked") + delimited(2, b"")))
    return b"".join([*parts, unasked] if dice.random() < 0.2 else parts)


def lists_of(payloads: list[bytes], key: str) -> list[list[list[Any]]]:
    """The steps of each record, by the decoder of single records."""
    examples = map(rs.decode_sequence_example, payloads)
    return [
        [
            step.tolist() if isinstance(step, np.ndarray) else list(step)
            for step in example.feature_lists.get(key, [])
        ]
        for example in examples
    ]


@pytest.mark.parametrize("width", [None, 1, 2])
def test_columns_equal_single_records(width: int | None) -> None:
    dice = random.Random(width)
    for _ in range(150):
        payloads = [random_sequence(dice, width=width) for _ in range(dice.randrange(1, 6))]
        shape: Any = "ragged" if width is None else (width,)
        specs: dict[str, FeatureSpec] = {
            key: FeatureSpec(kind, shape, in_steps=True)  # type: ignore[arg-type]
            for key, kind in KEYS.items()
        }
        borrowed = ["words"] if dice.random() < 0.5 else []
        decoder = ColumnDecoder({**specs, "id": None}, borrowed=borrowed, presence_of=KEYS)
        for group in [payloads] if borrowed else [payloads[:2], payloads[2:]]:
            decoder.append(*spans(group))
        columns, validity = decoder.finish_with_validity()
        for key in KEYS:
            column: Any = columns[key]
            expected = lists_of(payloads, key)
            assert isinstance(column, RaggedArray)
            assert column.tolist() == expected
            assert column.lengths.tolist() == [len(steps) for steps in expected]
            inner = column.values
            if width is None:
                assert inner.lengths.tolist() == [len(step) for step in chain(*expected)]
            else:
                assert inner.shape == (sum(map(len, expected)), width)
            examples = map(rs.decode_sequence_example, payloads)
            are_present = [key in example.feature_lists for example in examples]
            bits = np.unpackbits(validity.get(key, np.full(9, 255, np.uint8)), bitorder="little")
            assert bits[: len(payloads)].astype(bool).tolist() == are_present
            chosen = np.array(dice.choices(range(len(payloads)), k=4))
            assert column[chosen].tolist() == [expected[row] for row in chosen]
            assert (column == column[np.arange(len(payloads))]).all()


def test_a_payload_that_is_cut_is_refused_or_read_as_a_single_record() -> None:
    dice = random.Random(5)
    specs = {key: FeatureSpec(kind, "ragged", in_steps=True) for key, kind in KEYS.items()}  # type: ignore[arg-type]
    refused = 0
    for _ in range(12):
        payload = random_sequence(dice)
        for size in range(min(len(payload), 400)):
            cut = payload[:size]
            columns, defect = attempt(lambda cut=cut: decode([cut], specs))
            single, single_defect = attempt(lambda cut=cut: rs.decode_sequence_example(cut))
            refused += defect is not None
            if single is not None:
                assert defect is None
                for key in KEYS:
                    assert columns[key].tolist() == lists_of([cut], key)
            elif defect is None:  # what was not asked for is not parsed
                assert single_defect is not None
    assert refused > 200


def test_a_dataset_of_sequences_is_read_as_columns(tmp_path: Any) -> None:
    kinds: Any = {"x": "float", "words": "bytes"}
    lists = [
        {"x": [[1.5, row]] * row, "words": [["a"] * step for step in range(row)]}
        for row in range(4)
    ]
    dataset = written(
        tmp_path,
        [encode_sequence_example({"id": row}, own, kinds) for row, own in enumerate(lists)],
    )
    columns: Any = dataset.read_columns()
    assert list(columns) == ["words", "x", "id"]
    assert columns["id"].tolist() == [0, 1, 2, 3]
    assert columns["x"].values.shape == (6, 2)
    assert columns["words"][3].tolist() == [[], [b"a"], [b"a", b"a"]]
    assert dataset.filter("id >= 2").read_columns(["x"])["x"].lengths.tolist() == [2, 3]
    columns, validity = dataset.read_columns(["x"], with_validity=True)
    assert validity["x"].all()


def test_a_key_of_context_and_lists(tmp_path: Any) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for row in range(3):
            writer.write(encode_sequence_example({"x": row}, {"x": [[row], [row + 1]]}))
    dataset = rs.open(tmp_path)
    assert dataset.read_columns(["x"])["x"].tolist() == [0, 1, 2]  # type: ignore[union-attr]
    lists: Any = dataset.read_columns({"x": rs.FeatureSpec(in_steps=True)})["x"]
    assert lists.tolist() == [[0, 1], [1, 2], [2, 3]]
    with pytest.raises(rs.OptionError, match="x"):
        rs.Loader(dataset, {"x": rs.Steps(rs.Scalar("x"))}, batch_size=2)
