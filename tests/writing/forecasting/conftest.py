"""Images of several formats and sizes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

COUNT = 240


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes of textured images, most of them JPEG of several qualities, some PNG."""
    root = tmp_path_factory.mktemp("photos") / "photos"
    for number in range(COUNT):
        rng = np.random.default_rng(number)
        height, width = rng.integers(40, 110, 2)
        y, x = np.mgrid[0:height, 0:width]
        waves = [127 + 90 * np.sin((x * a + y * b) / 15) for a, b in rng.uniform(-2, 2, (3, 2))]
        pixels = np.stack(waves, axis=2) + rng.normal(0, rng.uniform(1, 12), (height, width, 3))
        image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
        out = io.BytesIO()
        if number % 5:
            image.save(out, "JPEG", quality=int(rng.choice([75, 85, 95])))
        else:
            image.save(out, "PNG")
        path = root / "ab"[number % 2] / f"{number:03d}.{'jpg' if number % 5 else 'png'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(out.getvalue())
    return root
