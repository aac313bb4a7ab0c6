"""Serialised tensors, as the survey of schemas recognises and `rs.Serialized` reads them.

The invariant: any bytes are read, with exactly as many values as the shape has and no more memory
than they are worth, or raise a CorruptDataError; what the survey calls a tensor has the dtype and
shape that are read; and a batch of equal headers has the values of tensors read one by one.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from harness import mutated

import recordsmith as rs
from recordsmith.format.example import BytesArray, SchemaSurvey
from recordsmith.format.example.serialized_tensor import TensorSchema, read_tensor, schema_of_tensor
from recordsmith.loading import BatchRows
from recordsmith.loading.features.feature import RandomNumbers
from recordsmith.support.errors import CorruptDataError

_HEAD = bytes.fromhex("12081202080212020802")  # a shape of 2 times 2
SEEDS = [
    b"\x08\x01" + _HEAD + b"\x22\x10" + np.arange(4, dtype="<f4").tobytes(),
    b"\x08\x01" + _HEAD + b"\x2a\x10" + np.arange(4, dtype="<f4").tobytes(),
    b"\x08\x0e" + _HEAD + b"\x22\x08" + bytes(8),
    b"\x08\x03" + _HEAD + b"\x3a\x0d" + b"\xff" * 9 + b"\x01\x02\x03\x04",
    b"\x08\x12\x12\x00\x62\x10" + bytes(16),
    b"\x08\x07" + _HEAD + b"\x42\x01a\x42\x00\x42\x02bc\x42\x00",
    b"\x08\x0a\x12\x04\x12\x02\x08\x03\x22\x03\x00\x01\x01",
    b"\x08\x17\x12\x02\x12\x00",
    b"\x08\x06" + _HEAD + b"\x3a\x05\x01\x02\xff\x01\x03",  # 255, which int8 cannot hold
]


class Fuzz:
    watches_memory = True
    reached = ("tensors", "surveyed tensors", "refused", "refused values", "batches")

    def __init__(self, _: Path) -> None:
        self.last = b""

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        self.last = data = mutated(dice.choice(SEEDS), SEEDS, dice)
        payload = rs.encode_example({"x": data})
        survey = SchemaSurvey()
        survey.update(payload, np.zeros(1, np.int64), np.array([len(payload)]))
        known = survey.finish().features["x"]
        try:
            tensor = read_tensor(data)
        except CorruptDataError:
            assert known.content != "tensor"
            counts["refused"] += 1
            return
        if known.tensor is not None:
            counts["surveyed tensors"] += 1
            assert known.tensor.dtype == tensor.dtype
            assert known.tensor.shape in (None, tensor.shape)
        assert schema_of_tensor(data) == TensorSchema(tensor.dtype, tensor.shape)
        try:
            values: Any = tensor.values()
        except CorruptDataError:
            counts["refused values"] += 1
            return
        assert len(values) == math.prod(tensor.shape)
        assert isinstance(values, list) or values.dtype.name == tensor.dtype
        counts["tensors"] += 1
        if len(tensor.shape) > 8:
            return
        positions = np.arange(3)
        columns = {"x": BytesArray.from_values([data] * 3)}
        rows = BatchRows(positions, RandomNumbers(0, 0, positions), columns=columns)
        (entry,) = rs.Serialized("x", tensor.shape, tensor.dtype).values(rows)
        assert entry.shape == (3, *tensor.shape)
        if tensor.dtype == "string":
            assert entry.reshape(-1).tolist() == values * 3
        else:
            assert entry.tobytes() == values.tobytes() * 3
        counts["batches"] += 1
