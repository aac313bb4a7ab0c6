"""The published definitions of augmentations, in plain NumPy and, if installed, in torchvision.

Both have the same functions: what a given change does to an image, and how changes are drawn.
"""

from __future__ import annotations

import colorsys
import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def kolmogorov_smirnov(one: Array, other: Array) -> float:
    """The distance of two samples, over that which equal distributions exceed once in 1,000."""
    values = np.concatenate([one, other])
    shares = [np.searchsorted(np.sort(x), values, "right") / len(x) for x in (one, other)]
    allowed = 1.95 * math.sqrt((len(one) + len(other)) / (len(one) * len(other)))
    return float(abs(shares[0] - shares[1]).max() / allowed)


class InNumPy:
    """Definitions, written by hand. Levels are floats; results are truncated as in torchvision."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(99)

    def change(self, step: str, image: Array, factor: float) -> Array:
        levels = image.astype(np.float32)
        if step == "hue":
            turned = [self._turned(*pixel, factor) for pixel in levels.reshape(-1, 3) / 255]
            return (np.reshape(turned, image.shape) * 255.999).astype(np.uint8)
        grey = np.floor(levels @ np.float32([0.2989, 0.587, 0.114]))[..., np.newaxis]
        other = {"brightness": 0.0, "contrast": grey.mean(), "saturation": grey}[step]
        return (levels * factor + other * (1 - factor)).clip(0, 255).astype(np.uint8)

    @staticmethod
    def _turned(red: float, green: float, blue: float, factor: float) -> tuple[float, ...]:
        hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
        return colorsys.hsv_to_rgb((hue + factor) % 1, saturation, value)

    def mixup_share(self, alpha: float) -> float:
        return float(self._rng.beta(alpha, alpha))

    def cutmix_box(self, alpha: float, height: int, width: int) -> tuple[int, int, int, int]:
        """Top, left, bottom, right."""
        side = math.sqrt(1 - self._rng.beta(alpha, alpha))
        y, x = self._rng.integers(height), self._rng.integers(width)
        rows, columns = int(height * side / 2), int(width * side / 2)
        return (
            max(y - rows, 0), max(x - columns, 0), min(y + rows, height), min(x + columns, width)
        )  # fmt: skip

    def erased_box(
        self, scale: tuple[float, float], ratio: tuple[float, float], height: int, width: int
    ) -> tuple[int, int, int, int]:
        for _ in range(10):
            area = height * width * self._rng.uniform(*scale)
            aspect = math.exp(self._rng.uniform(*np.log(ratio)))
            rows, columns = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if rows < height and columns < width:
                top = int(self._rng.integers(height - rows + 1))
                left = int(self._rng.integers(width - columns + 1))
                return top, left, top + rows, left + columns
        return 0, 0, 0, 0

    def jitter_factors(
        self, brightness: float, contrast: float, saturation: float, hue: float
    ) -> tuple[list[int], list[float]]:
        """The order of the four changes, and their factors."""
        factors = [
            self._rng.uniform(max(0, 1 - x), 1 + x) for x in (brightness, contrast, saturation)
        ]
        order: list[int] = self._rng.permutation(4).tolist()
        return order, [*factors, self._rng.uniform(-hue, hue)]


class InTorchvision:
    """`torchvision.transforms.v2`."""

    def __init__(self) -> None:
        import torch
        from torchvision.transforms import v2

        torch.manual_seed(99)
        self._torch, self._v2 = torch, v2

    def change(self, step: str, image: Array, factor: float) -> Array:
        function = getattr(self._v2.functional, f"adjust_{step}")
        changed = function(self._torch.from_numpy(image).permute(2, 0, 1), factor)
        return changed.permute(1, 2, 0).numpy()  # type: ignore[no-any-return]

    def mixup_share(self, alpha: float) -> float:
        return float(self._v2.MixUp(num_classes=2, alpha=alpha).make_params([])["lam"])

    def cutmix_box(self, alpha: float, height: int, width: int) -> tuple[int, int, int, int]:
        images = self._torch.zeros(1, 3, height, width)
        left, top, right, bottom = self._v2.CutMix(num_classes=2, alpha=alpha).make_params(
            [images]
        )["box"]
        return top, left, bottom, right

    def erased_box(
        self, scale: tuple[float, float], ratio: tuple[float, float], height: int, width: int
    ) -> tuple[int, int, int, int]:
        erasing = self._v2.RandomErasing(scale=scale, ratio=ratio)
        drawn = erasing.make_params([self._torch.zeros(3, height, width)])
        if drawn["v"] is None:
            return 0, 0, 0, 0
        return drawn["i"], drawn["j"], drawn["i"] + drawn["h"], drawn["j"] + drawn["w"]

    def jitter_factors(
        self, brightness: float, contrast: float, saturation: float, hue: float
    ) -> tuple[list[int], list[float]]:
        drawn = self._v2.ColorJitter(brightness, contrast, saturation, hue).make_params([])
        names = ("brightness", "contrast", "saturation", "hue")
        return drawn["fn_idx"].tolist(), [drawn[f"{name}_factor"] for name in names]
