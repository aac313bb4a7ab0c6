"""A batch as a loader gives it, drawn on one page: images after cropping, resizing and flipping."""

from __future__ import annotations

from typing import Any

import numpy as np

from recordsmith.dataset import Dataset
from recordsmith.format.example import keys
from recordsmith.loading import Boxes, Image, Keypoints, Loader, Mask, Scalar, Text
from recordsmith.stores import Location, MemoryStore
from recordsmith.support.errors import OptionError
from recordsmith.viewing.drawing.batch import draw_batch
from recordsmith.viewing.drawing.scene import SceneReader
from recordsmith.viewing.records import ViewedRecords

_BATCH_SIZE = 12
_COLUMNS = 4
_FITS: dict[str, Any] = {
    "": "resize",
    "none": "resize",
    "center": "center-crop",
    "random": "random-crop",
}


def draw_preview(
    records: ViewedRecords,
    reader: SceneReader,
    split: str,
    seed: int,
    size: int,
    crop: str,
    *,
    flip: bool,
) -> bytes:
    """Return the page of a batch as JPEG.

    Raises:
        OptionError: the records have no images that a loader reads, or an option is invalid.
    """
    if crop not in _FITS:
        raise OptionError(option="crop", value=crop, expected="none, center or random")
    image_key = reader.image_key
    if image_key is None:
        raise OptionError("the records have no images", option="dataset")
    known = records.schema.features
    positions = records.positions(split)
    if not len(positions):
        raise OptionError("there are no records to draw", option="split", value=split)
    chosen = records.records
    if len(positions) != len(chosen):
        chosen = chosen.pick(np.asarray(positions, np.int64))
    features: dict[str, Any] = {
        "image": Image(image_key, size, _FITS[crop], flip="horizontal" if flip else None)
    }
    if all(key in known for key in keys.BOX) and keys.OBJECT_LABEL in known:
        features["boxes"] = Boxes(corners=keys.CORNER_X in known)
        pairs = [of_class.pairs() for of_class in records.view.keypoint_classes.values()]
        if keys.KEYPOINT_X in known and pairs and not (flip and None in pairs):
            features["points"] = Keypoints()
    if keys.MASK in known and known[keys.MASK].content == "image":
        features["mask"] = Mask()
    if (key := reader.text_key) is not None and known[key].shape == ():
        features["text"] = Text(key, default="", errors="replace")
    if (key := reader.label_key) is not None and known[key].shape == ():
        features["label"] = Scalar(key, default=-1)
    loader = Loader(
        Dataset(records.view.of(chosen)),
        features,
        batch_size=_BATCH_SIZE,
        shuffle=chosen.compressed_shard() is None,
        seed=seed,
        threads=0,
        skip_errors=_BATCH_SIZE,
    )
    batch: Any = next(iter(loader))
    points = None
    if "points" in batch:
        visible = batch["points_visible"][..., np.newaxis]
        points = np.concatenate([batch["points"], visible], axis=-1)
    location = Location(MemoryStore(), "batch.jpg")
    draw_batch(
        batch["image"],
        location,
        masks=batch.get("mask"),
        boxes=batch.get("boxes"),
        box_labels=batch.get("boxes_labels"),
        corners=batch.get("boxes_corners"),
        points=points,
        captions=_captions(batch, reader),
        class_names=records.view.class_names or (),
        keypoint_classes=records.view.keypoint_classes,
        title=f"Batch 1 of seed {seed}",
        columns=_COLUMNS,
    )
    return location.read()


def _captions(batch: Any, reader: SceneReader) -> list[str]:
    """Return the class of each image of a batch: its name, or else its number."""
    count = len(batch["image"])
    texts, labels = batch.get("text", [""] * count), batch.get("label", [-1] * count)
    return [
        f"#{row} {text or (reader.class_name(int(label)) if label >= 0 else '')}".rstrip()
        for row, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
