"""The features that users declare for a batch, one module for each kind."""

from recordsmith.loading.features.boxes import Boxes
from recordsmith.loading.features.bytes import Bytes
from recordsmith.loading.features.contract import (
    BatchRows,
    Feature,
    Filling,
    ImageFeature,
    ImageFilling,
    PixelFeature,
    Request,
    ValueFeature,
)
from recordsmith.loading.features.images import Image
from recordsmith.loading.features.masks import Mask
from recordsmith.loading.features.numbers import Scalar, Tensor
from recordsmith.loading.features.padded import Padded
from recordsmith.loading.features.position import Position
from recordsmith.loading.features.ragged import Ragged
from recordsmith.loading.features.raw import Raw
from recordsmith.loading.features.text import Text

__all__ = [
    "BatchRows",
    "Boxes",
    "Bytes",
    "Feature",
    "Filling",
    "Image",
    "ImageFeature",
    "ImageFilling",
    "Mask",
    "Padded",
    "PixelFeature",
    "Position",
    "Ragged",
    "Raw",
    "Request",
    "Scalar",
    "Tensor",
    "Text",
    "ValueFeature",
]
