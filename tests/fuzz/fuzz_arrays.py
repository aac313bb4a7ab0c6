"""Files of arrays: idx, `.npy`, `.npz`, some compressed.

The invariant: any bytes give samples, each of which can be read or raises a RecordsmithError, or a
RecordsmithError for the file; images have the size that their record states.
"""

from __future__ import annotations

import gzip
import io
import random
import struct
from collections import Counter
from pathlib import Path

import numpy as np
from harness import mutated
from PIL import Image

import recordsmith as rs

_MAX_ROWS = 10_000


class Fuzz:
    watches_memory = False
    reached = ("listed", "refused", "images", "numbers")

    def __init__(self, folder: Path) -> None:
        self.last = b""
        self.folder = folder
        pixels = np.random.default_rng(0).integers(0, 256, (3, 4, 5), np.uint8)
        head = struct.pack(">4B3I", 0, 0, 8, 3, 3, 4, 5)
        self.files: dict[str, list[bytes]] = {
            "images-idx3-ubyte": [head + pixels.tobytes()],
            "images-idx3-ubyte.gz": [gzip.compress(head + pixels.tobytes())],
            "images.npy": [_saved(np.save, pixels), _saved(np.save, pixels / 7)],
            "a.npz": [
                _saved(np.savez, images=pixels, labels=np.arange(3)),
                _saved(np.savez_compressed, images=pixels, labels=np.arange(3)),
                _saved(np.savez, x_train=pixels / 3, y_train=np.ones(3), x_test=pixels),
            ],
        }

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        name = dice.choice([*self.files])
        seeds = self.files[name]
        self.last = dice.choice(seeds)
        if dice.random() < 0.8:
            self.last = mutated(self.last, seeds, dice)
        path = self.folder / name
        path.write_bytes(self.last)
        source = rs.Arrays(path if name.endswith(".npz") else self.folder)
        try:
            listing = source.list_samples()
        except rs.RecordsmithError:
            counts["refused"] += 1
            return
        finally:
            path.unlink()
        counts["listed"] += 1
        assert 0 < len(listing.samples) < _MAX_ROWS
        for sample in listing.samples[:20]:
            try:
                features = listing.reader.read(sample)
            except rs.RecordsmithError:
                continue
            if "image/encoded" in features:
                image = Image.open(io.BytesIO(features["image/encoded"]))
                assert image.size == (features["image/width"], features["image/height"])
                counts["images"] += 1
            else:
                counts["numbers"] += 1


def _saved(save: object, *arrays: object, **named: object) -> bytes:
    stream = io.BytesIO()
    save(stream, *arrays, **named)  # type: ignore[operator]
    return stream.getvalue()
