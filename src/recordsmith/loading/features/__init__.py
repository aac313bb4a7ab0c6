"""What a batch is made of: features as users declare them, one file for each kind."""

from recordsmith.loading.features.contract import (
    Feature,
    Filling,
    PixelFeature,
    Request,
    Rows,
    ValueFeature,
)
from recordsmith.loading.features.masks import Mask
from recordsmith.loading.features.numbers import Scalar, Tensor
from recordsmith.loading.features.pictures import Image

__all__ = [
    "Feature",
    "Filling",
    "Image",
    "Mask",
    "PixelFeature",
    "Request",
    "Rows",
    "Scalar",
    "Tensor",
    "ValueFeature",
]
