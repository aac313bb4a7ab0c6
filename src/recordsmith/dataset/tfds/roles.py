"""Finds the features of a TFDS dataset that have standard keys, such as the image and its class."""

from __future__ import annotations

from collections.abc import Sequence

from recordsmith.dataset.tfds.features import (
    BOX,
    BOX_FORMAT,
    CLASS_LABEL,
    LABELED_IMAGE,
    SEQUENCE,
    TEXT,
    Leaf,
    TfdsFeature,
)
from recordsmith.example import keys
from recordsmith.example.keys import is_mask_key

BOXES = keys.BOX[0].rpartition("/")[0]
"""Stands for the four keys of boxes, which TFDS stores as one feature."""

_OBJECT_KEYS = {
    "is_crowd": keys.OBJECT_IS_CROWD,
    "is_difficult": keys.OBJECT_DIFFICULT,
    "is_truncated": keys.OBJECT_TRUNCATED,
}
_FILE_NAMES = ("image/filename", "file_name", "filename")


def standard_keys(features: TfdsFeature, supervised: Sequence[str] = ()) -> dict[str, str]:
    """Map the paths of features to standard keys, where their role is unambiguous."""
    leaves = {leaf.path: leaf for leaf in features.leaves()}
    single = {path: leaf for path, leaf in leaves.items() if not leaf.lengths}
    keys_by_path: dict[str, str] = {}

    def choose(key: str, paths: Sequence[str], *usual: str) -> None:
        candidates = [path for path in (*supervised, *usual) if path in paths]
        if not candidates and len(paths) == 1:
            candidates = [paths[0]]
        if candidates and candidates[0] not in keys_by_path:
            keys_by_path[candidates[0]] = key

    pictures = [path for path, leaf in single.items() if _is_picture(leaf)]
    masks = [path for path in pictures if _is_mask(single[path])]
    choose(keys.IMAGE, [path for path in pictures if path not in masks], "image")
    if keys.IMAGE in keys_by_path.values():
        choose(keys.MASK, masks, "segmentation_mask", "mask")
        labels = [path for path, leaf in single.items() if leaf.feature.type == CLASS_LABEL]
        choose(keys.CLASS_LABEL, labels, "label")
        names = [path for path, leaf in single.items() if leaf.feature.type == TEXT]
        if usual := [path for path in _FILE_NAMES if path in names]:
            keys_by_path[usual[0]] = keys.FILENAME
        keys_by_path |= _object_keys(features, list(leaves.values()))
    return keys_by_path


def _is_picture(leaf: Leaf) -> bool:
    """Whether a leaf is one image whose pixels are stored as such: floats are not."""
    feature = leaf.feature
    return feature.is_image and feature.dtype != "float32" and len(feature.shape) == 3


def _is_mask(leaf: Leaf) -> bool:
    feature = leaf.feature
    is_named = is_mask_key(leaf.path) or bool(feature.other.get("useColormap"))
    return feature.type == LABELED_IMAGE or (feature.shape[-1] == 1 and is_named)


def _object_keys(features: TfdsFeature, leaves: Sequence[Leaf]) -> dict[str, str]:
    """The keys of objects, if exactly one sequence of dicts has boxes."""
    boxes = [
        leaf
        for leaf in leaves
        if leaf.feature.type == BOX and len(leaf.lengths) == 1 and len(leaf.parts) == 2
    ]
    if len(boxes) != 1:
        return {}
    name, box = boxes[0].parts
    sequence = features.items[name]
    if (
        sequence.type != SEQUENCE
        or boxes[0].feature.other.get("bboxFormat", BOX_FORMAT) != BOX_FORMAT
    ):
        return {}
    inner = [leaf for leaf in leaves if leaf.parts[0] == name and len(leaf.parts) == 2]
    keys_by_path = {f"{name}/{box}": BOXES}
    labels = [leaf.path for leaf in inner if leaf.feature.type == CLASS_LABEL]
    if f"{name}/label" in labels or len(labels) == 1:
        keys_by_path[f"{name}/label" if f"{name}/label" in labels else labels[0]] = (
            keys.OBJECT_LABEL
        )
    for leaf in inner:
        if (
            leaf.parts[1] in _OBJECT_KEYS
            and not leaf.feature.shape
            and leaf.feature.dtype in ("bool", "int64")
        ):
            keys_by_path[leaf.path] = _OBJECT_KEYS[leaf.parts[1]]
    return keys_by_path
