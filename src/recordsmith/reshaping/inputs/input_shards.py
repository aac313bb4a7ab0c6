"""The input files of a job, their splits, and what their manifests contain.

Joins several paths to one list of shards. Reads no records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from recordsmith.dataset import (
    ClassNames,
    Manifest,
    Shard,
    carried_class_names,
)
from recordsmith.dataset.locate import (
    Located,
    Paths,
    as_places,
    check_split,
    locate_each,
    split_names,
)
from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.example import Schema
from recordsmith.reshaping.inputs.fingerprints import fingerprint
from recordsmith.sources.splits import joined_notice, shard_splits
from recordsmith.stores import Location
from recordsmith.wire import Compression
from recordsmith.words import first_of

_NAMED = 5  # files in a notice
_Value = TypeVar("_Value")
_MOST_STEPS = 20  # of the history of the inputs


@dataclass(frozen=True)
class InputShard:
    """One input file.

    number: its position among all inputs.
    record_count, crc32c: from the manifest, if known.
    version: changes whenever the file is written again.
    """

    number: int
    location: Location
    split: str
    compression: Compression
    size_bytes: int
    version: str
    record_count: int | None = None
    crc32c: int | None = None

    def identity(self) -> list[Any]:
        """Return values that differ if the file differs."""
        version = self.version if self.crc32c is None else f"{self.crc32c:08x}"
        return [self.location.name, self.split, self.size_bytes, self.record_count, version]

    def check_unchanged(self) -> None:
        """Check that the file was not modified since the job began.

        Raises:
            CorruptDataError: it was.
            FileAccessError: it was removed.
        """
        if self.location.info().version != self.version:
            raise CorruptDataError(
                Defect.SHARD_SIZE,
                "the file was modified while it was read",
                remedy="Nothing was written. Rerun the job when no other process writes to the "
                "file.",
                path=self.location,
            )


@dataclass(frozen=True)
class Inputs:
    """All input files, in order.

    splits: their names, in order of first appearance.
    schemas: by split, if known from manifests.
    has_label_map: whether the class names come with a label map.
    names: of the given paths.
    provenance: the history of the inputs from their manifests, the newest step last.
    arrow_schema, tfds: those of all manifests, if they are the same.
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
    tfds: Mapping[str, Any] | None

    @property
    def size_bytes(self) -> int:
        """Total size of all files."""
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
        found = {shard.compression for shard in self.shards if shard.size_bytes}
        return found.pop() if len(found) == 1 else "none"


def find_inputs(paths: Paths, splits: Sequence[str] | None, out: Location) -> Inputs:
    """Find the shards of `paths`, of some splits or of all.

    Args:
        paths: files, folders or globs.
        splits: None for all.
        out: the output folder.

    Raises:
        FileAccessError: a path does not exist or cannot be read.
        OptionError: no TFRecord files; no such split; the same file twice; different class names;
            `out` contains or lies in an input.
        CorruptDataError: broken-manifest, unfinished-dataset, missing-shard, shard-size-mismatch.
    """
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
    found = [shard for part in parts for shard in part.shards]
    of_each = shard_splits(found)
    shards = tuple(
        _input(number, shard, split)
        for number, (shard, split) in enumerate(zip(found, of_each, strict=True))
    )
    _check_files(shards, out)
    empty = [
        str(shard.location)
        for shard in shards
        if not shard.size_bytes and shard.record_count is None
    ]
    notices = [f"empty files: {first_of(empty, _NAMED)}"] if empty else []
    notices += joined_notice(found, of_each)
    class_names, has_label_map = _classes(listed, parts)
    manifests = [part.manifest for part in parts]
    return Inputs(
        shards,
        tuple(dict.fromkeys(shard.split for shard in shards)),
        _schemas(parts, iter(of_each)),
        class_names,
        has_label_map,
        tuple(place.name for place in listed),
        tuple(_history(part.manifest for part in parts)),
        tuple(notices),
        _of_all(None if each is None else each.arrow_schema for each in manifests),
        _of_all(None if each is None else each.carried_tfds for each in manifests),
    )


def _of_all(values: Iterable[_Value | None]) -> _Value | None:
    """The value, if all are equal."""
    first, *others = values
    return first if all(value == first for value in others) else None


def check_separate(out: Location, places: Sequence[Location]) -> None:
    """Check that the output folder is separate from the inputs.

    Raises:
        OptionError: `out` is or lies in an input folder, or contains an input file.
    """
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


def _input(number: int, shard: Shard, split: str) -> InputShard:
    info = shard.info()
    return InputShard(
        number,
        shard.location,
        split,
        shard.compression if info.size_bytes else "none",
        info.size_bytes,
        info.version,
        None if shard.entry is None else shard.entry.record_count,
        None if shard.entry is None else shard.entry.crc32c,
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
    """Return the class names that the inputs agree on, and whether there is a label map.

    Raises:
        OptionError: they differ.
    """
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


def _difference(one: ClassNames, other: ClassNames) -> str:
    for label in range(max(len(one), len(other))):
        names = [names[label] if label < len(names) else None for names in (one, other)]
        if names[0] != names[1]:
            found = ["has no name" if name is None else f"is {name!r:.80}" for name in names]
            return f"{label} {found[0]} in the first and {found[1]} in the second"
    return f"the first has {len(one)}, the second has {len(other)}"


def _schemas(parts: Sequence[Located], splits: Iterator[str]) -> dict[str, Schema]:
    """Return the schemas of splits that manifests fully describe; `splits`: of each shard."""
    known: dict[str, list[Schema | None]] = {}
    for part in parts:
        for split in dict.fromkeys(next(splits) for _ in part.shards):
            manifest = part.manifest
            known.setdefault(split, []).append(
                None if manifest is None else manifest.schema_of(split)
            )
    return {
        split: Schema.merged([schema for schema in schemas if schema is not None])
        for split, schemas in known.items()
        if None not in schemas
    }


def _history(manifests: Iterable[Manifest | None]) -> list[Any]:
    steps: list[Any] = []
    for manifest in manifests:
        if manifest is not None:
            step = dict(manifest.provenance)
            source = step.get("source")
            if isinstance(source, Mapping) and isinstance(source.get("provenance"), list):
                steps += source["provenance"]
                step["source"] = {
                    name: value for name, value in source.items() if name != "provenance"
                }
            steps.append(step)
    return steps[-_MOST_STEPS:]
