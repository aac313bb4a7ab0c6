"""What a batch is made of: features as users declare them, one file for each kind."""

from recordsmith.loading.features.boxes import Boxes
from recordsmith.loading.features.bytes import Bytes
from recordsmith.loading.features.contract import (
    Feature,
    Filling,
    PictureFeature,
    PictureFilling,
    PixelFeature,
    Request,
    Rows,
    ValueFeature,
)
from recordsmith.loading.features.masks import Mask
from recordsmith.loading.features.numbers import Scalar, Tensor
from recordsmith.loading.features.padded import Padded
from recordsmith.loading.features.pictures import Image
from recordsmith.loading.features.position import Position
from recordsmith.loading.features.ragged import Ragged
from recordsmith.loading.features.raw import Raw
from recordsmith.loading.features.text import Text

__all__ = [
    "Boxes",
    "Bytes",
    "Feature",
    "Filling",
    "Image",
    "Mask",
    "Padded",
    "PictureFeature",
    "PictureFilling",
    "PixelFeature",
    "Position",
    "Ragged",
    "Raw",
    "Request",
    "Rows",
    "Scalar",
    "Tensor",
    "Text",
    "ValueFeature",
]
