"""`recordsmith.index`: write down where the records of each shard begin, before anybody asks.

Two forms. `recordsmith` is the project's own: it lies in a hidden folder beside the shard, is built
by itself when it is first needed, and knows its shard again. `dali` is a text file that DALI's and
the `tfrecord` package's readers ask for: a line `offset size` for each record, framing counted in;
what their `tfrecord2idx` writes.

Only headers are read, each with its checksum. Each file appears whole under its name, or not at
all.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset.locate import Paths, locate_whole
from recordsmith.dataset.names import TEXT_INDEX_SUFFIX
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.shard_index import (
    ShardIndex,
    find_index,
    index_paths,
    index_pieces,
    save_index,
)
from recordsmith.errors import FileAccessError, OptionError
from recordsmith.files import (
    PathLike,
    Progress,
    accessing,
    as_path,
    make_folder,
    make_internal_folder,
    write_atomically,
)

IndexFormat = Literal["recordsmith", "dali"]

_LINES_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class IndexFile:
    """One shard and its index: `path` is the index; `is_new` is false if it was there already."""

    shard: str
    path: str
    record_count: int
    is_new: bool


@dataclass(frozen=True)
class IndexReport:
    """What `index` did, shard by shard."""

    format: IndexFormat
    files: tuple[IndexFile, ...]

    @property
    def record_count(self) -> int:
        """How many records there are in all shards."""
        return sum(file.record_count for file in self.files)

    @property
    def new_count(self) -> int:
        """How many files were written."""
        return sum(file.is_new for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict: format, records, files."""
        return {
            "format": self.format,
            "records": self.record_count,
            "files": [
                {
                    "shard": file.shard,
                    "path": file.path,
                    "records": file.record_count,
                    "is_new": file.is_new,
                }
                for file in self.files
            ],
        }


def index(
    paths: Paths,
    split: str | None = None,
    *,
    format: IndexFormat = "recordsmith",  # noqa: A002 - what it is called everywhere
    to: PathLike | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> IndexReport:
    """Write the indexes of shards.

    Args:
        paths: a file, folder, glob or a list of these.
        split: only this one.
        format: `recordsmith`: its own, so that the first access is as quick as any; `dali`: a text
            file `NAME.idx` for each shard, for DALI and the `tfrecord` package.
        to: of `dali`, the folder of the text files, which is made; if not said, they lie beside
            their shards.
        overwrite: of `dali`, replace files that hold something else; of `recordsmith`, build
            indexes anew that seem right.
        progress: told the bytes walked and in all.

    Raises:
        OptionError: a shard is compressed, or two would have the same text file; a file that holds
            something else is there. Nothing was written then, but for the last.
        CorruptDataError: frames are damaged; indexes of the shards before are written.
        FileAccessError: a path cannot be read, an index cannot be written.
    """
    if format not in get_args(IndexFormat):
        raise OptionError(f"format is {format!r:.60}; expected 'recordsmith' or 'dali'")
    if to is not None and format != "dali":
        raise OptionError(
            "recordsmith finds its own indexes beside the shards, or in the user's cache where "
            "that cannot be written: leave `to` out, or say format='dali'"
        )
    shards = locate_whole(paths, split).shards
    walked = _Walked(shards, progress)
    if format == "recordsmith":
        return IndexReport(format, tuple(_keep(shard, walked, overwrite) for shard in shards))
    targets = _text_files(shards, None if to is None else as_path(to))
    return IndexReport(
        format,
        tuple(
            _write_text(shard, target, walked, overwrite)
            for shard, target in zip(shards, targets, strict=True)
        ),
    )


class _Walked:
    """Tells how many bytes of all shards are walked."""

    def __init__(self, shards: Sequence[Shard], progress: Progress | None) -> None:
        self._progress = progress
        self._before = 0
        self._total = sum(shard.size_bytes for shard in shards)

    def within(self, shard_bytes: int) -> None:
        if self._progress is not None:
            self._progress(self._before + shard_bytes, self._total)

    def end(self, shard: Shard) -> None:
        self._before += shard.size_bytes
        self.within(0)


# -- recordsmith's own -----------------------------------------------------------------------------


def _keep(shard: Shard, walked: _Walked, overwrite: bool) -> IndexFile:
    found = None if overwrite else find_index(shard.path)
    if found is None:
        built = shard.walk(walked.within)
        path = save_index(shard.path, built) or _say_why(shard, built)
    else:
        path, built = found
    walked.end(shard)
    return IndexFile(str(shard.path), str(path), built.record_count, is_new=found is None)


def _say_why(shard: Shard, index: ShardIndex) -> NoReturn:
    """Raise what the operating system has against an index beside its shard."""
    path = index_paths(shard.path)[0]
    make_internal_folder(shard.path.parent)
    write_atomically(path, index_pieces(shard.path, index))
    raise FileAccessError(errno.EACCES, f"cannot write {path}: it was refused before", str(path))


# -- the text that DALI reads ----------------------------------------------------------------------


def _text_files(shards: Sequence[Shard], folder: Path | None) -> list[Path]:
    """Where the text files of the shards shall lie."""
    for shard in shards:
        if shard.compression != "none":
            raise OptionError(
                f"{shard.path} is compressed with {shard.compression}, so nobody can begin to read "
                "in the middle of it, and DALI cannot read it at all: write the shards "
                "uncompressed, with `recordsmith pack PATH OUT --as shards`"
            )
    shard_of: dict[Path, Path] = {}
    for shard in shards:
        target = (folder or shard.path.parent) / f"{shard.path.name}{TEXT_INDEX_SUFFIX}"
        if target in shard_of:
            raise OptionError(
                f"{shard_of[target]} and {shard.path} would both have the index {target}; leave "
                "`to` out, or index them one by one into folders of their own"
            )
        shard_of[target] = shard.path
    if folder is not None:
        make_folder(folder)
    return list(shard_of)


def _write_text(shard: Shard, target: Path, walked: _Walked, overwrite: bool) -> IndexFile:
    offsets = shard.walk(walked.within).offsets
    walked.end(shard)
    is_new = not _holds_lines(target, offsets)
    if is_new:
        if not overwrite and os.path.lexists(target):
            raise OptionError(
                f"{target} is there already and holds something else than the index of "
                f"{shard.path}; say overwrite=True to replace it"
            )
        write_atomically(target, _lines(offsets), overwrite=overwrite)
    return IndexFile(str(shard.path), str(target), len(offsets) - 1, is_new)


def _lines(offsets: Int64Array) -> Iterator[bytes]:
    """The lines of a text file, many at a time."""
    for start in range(0, len(offsets) - 1, _LINES_AT_ONCE):
        begins = offsets[start : start + _LINES_AT_ONCE + 1]
        sizes = np.diff(begins)
        yield "".join(
            f"{begin} {size}\n"
            for begin, size in zip(begins.tolist(), sizes.tolist(), strict=False)
        ).encode()


def _holds_lines(target: Path, offsets: Int64Array) -> bool:
    if not target.is_file():
        return False
    with accessing(target), open(target, "rb") as file:
        return all(file.read(len(lines)) == lines for lines in _lines(offsets)) and not file.read(1)
