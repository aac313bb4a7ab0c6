"""A TensorFlow Datasets folder as a source: its splits, class names and nested features.

Episodes of RLDS and Open X-Embodiment can be cut into windows of consecutive steps.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset import ClassNames, Dataset, Shard
from recordsmith.dataset.tfds.features import Leaf, TfdsDescription, TfdsFeature
from recordsmith.dataset.tfds.folder import (
    FEATURES_NAME,
    INFO_NAME,
    TfdsInfo,
    find_tfds_folder,
    other_versions,
    read_class_names,
    read_features,
    read_info,
)
from recordsmith.dataset.tfds.records import cut_steps, kinds_of, read_record, with_any_length
from recordsmith.dataset.tfds.roles import standard_keys
from recordsmith.errors import (
    CorruptDataError,
    DataError,
    Defect,
    MissingFileError,
    OptionError,
    SourceError,
    option,
)
from recordsmith.example import Features, FeatureSpec, Kind, RaggedArray, decode_example
from recordsmith.example.keys import CLASS_LABEL, MASK, OBJECT_LABEL
from recordsmith.sources.files.paths import check_folder, files_version, last_name, referenced
from recordsmith.sources.numbered import RowNames, SampleTable, collect, split_coding
from recordsmith.sources.problems import join_names, reference_of
from recordsmith.sources.source import Listing, Note, Sample, StoredReader, ignore_note
from recordsmith.sources.splits import only_split
from recordsmith.stores import Location, PlaceLike, as_folder
from recordsmith.wire import FRAME_BYTES, HEADER_BYTES, scan
from recordsmith.wire.framing import describe_defect
from recordsmith.words import count


class Tfds:
    """A dataset that TensorFlow Datasets wrote, read without TensorFlow.

    The image, its class, mask, file name and objects get the standard keys (`image/encoded`,
    `image/class/label`, …), where their role is unambiguous. Other features are named by their
    path, such as `steps/observation/image`, with the keys of inner sequences as TFDS stores them.
    Tensors that are stored as bytes become numbers, except float64.

    Several splits are kept; a single one is not, so that its records can be split again.

    Example:
        >>> rs.pack(rs.Tfds("mnist/3.0.1"), "packed")  # doctest: +SKIP
        >>> rs.pack(rs.Tfds("bridge/0.1.0", window=8), "windows")  # doctest: +SKIP
    """

    def __init__(self, root: PlaceLike, *, window: int | None = None, stride: int = 1) -> None:
        """
        Args:
            root: the folder with `features.json` and `dataset_info.json`, or one above it.
            window: cut each episode into samples of this number of consecutive steps, which stay
                in one split; None for whole episodes.
            stride: the number of steps between the starts of windows.
        """
        for name, value in (("window", window), ("stride", stride)):
            if (name, value) != ("window", None) and (type(value) is not int or value < 1):
                raise OptionError(option=name, value=value, expected="a positive integer")
        if window is None and stride != 1:
            raise OptionError(
                f"{option('stride')} needs {option('window')}", option="stride", value=stride
            )
        self.root = as_folder(root)
        self.window = window
        self.stride = stride

    def __repr__(self) -> str:
        return f"Tfds({str(self.root)!r})"

    def list_samples(self) -> Listing:
        """Find all records, and with a window read the numbers of steps.

        Raises:
            SourceError: a feature is of an unsupported type, there are no records, or a window
                needs steps that do not exist.
            OptionError: the folder is not one of TFDS.
            CorruptDataError: a document or a shard is damaged, missing, or they differ.
            FileAccessError: a file cannot be read.
        """
        check_folder(self.root, "a folder that TensorFlow Datasets wrote")
        folder = find_tfds_folder(self.root)
        info, features = read_info(folder), read_features(folder)
        _check_supported(folder, info, features)
        if self.window is not None:
            features = with_any_length(features)
        names = read_class_names(folder, features)
        keys = standard_keys(features, info.supervised)
        description = TfdsDescription(features, names, keys, info.supervised, info.name)
        shards = _shards_of(folder, info)
        counts = {name: shard.record_count for name, shard in shards.items()}
        if not sum(counts.values()):
            raise SourceError("the dataset has no records", path=folder)
        files = (*(shard.location for shard in shards.values()), folder / INFO_NAME)
        version = files_version((*files, folder / FEATURES_NAME))
        notices: list[str] = []
        if folder != self.root and (others := other_versions(folder)):
            notices.append(f"version {folder.name} was read, not {join_names(others)}")
        if self.window is None:
            samples = _records(shards, version)
        else:
            samples = _windows(shards, features, (self.window, self.stride), version, notices)
        names_of_splits = tuple(samples.splits[0]) if samples.splits is not None else ()
        splits = names_of_splits if len(names_of_splits) > 1 else ()
        if not splits:
            samples.splits = None
        return Listing(
            samples,
            TfdsReader(folder, json.dumps(description.to_json(), sort_keys=True)),
            _class_names(description),
            tuple(notices),
            splits,
            only_split(names_of_splits, None),
            tfds=description.to_json(),
        )

    def describe(self) -> Mapping[str, Any]:
        windows = {} if self.window is None else {"window": self.window, "stride": self.stride}
        return {"kind": "Tfds", "folder": last_name(self.root), **windows}


def _check_supported(folder: Location, info: TfdsInfo, features: TfdsFeature) -> None:
    if info.file_format != "tfrecord":
        raise SourceError(
            f"the records are stored as {info.file_format}, expected tfrecord",
            path=folder / INFO_NAME,
            remedy="Prepare the dataset again with file_format='tfrecord'.",
        )
    unknown = [leaf for leaf in features.leaves() if not leaf.feature.is_supported]
    if unknown:
        raise SourceError(
            "features of unsupported type: "
            + join_names(f"{leaf.path} ({leaf.feature.type})" for leaf in unknown),
            [f"{leaf.path} is a {leaf.feature.type}" for leaf in unknown],
            path=folder / FEATURES_NAME,
            remedy="Pack the records unchanged as shards, or prepare the dataset without them.",
        )


def _class_names(description: TfdsDescription) -> ClassNames | None:
    """The class names of the image, or else of its objects, its mask or another label."""
    paths = {key: path for path, key in description.keys.items()}
    standard = (paths.get(key) for key in (CLASS_LABEL, OBJECT_LABEL, MASK))
    names = description.class_names
    chosen = [path for path in (*standard, *description.supervised, "label") if path in names]
    if not chosen and len(names) == 1:
        chosen = list(names)
    return names[chosen[0]] if chosen and chosen[0] is not None else None


def _shards_of(folder: Location, info: TfdsInfo) -> dict[str, Shard]:
    """The shards by name, checked against the lengths in `dataset_info.json`."""
    shards = {}
    for split in info.splits:
        for name, length in zip(split.file_names(info.name), split.shard_lengths, strict=True):
            shard = Shard(folder / name, split.name)
            try:
                record_count = shard.record_count
            except MissingFileError:
                raise CorruptDataError(
                    Defect.MISSING_SHARD,
                    f"{INFO_NAME} lists {name}, which is missing",
                    remedy="Fetch it again.",
                    path=folder / name,
                ) from None
            if shard.size_bytes and shard.compression != "none":
                raise SourceError(
                    f"the shard is compressed with {shard.compression}",
                    path=folder / name,
                    remedy="Decompress it: TFDS reads only plain shards.",
                )
            if record_count != length:
                raise CorruptDataError(
                    Defect.RECORD_COUNT,
                    f"{INFO_NAME} has another number of records",
                    found=f"{record_count} records",
                    expected=str(length),
                    remedy="Fetch the dataset again.",
                    path=folder / name,
                )
            shards[name] = shard
    return shards


def _records(shards: Mapping[str, Shard], version: int) -> SampleTable:
    """Each record is a sample."""
    sizes = [np.diff(shard.index.offsets) - FRAME_BYTES for shard in shards.values()]
    names = RowNames(dict(zip(shards, map(len, sizes), strict=True)))
    splits = [shard.split if len(shard.index.offsets) > 1 else None for shard in shards.values()]
    files = list(shards)
    offsets = [shard.index.offsets for shard in shards.values()]

    def reference(number: int) -> Mapping[str, Any]:
        shard, row = names.locate(number)
        return record_reference(files[shard], offsets[shard], row)

    return SampleTable(
        names,
        np.concatenate(sizes),
        splits=split_coding(splits, list(map(len, sizes))),
        version=version,
        references=reference,
    )


def _windows(
    shards: Mapping[str, Shard],
    features: TfdsFeature,
    lengths: tuple[int, int],
    version: int,
    notices: list[str],
) -> SampleTable:
    """Each window of steps is a sample; adds notices on steps that are in no window.

    lengths: of a window, and between the starts of windows.
    """
    window, stride = lengths
    leaf = _counted_leaf(features)
    short, left = 0, 0

    def walk() -> Iterator[Sample]:
        nonlocal short, left
        for name, shard in shards.items():
            offsets = shard.index.offsets
            for row, steps in enumerate(_step_counts(shard, leaf).tolist()):
                starts = range(0, steps - window + 1, stride)
                short += not starts
                left += steps - (starts[-1] + window) if starts else 0
                left += max(0, stride - window) * max(0, len(starts) - 1)
                size = int(offsets[row + 1] - offsets[row]) - FRAME_BYTES
                reference = record_reference(name, offsets, row)
                for start in starts:
                    yield Sample(
                        f"{name}/{row:07d}/{start:07d}",
                        max(1, size * window // steps),
                        split=shard.split,
                        group=f"{name}/{row:07d}",
                        version=version,
                        reference={**reference, "start": start, "stop": start + window},
                    )

    samples = collect(walk())
    if not len(samples):
        raise SourceError(
            f"no episode has {window} steps", remedy=f"Choose a smaller {option('window')}."
        )
    if short:
        notices.append(f"{count(short, 'episode')} with fewer than {window} steps left out")
    if left:
        notices.append(
            f"{count(left, 'step')} between or after the windows of their episode left out"
        )
    return samples


def _counted_leaf(features: TfdsFeature) -> Leaf:
    """The feature of steps whose values are the fastest to count."""
    leaves = [leaf for leaf in features.leaves() if leaf.in_steps]
    names = list(dict.fromkeys(leaf.parts[0] for leaf in leaves))
    counted = [leaf for leaf in leaves if leaf.item_size]
    if len(names) != 1 or not counted:
        problem = f"several: {join_names(names)}" if len(names) > 1 else "none"
        raise SourceError(
            f"{option('window')} needs one feature of steps (a Dataset), found {problem}",
            remedy="Leave it out to read whole records.",
        )
    return min(counted, key=_cost)


def _cost(leaf: Leaf) -> tuple[bool, int, int]:
    is_large = leaf.feature.is_image or leaf.is_encoded or leaf.feature.dtype == "string"
    return is_large, len(leaf.lengths), leaf.item_size or 0


def _step_counts(shard: Shard, leaf: Leaf) -> Int64Array:
    """The number of steps of each record."""
    key = leaf.length_keys[0] if len(leaf.lengths) > 1 else leaf.value_key
    size = 1 if len(leaf.lengths) > 1 else leaf.item_size or 1
    columns = Dataset.from_shards([shard]).read_columns({key: FeatureSpec(shape="ragged")})
    column = columns[key]
    assert isinstance(column, RaggedArray)
    return np.diff(column.row_splits) // size


# -- reading -------------------------------------------------------------------------------------


def record_reference(file: str, offsets: Int64Array, row: int) -> dict[str, Any]:
    """The reference of a record: its file and the range of its frame."""
    return {
        "file": file,
        "record": row,
        "start_byte": int(offsets[row]),
        "stop_byte": int(offsets[row + 1]),
    }


@dataclass(frozen=True)
class TfdsReader(StoredReader):
    """Reads records with the standard keys.

    root: the folder of the shards.
    description: a `TfdsDescription` as JSON.
    """

    root: Location
    description: str

    @cached_property
    def _parsed(self) -> tuple[TfdsDescription, list[Leaf]]:
        description = TfdsDescription.from_json(json.loads(self.description))
        return description, description.features.leaves()

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        """Read one record, or a window of its steps."""
        reference = reference_of(sample)
        description, leaves = self._parsed
        location = referenced(self.root, reference["file"])
        with _in_record(location, reference):
            if "start" in reference:
                record = _last_record(location, reference, sample.version)
                record = cut_steps(record, leaves, reference["start"], reference["stop"])
            else:
                record = _record(location, reference)
            return read_record(record, leaves, description.keys, description.class_names)

    def kinds(self) -> Mapping[str, Kind]:
        description, leaves = self._parsed
        return kinds_of(leaves, description.keys, description.class_names)


_last = threading.local()
"""The episode that this thread read last: in order, its windows follow each other."""


def _last_record(location: Location, reference: Mapping[str, Any], version: int | None) -> Features:
    """The record of a window, which is read once for consecutive windows."""
    key = location, reference["start_byte"], reference["stop_byte"], version
    if getattr(_last, "key", None) != key:
        _last.record = _record(location, reference)
        _last.key = key
    return _last.record  # type: ignore[no-any-return]


def _record(location: Location, reference: Mapping[str, Any]) -> Features:
    data = location.read(reference["start_byte"], reference["stop_byte"])
    return decode_example(_payload(data))


@contextmanager
def _in_record(location: Location, reference: Mapping[str, Any]) -> Iterator[None]:
    """Add the file and the place of the record to every CorruptDataError."""
    try:
        yield
    except DataError as error:
        error.path = str(location)
        error.record, error.offset = reference["record"], reference["start_byte"]
        raise


def _payload(frame: bytes) -> memoryview:
    """The payload of a single frame, whose checksums are verified."""
    frames = scan(frame, limit=1, expected=1)
    if frames.defect is not None:
        raise describe_defect(frames, frame, record=0, offset=0)
    if frames.stop != len(frame):
        raise CorruptDataError(
            Defect.LENGTH_CRC,
            "the shard changed after it was listed",
            found=f"a record of {frames.stop} bytes",
            expected=f"{len(frame)} bytes",
        )
    return memoryview(frame)[HEADER_BYTES : HEADER_BYTES + int(frames.lengths[0])]
