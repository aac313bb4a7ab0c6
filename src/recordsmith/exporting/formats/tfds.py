"""A folder that TensorFlow Datasets loads: `tfds.builder_from_directory(folder).as_dataset()`.

    <name>-<split>.tfrecord-00000-of-00001, …
    features.json, dataset_info.json, <label>.labels.txt

The image is the feature `image`, its class `label`, its mask `mask`, and its objects are the
sequence `objects`; other features keep their keys, and their types follow from their values. Raw
pixels become PNG. Episodes get the nested features of RLDS, with `steps` as a dataset of dicts.
Records of a folder of TFDS are copied with its documents.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO, TypeAlias, TypeVar

import numpy as np

from recordsmith.dataset import BOX as BOX_FEATURE
from recordsmith.dataset import (
    BOX_FORMAT,
    BOXES,
    CLASSES,
    DATASET,
    DICT,
    LABELS_SUFFIX,
    SCALAR,
    SEQUENCE,
    TENSOR,
    TEXT,
    TEXT_KEYS,
    TFDS_FEATURES_NAME,
    TFDS_INFO_NAME,
    ClassNames,
    Dataset,
    TfdsSplit,
    find_layout,
    is_tfds_folder,
    read_documents,
    read_info,
    step_prefix,
)
from recordsmith.dataset import CLASS_LABEL as LABEL_FEATURE
from recordsmith.dataset import IMAGE as IMAGE_FEATURE
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.exporter import RecordFiles, WrittenFile, refuse_several_classes
from recordsmith.exporting.images import read_image, read_mask
from recordsmith.format.example import Features, FeatureSchema, Schema, SchemaSurvey, encode_example
from recordsmith.format.example.feature_values import first_bytes, first_text
from recordsmith.format.example.keys import (
    BOX,
    CLASS_LABEL,
    DEPTH,
    DTYPE,
    FORMAT,
    HEIGHT,
    IMAGE,
    MASK,
    MASK_DTYPE,
    MASK_FORMAT,
    OBJECT_LABEL,
    WIDTH,
)
from recordsmith.format.wire import RecordWriter
from recordsmith.image import decode_mask, encode_mask, find_image_header, probe_mask
from recordsmith.stores import Location
from recordsmith.support.errors import OptionError, SourceError

VERSION = "1.0.0"
_OBJECTS = "objects"
_PATHS = {IMAGE: "image", MASK: "mask", CLASS_LABEL: "label", BOXES: f"{_OBJECTS}/bbox"}
_OBJECT_PREFIX = OBJECT_LABEL.removesuffix("class/label")
_IMPLIED = {
    IMAGE: (FORMAT, HEIGHT, WIDTH),
    MASK: (MASK_FORMAT,),
    **{key: (text,) for key, text in TEXT_KEYS.items()},
}
"""Features that TFDS does not store, because another one implies them."""

_DECODABLE = ("jpeg", "png", "bmp")
"""Formats of images that TensorFlow decodes to one image."""

_STEPS, _RAGGED = "steps/", "/ragged_"
_FLAGS = tuple(f"{_STEPS}is_{name}" for name in ("first", "last", "terminal"))
_DTYPES = {"int64": "int64", "float": "float32", "bytes": "string"}
_NO_SPLIT_NAME = re.compile(r"[^\w-]")
_Value = TypeVar("_Value")
_Seen: TypeAlias = dict[str, set[_Value]]
"""What was seen in all records, by the path of their features."""

_ImageType: TypeAlias = tuple[str, int, str]
"""Format, channels and variant of an image; empty for what TensorFlow decodes to none."""

_RAW = frozenset((DEPTH, DTYPE, MASK_DTYPE))
_FORMATS = (FORMAT, MASK_FORMAT)


def _tfds_folder(dataset: Dataset) -> Location | None:
    """The folder of TFDS that a dataset is; None for others."""
    folders = {shard.location.parent for shard in dataset.shards}
    folder = folders.pop() if len(folders) == 1 else None
    return folder if folder is not None and is_tfds_folder(folder) else None


def _count_key(dataset: Dataset) -> str | None:
    """The feature with one value for each step of episodes; None for other records."""
    schema, _ = dataset.view.preview_schema()
    if schema.payload != "Example" or step_prefix(schema.features, is_sequence=False) is None:
        return None
    return find_layout(dataset, _STEPS, None).count_key


class TfdsFiles(RecordFiles):
    options = (*RecordFiles.options, "image_key")

    def keeps_keys(self, dataset: Dataset) -> bool:
        return _tfds_folder(dataset) is not None or _count_key(dataset) is not None

    def inspect(self, dataset: Dataset) -> None:
        self._name = "dataset"
        self._supervised: tuple[str, ...] = ()
        self._documents: dict[str, bytes] | None = None
        folder = _tfds_folder(dataset)
        if folder is not None:
            info = read_info(folder)
            self._name, self._supervised = info.name, info.supervised
            self._documents = read_documents(folder)
            self.has_payloads = True
        self._count_key = None if self.has_payloads else _count_key(dataset)

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        self._out = out
        out.rename_split = _split_name
        if not self.has_payloads:
            refuse_several_classes(dataset, "the label of TFDS is one class", self.format)
        self._converter = _Converter(dataset.class_names)
        self._images: _Seen[_ImageType] = {_PATHS[IMAGE]: set(), _PATHS[MASK]: set()}
        self._widths: _Seen[int] = {}
        self._survey = SchemaSurvey()
        self._sizes: Counter[str] = Counter()  # of the records of each split

    def file_names(self, split: str, count: int) -> Sequence[str]:
        return TfdsSplit(split, (0,) * count).file_names(self._name)

    def open(self, file: BinaryIO, split: str) -> None:
        self._split = split
        self._writer = RecordWriter(file)

    def add(self, record: Any) -> None:
        payload = record if self.has_payloads else self._converted(record)
        self._writer.write(payload)
        self._sizes[self._split] += len(payload)

    def _converted(self, example: Features) -> bytes:
        converted = self._converter.convert(self._with_encoded_images(example))
        if self._count_key is not None:
            converted = {path: value for path, value in converted.items() if not _is_ragged(path)}
            widths = _step_widths(converted, self._count_key)
            kept = frozenset(key for key in example if not _is_ragged(key))
            self._out.count_dropped(example, kept)
            _add(self._widths, {path: {width} for path, width in widths.items()})
            _add(self._images, {path: set() for path in widths})
        for path, types in self._images.items():
            types.update(map(_image_type, _bytes_in(converted.get(path))))
        payload = encode_example(converted)
        size = np.array([len(payload)], np.int64)
        self._survey.update(payload, np.zeros(1, np.int64), size)
        return payload

    def result(self) -> tuple[Any, ...]:
        return self._survey.finish().packed(), self._sizes, self._images, self._widths

    def describe(self, files: Sequence[WrittenFile], results: Iterable[Any]) -> None:
        schemas: list[Schema] = []
        sizes: Counter[str] = Counter()
        images: _Seen[_ImageType] = {}
        widths: _Seen[int] = {}
        for schema, written, some_images, some_widths in results:
            schemas.append(schema)
            sizes += written
            _add(images, some_images)
            _add(widths, some_widths)
        documents = self._documents
        if documents is None:
            documents, self._supervised = self._describe_features(
                Schema.merged(schemas), images, widths
            )
        lengths: dict[str, list[int]] = {}
        for file in files:
            lengths.setdefault(file.split, []).append(file.record_count)
        splits = [
            (TfdsSplit(self._out.split_name(split), tuple(of_split)), sizes[split])
            for split, of_split in lengths.items()
        ]
        info = _describe_splits(self._name, splits, self._supervised)
        for name, data in (documents | {TFDS_INFO_NAME: info}).items():
            self._out.write(name, data)

    def _describe_features(
        self, schema: Schema, images: _Seen[_ImageType], widths: _Seen[int]
    ) -> tuple[dict[str, bytes], tuple[str, ...]]:
        """Return the documents of features and class names, and the paths of input and output."""
        features, problems = _FeaturesBuilder(schema, self._converter, images, widths).build()
        for problem in problems:
            self._out.tally.problems.add(problem)
        documents = {
            f"{path.replace('/', '-')}{LABELS_SUFFIX}": (
                "\n".join(self._converter.class_names) + "\n"
            ).encode("utf-8", "surrogateescape")
            for path in self._converter.label_paths
            if path in schema.features
        }
        pair = _PATHS[IMAGE], _PATHS[CLASS_LABEL if _PATHS[CLASS_LABEL] in features else MASK]
        supervised = pair if set(pair) <= features.keys() else ()
        return documents | {TFDS_FEATURES_NAME: _json(_dict(features))}, supervised

    def _with_encoded_images(self, example: Features) -> Mapping[str, Any]:
        """The example with raw pixels as PNG."""
        if not (_RAW & example.keys() or any(first_text(example, k) == "raw" for k in _FORMATS)):
            return example
        image = read_image(example, self._out.warn)
        mask = read_mask(example, image, self._out.warn)
        result: dict[str, Any] = dict(example)
        for key, encoded in ((IMAGE, image), (MASK, mask)):
            if encoded is not None and encoded.data is not first_bytes(example, key):
                result[key] = [encoded.data]
                for dropped in (DEPTH, DTYPE) if key == IMAGE else (MASK_DTYPE,):
                    result.pop(dropped, None)
        return result


def _add(seen: _Seen[_Value], more: _Seen[_Value]) -> None:
    for path, values in more.items():
        seen.setdefault(path, set()).update(values)


def _split_name(split: str) -> str:
    """A name that TFDS can parse; `all` means all splits."""
    return "all_" if split == "all" else _NO_SPLIT_NAME.sub("_", split)


# -- records -------------------------------------------------------------------------------------


class _Converter:
    """Converts records with standard keys to those that TFDS stores.

    class_names: a name for each class, as TFDS needs them; none if some are equal. A class without
        a name is named by its number.
    label_paths: the paths of labels with these names.
    """

    def __init__(self, class_names: ClassNames | None) -> None:
        names = tuple(
            str(number) if name is None or not name.strip() else name.strip()
            for number, name in enumerate(class_names or ())
        )
        self.class_names = names if len(set(names)) == len(names) else ()
        labels = TEXT_KEYS if self.class_names else ()
        self.label_paths = [_path_of(key) for key in labels]
        self._implied = {key: _IMPLIED[key] for key in (IMAGE, MASK, *labels)}

    def convert(self, features: Mapping[str, Any]) -> dict[str, Any]:
        implied = {key for given in features for key in self._implied.get(given, ())}
        converted: dict[str, Any] = {}
        if any(key in features for key in BOX):
            converted[_PATHS[BOXES]] = _joined_boxes(features)
        for key, value in features.items():
            if key in BOX or key in implied:
                continue
            path = _path_of(key)
            if path in converted:
                raise OptionError(f"two features would have the path {path!r} in TFDS", value=path)
            converted[path] = self._value(key, value)
        return converted

    def _value(self, key: str, value: Any) -> Any:
        if key in (IMAGE, MASK):
            for data in _bytes_in(value):
                _check_decodable(key, data)
        if key == MASK:
            return list(map(_plain_mask, _bytes_in(value)))
        if key in TEXT_KEYS and self.class_names:
            labels = np.atleast_1d(np.asarray(value if np.size(value) else (), np.int64))
            count = len(self.class_names)
            wrong = labels[(labels < -1) | (labels >= count)]
            if len(wrong):
                raise SourceError(
                    f"class {wrong[0]} has no name: there are {count} class names",
                    remedy="Complete the names of the classes.",
                )
        return value


def _step_widths(features: Mapping[str, Any], count_key: str) -> dict[str, int]:
    """Check an episode; return how many values of each feature one of its steps has, by path.

    Args:
        count_key: the feature with one value for each step.
    """
    count = len(features.get(count_key, ()))
    if not count:
        raise SourceError(f"it has no steps: {count_key!r} is empty or missing")
    widths = {}
    for path, value in features.items():
        if path.startswith(_STEPS):
            if len(value) % count:
                raise SourceError(
                    f"{path!r} has {len(value):,} values, expected a multiple of its "
                    f"{count:,} steps"
                )
            for data in _bytes_in(value):
                if find_image_header(data) is not None:
                    _check_decodable(path, data)
            widths[path] = len(value) // count
    return widths


def _is_ragged(path: str) -> bool:
    """Whether a feature is of lists of various lengths in steps."""
    return path.startswith(_STEPS) and _RAGGED in path


def _path_of(key: str) -> str:
    if key not in _PATHS and key.startswith(_OBJECT_PREFIX):
        return f"{_OBJECTS}/{key.removeprefix(_OBJECT_PREFIX).removeprefix('class/')}"
    return _PATHS.get(key, key)


def _bytes_in(value: Any) -> list[bytes]:
    """The byte strings of a feature; none if it has numbers or is missing."""
    if isinstance(value, bytes):
        return [value]
    return [item for item in value if isinstance(item, bytes)] if isinstance(value, list) else []


def _check_decodable(key: str, data: bytes) -> None:
    """Raise SourceError for an image that TensorFlow Datasets cannot decode."""
    header = find_image_header(data)
    if header is None or header.format not in _DECODABLE:
        format_name = "unsupported" if header is None else header.format
        why = f"its format is {format_name}" if data else "it is empty"
        raise SourceError(
            f"TensorFlow Datasets cannot decode {key!r}: {why}",
            remedy="Store the images as PNG or JPEG.",
        )


def _joined_boxes(features: Mapping[str, Any]) -> Any:
    """Boxes as TFDS stores them: ymin, xmin, ymax and xmax of each."""
    missing = [key for key in BOX if key not in features]
    if missing:
        raise SourceError(f"its boxes lack {missing[0]}")
    edges = [np.atleast_1d(np.asarray(features[key], np.float32)) for key in BOX]
    if len({len(edge) for edge in edges}) > 1:
        raise SourceError("the edges of its boxes differ in number")
    return np.stack(edges, axis=1).ravel()


def _plain_mask(data: bytes) -> bytes:
    """A mask that TensorFlow decodes to class numbers: a greyscale PNG of 8 or 16 bits."""
    info = probe_mask(data)
    is_plain = info.kind == "grey" and info.bits >= 8 and not info.has_alpha
    if info.kind not in ("grey", "palette") or (is_plain and info.format == "png"):
        return data
    return encode_mask(decode_mask(data))


# -- documents -----------------------------------------------------------------------------------


def _image_type(data: bytes) -> _ImageType:
    header = find_image_header(data)
    if header is None or header.format not in _DECODABLE:
        return "", 0, ""
    is_jpeg = header.format == "jpeg"
    return header.format, min(header.channels, 3) if is_jpeg else header.channels, header.variant


class _FeaturesBuilder:
    """Describes the features of converted records, as in `features.json`."""

    def __init__(
        self,
        schema: Schema,
        converter: _Converter,
        images: _Seen[_ImageType],
        widths: _Seen[int],
    ) -> None:
        """`widths`: of the features of steps, if the records are episodes."""
        if schema.payload not in ("Example", "none"):
            raise OptionError(f"TensorFlow Datasets needs Examples, found {schema.payload}")
        schema.check_complete("features.json lists each feature")
        self._schema = schema
        self._converter = converter
        self._images = {
            path: types
            for path, types in images.items()
            if types and all(format_name for format_name, *_ in types)
        }
        self._widths = widths
        self._problems: list[str] = []

    def build(self) -> tuple[dict[str, Any], list[str]]:
        """Return the features by name, and what TFDS reads back differently."""
        features: dict[str, Any] = {}
        objects: dict[str, Any] = {}
        steps: dict[str, Any] = {}
        has_objects = _OBJECTS not in self._schema.features
        for path, feature in sorted(self._schema.features.items()):
            if feature.kind == "mixed":
                raise OptionError(
                    f"{path!r} has different kinds in different records, and TensorFlow Datasets "
                    "needs one",
                    remedy="Remove the feature with `recordsmith edit --drop`.",
                )
            is_of_steps = path in self._widths
            if feature.kind == "none" or (is_of_steps and not feature.max_length):
                self._problems.append(f"{path!r} has no values and is left out")
            elif is_of_steps:
                steps[path.removeprefix(_STEPS)] = self._step(path, feature)
            elif has_objects and path.startswith(f"{_OBJECTS}/"):
                name = path.removeprefix(f"{_OBJECTS}/")
                box = {"bboxFormat": BOX_FORMAT}
                objects[name] = (
                    _tensor(BOX_FEATURE, (4,), "float32", **box)
                    if path == _PATHS[BOXES]
                    else self._value(path, feature)
                )
            else:
                features[path] = self._feature(path, feature)
        if objects:
            features[_OBJECTS] = _sequence(_dict(objects))
        if steps:
            features = _nested(features)
            step = _dict(_nested(steps))
            features[_STEPS[:-1]] = _described(DATASET, feature=step, length="-1")
        return features, self._problems

    def _value(self, path: str, feature: FeatureSchema) -> dict[str, Any]:
        if path in self._converter.label_paths:
            return _described(LABEL_FEATURE, numClasses=str(len(self._converter.class_names)))
        if feature.kind == "bytes":
            return _described(TEXT)
        return _tensor(SCALAR, (), _DTYPES[feature.kind], encoding="none")

    def _step(self, path: str, feature: FeatureSchema) -> dict[str, Any]:
        """A feature of the steps of episodes."""
        count = self._schema.record_count
        widths = sorted(self._widths[path])
        problem = ""
        if feature.present < count:
            problem = f"is missing in {count - feature.present:,} of {count:,} episodes"
        elif len(widths) > 1:
            problem = (
                f"has {widths[0]:,} values in the steps of some episodes, {widths[1]:,} in others"
            )
        if problem:
            raise OptionError(
                f"{path!r} {problem}, and the steps of RLDS need equally many",
                remedy="Remove the feature with `recordsmith edit --drop`.",
            )
        if widths != [1]:
            return _tensor(TENSOR, widths, _DTYPES[feature.kind], encoding="none")
        if path in self._images:
            return self._image(path)
        if path in _FLAGS and feature.kind == "int64":
            return _tensor(SCALAR, (), "bool", encoding="none")
        return self._value(path, feature)

    def _image(self, path: str) -> dict[str, Any]:
        formats, channels, depths = map(set, zip(*self._images[path], strict=True))
        channel_count = max(channels)
        if channels & {2, 4}:  # as many as TensorFlow can decode all images to
            channel_count = 4 if formats == {"png"} else 3
            if channel_count == 3:
                problem = f"TensorFlow drops the alpha channel of some images in {path!r}"
                self._problems.append(problem)
        if len(depths) > 1:
            raise OptionError(
                f"{path!r} has images of 8 and of 16 bits, which TensorFlow Datasets cannot hold "
                "in one feature",
                remedy="Convert them to the same type first.",
            )
        dtype = "uint16" if depths == {"16-bit"} else "uint8"
        return _tensor(IMAGE_FEATURE, (-1, -1, channel_count), dtype)

    def _feature(self, path: str, feature: FeatureSchema) -> dict[str, Any]:
        shape, count = feature.shape_if_present, self._schema.record_count
        is_everywhere = feature.present == count
        if path in self._images:
            image = self._image(path)
            if shape == () and is_everywhere:
                return image
            self._problems.append(f"{path!r} is a sequence, because not every record has one image")
            return _sequence(image)
        if shape is None or feature.max_length == 0:
            if not is_everywhere:
                self._add_missing(path, feature, "empty")
            return _sequence(self._value(path, feature))
        if is_everywhere and shape == ():
            return self._value(path, feature)
        content: dict[str, Any] = {"encoding": "none"}
        if not is_everywhere:
            defaults = {"bytes": "empty", "int64": "-2**63", "float": "the lowest float32"}
            self._add_missing(path, feature, defaults[feature.kind])
            content["optional"] = True
        return _tensor(TENSOR, shape, _DTYPES[feature.kind], **content)

    def _add_missing(self, path: str, feature: FeatureSchema, default: str) -> None:
        count = self._schema.record_count
        self._problems.append(
            f"{path!r} is missing in {count - feature.present:,} of {count:,} records, and TFDS "
            f"reads it there as {default}"
        )


def _described(kind: str, **content: Any) -> dict[str, Any]:
    module, field_name = CLASSES[kind]
    name = f"tensorflow_datasets.core.features.{module}.{kind}"
    return {"pythonClassName": name, field_name: content}


def _dict(features: Mapping[str, Any]) -> dict[str, Any]:
    return _described(DICT, features=features)


def _nested(features: Mapping[str, Any]) -> dict[str, Any]:
    """Features by path as dicts in dicts, by their outermost names."""
    groups: dict[str, dict[str, Any]] = {}
    for path, feature in features.items():
        name, _, rest = path.partition("/")
        groups.setdefault(name, {})[rest] = feature
    for name, group in groups.items():
        if "" in group and len(group) > 1:
            raise OptionError(
                f"{name!r} is both a feature and the beginning of others, such as "
                f"{name + '/' + max(group)!r}, which RLDS cannot hold",
                remedy="Rename one of them with `recordsmith edit --rename`.",
            )
    return {
        name: group[""] if "" in group else _dict(_nested(group)) for name, group in groups.items()
    }


def _sequence(feature: Mapping[str, Any]) -> dict[str, Any]:
    return _described(SEQUENCE, feature=feature, length="-1")


def _tensor(kind: str, shape: Sequence[int], dtype: str, **content: Any) -> dict[str, Any]:
    dimensions = {"dimensions": list(map(str, shape))} if shape else {}
    return _described(kind, shape=dimensions, dtype=dtype, **content)


def _describe_splits(
    name: str, splits: Iterable[tuple[TfdsSplit, int]], supervised: Sequence[str] = ()
) -> bytes:
    """Return the content of `dataset_info.json`, given the splits with their sizes in bytes."""
    info: dict[str, Any] = {
        "name": name,
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
    if supervised:
        items = [{"featureKey": path} for path in supervised]
        info["supervisedKeys"] = {"tuple": {"items": items}}
    return _json(info)


def _json(document: Any) -> bytes:
    return json.dumps(document, indent=2, sort_keys=True).encode() + b"\n"
