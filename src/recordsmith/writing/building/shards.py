"""Writes shards under temporary names, and notes those that are complete for interrupted jobs.

A note lies next to its shard until the dataset is complete. A shard counts as complete if its note
has the same plan and sample versions, and the file has the size and checksum in the note. If
anything is wrong with a note, the shard is written again.

Where reads are requests over a network, the note also has the version of the object. As long as the
object has this version, its bytes are those that were written, so they are not read again.
"""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from recordsmith.dataset import (
    DONE_SUFFIX,
    INTERNAL_FOLDER,
    NOT_AS_EXPECTED,
    PARTIAL_SUFFIX,
    SIDE_SUFFIXES,
    ColumnsOrigin,
    ColumnSurvey,
    Manifest,
    Shard,
    ShardEntry,
    ShardWriter,
    column_pieces,
    count_in_json,
    integer_in_json,
    read_begun_note,
    version_of,
)
from recordsmith.format.example import Schema, SchemaSurvey
from recordsmith.format.wire import Compression, crc32c
from recordsmith.stores import Location, read_note, write_atomically
from recordsmith.support.errors import (
    CorruptDataError,
    Defect,
    FileAccessError,
    MissingFileError,
    accessing,
    located,
)
from recordsmith.support.work import WorkerPool
from recordsmith.writing.building.claims import ClaimedStore

MAX_PLACES = 1000
_BLOCK_BYTES = 1 << 20
_VERSION = 5

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass
class Occurrences:
    """How often something was noted, and the first places where.

    left_out: the objects that were left out, by class; empty for those of unknown classes.
    """

    count: int = 0
    places: list[str] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)

    def add(self, where: str, left_out: str | None = None) -> None:
        """Count one more, with its place and the class of the object that was left out."""
        self.extend(Occurrences(1, [where], {} if left_out is None else {left_out: 1}))

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Occurrences:
        """Restore them from their attributes; raises as `ShardResult.from_json`."""
        return cls(
            integer_in_json(document["count"]),
            list(map(str, document["places"])),
            {str(name): count_in_json(n) for name, n in document["left_out"].items()},
        )

    def extend(self, other: Occurrences) -> None:
        """Add the counts and the places of another; of classes beyond the first, as unknown."""
        self.count += other.count
        self.places += other.places[: MAX_PLACES - len(self.places)]
        for name, number in other.left_out.items():
            known = name if name in self.left_out or len(self.left_out) < MAX_PLACES else ""
            self.left_out[known] = self.left_out.get(known, 0) + number


@dataclass(frozen=True, slots=True)
class ShardResult:
    """The result of writing one shard.

    entry: of the shard, in the manifest.
    bytes_in: size of the packed samples, as reported by the source.
    skipped: the reason for each unreadable sample, by its number in the listing.
    notes: changes to samples and properties worth knowing.
    label_count: the number of labels of objects and images; None for samples without objects by
        nature.
    was_reused: whether an interrupted earlier run had completed it, so that it was only verified.
    fingerprint: of the job that the shard belongs to.
    """

    entry: ShardEntry
    schema: Schema
    bytes_in: int
    skipped: Mapping[int, str] = field(default_factory=dict)
    notes: Mapping[str, Occurrences] = field(default_factory=dict)
    label_count: int | None = None
    was_reused: bool = False
    fingerprint: str = ""

    @property
    def file(self) -> str:
        """The name of the shard."""
        return self.entry.file

    @property
    def record_count(self) -> int:
        """The number of its records."""
        return self.entry.record_count

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return {
            "file": self.file,
            "records": self.record_count,
            "size_bytes": self.entry.size_bytes,
            "crc32c": self.entry.crc32c,
            "bytes_in": self.bytes_in,
            "schema": self.schema.to_json(),
            "skipped": list(self.skipped.items()),
            "notes": {what: vars(noted) for what, noted in self.notes.items()},
            "label_count": self.label_count,
            "was_reused": self.was_reused,
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ShardResult:
        """Restore a result from `to_json`."""
        return cls(
            ShardEntry(
                str(document["file"]),
                count_in_json(document["records"]),
                count_in_json(document["size_bytes"]),
                count_in_json(document["crc32c"]),
            ),
            Schema.from_json(document["schema"]).packed(),
            count_in_json(document["bytes_in"]),
            {integer_in_json(number): str(why) for number, why in document["skipped"]},
            {what: Occurrences.from_json(noted) for what, noted in document["notes"].items()},
            None if (number := document["label_count"]) is None else count_in_json(number),
            bool(document["was_reused"]),
            sys.intern(str(document["fingerprint"])),
        )


def add_notes(notes: dict[str, Occurrences], more: Mapping[str, Occurrences]) -> None:
    """Add the notes of a sample or a shard to those of all."""
    for what, noted in more.items():
        notes.setdefault(what, Occurrences()).extend(noted)


def partial_location(folder: Location, file: str) -> Location:
    """Where a shard, or what is kept of it, waits to be published.

    Without renaming, a new shard has its name at once, and only one that is replaced waits.
    """
    if folder.store.can_rename or (
        isinstance(folder.store, ClaimedStore) and folder.store.replaced
    ):
        return folder / INTERNAL_FOLDER / f"{file}{PARTIAL_SUFFIX}"
    return final_location(folder, file)


def final_location(folder: Location, file: str) -> Location:
    """Where a shard, or what is kept of it, is in a complete dataset."""
    return folder / INTERNAL_FOLDER / file if file.endswith(SIDE_SUFFIXES) else folder / file


def done_location(folder: Location, file: str) -> Location:
    """Where the note is that a shard is complete."""
    return folder / INTERNAL_FOLDER / f"{file}{DONE_SUFFIX}"


def completed_files(folder: Location) -> list[str]:
    """The names of the shards that an interrupted job completed, according to their notes."""
    names = (location.name for location in (folder / INTERNAL_FOLDER).list())
    return sorted(name.removesuffix(DONE_SUFFIX) for name in names if name.endswith(DONE_SUFFIX))


def save_result(folder: Location, versions: str | None, result: ShardResult) -> None:
    """Write the note that a shard is complete."""
    is_remote = folder.store.is_remote
    document = {
        "version": _VERSION,
        "object_version": partial_location(folder, result.file).info().version
        if is_remote
        else None,
        "versions_hash": versions,
        **result.to_json(),
    }
    write_atomically(done_location(folder, result.file), json.dumps(document).encode())


def load_result(
    folder: Location,
    fingerprint: str,
    versions: Callable[[], str | None],
    file: str,
    *,
    trusting: bool,
    keeps_skipped: bool = True,
) -> ShardResult | None:
    """Return the result in the note of a shard; None if the shard must be written again.

    With `trusting`, a source without version information counts as unchanged; `keeps_skipped`: a
    shard may lack samples that were unreadable.

    Raises:
        MissingFileError: the shard has no note.
    """
    try:
        document = json.loads(read_note(done_location(folder, file)))
        result = replace(ShardResult.from_json(document), was_reused=True)
        is_same_job = (result.fingerprint, result.file) == (fingerprint, file)
        known = versions() if is_same_job else None
        if (
            is_same_job
            and document.get("versions_hash") == known
            and (trusting or known is not None)
            and (keeps_skipped or not result.skipped)
            and _is_complete(folder, result, document.get("object_version"))
        ):
            return result
    except MissingFileError:
        raise
    except (FileAccessError, *NOT_AS_EXPECTED):
        pass
    return None


def _is_complete(folder: Location, result: ShardResult, version: str | None) -> bool:
    """Whether a shard has the bytes in its note; `version` is None for local files.

    Removes one under its temporary name that has others.
    """
    expected = (result.entry.size_bytes, result.entry.crc32c)
    # under its final name if the job was killed while publishing
    for location in (partial_location(folder, result.file), folder / result.file):
        with suppress(FileAccessError):
            if (
                version is not None
                and location.info().version == version
                and folder.store.has_identity(version)
            ) or size_and_checksum(location) == expected:
                return True
            if location.name != result.file:
                location.delete()
    return False


def size_and_checksum(location: Location) -> tuple[int, int]:
    """The size and the CRC-32C of a file."""
    buffer = bytearray(_BLOCK_BYTES)
    view = memoryview(buffer)
    size, checksum = 0, 0
    with location.without_links().open_read() as file, accessing(location):
        while count := file.readinto(buffer):
            checksum = crc32c(view[:count], checksum)
            size += count
    return size, checksum


@contextmanager
def open_partial_shard(
    folder: Location, file: str, compression: Compression
) -> Iterator[ShardWriter]:
    """Open a writer for a shard that ends at `partial_location`, together with its index
    and its columns.

    Leaves no file if the block discards the writer or raises.
    """
    writer = ShardWriter(
        folder / file, compression=compression, temporary=partial_location(folder, file)
    )
    try:
        yield writer
        if writer.is_open:
            index = _undisturbed(folder, writer.index_pieces)
            partial_location(folder, f"{file}.index").put(index)
            columns = partial_location(folder, f"{file}.columns")
            columns.delete()  # those of another shard of this name
            writer.publish()
            kept = {} if writer.columns is None else writer.columns.finish()
            if writer.columns is not None and kept:
                shard = partial_location(folder, file)
                version = version_of(shard, shard.info(), is_own=True)
                payloads = writer.columns.payloads
                origin = ColumnsOrigin(writer.size_bytes, version, payloads, writer.crc32c)
                columns.put(column_pieces(kept, origin))
    except BaseException:
        writer.discard()
        raise


def complete_shard(
    folder: Location,
    file: str,
    compression: Compression,
    write: Callable[[ShardWriter], ShardResult],
    *,
    fingerprint: str,
    versions: Callable[[], str | None],
    trusting: bool,
    keeps_skipped: bool = True,
) -> tuple[ShardResult, bool]:
    """Write one shard under its temporary name and note it, unless it is already complete.

    Returns the result, and whether the shard was written now.
    """
    with suppress(MissingFileError):
        result = load_result(
            folder, fingerprint, versions, file, trusting=trusting, keeps_skipped=keeps_skipped
        )
        if result is not None:
            return result, False
        done_location(folder, file).delete()
    with open_partial_shard(folder, file, compression) as writer:
        result = write(writer)
    result = replace(result, fingerprint=fingerprint)
    save_result(folder, versions(), result)
    return result, True


def _undisturbed(location: Location, read: Callable[[], _Result]) -> _Result:
    """Read a shard again if a job of the same plan writes it meanwhile, with the same bytes."""
    while True:
        try:
            return read()
        except FileAccessError as error:
            if location.store.can_rename or error.errno != errno.ESTALE:
                raise


def survey_shard(shard: Shard) -> Schema:
    """Return the schema of the records of a shard with its layers, which are all read."""
    survey = SchemaSurvey()
    for block in shard.alone().blocks():
        with located(shard.location, block.position):
            survey.update(block.buffer, block.starts, block.lengths)
    schema = survey.finish()
    for layer in shard.layers:
        schema = schema.covered(survey_shard(layer))
    return schema.packed()


def schemas_by_split(
    shards: Iterable[Shard], schemas: Iterable[Schema], splits: Iterable[str] = ()
) -> dict[str, Schema]:
    """Merge the schemas of the shards of each split; `splits` may also have no shards."""
    parts: dict[str, list[Schema]] = {split: [] for split in splits}
    for shard, schema in zip(shards, schemas, strict=True):
        parts.setdefault(shard.split, []).append(schema)
    return {split: Schema.merged(of_split) for split, of_split in parts.items()}


def survey_written(writer: ShardWriter, keys: Collection[str] = ()) -> Schema:
    """Verify every checksum of a written shard, and return its schema.

    keys: of features whose numbers are kept next to the shard.
    """
    writer.seal()
    return _undisturbed(writer.location, lambda: _survey(writer, keys))


def _survey(writer: ShardWriter, keys: Collection[str]) -> Schema:
    survey, columns = SchemaSurvey(), ColumnSurvey(keys)
    records = 0
    for block in writer.written_blocks():
        survey.update(block.buffer, block.starts, block.lengths)
        columns.update(block.buffer, block.starts, block.lengths)
        records += len(block)
    if records != writer.record_count:
        raise CorruptDataError(
            Defect.RECORD_COUNT,
            "the file does not have as many records as were written",
            found=str(records),
            expected=str(writer.record_count),
            remedy="The disk or its file system is failing.",
            path=writer.location,
        )
    writer.columns = columns
    return survey.finish()


# -- shards of other processes: another job may have written one of the same name and size -------


def check_written(
    folder: Location, results: Sequence[ShardResult], earlier: Manifest | None
) -> None:
    """Check shards by their notes and sizes, without reading them."""
    internal = folder / INTERNAL_FOLDER
    final, waiting = (
        {name: size for name, _, size, *_ in listed.list_entries()} if listed.is_folder() else {}
        for listed in (folder, internal)
    )
    published = set()
    if earlier is not None:
        published = {(earlier.last_fingerprint, shard) for shard in earlier.shards}
    begun = read_begun_note(folder)
    renamed_fingerprint = None if begun is None else begun.fingerprint  # of a job that was killed

    def check(result: ShardResult) -> None:
        size = waiting.get(f"{result.file}{PARTIAL_SUFFIX}")
        if size is None:  # it may have its final name already
            size = final.get(result.file)
            if size == result.entry.size_bytes and (result.fingerprint, result.entry) in published:
                return  # the note was removed when it was published
            if folder.store.can_rename and renamed_fingerprint != result.fingerprint:
                raise _missing(folder, result)
        if size != result.entry.size_bytes or not _is_noted(folder, result):
            raise _missing(folder, result)

    for_each(results, check, folder)


def _is_noted(folder: Location, result: ShardResult) -> bool:
    try:
        note = json.loads(read_note(done_location(folder, result.file)))
        noted = (note["fingerprint"], note["size_bytes"], note["crc32c"])
    except (MissingFileError, *NOT_AS_EXPECTED):
        return False
    return noted == (result.fingerprint, result.entry.size_bytes, result.entry.crc32c)


def _missing(folder: Location, result: ShardResult) -> FileAccessError:
    return FileAccessError(
        errno.ENOENT,
        "a worker has written it, but it is not here",
        str(folder / result.file),
        remedy="All machines must see the folder of the dataset under the same path. Run the job "
        "again if the file was removed or another job replaced it.",
    )


def for_each(items: Sequence[_Item], change: Callable[[_Item], object], folder: Location) -> None:
    """Change many files, at the same time where each change is requests over a network."""
    if folder.store.is_remote:
        WorkerPool(folder.store.concurrency, None).each(change, items)
    else:
        for item in items:
            change(item)
