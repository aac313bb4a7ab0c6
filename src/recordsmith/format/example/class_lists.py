"""Images with several classes: which labels of a list are positive, and which is the rarest."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.format.example.values import RaggedArray
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import CorruptDataError, Defect


def are_positive(labels: RaggedArray, confidence: RaggedArray, key: str) -> npt.NDArray[np.bool_]:
    """Whether each label has a confidence above 0: bool, (values,).

    All labels of a record without confidences are positive. A label with the confidence 0 was
    verified to be absent.

    Raises:
        CorruptDataError: a record has another number of confidences, of the feature `key`.
    """
    lengths, known = labels.lengths, confidence.lengths
    wrong = np.flatnonzero((known != lengths) & (known != 0))
    if len(wrong):
        row = int(wrong[0])
        raise CorruptDataError(
            Defect.FEATURE_SHAPE,
            f"feature {key!r} is not parallel to the labels",
            found=f"{known[row]:,} values",
            expected=f"{lengths[row]:,}, one for each label",
            feature=key,
            record=row,
        )
    positive = np.ones(len(labels.values), bool)
    positive[np.repeat(known > 0, lengths)] = confidence.values > 0
    return positive


def rarest_labels(labels: npt.NDArray[Any], lengths: Int64Array) -> Int64Array:
    """The label of each row that the fewest rows have: int64, (rows,); -1 for a row without labels.

    labels: of all rows, end to end.
    """
    rows = np.repeat(np.arange(len(lengths)), lengths)
    distinct, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.lexsort((codes, counts[codes], rows))
    owners, first = np.unique(rows, return_index=True)
    rarest = np.full(len(lengths), -1, np.int64)
    rarest[owners] = distinct[codes[order[first]]]
    return rarest
