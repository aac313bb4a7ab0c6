"""The usual keys of features: those of TF-Slim and of TensorFlow's object detection.

Sources give features by these keys, packing changes pictures by them, exporting and drawing look
for them. What they are called in the records of a dataset may be another: see `packing/keys.py`.
"""

from __future__ import annotations

# the picture: the bytes of its file; of raw pixels also how many values a pixel has, and which type
PICTURE = "image/encoded"
FORMAT = "image/format"
HEIGHT = "image/height"
WIDTH = "image/width"
DEPTH = "image/depth"
DTYPE = "image/dtype"
FILENAME = "image/filename"
SOURCE_ID = "image/source_id"

# its class
CLASS_LABEL = "image/class/label"
CLASS_TEXT = "image/class/text"

# its mask: a class number for each pixel
MASK = "image/segmentation/class/encoded"
MASK_FORMAT = "image/segmentation/class/format"
MASK_DTYPE = "image/segmentation/class/dtype"

# its objects: a value for each in every one of these
YMIN = "image/object/bbox/ymin"
XMIN = "image/object/bbox/xmin"
YMAX = "image/object/bbox/ymax"
XMAX = "image/object/bbox/xmax"
BOX = (YMIN, XMIN, YMAX, XMAX)
OBJECT_LABEL = "image/object/class/label"
OBJECT_TEXT = "image/object/class/text"
OBJECT_MASK = "image/object/mask"
OBJECT_AREA = "image/object/area"
OBJECT_IS_CROWD = "image/object/is_crowd"
OBJECT_DIFFICULT = "image/object/difficult"
OBJECT_TRUNCATED = "image/object/truncated"
OBJECT_VIEW = "image/object/view"

_MASK_WORDS = ("mask", "segment")


def is_of_classes(key: str) -> bool:
    """Whether the names of classes speak of the numbers by this key, as far as its name tells."""
    return key.rpartition("/")[2] in ("label", "labels")


def text_of_label(key: str) -> str | None:
    """The feature that has in words what this one has as numbers: `a/text` of `a/label`."""
    folder, _, last = key.rpartition("/")
    return f"{folder}/text" if folder and last in ("label", "labels") else None


def is_of_mask(key: str) -> bool:
    """Whether a picture by this key is a mask, as far as its name tells."""
    return any(word in key.lower() for word in _MASK_WORDS)
