"""Why a TFRecord file becomes larger than its pictures, and how it does not.

    python examples/tutorials/picture_sizes.py [FOLDER [PICTURES]]

Ten pictures in one folder, their classes told by their names, are stored in five ways. Raw pixels
take many times what the files take, and PNGs four times as much again if they are read as floats,
as matplotlib does. The files' own bytes cost next to nothing on top. PNGs become smaller as JPEG,
for a loss: their alpha is dropped here, and the colours under it stay, as in TensorFlow's
decode_png.
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
    """Pictures as matplotlib reads them: PNG as float32 from 0 to 1, JPEG as uint8."""
    for path in sorted(pets.iterdir()):
        pixels = np.array(Image.open(path))
        if path.suffix == ".png":
            pixels = pixels / np.float32(255)
        shape = dict(zip(("rows", "cols", "channels"), pixels.shape, strict=True))
        label = ("cat", "dog").index(path.name[:3])
        yield {"filename": path.name, **shape, "image": pixels.tobytes(), "label": label}


files = rs.ImageFiles(pets, class_pattern="^[a-z]+")  # cat from cat_0.jpeg
raw = rs.PictureOptions(format="raw")
at_100 = rs.PictureOptions(format="jpeg", quality=100, drop_alpha=True)
at_95 = rs.PictureOptions(format="jpeg", quality=95, drop_alpha=True)
for what, report in {
    "arrays, PNG as floats": rs.pack(rs.Rows(arrays()), folder / "floats"),
    "arrays, uint8": rs.pack(files, folder / "raw", keys="rows-cols", pictures=raw),
    "the files' bytes": rs.pack(files, folder / "bytes", keys="rows-cols"),
    "PNG as JPEG at 100": rs.pack(files, folder / "jpeg-100", keys="rows-cols", pictures=at_100),
    "PNG as JPEG at 95": rs.pack(files, folder / "jpeg-95", keys="rows-cols", pictures=at_95),
}.items():
    print(f"{what:21} {report.bytes_out / 1000:8.1f} KB")
