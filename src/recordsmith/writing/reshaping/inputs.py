"""The inputs of a job: its files, their splits, what manifests say about them, and their records.

`find_inputs` joins paths, or a Dataset, to one list of shards and reads no records. `open_records`
decompresses what is compressed and counts the records, which have positions among all inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import (
    INTERNAL_FOLDER,
    PARTIAL_SUFFIX,
    ClassNames,
    Dataset,
    KeypointClasses,
    Located,
    LocatedBlock,
    Manifest,
    Paths,
    RecordLocation,
    Shard,
    ShardEntry,
    ShardRange,
    ShardSequence,
    as_places,
    background_notices,
    carried_class_names,
    check_split,
    dataset_of,
    is_split_slice,
    join_keypoint_classes,
    locate_each,
    records_of,
    scattered_blocks,
    shard_for_task,
    shard_from_task,
    split_names,
)
from recordsmith.format.example import Schema
from recordsmith.format.wire import FRAME_BYTES, Compression, encode_record
from recordsmith.sources import joined_notice, shard_splits
from recordsmith.stores import Location, ObjectInfo, ScratchFolder, as_folder, as_place
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.errors import CorruptDataError, Defect, OptionError, option
from recordsmith.support.words import first_of
from recordsmith.support.work import WorkerPool
from recordsmith.writing.building.fingerprints import fingerprint
from recordsmith.writing.layers.merging import merged_records

_NAMED = 5  # files in a notice
_GROUP_BYTES = 16 << 20  # of scattered records that are read together, from many files
_MAX_STEPS = 20  # of the history of the inputs


@dataclass(frozen=True)
class Inputs:
    """All input files, in order.

    infos: sizes and versions of the files when the job began.
    compressions: of the files; none for empty ones.
    splits: their names, in order of first appearance.
    schemas: by split, if known from manifests.
    has_label_map: whether the class names come with a label map.
    keypoint_classes: from their manifests.
    names: of the given paths.
    provenance: the history of the inputs from their manifests, the newest step last.
    arrow_schema: that of all manifests, if it is the same.
    """

    shards: tuple[Shard, ...]
    infos: tuple[ObjectInfo, ...]
    compressions: tuple[Compression, ...]
    splits: tuple[str, ...]
    schemas: Mapping[str, Schema]
    class_names: ClassNames | None
    has_label_map: bool
    names: tuple[str, ...]
    provenance: tuple[Any, ...]
    notices: tuple[str, ...]
    arrow_schema: str | None
    keypoint_classes: KeypointClasses

    @property
    def size_bytes(self) -> int:
        return sum(info.size_bytes for info in self.infos)

    @property
    def schema(self) -> Schema | None:
        """The schema of all records, if known from manifests."""
        if set(self.schemas) != set(self.splits):
            return None
        return Schema.merged(list(self.schemas.values()))

    def identities(self) -> list[Any]:
        """Return values that differ if a file differs."""
        identities = []
        for shard, info in zip(self.shards, self.infos, strict=True):
            known: tuple[Any, str] = (None, info.version)
            if shard.entry is not None:
                known = shard.entry.record_count, f"{shard.entry.crc32c:08x}"
            layers = [layer.entry.crc32c for layer in shard.layers if layer.entry is not None]
            identities.append([shard.location.name, shard.split, info.size_bytes, *known, *layers])
        return identities

    def versions(self) -> str:
        """Return a hash that changes if any file was modified."""
        return fingerprint([(info.size_bytes, info.version) for info in self.infos])

    def common_compression(self) -> Compression:
        """Return the compression of all files; none if they differ."""
        files = zip(self.infos, self.compressions, strict=True)
        kinds = {compression for info, compression in files if info.size_bytes}
        return kinds.pop() if len(kinds) == 1 else "none"


def check_unchanged(shards: Sequence[Shard], infos: Sequence[ObjectInfo]) -> None:
    """Raise CorruptDataError if a file was modified since the job began."""
    for shard, info in zip(shards, infos, strict=True):
        if shard.location.info().version != info.version:
            raise CorruptDataError(
                Defect.SHARD_SIZE,
                "the file was modified while it was read",
                remedy="Nothing was written. Rerun the job when no other process writes to the "
                "file.",
                path=shard.location,
            )


@dataclass(frozen=True)
class InputSelection:
    """The paths and splits of a job, and which of their records it reads.

    splits: None for all.
    description: of the selection, JSON-able; None for all records.
    numbers: the record numbers of each file: a range or int64, ascending.
    """

    paths: Paths
    splits: tuple[str, ...] | None
    description: Any = None
    numbers: Mapping[Location, Any] | None = None

    @classmethod
    def from_option(cls, paths_or_dataset: Paths | Dataset, split: str | None) -> InputSelection:
        """Return what a job reads."""
        if not isinstance(paths_or_dataset, Dataset) and not is_split_slice(split):
            return cls(paths_or_dataset, None if split is None else (split,))
        dataset = dataset_of(paths_or_dataset, split)
        locations, splits = dataset.view.origin
        records = records_of(dataset)
        if records.has_all:
            return cls(locations, splits)
        if not records.is_in_file_order or records.repeats:
            raise OptionError(
                "this cannot read a selection that is shuffled, in another order than the files, "
                "or repeats records",
                option="dataset",
                value=dataset,
                remedy="Pass the records in ascending order; "
                f"reshard({option('shuffle', True)}) shuffles them.",
            )
        if not len(records):
            raise OptionError("the dataset has no records", option="dataset", value=dataset)
        numbers = {
            part.location: range(part.record_count) if part.numbers is None else part.numbers
            for part in records.parts()
        }
        return cls(locations, splits, records.describe(), numbers)

    @property
    def split(self) -> str | None:
        """The splits as an option."""
        return None if self.splits is None else "+".join(self.splits)

    def flags(self, location: Location, count: int) -> npt.NDArray[np.bool_] | None:
        """Return which of the `count` records of a file are selected; None for all."""
        if self.numbers is None:
            return None
        selected = np.zeros(count, np.bool_)
        selected[np.asarray(self.numbers.get(location, range(0)), np.int64)] = True
        return selected


def find_inputs(paths: Paths, splits: Sequence[str] | None, out: Location | None) -> Inputs:
    """Find the shards of `paths`, of some splits or of all; `out` is another output folder."""
    listed = as_places(paths)
    if out is not None:
        check_separate(out, [location for location in listed if location.is_folder()])
    parts = locate_each(listed)
    if splits is not None:
        for split in splits:
            check_split(split, split_names(parts))
        parts = [part.of_splits(splits) for part in parts]
    for part in parts:
        part.check_whole()
    shards = [shard for part in parts for shard in part.shards]
    splits_of_shards = shard_splits(shards)
    notices = joined_notice(shards, splits_of_shards)
    for shard, split in zip(shards, splits_of_shards, strict=True):
        shard.assign_split(split)
    _check_files(shards, out)
    infos = tuple(shard.info() for shard in shards)
    empty = [
        str(shard.location)
        for shard, info in zip(shards, infos, strict=True)
        if not info.size_bytes and shard.entry is None
    ]
    if empty:
        notices.insert(0, f"empty files: {first_of(empty, _NAMED)}")
    class_names, has_label_map = _classes(listed, parts)
    notices += background_notices(class_names) if has_label_map else []
    manifests = [part.manifest for part in parts]
    arrow_schemas = {manifest.arrow_schema if manifest else None for manifest in manifests}
    return Inputs(
        tuple(shards),
        infos,
        tuple(
            shard.compression if info.size_bytes else "none"
            for shard, info in zip(shards, infos, strict=True)
        ),
        tuple(dict.fromkeys(splits_of_shards)),
        _schemas(parts),
        class_names,
        has_label_map,
        tuple(location.name for location in listed),
        tuple(_history(manifest for manifest in manifests if manifest is not None)),
        tuple(notices),
        arrow_schemas.pop() if len(arrow_schemas) == 1 else None,
        _keypoint_classes(listed, manifests),
    )


def check_separate(out: Location, locations: Sequence[Location]) -> None:
    """Raise OptionError if the output folder lies in an input folder or contains an input file."""
    for location in locations:
        relation = ""
        if location.is_folder() and location.contains(out):
            is_same = out.identity == location.identity
            relation = f"{'is' if is_same else 'lies in'} the input folder {location}"
        elif not location.is_folder() and out.identity in (
            location.parent.identity,
            location.identity.rpartition("/")[0],
        ):
            relation = f"contains the input file {location}"
        if relation:
            raise OptionError(
                f"the output folder {out} {relation}",
                option="out",
                value=str(out),
                remedy="Choose another folder.",
            )


def _check_files(shards: Sequence[Shard], out: Location | None) -> None:
    """Check that no file is given twice, by any name, and none lies in the output folder."""
    known: dict[str, Shard] = {}
    for shard in shards:
        first = known.setdefault(shard.location.identity, shard)
        if first is not shard:
            also = "" if first.location == shard.location else f", also as {first.location}"
            raise OptionError(
                f"{shard.location} is given more than once{also}",
                option="paths",
                value=str(shard.location),
            )
    if out is not None:
        check_separate(out, [shard.location for shard in shards])


def _classes(paths: Sequence[Location], parts: Sequence[Located]) -> tuple[ClassNames | None, bool]:
    """Return the class names that the inputs agree on, and whether there is a label map."""
    names: ClassNames | None = None
    has_label_map = False
    for path, part in zip(paths, parts, strict=True):
        own = part.class_names
        has_label_map |= part.label_map is not None
        if path.is_folder():
            own, has_one = carried_class_names(path, own)
            has_label_map |= has_one
        if own is None or (names is not None and not own):  # a dataset without objects
            continue
        names = join_class_names(names or (), own, "an input before it", path)
    return names, has_label_map


def join_class_names(
    ours: ClassNames, theirs: ClassNames, place: object, other: object
) -> ClassNames:
    """Join the class names in two places; each label has one name, or none in one of them."""
    for label, (our, their) in enumerate(zip(ours, theirs, strict=False)):
        if None not in (our, their) and our != their:
            raise OptionError(
                f"class {label} is {our!r:.80} in {place} but {their!r:.80} in {other}",
                option="paths",
                value=their,
                remedy="Give them the same numbers and names with `recordsmith edit` first.",
            )
    return tuple(their if our is None else our for our, their in zip_longest(ours, theirs))


def _keypoint_classes(
    paths: Sequence[Location], manifests: Sequence[Manifest | None]
) -> KeypointClasses:
    joined: KeypointClasses = {}
    for path, manifest in zip(paths, manifests, strict=True):
        if manifest is not None:
            joined = join_keypoint_classes(joined, manifest.keypoint_classes, path)
    return joined


def _schemas(parts: Sequence[Located]) -> dict[str, Schema]:
    """Return the schemas of splits that manifests fully describe."""
    known: dict[str, list[Schema | None]] = {}
    for part in parts:
        for split in dict.fromkeys(shard.split for shard in part.shards):
            schema = None if part.manifest is None else part.manifest.schema_of(split)
            known.setdefault(split, []).append(schema)
    return {
        split: Schema.merged([schema for schema in schemas if schema is not None])
        for split, schemas in known.items()
        if None not in schemas
    }


def _history(manifests: Iterable[Manifest]) -> list[Any]:
    """Return the last steps of the provenance of the inputs, each without its own history."""
    steps: list[Any] = []
    for manifest in manifests:
        step = dict(manifest.provenance)
        if isinstance(step.get("source"), Mapping):
            source = dict(step["source"])
            earlier = source.pop("provenance", [])
            steps += earlier if isinstance(earlier, list) else []
            step["source"] = source
        steps.append(step)
    return steps[-_MAX_STEPS:]


def named_groups(steps: Iterable[Any]) -> str:
    """What named the groups when records were packed, as an option; empty without groups.

    Args:
        steps: of the provenance of datasets.
    """
    for step in steps:
        for part in ("options", "source"):
            known = step.get(part) if isinstance(step, Mapping) else None
            for name in ("group_pattern", "groups", "group_column", "group"):
                if isinstance(known, Mapping) and isinstance(known.get(name), str):
                    return option(name, known[name])
    return ""


# -- records ---------------------------------------------------------------------------------------


def open_records(
    inputs: Inputs, folder: Location, workers: WorkerPool, *, is_shared: bool = False
) -> tuple[InputRecords, list[str]]:
    """Return the records of all inputs, decompressed and with their layers inside, and notices.

    These files lie in the hidden folder of the output, and are removed with other unfinished files.
    Where the output cannot rename, they lie where this process has its temporary files, unless
    other machines read them as well (`is_shared`).
    """
    packed = [
        number
        for number, (kind, shard) in enumerate(zip(inputs.compressions, inputs.shards, strict=True))
        if kind != "none" or shard.layers
    ]
    workers.total += sum(inputs.infos[number].size_bytes for number in packed)
    is_in_folder = folder.store.can_rename or is_shared or not packed
    scratch = None if is_in_folder else ScratchFolder()
    internal = folder / INTERNAL_FOLDER if scratch is None else as_folder(scratch.path)
    unpacked = {number: internal / f"unpacked-{number}{PARTIAL_SUFFIX}" for number in packed}

    def unpack(number: int) -> list[str]:
        shard = inputs.shards[number]
        with unpacked[number].open_write(is_durable=False) as plain:
            if not shard.layers:
                return shard.decompress(lambda block: plain.write(block.frames()), workers.advance)
            for record in merged_records(shard):
                plain.write(encode_record(record))
            workers.advance(inputs.infos[number].size_bytes)
            return []

    notices = [*inputs.notices]
    for more in workers.each(unpack, packed):
        notices += more
    return InputRecords(inputs.shards, inputs.infos, unpacked, workers, scratch=scratch), notices


class InputRecords:
    """The records of all inputs, one after the other. Thread-safe.

    given, infos: the input files, for messages and checks.
    shards: the files to read them from, decompressed.
    counts: number of records of each input.
    sizes: their size in bytes with framing, before compression.
    starts: int64, (inputs + 1,): the position of the first record of each, and the end.
    """

    def __init__(
        self,
        given: Sequence[Shard],
        infos: Sequence[ObjectInfo],
        unpacked: Mapping[int, Location],
        workers: WorkerPool,
        *,
        scratch: object = None,
    ) -> None:
        self.given = given
        self.infos = infos
        self._unpacked = unpacked
        self._scratch = scratch
        self.shards = [
            Shard(unpacked[number], shard.split, compression="none", keeps_index=False)
            if number in unpacked
            else shard
            for number, shard in enumerate(given)
        ]
        measured = workers.each(self._measure, range(len(given)))
        self.counts = [count for count, _ in measured]
        self.sizes = [size for _, size in measured]
        self.starts = offsets_from_lengths(self.counts)
        self._records = ShardSequence(self.shards)
        self._are_counts_checked = False

    def __len__(self) -> int:
        return len(self.given)

    def to_task(self, number: int) -> dict[str, Any]:
        """Return an input for a worker, without credentials."""
        shard, unpacked = self.given[number].alone(), self._unpacked.get(number)
        size_bytes = self.infos[number].size_bytes
        return {
            **shard_for_task(shard),
            "entry": ShardEntry(shard.location.name, self.counts[number], size_bytes, 0),
            "unpacked": None if unpacked is None else str(unpacked.absolute()),
        }

    @classmethod
    def from_task(cls, documents: Sequence[Mapping[str, Any]], workers: WorkerPool) -> InputRecords:
        """Open the inputs of a task, from `to_task` of each."""
        shards = [shard_from_task(document) for document in documents]
        unpacked = {
            number: as_place(document["unpacked"])
            for number, document in enumerate(documents)
            if document["unpacked"] is not None
        }
        infos = [shard.info() for shard in shards]
        return cls(shards, infos, unpacked, workers)

    def numbers_of(self, positions: Int64Array) -> Int64Array:
        """Return the numbers of the inputs of some positions."""
        return np.searchsorted(self.starts, positions, side="right") - 1

    def blocks(self, positions: range | Int64Array) -> Iterator[LocatedBlock]:
        """Yield records at some positions, in that order; a range is in one input."""
        if not isinstance(positions, range):
            self._check_counts()
            count = len(positions)
            for block, own in scattered_blocks(self._records, positions, _GROUP_BYTES, count):
                yield LocatedBlock(block, (self._records, own))
            return
        number = int(self.numbers_of(np.array(positions[:1]))[0])
        shard, first = self.shards[number], int(self.starts[number])
        part = ShardRange(shard)
        seen, stop = positions.start - first, positions.stop - first
        for block in shard.blocks(seen, None if stop == self.counts[number] else stop):
            seen = block.position + len(block)
            yield LocatedBlock(block, part)
        if seen != stop:
            raise self._count_error(number, seen)

    def locate(self, located: LocatedBlock, row: int) -> RecordLocation:
        """Return where a record of a block is in the given file."""
        shard, number = located.find(row)
        path = str(self.given[self.shards.index(shard)].location)
        return RecordLocation(path, number, int(shard.index.offsets[number]))

    def _check_counts(self) -> None:
        for number, shard in enumerate(() if self._are_counts_checked else self.shards):
            if self.sizes[number] and shard.index.record_count != self.counts[number]:
                raise self._count_error(number, shard.index.record_count)
        self._are_counts_checked = True

    def _count_error(self, number: int, record_count: int) -> CorruptDataError:
        return CorruptDataError(
            Defect.RECORD_COUNT,
            "the shard was modified after it was packed, or while it was read",
            found=f"{record_count} records",
            expected=f"{self.counts[number]} records",
            remedy="Fetch it again.",
            path=self.given[number].location,
        )

    def _measure(self, number: int) -> tuple[int, int]:
        """Return the number of records and their size; reads the index only if necessary."""
        if not self.infos[number].size_bytes:
            return 0, 0
        shard, entry = self.shards[number], self.given[number].entry
        count = shard.record_count if entry is None else entry.record_count
        size = shard.size_bytes
        if size < FRAME_BYTES * count:
            raise CorruptDataError(
                Defect.RECORD_COUNT,
                "the shard is too small for the number of records in its manifest",
                found=f"{size} bytes",
                expected=f"{count} records",
                remedy="Fetch it again.",
                path=self.given[number].location,
            )
        return count, size
