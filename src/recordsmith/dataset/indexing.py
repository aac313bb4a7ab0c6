"""`recordsmith.index`: write indexes of shards.

Two formats. `recordsmith` is the project's own, in a hidden folder next to the shard; it is also
built on first use. `dali` is the text file of DALI's and the `tfrecord` package's `tfrecord2idx`: a
line `offset size` for each record, framing included.

Only headers are read, with their checksums. Files are written atomically.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NoReturn, get_args

import numpy as np

from recordsmith.dataset.column_file import keep_columns
from recordsmith.dataset.locating.paths import Paths, locate_whole
from recordsmith.dataset.names import TEXT_INDEX_SUFFIX
from recordsmith.dataset.opening import dataset_of
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.shard_index import (
    ShardIndex,
    index_locations,
    index_pieces,
    load_index,
    save_index,
)
from recordsmith.stores import Location, ObjectInfo, PlaceLike, as_folder, write_atomically
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import ForbiddenFileError, OptionError, accessing, option
from recordsmith.support.explaining import check_word
from recordsmith.support.serialization import fields_to_json
from recordsmith.support.summaries import Report
from recordsmith.support.work import Progress, WorkerPool, thread_count

IndexFormat = Literal["recordsmith", "dali"]

_LINES_AT_ONCE = 1 << 16
_THREAD_BYTES = 256 << 20  # of shards: to walk fewer takes less time than to start a thread


@dataclass(frozen=True)
class IndexFile:
    """A shard and its index at `path`; `is_new` is false if the index already existed."""

    shard: str
    path: str
    record_count: int
    is_new: bool


@dataclass(frozen=True, repr=False)
class IndexReport(Report):
    """The result of `index`, shard by shard."""

    _shown = ("record_count", "new_count")

    format: IndexFormat
    files: tuple[IndexFile, ...]

    @property
    def record_count(self) -> int:
        """Total number of records."""
        return sum(file.record_count for file in self.files)

    @property
    def new_count(self) -> int:
        """Number of indexes that were written."""
        return sum(file.is_new for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict."""
        return fields_to_json(self, ("format", "record_count", "files"))


def index(
    paths: Paths,
    split: str | None = None,
    *,
    format: IndexFormat = "recordsmith",
    to: PlaceLike | None = None,
    numbers_of: Sequence[str] = (),
    overwrite: bool = False,
    progress: Progress | None = None,
) -> IndexReport:
    """Write the indexes of shards, in one thread per processor.

    Args:
        paths: a file, folder, glob or a list of these.
        split: only this split. None for all.
        format: recordsmith: binary indexes in a hidden folder, which make the first access fast;
            dali: a text file NAME.idx per shard, for NVIDIA DALI and the tfrecord package.
        to: dali: folder of the text files, created if missing; None for next to the shards.
        numbers_of: features that an order by class, weight or length needs as a number of each
            record, such as `image/class/label`: read now, and kept next to the index.
        overwrite: replace index files with other content. For `recordsmith`, rebuild valid indexes.
        progress: called as `progress(done, total)` with numbers of bytes.

    Returns:
        A report with the index of each shard.

    Raises:
        OptionError: no record has a feature of `numbers_of`; a shard is compressed, two shards
            would have the same text file, or a file with other content exists. In the last case,
            indexes of other shards may be written.
        CorruptDataError: frames are damaged. The indexes of the shards before the first damaged
            one are written.
        FileAccessError: a path cannot be read, or an index cannot be written.

    Example:
        rs.index("out", format="dali", to="out-index")
    """
    check_word("format", format, get_args(IndexFormat))
    if to is not None and format != "dali":
        raise OptionError(
            f"{option('to')} needs {option('format', 'dali')}",
            option="to",
            value=str(to),
            remedy="Indexes of recordsmith lie next to the shards, or in the user's cache.",
        )
    shards = locate_whole(paths, split).shards
    total = sum(file.size_bytes for shard in shards for file in (shard, *shard.layers))
    workers = WorkerPool(thread_count(None, most=max(1, total // _THREAD_BYTES)), progress, total)
    if format == "recordsmith":
        files = [file.location for shard in shards for file in (shard, *shard.layers)]
        _remove_leftovers(place for file in files for place in index_locations(file))
        jobs = [partial(_write_own, shard, workers, overwrite) for shard in shards]
    else:
        _check_no_layers(shards)
        targets = _text_files(shards, None if to is None else as_folder(to))
        _remove_leftovers(targets)
        jobs = [
            partial(_write_text, shard, target, workers, overwrite)
            for shard, target in zip(shards, targets, strict=True)
        ]
    indexes = []
    results = workers.in_order(lambda job: job(), jobs, ahead=2 * workers.threads - 1)
    for shard, file in zip(shards, results, strict=True):
        indexes.append(file)
        workers.advance(sum(file.size_bytes for file in (shard, *shard.layers)))
    workers.finish()
    if numbers_of:
        keep_columns(dataset_of(paths, split), numbers_of, progress)
    return IndexReport(format, tuple(indexes))


# -- recordsmith's own -----------------------------------------------------------------------------


def _write_own(shard: Shard, workers: WorkerPool, overwrite: bool) -> IndexFile:
    """Write the index of a shard, and those of its layers."""
    own, *more = (_write_one(file, workers, overwrite) for file in (shard, *shard.layers))
    return replace(own, is_new=any(one.is_new for one in (own, *more)))


def _write_one(shard: Shard, workers: WorkerPool, overwrite: bool) -> IndexFile:
    info = shard.info()
    saved = None if overwrite else _saved(shard, info)
    workers.check()
    if saved is None:
        index = shard.walk()
    else:
        index, location = saved
        if location.store.is_remote == shard.is_remote:  # not only in the cache
            return IndexFile(str(shard.location), str(location), index.record_count, False)
    if overwrite and shard.is_remote:  # a copy of a wrong one, which is looked for first
        index_locations(shard.location, info.version)[1].delete()
    written = save_index(shard.location, index, info) or _raise_reason(shard, index)
    return IndexFile(str(shard.location), str(written), index.record_count, True)


def _saved(shard: Shard, info: ObjectInfo) -> tuple[ShardIndex, Location] | None:
    """Load the index next to a shard before that in the user's cache."""
    if not shard.is_remote:
        return load_index(shard.location)
    near = load_index(shard.location, info, is_cached=False) if shard.may_have_index else None
    return near or load_index(shard.location, info, is_next_to_it=False)


def _raise_reason(shard: Shard, index: ShardIndex) -> NoReturn:
    """Raise the error of the operating system for an index next to its shard."""
    location = index_locations(shard.location)[0]
    location.put(index_pieces(shard.location, index))
    raise ForbiddenFileError(
        errno.EACCES, "permission denied before", str(location), operation="write"
    )


# -- the text that DALI reads ----------------------------------------------------------------------


def _check_no_layers(shards: Sequence[Shard]) -> None:
    for shard in shards:
        if shard.layers:
            raise OptionError(
                f"{shard.location} has layers, which DALI does not read",
                option="format",
                value="dali",
                remedy="Make them part of the records with `recordsmith reshard`.",
            )


def _text_files(shards: Sequence[Shard], folder: Location | None) -> list[Location]:
    for shard in shards:
        if shard.compression != "none":
            raise OptionError(
                f"{shard.location} is compressed with {shard.compression}, which DALI does not "
                "support",
                option="paths",
                value=str(shard.location),
                remedy="Write uncompressed shards: `recordsmith pack PATH OUT --format shards`",
            )
    shard_of: dict[Location, Location] = {}
    for shard in shards:
        location = shard.location
        target = (folder or location.parent) / f"{location.name}{TEXT_INDEX_SUFFIX}"
        if target in shard_of:
            raise OptionError(
                f"{shard_of[target]} and {location} would have the same index {target}",
                option="to",
                value=str(target.parent),
                remedy=f"Omit {option('to')}, or index the shards into different folders.",
            )
        shard_of[target] = location
    if folder is not None:
        folder.make_folder()
    return list(shard_of)


def _write_text(shard: Shard, target: Location, workers: WorkerPool, overwrite: bool) -> IndexFile:
    workers.check()
    offsets = shard.walk().offsets
    exists = target.exists()
    is_new = not (exists and _holds_lines(target, offsets))
    if is_new and exists and not overwrite:
        raise OptionError(
            f"{target} already exists and is not the index of {shard.location}",
            option="to",
            value=str(target),
            remedy=f"Pass {option('overwrite', True)} to replace it.",
        )
    if is_new:
        write_atomically(target, _lines(offsets), overwrite=overwrite)
    return IndexFile(str(shard.location), str(target), len(offsets) - 1, is_new)


def _remove_leftovers(locations: Iterable[Location]) -> None:
    """Remove what killed processes left that were writing these files."""
    names: dict[Location, set[str]] = {}
    for location in locations:
        names.setdefault(location.parent, set()).add(location.name)
    for folder, of_folder in names.items():
        folder.store.remove_leftovers(folder.key, of_folder)


def _lines(offsets: Int64Array) -> Iterator[bytes]:
    for start in range(0, len(offsets) - 1, _LINES_AT_ONCE):
        begins = offsets[start : start + _LINES_AT_ONCE + 1]
        sizes = np.diff(begins)
        yield "".join(
            f"{begin} {size}\n"
            for begin, size in zip(begins.tolist(), sizes.tolist(), strict=False)
        ).encode()


def _holds_lines(target: Location, offsets: Int64Array) -> bool:
    with io.BufferedReader(target.open_read()) as file, accessing(target):
        return all(file.read(len(lines)) == lines for lines in _lines(offsets)) and not file.read(1)
