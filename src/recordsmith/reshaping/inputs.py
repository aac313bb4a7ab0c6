"""Which files are read, of which splits, and what is known of them without reading?

Several paths become one list of shards. What a manifest tells is taken along: checksums tell that a
file is still the same, schemas need not be found again. Nothing here reads a record.
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
from recordsmith.dataset.locate import Located, Paths, as_paths, check_split, locate_each
from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.example import Schema
from recordsmith.files import accessing
from recordsmith.reshaping.fingerprints import fingerprint
from recordsmith.sources.splits import joined_notice, splits_of_shards
from recordsmith.wire import Compression

_MOST_STEPS = 20  # of how the inputs were made are kept


@dataclass(frozen=True)
class InputShard:
    """One file that is read.

    number: its place among all of them.
    record_count, crc32c: if a manifest tells them.
    modified_ns: when it was changed, in nanoseconds.
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
        """What is another one if the file is another one."""
        told = self.modified_ns if self.crc32c is None else f"{self.crc32c:08x}"
        return [self.path.name, self.split, self.size_bytes, self.record_count, told]

    def check_unchanged(self) -> None:
        """
        Raises:
            CorruptDataError: it is not the file any more that it was when the job began.
            FileAccessError: it is gone.
        """
        with accessing(self.path):
            status = os.stat(self.path)
        if (status.st_size, status.st_mtime_ns) != (self.size_bytes, self.modified_ns):
            raise CorruptDataError(
                Defect.SHARD_SIZE,
                "the file was changed while it was read, so nothing was written. Run the job again "
                "when nobody writes to it.",
                path=self.path,
            )


@dataclass(frozen=True)
class Inputs:
    """All files that are read, in order.

    splits: their names, in the order in which they were met.
    schemas: of each split of which manifests tell it.
    has_label_map: whether a label map goes with the class names.
    names: of the paths, as they were given.
    made_from: how the inputs were made, as their manifests tell, the newest last.
    """

    shards: tuple[InputShard, ...]
    splits: tuple[str, ...]
    schemas: Mapping[str, Schema]
    class_names: ClassNames | None
    has_label_map: bool
    names: tuple[str, ...]
    made_from: tuple[Any, ...]
    notices: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        """Of all files."""
        return sum(shard.size_bytes for shard in self.shards)

    @property
    def schema(self) -> Schema | None:
        """Of all records, if manifests tell it."""
        if set(self.schemas) != set(self.splits):
            return None
        return Schema.merged(list(self.schemas.values()))

    def versions(self) -> str:
        """A hash that is another one if any file has been changed."""
        return fingerprint([(shard.size_bytes, shard.modified_ns) for shard in self.shards])

    def common_compression(self) -> Compression:
        """How all of them are compressed; none if they differ."""
        found = {shard.compression for shard in self.shards if shard.size_bytes}
        return found.pop() if len(found) == 1 else "none"


def find_inputs(paths: Paths, split: str | None, out: Path) -> Inputs:
    """Find the shards that `paths` means, of one split or of all.

    Args:
        out: the folder that will be written.

    Raises:
        FileAccessError: a path does not exist or cannot be read.
        OptionError: nothing there looks like a TFRecord, or there is no such split; a file is meant
            twice; the names of classes differ; `out` is or lies where the inputs are.
        CorruptDataError: broken-manifest, unfinished-dataset, missing-shard, shard-size-mismatch.
    """
    listed = as_paths(paths)
    check_apart(out, [path for path in listed if path.is_dir()])
    parts = locate_each(listed)
    if split is not None:
        check_split(split, parts)
        for part in parts:
            part.keep_split(split)
    for part in parts:
        part.check_whole()
    found = [shard for part in parts for shard in part.shards]
    of_each = splits_of_shards(found)
    shards = tuple(
        _input(number, shard, split)
        for number, (shard, split) in enumerate(zip(found, of_each, strict=True))
    )
    _check_files(shards, out)
    notices = [
        f"{shard.path} has 0 bytes, so no records"
        for shard in shards
        if not shard.size_bytes and shard.record_count is None
    ]
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
    )


def check_apart(out: Path, paths: Sequence[Path]) -> None:
    """
    Raises:
        OptionError: `out` is, or lies in, a folder that is read, or is the folder of a file.
    """
    real = Path(os.path.realpath(out))
    for path in paths:
        source = Path(os.path.realpath(path))
        if path.is_dir() and real == source:
            what = "the folder that is read" if out == path else f"{path}, the folder that is read"
            raise OptionError(f"{out} is {what}; choose another one")
        if path.is_dir() and real.is_relative_to(source):
            raise OptionError(f"{out} lies in {path}, which is read; choose one outside of it")
        if not path.is_dir() and real in (Path(os.path.realpath(path.parent)), source.parent):
            raise OptionError(f"{out} is the folder of {path}, which is read; choose another one")


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
    """No file twice, by whatever name; none in the folder that is written."""
    known: dict[tuple[int, int], Path] = {}
    for shard in shards:
        with accessing(shard.path):
            status = os.stat(shard.path)
        first = known.setdefault((status.st_dev, status.st_ino), shard.path)
        if first is not shard.path:
            also = "" if first == shard.path else f", also as {first}"
            raise OptionError(f"the paths lead to {shard.path} more than once{also}")
        check_apart(out, [shard.path])


def _classes(paths: Sequence[Path], parts: Sequence[Located]) -> tuple[ClassNames | None, bool]:
    """The names that all have who have names.

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
                f"{first} and {path} have different classes: {_difference(names, own)}. Give them "
                "the same numbers and names first, with `recordsmith edit --recode`"
            )
    return names, has_label_map


def _difference(one: ClassNames, other: ClassNames) -> str:
    for label in range(max(len(one), len(other))):
        names = [names[label] if label < len(names) else None for names in (one, other)]
        if names[0] != names[1]:
            told = ["has no name" if name is None else f"is {name!r:.80}" for name in names]
            return f"{label} {told[0]} in the first, and {told[1]} in the second"
    return f"the first has {len(one)}, the second {len(other)}"


def _schemas(parts: Sequence[Located], splits: Iterator[str]) -> dict[str, Schema]:
    """Of each split, all of whose records manifests speak of; `splits` is that of each shard."""
    told: dict[str, list[Schema | None]] = {}
    for part in parts:
        for split in dict.fromkeys(next(splits) for _ in part.shards):
            manifest = part.manifest
            told.setdefault(split, []).append(
                None if manifest is None else manifest.schema_of(split)
            )
    return {
        split: Schema.merged([schema for schema in schemas if schema is not None])
        for split, schemas in told.items()
        if None not in schemas
    }


def _history(manifests: Iterable[Manifest | None]) -> list[Any]:
    steps: list[Any] = []
    for manifest in manifests:
        if manifest is not None:
            step = dict(manifest.made_from)
            source = step.get("source")
            if isinstance(source, Mapping) and isinstance(source.get("made_from"), list):
                steps += source["made_from"]
                step["source"] = {
                    name: value for name, value in source.items() if name != "made_from"
                }
            steps.append(step)
    return steps[-_MOST_STEPS:]
