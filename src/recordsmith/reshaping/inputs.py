"""The inputs of a job: its files, their splits, what manifests say about them, and their records.

`find_inputs` joins paths, or a Dataset, to one list of shards and reads no records. `open_records`
decompresses what is compressed and counts the records. Only the indexes of the latest shards are in
memory.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import (
    ClassNames,
    Dataset,
    Manifest,
    SelectedRecords,
    Shard,
    carried_class_names,
    dataset_of,
    joined_shards,
    records_of,
)
from recordsmith.dataset.decompressing import decompress
from recordsmith.dataset.locate import (
    Located,
    Paths,
    as_places,
    check_split,
    locate_each,
    split_names,
)
from recordsmith.dataset.names import INTERNAL_FOLDER, PARTIAL_SUFFIX
from recordsmith.dataset.splits import is_split_slice
from recordsmith.errors import CorruptDataError, Defect, OptionError, option
from recordsmith.example import Schema
from recordsmith.sources.splits import joined_notice, shard_splits
from recordsmith.stores import Location, ObjectInfo, as_folder, as_place
from recordsmith.stores.local.scratch import ScratchFolder
from recordsmith.wire import FRAME_BYTES, Compression, RecordBlock
from recordsmith.words import first_of
from recordsmith.work import Work

_NAMED = 5  # files in a notice
_Value = TypeVar("_Value")
_MAX_STEPS = 20  # of the history of the inputs
_MAX_INDEXES = 16  # in memory: eight bytes per record


def fingerprint(document: Any) -> str:
    """Hash a JSON-able document to 32 hexadecimal digits."""
    return fingerprint_bytes(json.dumps(document, sort_keys=True).encode())


def fingerprint_bytes(data: bytes) -> str:
    """Hash bytes to 32 hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


@dataclass(frozen=True)
class InputShard:
    """One input file.

    record_count, crc32c: from the manifest, if known.
    version: changes whenever the file is written again.
    unpacked: its decompressed file, if it is compressed and was opened.
    """

    location: Location
    split: str
    compression: Compression
    size_bytes: int
    version: str
    record_count: int | None = None
    crc32c: int | None = None
    unpacked: Location | None = None

    @classmethod
    def from_shard(cls, shard: Shard, split: str) -> InputShard:
        info, entry = shard.info(), shard.entry
        return cls(
            shard.location,
            split,
            shard.compression if info.size_bytes else "none",
            info.size_bytes,
            info.version,
            None if entry is None else entry.record_count,
            None if entry is None else entry.crc32c,
        )

    def identity(self) -> list[Any]:
        """Return values that differ if the file differs."""
        version = self.version if self.crc32c is None else f"{self.crc32c:08x}"
        return [self.location.name, self.split, self.size_bytes, self.record_count, version]

    def check_unchanged(self) -> None:
        """Raise CorruptDataError if the file was modified since the job began."""
        if self.location.info().version != self.version:
            raise CorruptDataError(
                Defect.SHARD_SIZE,
                "the file was modified while it was read",
                remedy="Nothing was written. Rerun the job when no other process writes to the "
                "file.",
                path=self.location,
            )

    def open(self) -> Shard:
        """Return the shard with its records, decompressed."""
        if self.unpacked is not None:
            return Shard(self.unpacked, self.split, compression="none", keeps_index=False)
        info = ObjectInfo(self.location.key, self.size_bytes, self.version)
        return Shard(self.location, self.split, compression="none", listed=info)


@dataclass(frozen=True)
class Inputs:
    """All input files, in order.

    splits: their names, in order of first appearance.
    schemas: by split, if known from manifests.
    has_label_map: whether the class names come with a label map.
    names: of the given paths.
    provenance: the history of the inputs from their manifests, the newest step last.
    arrow_schema, formats: those of all manifests, if they are the same.
    """

    shards: tuple[InputShard, ...]
    splits: tuple[str, ...]
    schemas: Mapping[str, Schema]
    class_names: ClassNames | None
    has_label_map: bool
    names: tuple[str, ...]
    provenance: tuple[Any, ...]
    notices: tuple[str, ...]
    arrow_schema: str | None
    formats: Mapping[str, Any] | None

    @property
    def size_bytes(self) -> int:
        return sum(shard.size_bytes for shard in self.shards)

    @property
    def schema(self) -> Schema | None:
        """The schema of all records, if known from manifests."""
        if set(self.schemas) != set(self.splits):
            return None
        return Schema.merged(list(self.schemas.values()))

    def versions(self) -> str:
        """Return a hash that changes if any file was modified."""
        return fingerprint([(shard.size_bytes, shard.version) for shard in self.shards])

    def common_compression(self) -> Compression:
        """Return the compression of all files; none if they differ."""
        kinds = {shard.compression for shard in self.shards if shard.size_bytes}
        return kinds.pop() if len(kinds) == 1 else "none"


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
        places, splits = dataset.view.origin
        records = records_of(dataset)
        if records.positions.is_everything:
            return cls(places, splits)
        if not records.positions.is_ascending or records.repeats:
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
        numbers = {part.location: part.numbers() for part in records.parts()}
        return cls(places, splits, records.positions.describe(), numbers)

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


def find_inputs(paths: Paths, splits: Sequence[str] | None, out: Location) -> Inputs:
    """Find the shards of `paths`, of some splits or of all; `out` is the output folder."""
    listed = as_places(paths)
    check_separate(out, [place for place in listed if place.is_folder()])
    parts = locate_each(listed)
    if splits is not None:
        for split in splits:
            check_split(split, split_names(parts))
        for part in parts:
            part.keep_splits(splits)
    for part in parts:
        part.check_whole()
    located = [shard for part in parts for shard in part.shards]
    of_each = shard_splits(located)
    shards = tuple(map(InputShard.from_shard, located, of_each))
    _check_files(shards, out)
    empty = [
        str(shard.location)
        for shard in shards
        if not shard.size_bytes and shard.record_count is None
    ]
    notices = [f"empty files: {first_of(empty, _NAMED)}"] if empty else []
    class_names, has_label_map = _classes(listed, parts)
    manifests = [part.manifest for part in parts]
    return Inputs(
        shards,
        tuple(dict.fromkeys(of_each)),
        _schemas(parts, iter(of_each)),
        class_names,
        has_label_map,
        tuple(place.name for place in listed),
        tuple(_history(manifest for manifest in manifests if manifest is not None)),
        (*notices, *joined_notice(located, of_each)),
        _common(None if manifest is None else manifest.arrow_schema for manifest in manifests),
        _common(None if manifest is None else manifest.carried_formats for manifest in manifests),
    )


def _common(values: Iterable[_Value | None]) -> _Value | None:
    """The value, if all are equal."""
    first, *others = values
    return first if all(value == first for value in others) else None


def check_separate(out: Location, places: Sequence[Location]) -> None:
    """Raise OptionError if the output folder lies in an input folder or contains an input file."""
    for place in places:
        if place.contains(out):
            if not place.is_folder():
                continue
            if out.identity == place.identity:
                same = "" if out == place else f" {place}"
                raise _not_separate(out, f"is the input folder{same}")
            raise _not_separate(out, f"lies in the input folder {place}")
        parents = (place.parent.identity, place.identity.rpartition("/")[0])
        if out.identity in parents and not place.is_folder():
            raise _not_separate(out, f"contains the input file {place}")


def _not_separate(out: Location, relation: str) -> OptionError:
    return OptionError(
        f"the output folder {out} {relation}",
        option="out",
        value=str(out),
        remedy="Choose another folder.",
    )


def _check_files(shards: Sequence[InputShard], out: Location) -> None:
    """Check that no file is given twice, by any name, and none lies in the output folder."""
    known: dict[str, InputShard] = {}
    for shard in shards:
        first = known.setdefault(shard.location.identity, shard)
        if first is not shard:
            also = "" if first.location == shard.location else f", also as {first.location}"
            raise OptionError(
                f"{shard.location} is given more than once{also}",
                option="paths",
                value=str(shard.location),
            )
        check_separate(out, [shard.location])


def _classes(paths: Sequence[Location], parts: Sequence[Located]) -> tuple[ClassNames | None, bool]:
    """Return the class names that the inputs agree on, and whether there is a label map."""
    names: ClassNames | None = None
    first = paths[0]
    has_label_map = False
    for path, part in zip(paths, parts, strict=True):
        own = part.class_names
        if path.is_folder():
            own, has_one = carried_class_names(path, own)
            has_label_map |= has_one
        if own is None:
            continue
        if names is None:
            names, first = own, path
        elif names != own:
            raise OptionError(
                f"{first} and {path} have different classes: {_difference(names, own)}",
                option="paths",
                value=str(path),
                remedy="Give them the same numbers and names with `recordsmith edit` first.",
            )
    return names, has_label_map


def _difference(ours: ClassNames, theirs: ClassNames) -> str:
    for label in range(max(len(ours), len(theirs))):
        names = [names[label] if label < len(names) else None for names in (ours, theirs)]
        if names[0] != names[1]:
            shown = ["has no name" if name is None else f"is {name!r:.80}" for name in names]
            return f"{label} {shown[0]} in the first and {shown[1]} in the second"
    return f"the first has {len(ours)}, the second has {len(theirs)}"


def _schemas(parts: Sequence[Located], splits: Iterator[str]) -> dict[str, Schema]:
    """Return the schemas of splits that manifests fully describe; `splits`: of each shard."""
    known: dict[str, list[Schema | None]] = {}
    for part in parts:
        for split in dict.fromkeys(next(splits) for _ in part.shards):
            schema = None if part.manifest is None else part.manifest.schema_of(split)
            known.setdefault(split, []).append(schema)
    return {
        split: Schema.merged([schema for schema in schemas if schema is not None])
        for split, schemas in known.items()
        if None not in schemas
    }


def _history(manifests: Iterable[Manifest]) -> list[Any]:
    steps: list[Any] = []
    for manifest in manifests:
        step = dict(manifest.provenance)
        source = step.get("source")
        if isinstance(source, Mapping) and isinstance(source.get("provenance"), list):
            steps += source["provenance"]
            step["source"] = {name: value for name, value in source.items() if name != "provenance"}
        steps.append(step)
    return steps[-_MAX_STEPS:]


# -- records ---------------------------------------------------------------------------------------


def open_records(
    inputs: Inputs, folder: Location, work: Work, *, is_shared: bool = False
) -> tuple[InputRecords, list[str]]:
    """Return the records of all inputs, decompressed if necessary, and notices.

    Decompressed files lie in the hidden folder of the output, and are removed with other unfinished
    files. Where the output cannot rename, they lie where this process has its temporary files.

    Args:
        is_shared: whether other machines read the decompressed files as well.
    """
    packed = [shard for shard in inputs.shards if shard.compression != "none"]
    work.total += sum(shard.size_bytes for shard in packed)
    is_in_folder = folder.store.can_rename or is_shared or not packed
    scratch = None if is_in_folder else ScratchFolder()
    internal = folder / INTERNAL_FOLDER if scratch is None else as_folder(scratch.path)
    shards = [
        replace(shard, unpacked=internal / f"unpacked-{number}{PARTIAL_SUFFIX}")
        if shard.compression != "none"
        else shard
        for number, shard in enumerate(inputs.shards)
    ]
    notices = [*inputs.notices]
    packed = [shard for shard in shards if shard.unpacked is not None]
    for more in work.each(lambda shard: _unpack(shard, work.advance), packed):
        notices += more
    return InputRecords(shards, work, scratch=scratch), notices


def _unpack(shard: InputShard, advance: Callable[[int], None]) -> list[str]:
    """Write the records of a compressed shard to its decompressed file; return notices."""
    assert shard.unpacked is not None

    def put(block: RecordBlock) -> None:
        plain.write(block.frames())

    with shard.unpacked.open_write(is_durable=False) as plain:
        return decompress(shard.location, shard.compression, shard.record_count, put, advance)


class InputRecords:
    """The records of all inputs. Thread-safe.

    counts: number of records of each input.
    sizes: their size in bytes with framing, before compression.
    """

    def __init__(self, shards: Sequence[InputShard], work: Work, *, scratch: object = None) -> None:
        """`scratch`: owns the decompressed files; None for files that others remove."""
        self._scratch = scratch
        self._shards = opened = tuple(shards)
        self._lock = threading.Lock()
        self._everything: SelectedRecords | None = None
        self._recent = lru_cache(_MAX_INDEXES)(lambda number: opened[number].open())
        measured = work.each(self._measure, self._shards)
        self.counts = [count for count, _ in measured]
        self.sizes = [size for _, size in measured]

    def __len__(self) -> int:
        return len(self._shards)

    def to_json(self, number: int) -> dict[str, Any]:
        """Return an input as plain JSON values, for a worker."""
        shard = self._shards[number]
        return {
            "location": str(shard.location.absolute()),
            "unpacked": None if shard.unpacked is None else str(shard.unpacked.absolute()),
            "split": shard.split,
            "compression": shard.compression,
            "size_bytes": shard.size_bytes,
            "version": shard.version,
            "record_count": self.counts[number],
        }

    @classmethod
    def from_json(cls, documents: Sequence[Mapping[str, Any]], work: Work) -> InputRecords:
        """Open the inputs of a task, from `to_json` of each."""
        shards = []
        for document in documents:
            unpacked = document["unpacked"]
            places = {
                "location": as_place(document["location"]),
                "unpacked": None if unpacked is None else as_place(unpacked),
            }
            shards.append(InputShard(**{**document, **places}))
        return cls(shards, work)

    def location(self, number: int) -> Location:
        """Return the given file, for messages."""
        return self._shards[number].location

    def input_path(self, path: str) -> str:
        """Return the given file, for the path of a file that may be a decompressed one."""
        given = (str(shard.location) for shard in self._shards if str(shard.unpacked) == path)
        return next(given, path)

    def shard(self, number: int) -> Shard:
        """Return the shard to read an input from."""
        return self._recent(number)

    def everything(self) -> SelectedRecords:
        """Return all inputs as one dataset, which keeps all indexes in memory."""
        with self._lock:
            if self._everything is None:
                shards = [shard.open() for shard in self._shards]
                for number, shard in enumerate(shards):
                    if shard.index.record_count != self.counts[number]:
                        raise self.count_error(number, shard.index.record_count)
                self._everything = joined_shards(shards)
        return self._everything

    def check_unchanged(self) -> None:
        """Raise CorruptDataError if an input was modified since the job began."""
        for shard in self._shards:
            shard.check_unchanged()

    def count_error(self, number: int, record_count: int) -> CorruptDataError:
        """Return the error for an input with a wrong number of records."""
        return CorruptDataError(
            Defect.RECORD_COUNT,
            "the shard was modified after it was packed, or while it was read",
            found=f"{record_count} records",
            expected=f"{self.counts[number]} records",
            remedy="Fetch it again.",
            path=self.location(number),
        )

    def _measure(self, shard: InputShard) -> tuple[int, int]:
        """Return the number of records and their size; reads the index only if necessary."""
        if not shard.size_bytes:
            return 0, 0
        opened = shard.open()
        count = shard.record_count
        if count is None:
            count = opened.index.record_count
        size = opened.size_bytes
        if size < FRAME_BYTES * count:
            raise CorruptDataError(
                Defect.RECORD_COUNT,
                "the shard is too small for the number of records in its manifest",
                found=f"{size} bytes",
                expected=f"{count} records",
                remedy="Fetch it again.",
                path=shard.location,
            )
        return count, size
