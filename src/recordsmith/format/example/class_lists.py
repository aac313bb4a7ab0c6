"""Images with several classes: which of them are positive, and which is the rarest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from recordsmith.format.example.feature_values import values_of
from recordsmith.format.example.keys import CLASS_CONFIDENCE, CLASS_LABEL, CLASS_TEXT
from recordsmith.format.example.schema import Schema
from recordsmith.format.example.values import RaggedArray
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.errors import CorruptDataError, Defect

CLASS_LISTS = (CLASS_LABEL, CLASS_TEXT)
"""The features with the classes of an image; `image/class/confidence` is parallel to them."""


def have_class_lists(schema: Schema) -> bool:
    """Whether images may have several classes, as far as the schema shows."""
    known = [schema.features[key] for key in CLASS_LISTS if key in schema.features]
    are_lists = any(of.max_length > max(1, of.min_length) for of in known)
    return are_lists or CLASS_CONFIDENCE in schema.features


def positive_values(features: Mapping[str, Any], key: str) -> list[Any]:
    """The values of a feature of a record; of classes, without those of confidence 0."""
    values, confidence = (values_of(features.get(name)) for name in (key, CLASS_CONFIDENCE))
    if key not in CLASS_LISTS or len(confidence) != len(values):
        return [*values]
    return [value for value, share in zip(values, confidence, strict=True) if share > 0]


def positive_classes(classes: RaggedArray, confidence: RaggedArray | None) -> RaggedArray:
    """The classes of records without those of confidence 0, which were verified to be absent.

    All classes of a record without confidences are positive.

    Raises:
        CorruptDataError: a record has another number of confidences than of classes.
    """
    if confidence is None:
        return classes
    lengths, known = classes.lengths, confidence.lengths
    wrong = np.flatnonzero((known != lengths) & (known != 0))
    if len(wrong):
        row = int(wrong[0])
        raise CorruptDataError(
            Defect.FEATURE_SHAPE,
            f"feature {CLASS_CONFIDENCE!r} is not parallel to the labels",
            found=f"{known[row]:,} values",
            expected=f"{lengths[row]:,}, one for each label",
            feature=CLASS_CONFIDENCE,
            record=row,
        )
    positive = np.ones(len(classes.values), bool)
    positive[np.repeat(known > 0, lengths)] = confidence.values > 0
    counts = offsets_from_lengths(positive)
    return RaggedArray(classes.values[np.flatnonzero(positive)], counts[classes.row_splits])


def rarest_classes(labels: RaggedArray) -> Int64Array:
    """The label of each row that the fewest rows have: int64, (rows,); -1 for a row without one."""
    rows = np.repeat(np.arange(len(labels)), labels.lengths)
    distinct, codes, counts = np.unique(labels.values, return_inverse=True, return_counts=True)
    order = np.lexsort((codes, counts[codes], rows))
    owners, first = np.unique(rows, return_index=True)
    rarest = np.full(len(labels), -1, np.int64)
    rarest[owners] = distinct[codes[order[first]]]
    return rarest
