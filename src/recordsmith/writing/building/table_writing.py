"""Writes a dataset from Arrow batches that many processes have, each a part of the records.

One process calls `begin_table`, others `write_table_part` for each part, and one calls
`finish_table` with all results, or `abandon_table`. Job and results can be pickled. Each attempt to
write a part has names of its own, so parts may be written twice, and attempts may be killed: only
the shards in the results are published.

Where the store can rename, shards wait under hidden names and become `train-00003-of-00017` at the
end. Elsewhere they appear under the names of their attempts, as the number of shards is not known,
and a note keeps readers and other jobs out until the manifest lists those that count.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.dataset import (
    DEFAULT_SHARD_SIZE_BYTES,
    ArrowColumns,
    BegunNote,
    Manifest,
    ShardWriter,
    begun_location,
    check_shard_options,
    import_pyarrow,
    part_name,
    read_begun_note,
    read_manifest,
    schema_as_text,
    shard_files_by_split,
    shard_name,
    split_of_part,
)
from recordsmith.format.example import BytesArray, RaggedArray, Schema
from recordsmith.format.wire import Compression, check_compression
from recordsmith.stores import Location, PlaceLike, as_folder, busy_error, is_url, remote
from recordsmith.support.errors import (
    CorruptDataError,
    FileAccessError,
    MissingFileError,
    OptionError,
    SourceError,
)
from recordsmith.support.work import WorkerPool
from recordsmith.writing.building import publishing
from recordsmith.writing.building.claims import ClaimedStore, claim, release
from recordsmith.writing.building.shards import (
    ShardResult,
    open_partial_shard,
    partial_location,
    survey_written,
)

_PIECE_BYTES = 32 << 20  # of a batch that are encoded together


@dataclass(frozen=True)
class TableJob:
    """A dataset that is written in parts.

    folder: of the dataset; pickled with the options of its store that the user passed, and without
        those of the environment, where every process finds its own.
    token: identifies the job.
    is_new: whether the folder was created for it.
    """

    folder: Location
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


def begin_table(
    out: PlaceLike,
    overwrite: bool = False,
    *,
    token: str | None = None,
    split: str = "train",
    compression: str | None = None,
    shard_size_bytes: int | None = None,
    source: str = "Table",
    store_options: Mapping[str, Any] | None = None,
) -> TableJob:
    """Begin to write a dataset.

    Args:
        out: the folder of the dataset: a path that all machines share, or a URL.
        overwrite: replace an existing dataset; in a bucket, it is gone from here on.
        token: 32 hexadecimal digits that no other job has; with the same ones, `begin_table` may be
            repeated. None for new ones.
        split: the name of the split that all records belong to.
        compression: none, gzip or zlib.
        shard_size_bytes: a part becomes several shards of about this size; None: 256 MB.
        source: the kind of source that the manifest names.
        store_options: of `out`, if it is a URL; see `recordsmith.remote`.
    """
    folder = job_folder(out, store_options)
    check_shard_options(None, shard_size_bytes, "")
    kind = check_compression(compression)
    shard_files_by_split({split: 1}, kind)
    if not isinstance(overwrite, bool):
        raise OptionError(option="overwrite", value=overwrite, expected="True or False")
    publishing.check_folder(folder)
    token = token or os.urandom(16).hex()
    job = TableJob(
        folder,
        token,
        overwrite,
        split,
        kind,
        shard_size_bytes or DEFAULT_SHARD_SIZE_BYTES,
        source,
        not folder.is_folder(),
    )
    with publishing.locked_folder(folder):
        first = shard_name(split, 0, 1, kind)
        earlier = publishing.existing_dataset(
            folder, token, [first], has_label_map=False, overwrite=overwrite
        )
        if earlier is not None and earlier.last_fingerprint == token:
            return job
        begun = read_begun_note(folder)
        claimed = claim(folder, token, overwrite=overwrite, earlier=earlier)
        if begun is not None and begun.fingerprint == token:  # so parts may be there
            return job
        if claimed.store.can_rename:
            removed = () if begun is None else begun.removed
            begun_location(folder).put(BegunNote(token, removed).to_bytes())
        publishing.clean_up(claimed)
        if not claimed.store.can_rename:
            _delete(claimed, _unlisted(claimed, earlier))
    return job


def job_folder(out: PlaceLike, store_options: Mapping[str, Any] | None) -> Location:
    """Return the folder of a dataset, as other processes find it."""
    if store_options is None:
        return as_folder(out).absolute()
    if not isinstance(out, str) or not is_url(out):
        raise OptionError(option="store_options", expected="None, unless the folder is a URL")
    return remote(out, store_options=store_options)


def write_table_part(job: TableJob, number: int, batches: Iterable[Any]) -> PartResult:
    """Write the records of one part, as `PartWriter`; leaves no shard if it fails."""
    part = PartWriter(job, number)
    try:
        for batch in batches:
            part.add(batch)
        return part.finish()
    except BaseException:
        part.stop()
        raise


class PartWriter:
    """Writes the records of one part as they come. A part without rows has no shard."""

    def __init__(self, job: TableJob, number: int) -> None:
        if type(number) is not int or number < 0:
            raise OptionError(option="number", value=number, expected="an integer of at least 0")
        self._job = job
        self._number = number
        self._folder = _open_job(job)
        self._attempt = job.token[:8] + os.urandom(4).hex()
        self._types = _Types()
        self._results: list[ShardResult] = []
        self._shard = ExitStack()
        self._writer: ShardWriter | None = None
        self._bytes_in = 0

    def add(self, batch: Any) -> None:
        """Write a record batch, a table, or payloads."""
        for rows in self._types.convert(batch):
            if self._writer is None:
                shard = open_partial_shard(self._folder, self._file(), self._job.compression)
                self._writer = self._shard.enter_context(shard)
            _write_rows(self._writer, rows)
            self._bytes_in += rows.size_bytes
            if self._writer.size_bytes >= self._job.shard_size_bytes:
                self._end_shard(self._writer)

    def finish(self) -> PartResult:
        """Return the result, for `finish_table` of the job."""
        if self._writer is not None:
            self._end_shard(self._writer)
        _open_job(self._job)  # if the job has ended meanwhile, no one else removes the shards
        return PartResult(
            self._job.token,
            self._number,
            tuple(self._results),
            self._types.schema(),
            frozenset(self._types.left_out),
        )

    def stop(self) -> None:
        """Remove what was written."""
        with suppress(FileAccessError):
            self._shard.__exit__(GeneratorExit, GeneratorExit(), None)
            _delete(self._folder, [result.file for result in self._results])

    def _file(self) -> str:
        job, number = self._job, self._number
        return part_name(job.split, number, self._attempt, len(self._results), job.compression)

    def _end_shard(self, writer: ShardWriter) -> None:
        result = ShardResult(writer.entry(), survey_written(writer).packed(), self._bytes_in)
        self._writer, self._bytes_in = None, 0
        self._shard.close()
        self._results.append(result)


def finish_table(job: TableJob, results: Iterable[PartResult]) -> Manifest:
    """Publish the dataset, with the records of the parts in the order of their numbers.

    May be called again after it was interrupted. Removes what other attempts have written.

    Args:
        results: one of each part, in any order.

    Raises:
        OptionError: the results are of another job or of one part twice, or parts have different
            kinds of values in a column; or another dataset was created in the folder meanwhile.
        SourceError: no part has rows, or shards are missing. Nothing is left.
        FileAccessError: the folder cannot be written, or the job has ended.
    """
    parts = _parts(job, results)
    try:
        return _publish(job, parts)
    except (OptionError, SourceError, CorruptDataError):
        abandon_table(job)
        raise


def abandon_table(job: TableJob) -> None:
    """Remove everything that a job has written, unless `finish_table` has begun to rename it."""
    folder = job.folder
    note = read_begun_note(folder)
    if note is None or note.fingerprint != job.token or publishing.is_publishing(folder, note):
        return
    if folder.store.can_rename:
        with publishing.locked_folder(folder):
            left = {*note.removed} & {*publishing.names_in(folder)}
            if left and read_manifest(folder) is None:  # of a killed job: not a dataset
                begun_location(folder).put(BegunNote("", tuple(sorted(left))).to_bytes())
            else:
                release(folder)  # before the listing: see `PartWriter`
            publishing.clean_up(folder)
        if job.is_new:
            folder.store.remove_empty_folder(folder.key)
        return
    claimed = Location(ClaimedStore(folder, note), folder.key)
    manifest = read_manifest(folder)
    _delete(claimed, _unlisted(claimed, manifest))
    release(claimed, leaving=publishing.names_in(folder))


class _Types:
    """Converts batches to columns, and collects the Arrow types that they have."""

    def __init__(self) -> None:
        self._columns: dict[Any, ArrowColumns] = {}
        self._types: dict[str, Any] = {}
        self.left_out: set[str] = set()
        self._row_count = 0

    def convert(self, batch: Any) -> Iterator[_Rows]:
        """Yield the columns of pieces of the next batch, without empty ones."""
        if isinstance(batch, BytesArray):
            yield _Rows({}, {}, len(batch), len(batch.buffer), batch)
            self._row_count += len(batch)
            return
        for piece in batch.to_batches() if hasattr(batch, "to_batches") else (batch,):
            step = max(1, _PIECE_BYTES * len(piece) // max(1, piece.nbytes))
            for start in range(0, len(piece), step):
                yield self._convert(piece.slice(start, step), self._row_count + start)
            self._row_count += len(piece)

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


def _write_rows(writer: ShardWriter, rows: _Rows) -> None:
    if rows.payloads is not None:
        writer.write_slices(rows.payloads.buffer, rows.payloads.offsets)
    elif rows.columns:
        writer.write_columns(rows.columns, rows.validity)
    else:  # columns of type null
        writer.write_slices(b"", np.zeros(rows.row_count + 1, np.int64))


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


def _publish(job: TableJob, parts: Sequence[PartResult]) -> Manifest:
    folder, token, split = job.folder, job.token, job.split
    results = [result for part in parts for result in part.shards]
    if not results:
        raise SourceError("no part has rows, so no dataset was written", path=folder)
    can_rename = folder.store.can_rename
    files = [result.file for result in results]
    if can_rename:
        files = shard_files_by_split({split: len(files)}, job.compression)[split]
    renamed = (
        replace(result, entry=msgspec.structs.replace(result.entry, file=file))
        for result, file in zip(results, files, strict=True)
    )
    manifest = publishing.make_manifest(
        (split,),
        [(split, result) for result in renamed],
        job.compression,
        None,
        {"source": {"kind": job.source}, "fingerprint": token},
        arrow_schema=_common_types(parts),
    )
    _check_kinds(manifest.schema)
    with publishing.locked_folder(folder):
        if can_rename:
            earlier = publishing.existing_dataset(
                folder, token, files, has_label_map=False, overwrite=job.overwrite
            )
        else:
            earlier = read_manifest(folder)
        if earlier is not None and earlier.last_fingerprint == token:
            publishing.clean_up_after_kill(folder)
            return earlier
        note = _own_note(folder, token)
        claimed = folder
        if can_rename:
            _rename(folder, results, files, is_resumed=publishing.is_publishing(folder, note))
        else:
            claimed = Location(ClaimedStore(folder, note), folder.key)
            if earlier is not None:
                raise busy_error(folder)
        publishing.publish_dataset(claimed, manifest, has_label_map=False, earlier=earlier)
        if can_rename:
            publishing.clean_up(folder)
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
    folder: Location, results: Sequence[ShardResult], files: Sequence[str], *, is_resumed: bool
) -> None:
    """Give unpublished shards the numbers that they have now; may be repeated."""
    for result, file in zip(results, files, strict=True):
        waiting = partial_location(folder, file)
        partial_location(folder, f"{file}.columns").delete()  # of an earlier shard of this name
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


def _open_job(job: TableJob) -> Location:
    """Return the folder for writing parts, as long as the job has not ended."""
    note = _own_note(job.folder, job.token)
    if job.folder.store.can_rename:
        return job.folder
    return Location(_JobStore(job.folder, note), job.folder.key)


def _own_note(folder: Location, token: str) -> BegunNote:
    note = read_begun_note(folder)
    if note is None or note.fingerprint != token:
        raise FileAccessError(
            errno.ESTALE,
            "the job that writes it has ended, was replaced by another one, or runs on a machine "
            "that does not share this folder",
            str(folder),
            operation="write",
        )
    return note


class _JobStore(ClaimedStore):
    """Writes parts of a job as long as it has not ended."""

    def __init__(self, folder: Location, note: BegunNote) -> None:
        super().__init__(folder, note)
        self._token = note.fingerprint

    def check(self) -> bool:
        return not _own_note(self._folder, self._token).is_takeover


def _delete(folder: Location, files: Iterable[str]) -> None:
    """Delete unpublished shards and their indexes."""
    shards = [partial_location(folder, name) for file in files for name in (file, f"{file}.index")]
    WorkerPool(folder.store.concurrency, None).each(Location.delete, shards)


def _unlisted(folder: Location, manifest: Manifest | None) -> set[str]:
    """Return shards of parts that no manifest lists."""
    listed = set() if manifest is None else {shard.file for shard in manifest.shards}
    return {
        name for name in publishing.names_in(folder) if split_of_part(name) is not None
    } - listed
