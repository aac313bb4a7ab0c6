"""The features that users declare for a batch, one module for each kind.

Those of images are in `images`, which is imported when one of them is used.
"""

from recordsmith.loading.features.bytes import Bytes, Raw, Text
from recordsmith.loading.features.feature import (
    BatchBuffer,
    BatchRows,
    ColumnRequest,
    Feature,
    ImageBuffer,
    ImageFeature,
    RowFeature,
    ValueFeature,
    images_in,
)
from recordsmith.loading.features.numbers import Padded, Position, Present, Ragged, Scalar, Tensor

__all__ = [
    "BatchBuffer",
    "BatchRows",
    "Bytes",
    "ColumnRequest",
    "Feature",
    "ImageBuffer",
    "ImageFeature",
    "Padded",
    "Position",
    "Present",
    "Ragged",
    "Raw",
    "RowFeature",
    "Scalar",
    "Tensor",
    "Text",
    "ValueFeature",
    "images_in",
]
