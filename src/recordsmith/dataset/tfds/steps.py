"""Consecutive steps of an episode, cut out of a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recordsmith.dataset.tfds.features import DATASET, Leaf, TfdsFeature
from recordsmith.dataset.tfds.records import stored_values
from recordsmith.errors import CorruptDataError, DataError, Defect
from recordsmith.example import Features


def with_any_length(features: TfdsFeature) -> TfdsFeature:
    """The features with any number of steps, for windows of steps."""
    items = {
        name: replace(item, length=None) if item.type == DATASET else item
        for name, item in features.items.items()
    }
    return replace(features, items=items)


def cut_steps(record: Features, leaves: Sequence[Leaf], start: int, stop: int) -> Features:
    """A record with only some steps of its episode; other features are kept.

    Args:
        record: as TFDS stores it.
    """
    cut = dict(record)
    for leaf in leaves:
        if not leaf.in_steps or stored_values(record, leaf) is None:
            continue
        inner = len(leaf.lengths) - 1
        size = leaf.item_size
        if size is None:
            raise CorruptDataError(
                Defect.FEATURE_SHAPE,
                "the number of values of a step is unknown",
                expected=f"at most one unknown length, found {len(leaf.lengths) + 1}",
                feature=leaf.path,
            )
        _cut(cut, record, leaf.length_keys[:inner], leaf.value_key, (start, stop, size), leaf)
        if leaf.has_shape_key:
            rank = len(leaf.feature.shape)
            _cut(cut, record, leaf.length_keys[inner:], leaf.shape_key, (start, stop, rank), leaf)
    return cut


def _cut(
    cut: Features,
    record: Features,
    length_keys: Sequence[str],
    key: str,
    part: tuple[int, int, int],
    leaf: Leaf,
) -> None:
    start, stop, size = part
    for length_key in length_keys:
        lengths: Any = record.get(length_key, np.zeros(0, np.int64))
        if len(lengths) < stop or (lengths < 0).any():
            raise _too_short(leaf, len(lengths), stop)
        cut[length_key] = lengths[start:stop]
        ends = np.concatenate(([0], np.cumsum(lengths)))
        start, stop = int(ends[start]), int(ends[stop])
    values = record.get(key, [])
    if len(values) < stop * size:
        raise _too_short(leaf, len(values) // max(1, size), stop)
    cut[key] = values[start * size : stop * size]


def _too_short(leaf: Leaf, found: int, expected: int) -> DataError:
    return CorruptDataError(
        Defect.FEATURE_SHAPE,
        "the features of an episode have different numbers of steps",
        found=str(found),
        expected=f"at least {expected}",
        feature=leaf.path,
    )
