"""The features that users declare for a batch, one module for each kind."""

from recordsmith.loading.features.bytes import Bytes, Raw, Text
from recordsmith.loading.features.feature import (
    BatchRows,
    ColumnRequest,
    Feature,
    Filling,
    ImageFeature,
    ImageFilling,
    PixelFeature,
    ValueFeature,
)
from recordsmith.loading.features.images.boxes import Boxes
from recordsmith.loading.features.images.image import Image
from recordsmith.loading.features.images.mask import Mask
from recordsmith.loading.features.images.patches import Patches
from recordsmith.loading.features.numbers import Padded, Position, Present, Ragged, Scalar, Tensor

__all__ = [
    "BatchRows",
    "Boxes",
    "Bytes",
    "ColumnRequest",
    "Feature",
    "Filling",
    "Image",
    "ImageFeature",
    "ImageFilling",
    "Mask",
    "Padded",
    "Patches",
    "PixelFeature",
    "Position",
    "Present",
    "Ragged",
    "Raw",
    "Scalar",
    "Tensor",
    "Text",
    "ValueFeature",
]
