"""Have these records boxes of objects that `rs.Boxes` reads? Told by the usual keys, and by a look.

The keys alone prove nothing: others write pixels there instead of fractions, or class names for
fewer boxes than there are. So the first records are looked at, as `rs.Boxes` will.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.example import FeatureSchema, FeatureValue
from recordsmith.example.keys import BOX, OBJECT_LABEL

_OUTSIDE = 1.0  # how many pictures beyond the edge a box may reach, as of `rs.Boxes`


class ObjectBoxes(NamedTuple):
    """Boxes by the usual keys.

    labels: the feature with the class of each box, or None.
    length: how many each record has; None if that differs.
    """

    labels: str | None
    length: int | None

    @property
    def keys(self) -> Sequence[str]:
        """The features that they are made of."""
        return BOX if self.labels is None else (*BOX, self.labels)


def boxes_among(
    features: Mapping[str, FeatureSchema], examples: Iterable[Mapping[str, FeatureValue]]
) -> ObjectBoxes | None:
    """The boxes of records, if there are any; `examples` are the first of them."""
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
    """Whether there can be a value of one for each of the other."""
    return (feature.present, feature.min_length, feature.max_length) == (
        other.present,
        other.min_length,
        other.max_length,
    )


def _are_fractions(sides: npt.NDArray[Any]) -> bool:
    """Whether (4, boxes) are what `rs.Boxes` takes."""
    low, high = sides[:2], sides[2:]
    return bool(((low >= -_OUTSIDE) & (high <= 1 + _OUTSIDE) & (low <= high)).all())
