"""Detect object boxes that `rs.Boxes` can read, by the usual keys and by the first examples.

The keys alone are not sufficient: some datasets store pixels instead of fractions, or fewer class
names than boxes. The first examples must be valid for `rs.Boxes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.example import FeatureSchema, FeatureValue
from recordsmith.example.keys import BOX, OBJECT_LABEL

_OUTSIDE = 1.0  # how far beyond the image a box may extend, as in `rs.Boxes`


class ObjectBoxes(NamedTuple):
    """Boxes with the usual keys.

    Attributes:
        labels: the feature with the class of each box, or None.
        length: the number of boxes per record; None if it varies.
    """

    labels: str | None
    length: int | None

    @property
    def keys(self) -> Sequence[str]:
        """The features with the boxes."""
        return BOX if self.labels is None else (*BOX, self.labels)


def boxes_among(
    features: Mapping[str, FeatureSchema], examples: Iterable[Mapping[str, FeatureValue]]
) -> ObjectBoxes | None:
    """The boxes of a dataset, or None; `examples` are the first ones."""
    sides = [features[key] for key in BOX if key in features]
    if len(sides) < len(BOX) or any(s.kind != "float" or not s.max_length for s in sides):
        return None
    first, label = sides[0], features.get(OBJECT_LABEL)
    has_labels = label is not None and label.kind == "int64" and _is_as_often(label, first)
    for example in examples:
        numbers = [np.asarray(example.get(key, ())) for key in BOX]
        if len({len(side) for side in numbers}) > 1 or not _are_fractions(np.stack(numbers)):
            return None
        has_labels = has_labels and len(example.get(OBJECT_LABEL, ())) == len(numbers[0])
    is_fixed = first.shape is not None
    return ObjectBoxes(OBJECT_LABEL if has_labels else None, first.max_length if is_fixed else None)


def _is_as_often(feature: FeatureSchema, other: FeatureSchema) -> bool:
    """Whether two features can have equal numbers of values."""
    return (feature.present, feature.min_length, feature.max_length) == (
        other.present,
        other.min_length,
        other.max_length,
    )


def _are_fractions(sides: npt.NDArray[Any]) -> bool:
    """Whether `rs.Boxes` accepts these edges, (4, boxes)."""
    low, high = sides[:2], sides[2:]
    return bool(((low >= -_OUTSIDE) & (high <= 1 + _OUTSIDE) & (low <= high)).all())
