"""Writes a dataset from Arrow batches that many processes have, each a part of the records.

One process calls `begin`, others `write_part` for each part, and one calls `finish` with all
results, or `abandon`. Job and results can be pickled. Each attempt to write a part has names of its
own, so parts may be written twice, and attempts may be killed: only the shards in the results are
published.

Where the store can rename, shards wait under hidden names and become `train-00003-of-00017` at the
end. Elsewhere they appear under the names of their attempts, as the number of shards is not known,
and a note keeps readers and other jobs out until the manifest lists those that count.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.arrow import ArrowColumns, schema_as_text
from recordsmith.arrow.library import import_pyarrow
from recordsmith.building.claims import ClaimedStore, claim, release
from recordsmith.building.publishing import (
    check_folder,
    clean_up,
    existing_dataset,
    files_to_replace,
    locked_folder,
    make_manifest,
    names_in,
    publish_dataset,
)
from recordsmith.building.shards import (
    ShardResult,
    open_partial_shard,
    partial_location,
    survey_written,
)
from recordsmith.building.shares import (
    DEFAULT_SHARD_SIZE_BYTES,
    check_shard_options,
    shard_files_by_split,
)
from recordsmith.dataset import (
    BEGUN_NAME,
    Manifest,
    PublishNote,
    read_manifest,
    read_publish_note,
    shard_name,
)
from recordsmith.dataset.names import part_name, split_of_part
from recordsmith.errors import (
    CorruptDataError,
    FileAccessError,
    MissingFileError,
    OptionError,
    SourceError,
)
from recordsmith.example import BytesArray, RaggedArray, Schema
from recordsmith.stores import Location, PlaceLike, as_folder, busy_error, is_url
from recordsmith.wire import Compression, check_compression
from recordsmith.work import WorkerPool

_PIECE_BYTES = 32 << 20  # of a batch that are encoded together


@dataclass(frozen=True)
class TableJob:
    """A dataset that is written in parts.

    out: the path or URL of the folder; None for a remote `Location`, which has credentials.
    token: identifies the job.
    is_new: whether the folder was created for it.
    """

    out: str | None
    token: str
    overwrite: bool
    split: str
    compression: Compression
    shard_size_bytes: int
    source: str
    is_new: bool


@dataclass(frozen=True)
class PartResult:
    """What was written of a part.

    types: pyarrow.Schema.
    left_out: the columns whose type does not describe all values.
    """

    token: str
    number: int
    shards: tuple[ShardResult, ...]
    types: Any
    left_out: frozenset[str]


def begin(
    out: PlaceLike,
    overwrite: bool = False,
    *,
    token: str | None = None,
    split: str = "train",
    compression: str | None = None,
    shard_size_bytes: int | None = None,
    source: str = "Table",
) -> TableJob:
    """Begin to write a dataset.

    Args:
        out: the folder of the dataset: a path that all machines share, or a URL.
        overwrite: replace an existing dataset; in a bucket, it is gone from here on.
        token: 32 hexadecimal digits that no other job has; with the same ones, `begin` may be
            repeated. None for new ones.
        split: the name of the split that all records belong to.
        compression: none, gzip or zlib.
        shard_size_bytes: a part becomes several shards of about this size; None: 256 MB.
        source: the kind of source that the manifest names.

    Returns:
        The job, without options and credentials of a store: where `out` is a `Location` of a remote
        store, pass it to the other functions again.
    """
    folder = as_folder(out)
    check_shard_options(None, shard_size_bytes, "")
    kind = check_compression(compression)
    shard_files_by_split({split: 1}, kind)
    if not isinstance(overwrite, bool):
        raise OptionError(option="overwrite", value=overwrite, expected="True or False")
    check_folder(folder)
    token = token or os.urandom(16).hex()
    job = TableJob(
        _portable(out),
        token,
        overwrite,
        split,
        kind,
        shard_size_bytes or DEFAULT_SHARD_SIZE_BYTES,
        source,
        not folder.is_folder(),
    )
    with locked_folder(folder):
        first = shard_name(split, 0, 1, kind)
        earlier = existing_dataset(folder, token, [first], has_label_map=False, overwrite=overwrite)
        if earlier is not None and earlier.last_fingerprint == token:
            return job
        has_begun = _has_begun(folder, token)  # so parts may be there
        claimed = claim(folder, token, overwrite=overwrite, earlier=earlier)
        if has_begun:
            return job
        clean_up(claimed)
        if claimed.store.can_rename:
            _note(claimed, token).put(b"")
        else:
            _delete(claimed, _unlisted(claimed, earlier))
    return job


def write_part(
    job: TableJob, number: int, batches: Iterable[Any], *, out: PlaceLike | None = None
) -> PartResult:
    """Write the records of one part; leaves no shard if it fails.

    Returns:
        The result, for `finish`. A part without rows has no shard.
    """
    if type(number) is not int or number < 0:
        raise OptionError(option="number", value=number, expected="an integer of at least 0")
    folder = _open_job(job, out)
    attempt = job.token[:8] + os.urandom(4).hex()
    types = _Types()
    rows = types.convert(batches)
    results: list[ShardResult] = []
    try:
        while (first := next(rows, None)) is not None:
            file = part_name(job.split, number, attempt, len(results), job.compression)
            results.append(_write_shard(job, folder, file, chain((first,), rows)))
        _open_job(job, out)  # if the job has ended meanwhile, no one else removes the shards
    except BaseException:
        with suppress(FileAccessError):
            _delete(folder, [result.file for result in results])
        raise
    return PartResult(job.token, number, tuple(results), types.schema(), frozenset(types.left_out))


def finish(
    job: TableJob, results: Iterable[PartResult], *, out: PlaceLike | None = None
) -> Manifest:
    """Publish the dataset, with the records of the parts in the order of their numbers.

    May be called again after it was interrupted. Removes what other attempts have written.

    Args:
        results: one of each part, in any order.
        out: the folder of the job, if it was a `Location`.

    Raises:
        OptionError: the results are of another job or of one part twice, or parts have different
            kinds of values in a column; or another dataset was created in the folder meanwhile.
        SourceError: no part has rows, or shards are missing. Nothing is left.
        FileAccessError: the folder cannot be written, or the job has ended.
    """
    folder = as_folder(job.out if out is None else out)
    parts = _parts(job, results)
    try:
        return _publish(job, folder, parts)
    except (OptionError, SourceError, CorruptDataError):
        abandon(job, out=out)
        raise


def abandon(job: TableJob, *, out: PlaceLike | None = None) -> None:
    """Remove everything that a job has written, unless `finish` has begun to rename it."""
    folder = as_folder(job.out if out is None else out)
    token = job.token
    if folder.store.can_rename:
        note = read_publish_note(folder)
        if not _note(folder, token).exists() or (note is not None and note.fingerprint == token):
            return
        with locked_folder(folder):
            _note(folder, token).delete()  # before the listing: see `write_part`
            clean_up(folder)
        if job.is_new:
            folder.store.remove_empty_folder(folder.key)
        return
    note = read_publish_note(folder, BEGUN_NAME)
    if note is None or note.fingerprint != token:
        return
    claimed = Location(ClaimedStore(folder, note), folder.key)
    manifest = read_manifest(folder)
    _delete(claimed, _unlisted(claimed, manifest))
    release(claimed, leaving=names_in(folder))


class _Types:
    """Converts batches to columns, and collects the Arrow types that they have."""

    def __init__(self) -> None:
        self._columns: dict[Any, ArrowColumns] = {}
        self._types: dict[str, Any] = {}
        self.left_out: set[str] = set()

    def convert(self, batches: Iterable[Any]) -> Iterator[_Rows]:
        """Yield the columns of pieces of batches, without empty ones."""
        first = 0
        for batch in batches:
            if isinstance(batch, BytesArray):
                yield _Rows({}, {}, len(batch), len(batch.buffer), batch)
                first += len(batch)
                continue
            pieces = batch.to_batches() if hasattr(batch, "to_batches") else (batch,)
            for piece in pieces:
                step = max(1, _PIECE_BYTES * len(piece) // max(1, piece.nbytes))
                for start in range(0, len(piece), step):
                    yield self._convert(piece.slice(start, step), first + start)
                first += len(piece)

    def _convert(self, batch: Any, first: int) -> _Rows:
        batch = _without_unknown_lists(batch, first)
        converter = self._columns.get(batch.schema)
        if converter is None:
            converter = self._columns[batch.schema] = ArrowColumns(batch.schema)
            for name in converter.kinds:
                arrow_type = batch.schema.field(name).type
                if self._types.setdefault(name, arrow_type) != arrow_type:
                    self.left_out.add(name)
        columns, validity = converter.convert(batch, first)
        self.left_out.update(
            name
            for name, column in columns.items()
            if name not in self.left_out and _loses_digits(column)
        )
        return _Rows(columns, validity, len(batch), batch.nbytes)

    def schema(self) -> Any:
        """Return the types of the columns."""
        return import_pyarrow().schema(list(self._types.items()))


def _without_unknown_lists(batch: Any, first: int) -> Any:
    """Replace empty lists of type null with null.

    The kind of the values is unknown, and may be any in other batches.
    """
    pa = import_pyarrow()
    for number, field in enumerate(batch.schema):
        inner = getattr(field.type, "value_type", None)
        if inner is not None and pa.types.is_null(inner) and pa.types.is_nested(field.type):
            lengths = batch.column(number).value_lengths().fill_null(0).to_numpy()
            if lengths.any():
                row = first + int((lengths > 0).argmax())
                raise OptionError(
                    f"column {field.name!r}, row {row}: a list contains null",
                    option="columns",
                    value=field.name,
                )
            batch = batch.set_column(number, field.name, pa.nulls(len(batch)))
    return batch


class _Rows(NamedTuple):
    columns: Mapping[str, Any]
    validity: Mapping[str, npt.NDArray[np.bool_]]
    row_count: int
    size_bytes: int
    payloads: BytesArray | None = None


def _loses_digits(column: Any) -> bool:
    """Whether 32-bit floats do not have the values of a column."""
    values = column.values if isinstance(column, RaggedArray) else column
    if not isinstance(values, np.ndarray) or values.dtype != np.float64:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return not np.array_equal(values.astype(np.float32), values, equal_nan=True)


def _write_shard(job: TableJob, folder: Location, file: str, rows: Iterator[_Rows]) -> ShardResult:
    """Write rows until the shard is large enough or there are no more."""
    bytes_in = 0
    with open_partial_shard(folder, file, job.compression) as writer:
        for columns, validity, count, size_bytes, payloads in rows:
            bytes_in += size_bytes
            if payloads is not None:
                writer.write_slices(payloads.buffer, payloads.offsets)
            elif columns:
                writer.write_columns(columns, validity)
            else:  # columns of type null
                writer.write_slices(b"", np.zeros(count + 1, np.int64))
            if writer.size_bytes >= job.shard_size_bytes:
                break
        return ShardResult.from_writer(writer, survey_written(writer), bytes_in)


def _parts(job: TableJob, results: Iterable[PartResult]) -> list[PartResult]:
    """Return the results in order, if there is one of each part of this job."""
    parts: dict[int, PartResult] = {}
    for result in results:
        if not isinstance(result, PartResult) or result.token != job.token:
            raise OptionError(
                "a result belongs to another job",
                option="results",
                value=getattr(result, "number", result),
            )
        if result.number in parts:
            raise OptionError(
                f"part {result.number} has two results", option="results", value=result.number,
                expected="one result of each part",
            )  # fmt: skip
        parts[result.number] = result
    return [parts[number] for number in sorted(parts)]


def _publish(job: TableJob, folder: Location, parts: Sequence[PartResult]) -> Manifest:
    token, split = job.token, job.split
    results = [result for part in parts for result in part.shards]
    if not results:
        raise SourceError("no part has rows, so no dataset was written", path=folder)
    can_rename = folder.store.can_rename
    files = [result.file for result in results]
    if can_rename:
        files = shard_files_by_split({split: len(files)}, job.compression)[split]
    manifest = make_manifest(
        (split,),
        [(split, replace(result, file=file)) for result, file in zip(results, files, strict=True)],
        job.compression,
        None,
        {"source": {"kind": job.source}, "fingerprint": token},
        arrow_schema=_common_types(parts),
    )
    _check_kinds(manifest.schema)
    with locked_folder(folder):
        if can_rename:
            earlier = existing_dataset(
                folder, token, files, has_label_map=False, overwrite=job.overwrite
            )
        else:
            earlier = read_manifest(folder)
        if earlier is not None and earlier.last_fingerprint == token:
            return earlier
        if can_rename:
            claimed = folder
            _rename(folder, results, files, token)
        else:
            note = _own_note(folder, token)
            claimed = Location(ClaimedStore(folder, note), folder.key)
            if earlier is not None:
                raise busy_error(folder)
        publish_dataset(
            claimed,
            token,
            manifest,
            has_label_map=False,
            replaced=files_to_replace(claimed, (split,), earlier),
        )
        if can_rename:
            _note(folder, token).delete()
            clean_up(folder)
        else:  # attempts that ended meanwhile
            _delete(claimed, _unlisted(claimed, manifest))
    return manifest


def _check_kinds(schema: Schema) -> None:
    for name, feature in schema.features.items():
        if feature.kind == "mixed":
            raise OptionError(
                f"column {name!r} has different kinds of values in different parts",
                option="columns",
                value=name,
                remedy="Convert it to one type in all parts.",
            )


def _common_types(parts: Iterable[PartResult]) -> str | None:
    """Return the types of the columns as text, without those that differ or lose digits."""
    types: dict[str, Any] = {}
    left_out: set[str] = set()
    for part in parts:
        left_out |= part.left_out
        for field in part.types:
            if types.setdefault(field.name, field.type) != field.type:
                left_out.add(field.name)
    kept = [(name, arrow_type) for name, arrow_type in types.items() if name not in left_out]
    return schema_as_text(import_pyarrow().schema(kept)) if kept else None


def _rename(
    folder: Location, results: Sequence[ShardResult], files: Sequence[str], token: str
) -> None:
    """Give unpublished shards the numbers that they have now; may be repeated."""
    note = read_publish_note(folder)
    is_resumed = note is not None and note.fingerprint == token
    for result, file in zip(results, files, strict=True):
        waiting = partial_location(folder, file)
        for suffix in (".index", ""):  # the shard last: its name shows that the index is renamed
            with suppress(MissingFileError):
                partial_location(folder, result.file + suffix).move(
                    partial_location(folder, file + suffix)
                )
        if not waiting.exists() and not (is_resumed and (folder / file).exists()):
            raise SourceError(
                f"the shard {result.file} is missing",
                path=waiting.parent,
                remedy="Write to a folder that all machines share, or to a bucket, and run no "
                "other job in it meanwhile.",
            )


def _open_job(job: TableJob, out: PlaceLike | None) -> Location:
    """Return the folder for writing parts."""
    folder = as_folder(job.out if out is None else out)
    token = job.token
    if not folder.store.can_rename:
        return Location(_JobStore(folder, _own_note(folder, token)), folder.key)
    if not _note(folder, token).exists():
        raise _ended(folder)
    return folder


def _note(folder: Location, token: str) -> Location:
    """Where the note is that a job has begun, where the store can rename."""
    return partial_location(folder, f"{token}.job")


def _has_begun(folder: Location, token: str) -> bool:
    if folder.store.can_rename:
        return _note(folder, token).exists()
    note = read_publish_note(folder, BEGUN_NAME)
    return note is not None and note.fingerprint == token


def _own_note(folder: Location, token: str) -> PublishNote:
    note = read_publish_note(folder, BEGUN_NAME)
    if note is None or note.fingerprint != token:
        raise _ended(folder)
    return note


def _ended(folder: Location) -> FileAccessError:
    return FileAccessError(
        errno.ESTALE,
        "the job that writes it has ended, was replaced by another one, or runs on a machine that "
        "does not share this folder",
        str(folder),
        operation="write",
    )


class _JobStore(ClaimedStore):
    """Writes parts of a job as long as it has not ended."""

    def __init__(self, folder: Location, note: PublishNote) -> None:
        super().__init__(folder, note)
        self._token = note.fingerprint

    def check(self) -> bool:
        return not _own_note(self._folder, self._token).is_takeover


def _delete(folder: Location, files: Iterable[str]) -> None:
    """Delete unpublished shards and their indexes."""
    places = [partial_location(folder, name) for file in files for name in (file, f"{file}.index")]
    WorkerPool(folder.store.concurrency, None).each(Location.delete, places)


def _unlisted(folder: Location, manifest: Manifest | None) -> set[str]:
    """Return shards of parts that no manifest lists."""
    listed = set() if manifest is None else {shard.file for shard in manifest.shards}
    return {name for name in names_in(folder) if split_of_part(name) is not None} - listed


def _portable(out: PlaceLike) -> str | None:
    """Return the path or URL of a folder for other processes; None for a remote `Location`."""
    if isinstance(out, str) and is_url(out):
        return out
    folder = as_folder(out)
    return str(folder.absolute()) if folder.store.can_rename else None
