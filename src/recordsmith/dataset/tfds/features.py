"""The features of a TensorFlow Datasets folder, parsed from `features.json`.

Features are a tree of dicts, sequences and leaves. Each leaf has its place in the records: TFDS
joins the names on the way to a leaf with `/`, and flattens all sequences around it into one list.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

MAX_LEVELS = 32
"""The maximum depth of the tree."""

MAX_LEAVES = 65_536
"""The maximum number of leaves."""

MAX_PATH = 4096
"""The maximum number of characters of a path."""

Shape: TypeAlias = tuple[int | None, ...]

DICT, SEQUENCE, DATASET = "FeaturesDict", "Sequence", "Dataset"
IMAGE, LABELED_IMAGE, CLASS_LABEL, BOX = "Image", "LabeledImage", "ClassLabel", "BBoxFeature"
TEXT, TENSOR, SCALAR = "Text", "Tensor", "Scalar"
TRANSLATION, TRANSLATIONS = "Translation", "TranslationVariableLanguages"
BOX_FORMAT = "REL_YXYX"

CLASSES = {
    DICT: ("features_dict", "featuresDict"),
    SEQUENCE: ("sequence_feature", "sequence"),
    DATASET: ("dataset_feature", "sequence"),
    IMAGE: ("image_feature", "image"),
    LABELED_IMAGE: ("labeled_image", "image"),
    CLASS_LABEL: ("class_label_feature", "classLabel"),
    BOX: ("bounding_boxes", "boundingBox"),
    TEXT: ("text_feature", "text"),
    TENSOR: ("tensor_feature", "tensor"),
    SCALAR: ("scalar", "tensor"),
    TRANSLATION: ("translation_feature", "translation"),
    TRANSLATIONS: ("translation_feature", "translation"),
}
"""The module of each class in TFDS, and the field of `features.json` with its content."""

_TENSORS = (TENSOR, SCALAR)
_ENCODINGS = ("none", "bytes", "zlib")
_LARGEST = 2**31


@dataclass(frozen=True)
class Leaf:
    """A feature with values, and where its values are in the records.

    parts: the names on the way to it.
    type: the name of its class in TFDS.
    shape, dtype: of one value. A dimension of unknown length is None.
    encoding: how a tensor is stored: none (as a list), bytes or zlib.
    optional: whether records may lack it.
    class_count: of a label or a labeled image; None if unknown.
    box_format, has_colors: of a box; whether an image shows classes in colors.
    lengths: of the sequences around it, the outermost first; None for any length.
    depths: the number of names on the way to each of these sequences.
    in_steps: whether the outermost sequence is a `Dataset`, such as the steps of an episode.
    """

    parts: tuple[str, ...] = ()
    type: str = ""
    shape: Shape = ()
    dtype: str = ""
    encoding: str = "none"
    optional: bool = False
    class_count: int | None = None
    box_format: str = BOX_FORMAT
    has_colors: bool = False
    lengths: Shape = ()
    depths: tuple[int, ...] = ()
    in_steps: bool = False

    @property
    def is_supported(self) -> bool:
        return self.type in CLASSES

    @property
    def is_image(self) -> bool:
        return self.type in (IMAGE, LABELED_IMAGE)

    @cached_property
    def path(self) -> str:
        return "/".join(self.parts)

    @cached_property
    def labels_name(self) -> str:
        """The name of the file with the class names."""
        return "-".join(part.replace("/", ".") for part in self.parts) + ".labels.txt"

    @property
    def has_pixels(self) -> bool:
        """Whether it is one image whose pixels are stored as such: floats are not."""
        return self.is_image and self.dtype != "float32" and len(self.shape) == 3

    @cached_property
    def has_shape_key(self) -> bool:
        """Whether records hold the shape of its values, because several lengths are unknown."""
        return self.type in _TENSORS and self.shape.count(None) > 1

    @cached_property
    def is_encoded(self) -> bool:
        """Whether each value is stored as bytes of its numbers."""
        return self.type in _TENSORS and self.encoding != "none"

    @cached_property
    def least_size(self) -> int:
        """What the number of values of an item is a multiple of, in the stored list."""
        if self.is_encoded or self.type not in (*_TENSORS, BOX):
            return 1
        return math.prod(length for length in self.shape if length is not None)

    @cached_property
    def item_size(self) -> int | None:
        """How many values of the stored list are one item; None if it varies."""
        is_list = not self.is_encoded and not self.is_image
        return None if is_list and None in self.shape else self.least_size

    @cached_property
    def value_key(self) -> str:
        key = f"{self.path}/value" if self.has_shape_key else self.path
        return f"{key}/ragged_flat_values" if len(self.lengths) > 1 else key

    @cached_property
    def shape_key(self) -> str:
        """The key of the shapes of its values, if `has_shape_key`."""
        key = f"{self.path}/shape"
        return f"{key}/ragged_flat_values" if len(self.lengths) > 1 else key

    @cached_property
    def other_keys(self) -> tuple[str, ...]:
        """The keys of integers that belong to it: shapes, and lengths of inner sequences."""
        shape = (self.shape_key,) if self.has_shape_key else ()
        paths: tuple[str, ...] = (self.path,)
        if self.has_shape_key:
            paths = (f"{self.path}/value", f"{self.path}/shape")
        inner = range(len(self.lengths) - 1)
        lengths = (f"{path}/ragged_row_lengths_{level}" for path in paths for level in inner)
        return (*shape, *lengths)

    @cached_property
    def is_fixed(self) -> bool:
        """Whether each record has equally many values."""
        shape = () if self.is_encoded or self.is_image else self.shape
        return None not in (*self.lengths, *shape)


def parse_features(document: Any) -> list[Leaf]:
    """Return the leaves of the content of `features.json`, also of old versions of TFDS.

    Features of unknown type are kept, so that an error can name them.
    """
    kind, _ = _class_of(document)
    if kind != DICT:
        raise ValueError(f"the outermost feature is {kind:.60}, expected {DICT}")
    leaves: dict[str, Leaf] = {}
    for leaf in _leaves(document, Leaf(), 0):
        if len(leaf.path) > MAX_PATH:
            raise ValueError(f"the path of a feature has more than {MAX_PATH:,} characters")
        if leaf.path in leaves:
            raise ValueError(f"two features have the path {leaf.path!r:.60}")
        leaves[leaf.path] = leaf
        if len(leaves) > MAX_LEAVES:
            raise ValueError(f"it has more than {MAX_LEAVES:,} features")
    return list(leaves.values())


def _leaves(document: Any, place: Leaf, level: int) -> Iterator[Leaf]:
    """Yield the leaves of a feature, whose names and lengths begin with those of `place`."""
    if level > MAX_LEVELS:
        raise ValueError("it is nested too deeply")
    kind, content = _class_of(document)
    if kind == DICT:
        features = content.get("features", content)
        if "pythonClassName" in features or "type" in features:  # a feature with this name
            features = content
        for name, item in features.items():
            yield from _leaves(item, _inside(place, str(name)), level + 1)
    elif kind in (SEQUENCE, DATASET):
        length = _length(content.get("length", -1))
        yield from _leaves(content["feature"], _repeated(place, kind, length), level + 1)
    elif kind == TRANSLATION:
        for language in content.get("languages", ()):
            yield replace(_inside(place, str(language)), type=TEXT)
    elif kind == TRANSLATIONS:
        for name in ("language", "translation"):
            yield replace(_inside(_repeated(place, SEQUENCE, None), name), type=TEXT)
    elif kind == CLASS_LABEL:
        yield replace(place, type=kind, dtype="int64", class_count=_count_of(content))
    elif kind == TEXT or kind not in CLASSES:
        yield replace(place, type=kind)
    else:
        yield replace(place, type=kind, **_tensor(kind, content))


def _inside(place: Leaf, name: str) -> Leaf:
    return replace(place, parts=(*place.parts, name))


def _repeated(place: Leaf, kind: str, length: int | None) -> Leaf:
    return replace(
        place,
        lengths=(*place.lengths, length),
        depths=(*place.depths, len(place.parts)),
        in_steps=place.in_steps or (not place.lengths and kind == DATASET),
    )


def _tensor(kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    shape = content.get("shape", (4,) if kind == BOX else ())
    if isinstance(shape, Mapping):
        shape = shape.get("dimensions", ())
    defaults = {BOX: "float32", IMAGE: "uint8", LABELED_IMAGE: "uint8"}
    encoding = _get(content, "encoding", "none") or "none"
    if encoding not in _ENCODINGS:
        raise ValueError(f"unknown encoding {encoding!r:.60}")
    return {
        "shape": tuple(map(_length, shape)),
        "dtype": str(content.get("dtype") or defaults.get(kind, "float32")),
        "encoding": encoding,
        "optional": bool(content.get("optional", False)),
        "class_count": _count_of(content.get("label") or {}) if kind == LABELED_IMAGE else None,
        "box_format": str(_get(content, "bboxFormat", None) or BOX_FORMAT),
        "has_colors": bool(_get(content, "useColormap", False)),
    }


def _class_of(document: Any) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a feature's class, and its content; without content if it is unknown."""
    if not isinstance(document, Mapping):
        raise TypeError("a feature is not an object")
    is_old = "type" in document  # TFDS before 4.5
    name = document["type"] if is_old else _get(document, "pythonClassName")
    if not isinstance(name, str):
        raise TypeError("the class of a feature is not a text")
    kind = name.rpartition(".")[2]
    if kind not in CLASSES or not name.startswith("tensorflow_datasets."):
        return (kind if kind not in CLASSES else name)[:200], {}
    content = document.get("content") if is_old else document.get(CLASSES[kind][1])
    content = json.loads(content) if is_old and isinstance(content, str) else content
    content = {} if content is None else content
    if not isinstance(content, Mapping):
        raise TypeError(f"the content of a {kind} is not an object")
    return kind, content


def _get(document: Mapping[str, Any], name: str, *default: Any) -> Any:
    """The value of a field, whose name may have capitals or underscores."""
    snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
    if name not in document and snake in document:
        return document[snake]
    return document.get(name, *default) if default else document[name]


def _length(length: Any) -> int | None:
    """A length, in JSON a number or a text; negative or null for any length."""
    number = -1 if length is None else int(length)
    if number >= _LARGEST:
        raise ValueError(f"the length {number} is too large")
    return None if number < 0 else number


def _count_of(content: Mapping[str, Any]) -> int | None:
    number = _get(content, "numClasses", None)
    return None if number is None else _length(number)
