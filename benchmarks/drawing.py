"""Images that JPEG finds as hard as photographs: soft light, shapes with edges, and grain.

And what goes with them: masks of class numbers, and boxes.
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw

QUALITY = 90
Box = tuple[int, int, int, int]


class Painter:
    """Draws one image after the other; the same seed gives the same sequence.

    grain: the least and the most noise of an image, as a standard deviation of its values.
    """

    def __init__(
        self,
        seed: int,
        width: int = 320,
        height: int = 240,
        *,
        grain: tuple[float, float] = (3, 9),
        quality: int = QUALITY,
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._width, self._height = width, height
        self._grain, self._quality = grain, quality

    def draw(self, *, progressive: bool = False) -> bytes:
        """The next image, as a JPEG file."""
        light = sum(self._soft(cells, weight) for cells, weight in ((3, 1.0), (9, 0.5), (36, 0.3)))
        image = Image.fromarray(np.clip(light * 70 + 60, 0, 255).astype(np.uint8))
        self._add_shapes(image)
        grain = self._rng.normal(0, self._rng.uniform(*self._grain), (self._height, self._width, 1))
        pixels = np.clip(np.asarray(image) + grain, 0, 255).astype(np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", quality=self._quality, progressive=progressive)
        return file.getvalue()

    def draw_mask(self, class_count: int) -> bytes:
        """A mask: a palette PNG, a few objects on the background 0, each with an edge of 255."""
        image = Image.new("P", (self._width, self._height))
        image.putpalette(self._rng.integers(0, 256, 768, np.uint8).tobytes())
        draw = ImageDraw.Draw(image)
        for box in self.boxes(1, 5):
            number = int(self._rng.integers(1, class_count + 1))
            draw.ellipse(box, fill=number, outline=255, width=3)
        file = io.BytesIO()
        image.save(file, "PNG")
        return file.getvalue()

    def boxes(self, fewest: int, most: int) -> list[Box]:
        """Some boxes within the image: xmin, ymin, xmax, ymax."""
        found = []
        for _ in range(int(self._rng.integers(fewest, most + 1))):
            across = int(self._rng.integers(self._width // 16, self._width // 2))
            down = int(self._rng.integers(self._height // 16, self._height // 2))
            left = int(self._rng.integers(1, self._width - across))
            top = int(self._rng.integers(1, self._height - down))
            found.append((left, top, left + across, top + down))
        return found

    def _soft(self, cells: int, weight: float) -> np.ndarray:
        """Random colours on a coarse grid, smoothly joined: float32, (height, width, 3)."""
        rows = max(2, cells * self._height // self._width)
        grid = self._rng.integers(0, 256, (rows, cells, 3), np.uint8)
        size = self._width, self._height
        smooth = Image.fromarray(grid).resize(size, Image.Resampling.BICUBIC)
        return np.asarray(smooth, np.float32) * (weight / 128)

    def _add_shapes(self, image: Image.Image) -> None:
        draw = ImageDraw.Draw(image)
        for _ in range(int(self._rng.integers(4, 16))):
            x, y = self._rng.integers(0, self._width), self._rng.integers(0, self._height)
            across, down = self._rng.integers(10, 90, 2)
            colour = tuple(self._rng.integers(0, 256, 3).tolist())
            box = (int(x), int(y), int(x + across), int(y + down))
            if self._rng.random() < 0.7:
                draw.ellipse(box, fill=colour)
            else:
                draw.line(box, fill=colour, width=int(self._rng.integers(1, 7)))
