"""The input files of a job, their splits, and what their manifests contain.

Joins several paths to one list of shards. Reads no records.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recordsmith.dataset import (
    ClassNames,
    Manifest,
    Shard,
    carried_class_names,
)
from recordsmith.dataset.locate import (
    Located,
    Paths,
    as_paths,
    check_split,
    locate_each,
    split_names,
)
from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.example import Schema
from recordsmith.files import accessing
from recordsmith.reshaping.inputs.fingerprints import fingerprint
from recordsmith.sources.splits import joined_notice, shard_splits
from recordsmith.wire import Compression
from recordsmith.words import first_of

_NAMED = 5  # files in a notice
_MOST_STEPS = 20  # of the history of the inputs


@dataclass(frozen=True)
class InputShard:
    """One input file.

    number: its position among all inputs.
    record_count, crc32c: from the manifest, if known.
    modified_ns: modification time in nanoseconds.
    """

    number: int
    path: Path
    split: str
    compression: Compression
    size_bytes: int
    modified_ns: int
    record_count: int | None = None
    crc32c: int | None = None

    def identity(self) -> list[Any]:
        """Return values that differ if the file differs."""
        version = self.modified_ns if self.crc32c is None else f"{self.crc32c:08x}"
        return [self.path.name, self.split, self.size_bytes, self.record_count, version]

    def check_unchanged(self) -> None:
        """Check that the file was not modified since the job began.

        Raises:
            CorruptDataError: it was.
            FileAccessError: it was removed.
        """
        with accessing(self.path):
            status = os.stat(self.path)
        if (status.st_size, status.st_mtime_ns) != (self.size_bytes, self.modified_ns):
            raise CorruptDataError(
                Defect.SHARD_SIZE,
                "the file was modified while it was read",
                remedy="Nothing was written. Rerun the job when no other process writes to the "
                "file.",
                path=self.path,
            )


@dataclass(frozen=True)
class Inputs:
    """All input files, in order.

    splits: their names, in order of first appearance.
    schemas: by split, if known from manifests.
    has_label_map: whether the class names come with a label map.
    names: of the given paths.
    provenance: the history of the inputs from their manifests, the newest step last.
    arrow_schema: that of all manifests, if it is the same.
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
        return fingerprint([(shard.size_bytes, shard.modified_ns) for shard in self.shards])

    def common_compression(self) -> Compression:
        """Return the compression of all files; none if they differ."""
        found = {shard.compression for shard in self.shards if shard.size_bytes}
        return found.pop() if len(found) == 1 else "none"


def find_inputs(paths: Paths, splits: Sequence[str] | None, out: Path) -> Inputs:
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
    listed = as_paths(paths)
    check_separate(out, [path for path in listed if path.is_dir()])
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
        str(shard.path) for shard in shards if not shard.size_bytes and shard.record_count is None
    ]
    notices = [f"empty files: {first_of(empty, _NAMED)}"] if empty else []
    notices += joined_notice(found, of_each)
    class_names, has_label_map = _classes(listed, parts)
    return Inputs(
        shards,
        tuple(dict.fromkeys(shard.split for shard in shards)),
        _schemas(parts, iter(of_each)),
        class_names,
        has_label_map,
        tuple(path.name or str(path) for path in listed),
        tuple(_history(part.manifest for part in parts)),
        tuple(notices),
        _arrow_schema(parts),
    )


def _arrow_schema(parts: Sequence[Located]) -> str | None:
    found = {None if part.manifest is None else part.manifest.arrow_schema for part in parts}
    return found.pop() if len(found) == 1 else None


def check_separate(out: Path, paths: Sequence[Path]) -> None:
    """Check that the output folder is separate from the inputs.

    Raises:
        OptionError: `out` is or lies in an input folder, or contains an input file.
    """
    real = Path(os.path.realpath(out))
    for path in paths:
        source = Path(os.path.realpath(path))
        if path.is_dir() and real == source:
            same = "" if out == path else f" {path}"
            raise _not_separate(out, f"is the input folder{same}")
        if path.is_dir() and real.is_relative_to(source):
            raise _not_separate(out, f"lies in the input folder {path}")
        if not path.is_dir() and real in (Path(os.path.realpath(path.parent)), source.parent):
            raise _not_separate(out, f"contains the input file {path}")


def _not_separate(out: Path, relation: str) -> OptionError:
    return OptionError(
        f"the output folder {out} {relation}",
        option="out",
        value=str(out),
        remedy="Choose another folder.",
    )


def _input(number: int, shard: Shard, split: str) -> InputShard:
    with accessing(shard.path):
        status = os.stat(shard.path)
    return InputShard(
        number,
        shard.path,
        split,
        shard.compression if status.st_size else "none",
        status.st_size,
        status.st_mtime_ns,
        None if shard.entry is None else shard.entry.record_count,
        None if shard.entry is None else shard.entry.crc32c,
    )


def _check_files(shards: Sequence[InputShard], out: Path) -> None:
    """Check that no file is given twice, by any name, and none lies in the output folder."""
    known: dict[tuple[int, int], InputShard] = {}
    for shard in shards:
        with accessing(shard.path):
            status = os.stat(shard.path)
        first = known.setdefault((status.st_dev, status.st_ino), shard)
        if first is not shard:
            also = "" if first.path == shard.path else f", also as {first.path}"
            raise OptionError(
                f"{shard.path} is given more than once{also}",
                option="paths",
                value=str(shard.path),
            )
        check_separate(out, [shard.path])


def _classes(paths: Sequence[Path], parts: Sequence[Located]) -> tuple[ClassNames | None, bool]:
    """Return the class names that the inputs agree on, and whether there is a label map.

    Raises:
        OptionError: they differ.
    """
    names: ClassNames | None = None
    first = paths[0]
    has_label_map = False
    for path, part in zip(paths, parts, strict=True):
        own = part.class_names
        if path.is_dir():
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
