"""Why a TFRecord file becomes larger than its images, and how to avoid it.

    python examples/tutorials/image_sizes.py [FOLDER [IMAGES]]

Ten images in one folder, with classes from their names, are stored in five ways. Raw pixels take
many times the size of the files, and PNGs four times as much again as floats, as matplotlib reads
them. The original bytes cost almost nothing extra. PNGs become smaller as JPEG, with a loss: alpha
is dropped, and the hidden colours stay, as in TensorFlow's decode_png.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from stand_ins import draw_pets, working_folder

import recordsmith as rs

folder = working_folder()
pets = Path(sys.argv[2]) if len(sys.argv) > 2 else draw_pets(folder / "pets")


def arrays() -> Iterator[dict[str, Any]]:
    """Images as matplotlib reads them: PNG as float32 from 0 to 1, JPEG as uint8."""
    for path in sorted(pets.iterdir()):
        pixels = np.array(Image.open(path))
        if path.suffix == ".png":
            pixels = pixels / np.float32(255)
        shape = dict(zip(("rows", "cols", "channels"), pixels.shape, strict=True))
        label = ("cat", "dog").index(path.name[:3])
        yield {"filename": path.name, **shape, "image": pixels.tobytes(), "label": label}


files = rs.ImageFiles(pets, class_pattern="^[a-z]+")  # cat from cat_0.jpeg
raw = rs.ImageOptions(store="raw")
at_100 = rs.ImageOptions(store="jpeg", quality=100, drop_alpha=True)
at_95 = rs.ImageOptions(store="jpeg", quality=95, drop_alpha=True)
for what, report in {
    "arrays, PNG as floats": rs.pack(rs.Rows(arrays()), folder / "floats"),
    "arrays, uint8": rs.pack(files, folder / "raw", keys="rows-cols", image_options=raw),
    "the files' bytes": rs.pack(files, folder / "bytes", keys="rows-cols"),
    "PNG as JPEG at 100": rs.pack(
        files, folder / "jpeg-100", keys="rows-cols", image_options=at_100
    ),
    "PNG as JPEG at 95": rs.pack(files, folder / "jpeg-95", keys="rows-cols", image_options=at_95),
}.items():
    print(f"{what:21} {report.bytes_out / 1000:8.1f} KB")
