"""The standard feature keys, as in TF-Slim and TensorFlow's object detection.

Sources, packing, exports and drawing use these keys. A dataset may store features under other
names: see `packing/keys.py`.
"""

from __future__ import annotations

from collections.abc import Container

# the image: the bytes of its file; raw pixels also have the values per pixel and their type
IMAGE = "image/encoded"
FORMAT = "image/format"
HEIGHT = "image/height"
WIDTH = "image/width"
DEPTH = "image/depth"
DTYPE = "image/dtype"
FILENAME = "image/filename"
SOURCE_ID = "image/source_id"

# its class, or several
CLASS_LABEL = "image/class/label"
CLASS_TEXT = "image/class/text"
CLASS_CONFIDENCE = "image/class/confidence"  # 1, or 0 for a class that it verifiably has not

# its captions, any number
CAPTION = "image/caption"

# its mask: a class index for each pixel
MASK = "image/segmentation/class/encoded"
MASK_FORMAT = "image/segmentation/class/format"
MASK_DTYPE = "image/segmentation/class/dtype"

# its objects: each feature has a value per object, except for keypoints and corners
YMIN = "image/object/bbox/ymin"
XMIN = "image/object/bbox/xmin"
YMAX = "image/object/bbox/ymax"
XMAX = "image/object/bbox/xmax"
BOX = (YMIN, XMIN, YMAX, XMAX)
OBJECT_LABEL = "image/object/class/label"
OBJECT_TEXT = "image/object/class/text"
OBJECT_MASK = "image/object/mask"
OBJECT_ID = "image/object/id"
OBJECT_AREA = "image/object/area"
OBJECT_IS_CROWD = "image/object/is_crowd"
OBJECT_DIFFICULT = "image/object/difficult"
OBJECT_TRUNCATED = "image/object/truncated"
OBJECT_VIEW = "image/object/view"
OBJECT_TRACK = "image/object/track/label"
OBJECT_ATTRIBUTE = "image/object/attribute/"
"""How the keys of attributes begin; the name follows."""

# of each object, as many as the class with the most; visibility is 0 (not labelled: 0, 0),
# 1 (hidden) or 2; and how many are labelled
KEYPOINT_X = "image/object/keypoint/x"
KEYPOINT_Y = "image/object/keypoint/y"
KEYPOINT_VISIBILITY = "image/object/keypoint/visibility"
KEYPOINT = (KEYPOINT_X, KEYPOINT_Y, KEYPOINT_VISIBILITY)
KEYPOINT_NUM = "image/object/keypoint/num"

# four of each object, of rotated boxes: clockwise from the top left of the unturned box
CORNER_X = "image/object/corner/x"
CORNER_Y = "image/object/corner/y"
CORNER = (CORNER_X, CORNER_Y)

_VALUES_PER_OBJECT = frozenset(
    (
        *(*BOX, OBJECT_LABEL, OBJECT_TEXT, OBJECT_ID, OBJECT_AREA, OBJECT_IS_CROWD),
        *(OBJECT_DIFFICULT, OBJECT_TRUNCATED, OBJECT_VIEW, OBJECT_TRACK, KEYPOINT_NUM),
    )
)

_MASK_WORDS = ("mask", "segment")
_TARGET_WORDS = ("label", "depth")


def has_value_per_object(key: str) -> bool:
    """Return whether a standard key has one short value for each object of an image."""
    return key in _VALUES_PER_OBJECT or key.startswith(OBJECT_ATTRIBUTE)


def object_count_key(keys: Container[str]) -> str | None:
    """Return the key whose values count the objects of an image; None without one."""
    return next((key for key in (XMIN, OBJECT_LABEL) if key in keys), None)


def is_class_key(key: str) -> bool:
    """Return whether a key, by its name, contains class indices."""
    return key.rpartition("/")[2] in ("label", "labels")


def is_mask_key(key: str) -> bool:
    """Return whether an image is a mask, by the name of its key."""
    return any(word in key.lower() for word in _MASK_WORDS)


def may_be_mask(key: str) -> bool:
    """Return whether an image is a mask or the like by its key, and so not the main image."""
    return is_mask_key(key) or any(word in key.lower() for word in _TARGET_WORDS)
