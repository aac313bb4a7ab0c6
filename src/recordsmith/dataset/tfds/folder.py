"""Reads the documents of a TensorFlow Datasets folder: splits, shards, features and class names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

from recordsmith.dataset.documents import NOT_AS_EXPECTED, describe_fault, json_of, text_of
from recordsmith.dataset.labels import ClassNames
from recordsmith.dataset.names import TFDS_FEATURES_NAME, TFDS_INFO_NAME
from recordsmith.dataset.tfds.features import (
    CLASS_LABEL,
    LABELED_IMAGE,
    Leaf,
    parse_features,
)
from recordsmith.stores import Location, read_document
from recordsmith.support.errors import (
    CorruptDataError,
    DataError,
    Defect,
    FileAccessError,
    OptionError,
    option,
)

LABELS_SUFFIX = ".labels.txt"
TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
"""The template of shard names that TFDS uses by default."""

MAX_SHARDS = 1_000_000
"""The maximum number of shards of a dataset."""

_VERSION = re.compile(r"\d+\.\d+\.\d+")
_LONGEST_NAME = 4096
_LEVELS_BELOW = 3


@dataclass(frozen=True)
class TfdsSplit:
    """A split: the number of records of each shard, and the template of their names."""

    name: str
    shard_lengths: tuple[int, ...]
    template: str = TEMPLATE

    def file_names(self, dataset: str) -> list[str]:
        """The names of the shards, relative to the folder."""
        count = len(self.shard_lengths)
        if max(len(self.template), len(dataset), len(self.name)) > _LONGEST_NAME:
            raise ValueError("a name or a filepathTemplate is too long")
        pieces = [(text, field) for text, field, *_ in Formatter().parse(self.template)]
        fields = {field for _, field in pieces if field is not None}
        values = {"DATASET": dataset, "SPLIT": self.name, "FILEFORMAT": "tfrecord"}
        unknown = fields - {*values, "SHARD_INDEX", "NUM_SHARDS", "SHARD_X_OF_Y"}
        if unknown:
            raise ValueError(f"unknown field {unknown.pop()!r:.60} in a filepathTemplate")
        digits = max(5, len(str(count)))
        names = []
        for number in range(count):
            index, total = f"{number:0{digits}d}", f"{count:0{digits}d}"
            of_shard = {
                "SHARD_INDEX": index,
                "NUM_SHARDS": total,
                "SHARD_X_OF_Y": f"{index}-of-{total}",
            }
            parts = (f"{text}{(values | of_shard).get(field or '', '')}" for text, field in pieces)
            name = "".join(parts)
            if not all(map(is_plain_name, name.split("/"))):
                raise ValueError(f"the shard name {name!r:.80} leads out of the folder")
            names.append(name)
        return names


@dataclass(frozen=True)
class TfdsInfo:
    """The content of `dataset_info.json`.

    supervised: the paths of the features for input and output, if they are stated.
    """

    name: str
    version: str
    file_format: str
    splits: tuple[TfdsSplit, ...]
    supervised: tuple[str, ...] = ()


def find_tfds_folder(root: Location) -> Location:
    """Find the folder with `features.json`: the root, or the only dataset below it.

    TFDS stores a dataset as `name/version` or `name/config/version`. Of several versions, the last
    one is chosen.
    """
    folder, names = innermost_folder(root)
    if is_tfds_folder(folder):
        return folder
    if is_tfds_info(folder):
        raise OptionError(
            f"{folder} has {TFDS_INFO_NAME}, but no {TFDS_FEATURES_NAME}",
            option="root",
            value=str(root),
            remedy=without_features(folder),
        )
    hint = f"; found the folders {', '.join(names[:5])}" if names else ""
    raise OptionError(
        f"{root} has no {TFDS_FEATURES_NAME} and {TFDS_INFO_NAME}{hint}",
        option="root",
        value=str(root),
        expected="a folder that TensorFlow Datasets wrote, such as mnist/3.0.1",
    )


def without_features(folder: Location) -> str:
    """What to do about a folder without `features.json`."""
    return (
        f"Copy {TFDS_FEATURES_NAME} from the folder where the dataset was prepared, or prepare it "
        "again with a current version of TensorFlow Datasets. To pack the records as they are, "
        f"pack {folder} with {option('format', 'shards')}."
    )


def innermost_folder(root: Location) -> tuple[Location, list[str]]:
    """The folder that may be the dataset: below the root, the last version or the only folder.

    Also returns the names of the folders that were searched last.
    """
    folder, names = root, []
    for _ in range(_LEVELS_BELOW):
        if is_tfds_folder(folder):
            return folder, []
        names = [
            name for name in _folders_in(folder) if not name.startswith(".") and name != "downloads"
        ]
        versions = _versions(names)
        if versions:
            folder = folder / versions[-1]
        elif len(names) == 1:
            folder = folder / names[0]
        else:
            break
    return folder, names


def other_versions(folder: Location) -> list[str]:
    """The other versions of the dataset next to a folder."""
    return [name for name in _versions(_folders_in(folder.parent)) if name != folder.name]


def _folders_in(folder: Location) -> list[str]:
    return sorted(entry.name for entry in folder.list_entries() if entry.kind == "folder")


def _versions(names: Iterable[str]) -> list[str]:
    versions = filter(_VERSION.fullmatch, names)
    return sorted(versions, key=lambda version: [int(part) for part in version.split(".")])


def is_tfds_folder(folder: Location) -> bool:
    """Whether a folder has both documents of a TFDS dataset."""
    return (folder / TFDS_FEATURES_NAME).exists() and (folder / TFDS_INFO_NAME).exists()


def is_tfds_info(folder: Location) -> bool:
    """Whether a folder has a `dataset_info.json` of TFDS; other libraries use the name as well."""
    try:
        return bool(read_info(folder).splits)
    except (CorruptDataError, FileAccessError):
        return False


def read_info(folder: Location) -> TfdsInfo:
    """Read `dataset_info.json`."""
    location = folder / TFDS_INFO_NAME
    try:
        return parse_info(json_of(read_document(location)))
    except NOT_AS_EXPECTED as error:
        raise _broken(location, error) from None


def parse_info(document: Any) -> TfdsInfo:
    """Parse the content of `dataset_info.json`."""
    if not isinstance(document["splits"], list):
        raise TypeError("the splits are not a list")
    splits = tuple(map(_parse_split, document["splits"]))
    names = [split.name for split in splits]
    if len(set(names)) < len(names):
        raise ValueError("two splits have the same name")
    info = TfdsInfo(
        str(document["name"]),
        str(document.get("version", "")),
        str(document.get("fileFormat") or "tfrecord"),
        splits,
        _supervised(document.get("supervisedKeys") or {}),
    )
    if sum(len(split.shard_lengths) for split in splits) > MAX_SHARDS:
        raise ValueError(f"it has more than {MAX_SHARDS:,} shards")
    files: set[str] = set()
    for split in splits:
        for name in split.file_names(info.name):
            if name in files:
                raise ValueError(f"the shard {name!r:.60} is listed twice")
            files.add(name)
    return info


def read_features(folder: Location) -> list[Leaf]:
    """Read `features.json`."""
    location = folder / TFDS_FEATURES_NAME
    try:
        return parse_features(json_of(read_document(location), with_keys_once=True))
    except NOT_AS_EXPECTED as error:
        raise _broken(location, error) from None


def read_documents(folder: Location) -> dict[str, bytes]:
    """Read the documents of features and class names, by name."""
    names = [entry.name for entry in folder.list_entries() if entry.name.endswith(LABELS_SUFFIX)]
    return {name: read_document(folder / name) for name in (TFDS_FEATURES_NAME, *names)}


def read_class_names(folder: Location, leaves: Iterable[Leaf]) -> dict[str, tuple[str, ...]]:
    """Read the class names of labels and labeled images, by the path of the feature."""
    class_names = {}
    for leaf in leaves:
        if leaf.type not in (CLASS_LABEL, LABELED_IMAGE):
            continue
        location = folder / leaf.labels_name if is_plain_name(leaf.labels_name) else None
        if location is None or not location.exists():
            continue
        names = _names(location)
        count = leaf.class_count
        if count is not None and count != len(names):
            raise CorruptDataError(
                Defect.BROKEN_MANIFEST,
                "the number of class names is wrong",
                found=str(len(names)),
                expected=f"{count}, as in {TFDS_FEATURES_NAME}",
                path=location,
            )
        class_names[leaf.path] = names
    return class_names


def class_names_in(folder: Location, info: TfdsInfo, names: Iterable[str]) -> ClassNames | None:
    """The class names of a folder: those of the supervised label, or the only ones."""
    files = [name for name in names if name.endswith(LABELS_SUFFIX)]
    usual = [f"{path}{LABELS_SUFFIX}" for path in (*reversed(info.supervised), "label")]
    chosen = [name for name in usual if name in files] or (files if len(files) == 1 else [])
    return _names(folder / chosen[0]) if chosen else None


def _names(location: Location) -> tuple[str, ...]:
    """The lines of a file of class names, without empty ones, as TFDS reads it."""
    try:
        lines = text_of(read_document(location)).split("\n")
    except ValueError as error:
        raise _broken(location, error) from None
    return tuple(line.strip() for line in lines if line.strip())


def _broken(location: Location, error: Exception) -> DataError:
    return CorruptDataError(
        Defect.BROKEN_MANIFEST,
        f"the description of a TFDS dataset is invalid: {describe_fault(error)}",
        remedy="Fetch it again, or open the shards by name or with a glob.",
        path=location,
    )


def _parse_split(document: Mapping[str, Any]) -> TfdsSplit:
    lengths = tuple(int(length) for length in document.get("shardLengths", ()))
    if any(not 0 <= length < 2**63 for length in lengths):
        raise ValueError("a shard has an impossible number of records")
    return TfdsSplit(
        str(document["name"]), lengths, str(document.get("filepathTemplate") or TEMPLATE)
    )


def _supervised(document: Mapping[str, Any]) -> tuple[str, ...]:
    if "tuple" in document:
        items = document["tuple"].get("items", ())
        return tuple(str(item["featureKey"]) for item in items if "featureKey" in item)
    return tuple(str(document[name]) for name in ("input", "output") if name in document)


def is_plain_name(name: str) -> bool:
    """Whether a name is one part of a path, on every system."""
    return name not in ("", ".", "..") and not set(name) & set("/\\\0:") and len(name) <= 255
