"""Pictures: encoded ones, or rows of pixels, decoded straight into the array of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from recordsmith.errors import CorruptDataError
from recordsmith.example import Column
from recordsmith.image.fit import Fit, FitKind, Placement
from recordsmith.image.pixels import PictureHead, decode_pixels, look_at_picture
from recordsmith.loading.features.contract import Filling, PixelFeature, Request, Rows

Interpolation = Literal["auto", "linear", "area", "nearest", "cubic"]


@dataclass(frozen=True)
class Image(PixelFeature):
    """Pictures of one size: uint8, (batch, height, width, 3), RGB.

    key: the feature's name in the records.
    size: height and width; one number for both.
    fit: how a picture comes to have this size.
    """

    key: str = "image/encoded"
    size: tuple[int, int] | int | None = None
    fit: FitKind = "resize"

    def requests(self) -> Mapping[str, Request]:
        return {self.key: Request(("bytes",), ())}

    def begin(self, name: str, rows: Rows) -> ImageFilling:
        return ImageFilling(self, name, rows)


class ImageFilling(Filling):
    """The pictures of a batch while they are decoded.

    sizes: height and width as stored; None where a picture is none.
    placements: where each comes to lie; None where a picture is none.
    """

    def __init__(self, feature: Image, name: str, rows: Rows) -> None:
        self._name = name
        self._data = list(rows.columns[feature.key].views())  # type: ignore[union-attr]
        self._heads: list[PictureHead | None] = [None] * rows.count
        self.sizes: list[tuple[int, int] | None] = [None] * rows.count
        self.placements: list[Placement | None] = [None] * rows.count
        size = feature.size
        assert size is not None
        frame = (size, size) if isinstance(size, int) else size
        fit = Fit(feature.fit, frame)
        numbers = rows.draws.uniform(f"{name}/fit", fit.number_count).tolist()
        for row, data in enumerate(self._data):
            try:
                head = look_at_picture(data)
            except CorruptDataError as error:
                rows.fail(row, error)
                continue
            self._heads[row] = head
            self.sizes[row] = head.height, head.width
            self.placements[row] = fit.place(head.height, head.width, numbers[row])
        self._out = rows.allocate(name, (rows.count, *frame, 3), np.uint8)

    def fill(self, row: int) -> None:
        import cv2

        head, place = self._heads[row], self.placements[row]
        assert head is not None
        assert place is not None
        pixels = decode_pixels(self._data[row], head)
        cv2.resize(pixels, (place.to_width, place.to_height), dst=self._out[row])

    def example(self, row: int) -> dict[str, Any]:
        return {self._name: self._out[row]}

    def finish(self) -> dict[str, Column]:
        return {self._name: self._out}
