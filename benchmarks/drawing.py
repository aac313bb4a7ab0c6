"""Pictures that JPEG finds as hard as photographs: soft light, shapes with edges, and grain."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw

WIDTH, HEIGHT, QUALITY = 320, 240, 90


class Painter:
    """Draws one picture after the other; the same seed gives the same sequence."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def draw(self) -> bytes:
        """The next picture, as a JPEG file."""
        light = sum(self._soft(cells, weight) for cells, weight in ((3, 1.0), (9, 0.5), (36, 0.3)))
        image = Image.fromarray(np.clip(light * 70 + 60, 0, 255).astype(np.uint8))
        self._add_shapes(image)
        grain = self._rng.normal(0, self._rng.uniform(3, 9), (HEIGHT, WIDTH, 1))
        pixels = np.clip(np.asarray(image) + grain, 0, 255).astype(np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", quality=QUALITY)
        return file.getvalue()

    def _soft(self, cells: int, weight: float) -> np.ndarray:
        """Random colours on a coarse grid, smoothly joined: float32, (height, width, 3)."""
        rows = max(2, cells * HEIGHT // WIDTH)
        grid = self._rng.integers(0, 256, (rows, cells, 3), np.uint8)
        smooth = Image.fromarray(grid).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
        return np.asarray(smooth, np.float32) * (weight / 128)

    def _add_shapes(self, image: Image.Image) -> None:
        draw = ImageDraw.Draw(image)
        for _ in range(int(self._rng.integers(4, 16))):
            x, y = self._rng.integers(0, WIDTH), self._rng.integers(0, HEIGHT)
            across, down = self._rng.integers(10, 90, 2)
            colour = tuple(self._rng.integers(0, 256, 3).tolist())
            box = (int(x), int(y), int(x + across), int(y + down))
            if self._rng.random() < 0.7:
                draw.ellipse(box, fill=colour)
            else:
                draw.line(box, fill=colour, width=int(self._rng.integers(1, 7)))
