"""The features that users declare for a batch, one module for each kind."""

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
from recordsmith.loading.features.values.bytes import Bytes
from recordsmith.loading.features.values.numbers import Scalar, Tensor
from recordsmith.loading.features.values.padded import Padded
from recordsmith.loading.features.values.position import Position
from recordsmith.loading.features.values.present import Present
from recordsmith.loading.features.values.ragged import Ragged
from recordsmith.loading.features.values.raw import Raw
from recordsmith.loading.features.values.text import Text

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
