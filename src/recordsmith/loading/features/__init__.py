"""The features that users declare for a batch, one module for each kind."""

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
)
from recordsmith.loading.features.images.boxes import Boxes
from recordsmith.loading.features.images.image import Image
from recordsmith.loading.features.images.mask import Mask
from recordsmith.loading.features.images.patches import Patches
from recordsmith.loading.features.numbers import Padded, Position, Present, Ragged, Scalar, Tensor

__all__ = [
    "BatchBuffer",
    "BatchRows",
    "Boxes",
    "Bytes",
    "ColumnRequest",
    "Feature",
    "Image",
    "ImageBuffer",
    "ImageFeature",
    "Mask",
    "Padded",
    "Patches",
    "Position",
    "Present",
    "Ragged",
    "Raw",
    "RowFeature",
    "Scalar",
    "Tensor",
    "Text",
    "ValueFeature",
]
