"""A batch as a loader gives it, drawn on one page: images after cropping, resizing and flipping."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from recordsmith.dataset import Dataset
from recordsmith.drawing import draw_batch
from recordsmith.errors import OptionError
from recordsmith.example import keys
from recordsmith.loading import Boxes, Image, Loader, Mask
from recordsmith.stores import Location
from recordsmith.stores.memory import MemoryStore
from recordsmith.viewing.records import ViewedRecords

_BATCH_SIZE = 12
_COLUMNS = 4
_FITS: dict[str, Any] = {
    "": "resize",
    "none": "resize",
    "center": "center-crop",
    "random": "random-crop",
}


class BatchOptions(NamedTuple):
    """What is drawn: the split, the seed of the order, and how images get their size."""

    split: str
    seed: int
    size: int
    crop: str
    flip: bool


class BatchPreview:
    """Draws batches."""

    def __init__(self, records: ViewedRecords, image_key: str | None) -> None:
        self._records = records
        self._image_key = image_key

    def draw(self, options: BatchOptions) -> bytes:
        """Return the page of a batch as JPEG.

        Raises:
            OptionError: the records have no images that a loader reads, or an option is invalid.
        """
        if options.crop not in _FITS:
            raise OptionError(option="crop", value=options.crop, expected="none, center or random")
        if self._image_key is None:
            raise OptionError("the records have no images", option="dataset")
        records, known = self._records, self._records.schema.features
        positions = records.positions(options.split)
        chosen = records.records
        if len(positions) != len(chosen):
            chosen = chosen.pick(np.asarray(positions, np.int64))
        features: dict[str, Any] = {
            "image": Image(
                self._image_key,
                options.size,
                _FITS[options.crop],
                flip="horizontal" if options.flip else None,
            )
        }
        if all(key in known for key in keys.BOX) and keys.OBJECT_LABEL in known:
            features["boxes"] = Boxes()
        if keys.MASK in known and known[keys.MASK].content == "image":
            features["mask"] = Mask()
        loader = Loader(
            Dataset(records.view.of(chosen)),
            features,
            batch_size=_BATCH_SIZE,
            shuffle=chosen.compressed_shard() is None,
            seed=options.seed,
            threads=0,
            skip_errors=_BATCH_SIZE,
        )
        batch: Any = next(iter(loader))
        location = Location(MemoryStore(), "batch.jpg")
        draw_batch(
            batch["image"],
            location,
            masks=batch.get("mask"),
            boxes=batch.get("boxes"),
            box_labels=batch.get("boxes_labels"),
            title=f"Batch 1 of seed {options.seed}",
            columns=_COLUMNS,
        )
        return location.read()
