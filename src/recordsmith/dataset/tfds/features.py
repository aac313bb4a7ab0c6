"""The features of a TensorFlow Datasets folder, parsed from `features.json` and written to it.

Features are a tree of dicts, sequences and leaves. Each leaf has its place in the records: TFDS
joins the names on the way to a leaf with `/`, and flattens all sequences around it into one list.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

MAX_LEVELS = 32
"""The maximum depth of the tree."""

MAX_LEAVES = 65_536
"""The maximum number of leaves."""

Shape: TypeAlias = tuple[int | None, ...]

DICT, SEQUENCE, DATASET = "FeaturesDict", "Sequence", "Dataset"
IMAGE, LABELED_IMAGE, CLASS_LABEL, BOX = "Image", "LabeledImage", "ClassLabel", "BBoxFeature"
TEXT, TENSOR, SCALAR = "Text", "Tensor", "Scalar"
TRANSLATION, TRANSLATIONS = "Translation", "TranslationVariableLanguages"
BOX_FORMAT = "REL_YXYX"

_CLASSES = {
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
class TfdsFeature:
    """One feature, with the features in it.

    type: the name of its class in TFDS.
    shape, dtype: of one value. A dimension of unknown length is None.
    encoding: how a tensor is stored: none (as a list), bytes or zlib.
    optional: whether records may lack it.
    class_count: of a label or a labeled image; None if unknown.
    items: the features of a dict, by name.
    item, length: what a sequence repeats, and how often; None for any length.
    languages: of a translation.
    other: fields that are only passed on: the encoding of images, the format of boxes.
    """

    type: str
    shape: Shape = ()
    dtype: str = ""
    encoding: str = "none"
    optional: bool = False
    class_count: int | None = None
    items: Mapping[str, TfdsFeature] = field(default_factory=dict)
    item: TfdsFeature | None = None
    length: int | None = None
    languages: tuple[str, ...] = ()
    other: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_image(self) -> bool:
        return self.type in (IMAGE, LABELED_IMAGE)

    @property
    def is_supported(self) -> bool:
        return self.type in _CLASSES

    def leaves(self) -> list[Leaf]:
        """All leaves, in the order of the tree."""
        by_path: dict[str, Leaf] = {}
        for leaf in _leaves(self, Leaf((), self)):
            if leaf.path in by_path:
                raise ValueError(f"two features have the path {leaf.path!r:.60}")
            by_path[leaf.path] = leaf
            if len(by_path) > MAX_LEAVES:
                raise ValueError(f"it has more than {MAX_LEAVES:,} features")
        return list(by_path.values())

    def to_json(self) -> dict[str, Any]:
        """Return the content of `features.json`."""
        content: dict[str, Any] = {}
        if self.type == DICT:
            content = {"features": {name: item.to_json() for name, item in self.items.items()}}
        elif self.item is not None:
            length = -1 if self.length is None else self.length
            content = {"feature": self.item.to_json(), "length": str(length)}
        elif self.type == CLASS_LABEL:
            content = {} if self.class_count is None else {"numClasses": str(self.class_count)}
        elif self.type in (TRANSLATION, TRANSLATIONS):
            content = {"languages": list(self.languages)}
            if self.type == TRANSLATIONS:
                content["variableLanguagesPerExample"] = True
        elif self.type != TEXT:
            dimensions = [str(-1 if length is None else length) for length in self.shape]
            content = {
                "shape": {"dimensions": dimensions} if dimensions else {},
                "dtype": self.dtype,
                **self.other,
            }
            if self.type in _TENSORS:
                content["encoding"] = self.encoding
                if self.optional:
                    content["optional"] = True
            if self.type == LABELED_IMAGE:
                count = {} if self.class_count is None else {"numClasses": str(self.class_count)}
                content["label"] = count
        module, field_name = _CLASSES[self.type]
        name = f"tensorflow_datasets.core.features.{module}.{self.type}"
        return {"pythonClassName": name, field_name: content}


@dataclass(frozen=True)
class Leaf:
    """A feature with values, and where its values are in the records.

    parts: the names on the way to it.
    lengths: of the sequences around it, the outermost first; None for any length.
    in_steps: whether the outermost sequence is a `Dataset`, such as the steps of an episode.
    """

    parts: tuple[str, ...]
    feature: TfdsFeature
    lengths: Shape = ()
    in_steps: bool = False

    @cached_property
    def path(self) -> str:
        return "/".join(self.parts)

    @cached_property
    def labels_name(self) -> str:
        """The name of the file with the class names."""
        return "-".join(part.replace("/", ".") for part in self.parts) + ".labels.txt"

    @cached_property
    def has_shape_key(self) -> bool:
        """Whether records hold the shape of its values, because several lengths are unknown."""
        return self.feature.type in _TENSORS and self.feature.shape.count(None) > 1

    @cached_property
    def is_encoded(self) -> bool:
        """Whether each value is stored as bytes of its numbers."""
        return self.feature.type in _TENSORS and self.feature.encoding != "none"

    @cached_property
    def least_size(self) -> int:
        """What the number of values of an item is a multiple of, in the stored list."""
        if self.is_encoded or self.feature.type not in (*_TENSORS, BOX):
            return 1
        return math.prod(length for length in self.feature.shape if length is not None)

    @cached_property
    def item_size(self) -> int | None:
        """How many values of the stored list are one item; None if it varies."""
        is_list = not self.is_encoded and not self.feature.is_image
        return None if is_list and None in self.feature.shape else self.least_size

    @cached_property
    def value_key(self) -> str:
        """The key of its values in the records."""
        key = f"{self.path}/value" if self.has_shape_key else self.path
        return f"{key}/ragged_flat_values" if len(self.lengths) > 1 else key

    @cached_property
    def shape_key(self) -> str:
        """The key of the shapes of its values, if `has_shape_key`."""
        key = f"{self.path}/shape"
        return f"{key}/ragged_flat_values" if len(self.lengths) > 1 else key

    @cached_property
    def length_keys(self) -> tuple[str, ...]:
        """The keys of the lengths of inner sequences, the outermost first."""
        paths: tuple[str, ...] = (self.path,)
        if self.has_shape_key:
            paths = (f"{self.path}/value", f"{self.path}/shape")
        inner = range(len(self.lengths) - 1)
        return tuple(f"{path}/ragged_row_lengths_{level}" for path in paths for level in inner)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """All keys of the records that belong to it."""
        shape = (self.shape_key,) if self.has_shape_key else ()
        return (self.value_key, *shape, *self.length_keys)

    @cached_property
    def is_fixed(self) -> bool:
        """Whether each record has equally many values."""
        shape = () if self.is_encoded else self.feature.shape
        return None not in (*self.lengths, *(() if self.feature.is_image else shape))


def _leaves(feature: TfdsFeature, place: Leaf) -> Iterator[Leaf]:
    if feature.type == DICT:
        for name, item in feature.items.items():
            yield from _leaves(item, replace(place, parts=(*place.parts, name)))
    elif feature.type == TRANSLATION:
        for language in feature.languages:
            yield replace(place, parts=(*place.parts, language), feature=TfdsFeature(TEXT))
    elif feature.type == TRANSLATIONS:
        inner = TfdsFeature(DICT, items=dict.fromkeys(("language", "translation"), _TEXT))
        yield from _leaves(TfdsFeature(SEQUENCE, item=inner), place)
    elif feature.item is not None:
        is_first = not place.lengths
        lengths = (*place.lengths, feature.length)
        is_steps = place.in_steps or (is_first and feature.type == DATASET)
        yield from _leaves(feature.item, replace(place, lengths=lengths, in_steps=is_steps))
    else:
        yield replace(place, feature=feature)


_TEXT = TfdsFeature(TEXT)


def parse_features(document: Any) -> TfdsFeature:
    """Parse the content of `features.json`, also of old versions of TFDS.

    Features of unknown type are kept, so that an error can name them.
    """
    feature = _parse(document, 0)
    if feature.type != DICT:
        raise ValueError(f"the outermost feature is {feature.type:.60}, expected {DICT}")
    feature.leaves()
    return feature


def _parse(document: Any, level: int) -> TfdsFeature:
    if level > MAX_LEVELS:
        raise ValueError("it is nested too deeply")
    if not isinstance(document, Mapping):
        raise TypeError("a feature is not an object")
    if "type" in document:  # TFDS before 4.5
        name, content = document["type"], document.get("content")
        content = json.loads(content) if isinstance(content, str) else content
    else:
        name = _get(document, "pythonClassName")
        content = document.get(_CLASSES.get(_last(name), ("", ""))[1], {})
    kind = _last(name)
    content = {} if content is None else content
    if kind not in _CLASSES or not str(name).startswith("tensorflow_datasets."):
        return TfdsFeature(f"{name}"[:200] if "." not in str(name) else kind[:200])
    if not isinstance(content, Mapping):
        raise TypeError(f"the content of a {kind} is not an object")
    return _parse_content(kind, content, level)


def _parse_content(kind: str, content: Mapping[str, Any], level: int) -> TfdsFeature:
    if kind == DICT:
        features = content.get("features", content)
        if "pythonClassName" in features or "type" in features:  # a feature with this name
            features = content
        items = {str(name): _parse(item, level + 1) for name, item in features.items()}
        return TfdsFeature(DICT, items=items)
    if kind in (SEQUENCE, DATASET):
        item = _parse(content["feature"], level + 1)
        return TfdsFeature(kind, item=item, length=_length(content.get("length", -1)))
    if kind == CLASS_LABEL:
        return TfdsFeature(CLASS_LABEL, (), "int64", class_count=_count_of(content))
    if kind == TEXT:
        return _TEXT
    if kind in (TRANSLATION, TRANSLATIONS):
        languages = tuple(map(str, content.get("languages", ())))
        return TfdsFeature(kind, languages=languages)
    shape = content.get("shape", (4,) if kind == BOX else ())
    if isinstance(shape, Mapping):
        shape = shape.get("dimensions", ())
    defaults = {BOX: "float32", IMAGE: "uint8", LABELED_IMAGE: "uint8"}
    encoding = _get(content, "encoding", "none") or "none"
    if encoding not in _ENCODINGS:
        raise ValueError(f"unknown encoding {encoding!r:.60}")
    return TfdsFeature(
        kind,
        tuple(map(_length, shape)),
        str(content.get("dtype") or defaults.get(kind, "float32")),
        encoding,
        bool(content.get("optional", False)),
        _count_of(content.get("label") or {}) if kind == LABELED_IMAGE else None,
        other={
            name: field_value
            for name in ("encodingFormat", "useColormap", "bboxFormat", "minimum", "maximum")
            if (field_value := _get(content, name, None)) is not None
        },
    )


def _last(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError("the class of a feature is not a text")
    return name.rpartition(".")[2]


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


@dataclass(frozen=True)
class TfdsDescription:
    """The features of a dataset as TFDS describes them.

    features: the tree of features.
    class_names: of labels and labeled images, by path.
    keys: standard keys of features, by path; others have their path as key.
    supervised: the paths of input and output; may be empty.
    name: of the dataset.
    is_stored: whether the records are as TFDS stores them.
    """

    features: TfdsFeature = field(default_factory=lambda: TfdsFeature(DICT))
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    supervised: tuple[str, ...] = ()
    name: str = "dataset"
    is_stored: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "features": self.features.to_json(),
            "class_names": {path: list(names) for path, names in self.class_names.items()},
            "keys": dict(self.keys),
            "supervised": list(self.supervised),
            "name": self.name,
            "is_stored": self.is_stored,
            "file_template": "",  # as in manifests of earlier datasets
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TfdsDescription:
        """Restore a description from `to_json`."""
        return cls(
            parse_features(document["features"]),
            {str(k): tuple(map(str, names)) for k, names in document["class_names"].items()},
            {str(path): str(key) for path, key in document["keys"].items()},
            tuple(map(str, document["supervised"])),
            str(document["name"]),
            bool(document["is_stored"]),
        )
