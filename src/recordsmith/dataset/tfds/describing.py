"""Describes converted records for TFDS: the features, and the documents next to the shards."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from recordsmith.dataset.tfds.features import (
    BOX,
    BOX_FORMAT,
    CLASS_LABEL,
    DICT,
    IMAGE,
    SCALAR,
    SEQUENCE,
    TENSOR,
    TEXT,
    Leaf,
    Shape,
    TfdsDescription,
    TfdsFeature,
)
from recordsmith.dataset.tfds.folder import FEATURES_NAME, INFO_NAME, TfdsSplit
from recordsmith.dataset.tfds.records import (
    DECODABLE,
    OBJECTS,
    RecordConverter,
    bytes_in,
    check_decodable,
)
from recordsmith.dataset.tfds.roles import BOXES
from recordsmith.errors import OptionError
from recordsmith.example import FeatureSchema, Schema
from recordsmith.example.keys import CLASS_LABEL as LABEL_KEY
from recordsmith.example.keys import IMAGE as IMAGE_KEY
from recordsmith.example.keys import MASK
from recordsmith.image import read_image_header

VERSION = "1.0.0"
_DTYPES = {"int64": "int64", "float": "float32", "bytes": "string"}


@dataclass
class _SeenImages:
    """What the images of one feature have in common."""

    formats: set[str] = field(default_factory=set)
    channels: set[int] = field(default_factory=set)
    depths: set[str] = field(default_factory=set)
    sizes: set[tuple[int, int]] = field(default_factory=set)

    @property
    def channel_count(self) -> int:
        """As many channels as TensorFlow can decode all of them to without losing any."""
        if not self.channels & {2, 4}:
            return max(self.channels, default=3)
        return 4 if self.formats == {"png"} else 3

    @property
    def dtype(self) -> str:
        return "uint16" if self.depths == {"16-bit"} else "uint8"


class TfdsImages:
    """Reads the headers of the images of converted records."""

    def __init__(self, converter: RecordConverter) -> None:
        self._known = {
            leaf.value_key
            for leaf in converter.known.features.leaves()
            if leaf.feature.is_image
            and len(leaf.feature.shape) == 3
            and leaf.feature.dtype != "float32"
        }
        usual = () if converter.is_stored else map(converter.path_of, (IMAGE_KEY, MASK))
        self._seen = {key: _SeenImages() for key in (*self._known, *usual)}

    def add(self, record: Mapping[str, Any]) -> None:
        """Read the images of a record."""
        for key, seen in self._seen.items():
            for data in bytes_in(record.get(key)):
                header = read_image_header(data)
                if header is None or header.format not in DECODABLE:
                    if key in self._known:
                        check_decodable(key, data)
                    seen.formats.add("")  # another feature of the usual name
                    continue
                is_jpeg = header.format == "jpeg"
                seen.formats.add(header.format)
                seen.channels.add(min(header.channels, 3) if is_jpeg else header.channels)
                seen.depths.add(header.variant)
                if len(seen.sizes) < 2:
                    seen.sizes.add((header.height, header.width))

    def merge(self, other: TfdsImages) -> None:
        """Add what was seen of other records."""
        for key, seen in other._seen.items():
            for name, values in vars(seen).items():
                vars(self._seen[key])[name].update(values)

    def image(self, key: str) -> _SeenImages | None:
        """What was seen of a feature; None if it had no images."""
        seen = self._seen.get(key)
        if seen is None or not seen.formats or "" in seen.formats:
            return None
        if len(seen.depths) > 1:
            raise OptionError(
                f"{key!r} has images of 8 and of 16 bits, which TensorFlow Datasets cannot hold "
                "in one feature",
                remedy="Convert them to the same type first.",
            )
        return seen


def describe_records(
    schema: Schema, converter: RecordConverter, images: TfdsImages, name: str
) -> tuple[TfdsDescription, list[str]]:
    """Describe converted records; also return what TFDS reads back differently."""
    if schema.payload not in ("Example", "none"):
        raise OptionError(f"TensorFlow Datasets needs Examples, found {schema.payload}")
    schema.check_complete("features.json lists each feature")
    problems: list[str] = []
    features = dict(schema.features)
    count = schema.record_count
    items: dict[str, TfdsFeature] = {}
    known = _kept(converter.known.features, Leaf((), converter.known.features), schema, images)
    used = set[str]()
    if known is not None:
        items |= known.items
        for leaf in known.leaves():
            used.update(leaf.keys)
    else:
        known = TfdsFeature(DICT)
    objects: dict[str, TfdsFeature] = {}
    for key, feature in sorted(features.items()):
        if key in used:
            continue
        if feature.kind == "mixed":
            raise OptionError(
                f"{key!r} has different kinds in different records, and TensorFlow Datasets needs "
                "one",
                remedy="Remove the feature with `recordsmith edit --drop`.",
            )
        if feature.kind == "none":
            problems.append(f"{key!r} has no values and is left out")
            continue
        if key.startswith(f"{OBJECTS}/") and not converter.is_stored and OBJECTS not in items:
            objects[key.removeprefix(f"{OBJECTS}/")] = _object_feature(key, feature, converter)
            continue
        items[key] = _feature(key, feature, count, converter, images, problems)
    if objects:
        item = TfdsFeature(DICT, items=objects)
        items[OBJECTS] = TfdsFeature(SEQUENCE, item=item)
    tree = TfdsFeature(DICT, items=dict(sorted(items.items())))
    paths = {leaf.path for leaf in tree.leaves()}
    names = {path: names for path, names in converter.class_names.items() if path in paths}
    supervised = converter.known.supervised
    if not supervised:
        pair = [converter.path_of(key) for key in (IMAGE_KEY, LABEL_KEY)]
        if pair[1] not in paths:
            pair[1] = converter.path_of(MASK)
        supervised = tuple(pair)
    if not set(supervised) <= paths:
        supervised = ()
    description = TfdsDescription(tree, names, supervised=supervised, name=name, is_stored=True)
    return description, problems


def make_documents(
    description: TfdsDescription, splits: Iterable[tuple[TfdsSplit, int]]
) -> dict[str, bytes]:
    """The files next to the shards, by name: features, class names, splits."""
    info: dict[str, Any] = {
        "name": description.name,
        "version": VERSION,
        "fileFormat": "tfrecord",
        "description": "Written by recordsmith.",
        "splits": [
            {
                "name": split.name,
                "filepathTemplate": split.template,
                "numBytes": str(size),
                "shardLengths": [str(length) for length in split.shard_lengths],
            }
            for split, size in splits
        ],
    }
    if description.supervised:
        items = [{"featureKey": path} for path in description.supervised]
        info["supervisedKeys"] = {"tuple": {"items": items}}
    leaves = {leaf.path: leaf for leaf in description.features.leaves()}
    documents = {
        leaves[path].labels_name: ("\n".join(names) + "\n").encode("utf-8", "surrogateescape")
        for path, names in description.class_names.items()
    }
    documents[FEATURES_NAME] = _json(description.features.to_json())
    return documents | {INFO_NAME: _json(info)}


def _json(document: Any) -> bytes:
    return json.dumps(document, indent=2, sort_keys=True).encode() + b"\n"


def _kept(
    feature: TfdsFeature, place: Leaf, schema: Schema, images: TfdsImages
) -> TfdsFeature | None:
    """A known feature without those that are no longer in the records; None if it is gone."""
    if feature.type == DICT:
        items = {
            name: kept
            for name, item in feature.items.items()
            if (kept := _kept(item, replace(place, parts=(*place.parts, name)), schema, images))
        }
        return replace(feature, items=items) if items else None
    if feature.item is not None:
        inner = replace(place, lengths=(*place.lengths, feature.length))
        item = _kept(feature.item, inner, schema, images)
        return replace(feature, item=item) if item else None
    leaves = TfdsFeature(DICT, items={"": feature}).leaves()  # a translation has several
    for plain_leaf in leaves:
        leaf = replace(
            plain_leaf,
            parts=(*place.parts, *plain_leaf.parts[1:]),
            lengths=(*place.lengths, *plain_leaf.lengths),
        )
        schemas = [schema.features.get(key) for key in leaf.keys]
        least = schema.record_count if leaf.is_fixed else 0
        if not leaf.feature.optional and not all(
            plain_leaf and plain_leaf.present >= least for plain_leaf in schemas
        ):
            return None
    if feature.is_image:
        seen = images.image(replace(place, feature=feature).value_key)
        if seen is not None:
            return replace(feature, shape=_image_shape(feature.shape, seen))
    return feature


def _image_shape(shape: Shape, seen: _SeenImages) -> Shape:
    """The shape of images; a size that not all of them have becomes unknown."""
    size = next(iter(seen.sizes)) if len(seen.sizes) == 1 else (None, None)
    kept = (
        length if length in (None, found) else None
        for length, found in zip(shape[:2], size, strict=True)
    )
    return (*kept, shape[-1])


def _object_feature(key: str, feature: FeatureSchema, converter: RecordConverter) -> TfdsFeature:
    """The feature of one object."""
    if key == converter.path_of(BOXES):
        return TfdsFeature(BOX, (4,), "float32", other={"bboxFormat": BOX_FORMAT})
    return _value(key, feature, converter)


def _value(key: str, feature: FeatureSchema, converter: RecordConverter) -> TfdsFeature:
    """The feature of a single value."""
    if key in converter.class_names:
        return TfdsFeature(CLASS_LABEL, (), "int64", class_count=len(converter.class_names[key]))
    if feature.kind == "bytes":
        return TfdsFeature(TEXT)
    return TfdsFeature(SCALAR, (), _DTYPES[feature.kind])


def _feature(
    key: str,
    feature: FeatureSchema,
    record_count: int,
    converter: RecordConverter,
    images: TfdsImages,
    problems: list[str],
) -> TfdsFeature:
    """The type of a feature, from its schema."""
    seen = images.image(key)
    is_single = feature.shape_if_present == ()
    if seen is not None:
        item = TfdsFeature(IMAGE, (None, None, seen.channel_count), seen.dtype)
        if seen.channels & {2, 4} and seen.channel_count == 3:
            problems.append(f"TensorFlow drops the alpha channel of some images in {key!r}")
        if not is_single or feature.present < record_count:
            item = TfdsFeature(SEQUENCE, item=item)
            problems.append(f"{key!r} is a sequence, because not every record has one image")
        return item
    shape = feature.shape_if_present
    if shape is None or feature.max_length == 0:
        if feature.present < record_count:
            problems.append(_missing(key, feature, record_count, "empty"))
        return TfdsFeature(SEQUENCE, item=_value(key, feature, converter))
    if feature.present == record_count:
        if is_single:
            return _value(key, feature, converter)
        return TfdsFeature(TENSOR, shape, _DTYPES[feature.kind])
    default = {"bytes": "empty", "int64": "-2**63", "float": "the lowest float32"}[feature.kind]
    problems.append(_missing(key, feature, record_count, default))
    return TfdsFeature(TENSOR, shape, _DTYPES[feature.kind], optional=True)


def _missing(key: str, feature: FeatureSchema, record_count: int, default: str) -> str:
    return (
        f"{key!r} is missing in {record_count - feature.present:,} of {record_count:,} records, "
        f"and TFDS reads it there as {default}"
    )
