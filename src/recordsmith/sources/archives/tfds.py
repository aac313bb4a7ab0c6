"""A TensorFlow Datasets folder as a source: its splits, class names and nested features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from recordsmith.dataset import (
    TFDS_FEATURES_NAME,
    TFDS_INFO_NAME,
    ClassNames,
    Leaf,
    Shard,
    TfdsInfo,
    TfdsRecords,
    find_tfds_folder,
    other_versions,
    read_class_names,
    read_features,
    read_info,
    standard_keys,
)
from recordsmith.format.example import Kind, decode_example
from recordsmith.format.example.keys import CLASS_LABEL, MASK, OBJECT_LABEL
from recordsmith.format.wire import FRAME_BYTES, HEADER_BYTES, scan
from recordsmith.format.wire.framing import describe_defect
from recordsmith.sources.archives.shards import check_uncompressed
from recordsmith.sources.files.account import Role
from recordsmith.sources.files.file_tree import TreeSource
from recordsmith.sources.files.paths import check_folder, common_version, object_version, referenced
from recordsmith.sources.numbered import RowNames, SampleTable, split_coding
from recordsmith.sources.problems import join_names, reference_of
from recordsmith.sources.samples import Note, Sample, StoredReader, ignore_note
from recordsmith.sources.source import Listing
from recordsmith.sources.splits import only_split
from recordsmith.stores import Location, PlaceLike, as_folder
from recordsmith.support.errors import (
    CorruptDataError,
    DataError,
    Defect,
    MissingFileError,
    SourceError,
)

_DOCUMENTS = (TFDS_INFO_NAME, TFDS_FEATURES_NAME, "*.labels.txt", "dataset.json", "labels.txt")


class Tfds(TreeSource):
    """A dataset that TensorFlow Datasets wrote, read without TensorFlow.

    The image, its class, mask, file name and objects get the standard keys (`image/encoded`,
    `image/class/label`, …), where their role is unambiguous. Other features are named by their
    path, such as `steps/observation/image`, with the keys of inner sequences as TFDS stores them.
    Tensors that are stored as bytes become numbers, except float64.

    Several splits are kept; a single one is not, so that its records can be split again.

    Example:
        rs.pack(rs.Tfds("mnist/3.0.1"), "packed")
    """

    def __init__(self, root: PlaceLike) -> None:
        """
        Args:
            root: the folder with `features.json` and `dataset_info.json`, or one above it.
        """
        self.root = as_folder(root)

    def list_samples(self) -> Listing:
        """Find all records.

        Raises:
            SourceError: a feature is of an unsupported type, or there are no records.
            OptionError: the folder is not one of TFDS.
            CorruptDataError: a document or a shard is damaged, missing, or they differ.
            FileAccessError: a file cannot be read.
        """
        check_folder(self.root, "a folder that TensorFlow Datasets wrote")
        folder = find_tfds_folder(self.root)
        info, leaves = read_info(folder), read_features(folder)
        _check_supported(folder, info, leaves)
        names = read_class_names(folder, leaves)
        records = TfdsRecords(leaves, standard_keys(leaves, info.supervised), names)
        shards = _shards_of(folder, info)
        counts = {name: shard.record_count for name, shard in shards.items()}
        if not sum(counts.values()):
            raise SourceError("the dataset has no records", path=folder)
        files = [shard.location for shard in shards.values()]
        documents = (folder / TFDS_INFO_NAME, folder / TFDS_FEATURES_NAME)
        version = common_version(map(object_version, (*files, *documents)))
        notices: list[str] = []
        if folder != self.root and (others := other_versions(folder)):
            notices.append(f"version {folder.name} was read, not {join_names(others)}")
        samples = _records(shards, version)
        names_of_splits = tuple(samples.splits[0]) if samples.splits is not None else ()
        splits = names_of_splits if len(names_of_splits) > 1 else ()
        if not splits:
            samples.splits = None
        listing = Listing(
            samples,
            TfdsReader(folder, msgspec.json.encode(records).decode()),
            _class_names(records, info),
            tuple(notices),
            splits,
            only_split(names_of_splits, None),
        )
        return listing.with_account(self._files_account(Role.RECORDS, files, _DOCUMENTS))


def _check_supported(folder: Location, info: TfdsInfo, leaves: Sequence[Leaf]) -> None:
    if info.file_format != "tfrecord":
        raise SourceError(
            f"the records are stored as {info.file_format}, expected tfrecord",
            path=folder / TFDS_INFO_NAME,
            remedy="Prepare the dataset again with file_format='tfrecord'.",
        )
    unknown = [leaf for leaf in leaves if not leaf.is_supported]
    if unknown:
        raise SourceError(
            "features of unsupported type: "
            + join_names(f"{leaf.path} ({leaf.type})" for leaf in unknown),
            [f"{leaf.path} is a {leaf.type}" for leaf in unknown],
            path=folder / TFDS_FEATURES_NAME,
            remedy="Pack the records unchanged as shards, or prepare the dataset without them.",
        )


def _class_names(records: TfdsRecords, info: TfdsInfo) -> ClassNames | None:
    """The class names of the image, or else of its objects, its mask or another label."""
    paths = {key: path for path, key in records.keys.items()}
    standard = (paths.get(key) for key in (CLASS_LABEL, OBJECT_LABEL, MASK))
    names = records.class_names
    chosen = [path for path in (*standard, *info.supervised, "label") if path in names]
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
                    f"{TFDS_INFO_NAME} lists {name}, which is missing",
                    remedy="Fetch it again.",
                    path=folder / name,
                ) from None
            check_uncompressed(shard)
            if record_count != length:
                raise CorruptDataError(
                    Defect.RECORD_COUNT,
                    f"{TFDS_INFO_NAME} has another number of records",
                    found=f"{record_count} records",
                    expected=str(length),
                    remedy="Fetch the dataset again.",
                    path=folder / name,
                )
            shards[name] = shard
    return shards


def _records(shards: Mapping[str, Shard], version: int) -> SampleTable:
    sizes = [np.diff(shard.index.offsets) - FRAME_BYTES for shard in shards.values()]
    names = RowNames(dict(zip(shards, map(len, sizes), strict=True)))
    splits = [shard.split if len(shard.index.offsets) > 1 else None for shard in shards.values()]
    files = list(shards)
    offsets = [shard.index.offsets for shard in shards.values()]

    def reference(number: int) -> Mapping[str, Any]:
        shard, row = names.locate(number)
        start, stop = offsets[shard][row : row + 2].tolist()
        return {"file": files[shard], "record": row, "start_byte": start, "stop_byte": stop}

    return SampleTable(
        names,
        np.concatenate(sizes),
        splits=split_coding(splits, list(map(len, sizes))),
        version=version,
        references=reference,
    )


@dataclass(frozen=True)
class TfdsReader(StoredReader):
    """Reads records with the standard keys.

    root: the folder of the shards.
    records: `TfdsRecords` as JSON.
    """

    may_have_other_classes = True
    root: Location
    records: str

    @cached_property
    def _records(self) -> TfdsRecords:
        return msgspec.json.decode(self.records, type=TfdsRecords)

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        reference = reference_of(sample)
        location = referenced(self.root, reference["file"])
        try:
            frame = location.read(reference["start_byte"], reference["stop_byte"])
            return self._records.read(decode_example(_payload(frame)))
        except DataError as error:
            error.path = str(location)
            error.record, error.offset = reference["record"], reference["start_byte"]
            raise

    def kinds(self) -> Mapping[str, Kind]:
        return self._records.kinds()


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
