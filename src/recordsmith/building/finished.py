"""Notes about completed shards, which let an interrupted job resume.

A note lies next to its shard until the dataset is complete. A shard counts as complete if its note
has the same plan and sample versions, and the file has the size and checksum in the note. If
anything is wrong with a note, the shard is written again.

Where reads are requests over a network, the note also has the version of the object. As long as the
object has this version, its bytes are those that were written, so they are not read again.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset import ShardEntry, ShardWriter
from recordsmith.dataset.documents import (
    NOT_AS_EXPECTED,
    count_in_json,
    integer_in_json,
)
from recordsmith.dataset.names import DONE_SUFFIX, INTERNAL_FOLDER, PARTIAL_SUFFIX
from recordsmith.errors import FileAccessError, MissingFileError, OptionError, accessing
from recordsmith.example import Schema
from recordsmith.stores import Location, read_note, write_atomically
from recordsmith.wire import crc32c

MAX_PLACES = 1000
_BLOCK_BYTES = 1 << 20
_VERSION = 3


@dataclass
class Occurrences:
    """How often something was noted, and the first places where."""

    count: int = 0
    places: list[str] = field(default_factory=list)

    def add(self, where: str) -> None:
        """Count one more, with its place."""
        self.extend(Occurrences(1, [where]))

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Occurrences:
        """Restore them from their attributes; raises as `ShardResult.from_json`."""
        return cls(integer_in_json(document["count"]), list(map(str, document["places"])))

    def extend(self, other: Occurrences) -> None:
        """Add the count and the places of another."""
        self.count += other.count
        self.places += other.places[: MAX_PLACES - len(self.places)]


@dataclass(frozen=True, slots=True)
class ShardResult:
    """The result of writing one shard.

    crc32c: over the bytes of the file.
    bytes_in: size of the packed samples, as reported by the source.
    skipped: the reason for each unreadable sample, by its number in the listing.
    notes: changes to samples and properties worth knowing.
    images: what TFDS's documents need to know of the images, by feature; empty for other keys.
    was_reused: whether an interrupted earlier run had completed it, so that it was only verified.
    plan: the fingerprint of the job that the shard belongs to.
    """

    file: str
    record_count: int
    size_bytes: int
    crc32c: int
    bytes_in: int
    schema: Schema
    skipped: Mapping[int, str] = field(default_factory=dict)
    notes: Mapping[str, Occurrences] = field(default_factory=dict)
    images: Mapping[str, Any] = field(default_factory=dict)
    was_reused: bool = False
    plan: str = ""

    @classmethod
    def from_writer(
        cls,
        writer: ShardWriter,
        schema: Schema,
        bytes_in: int,
        *,
        skipped: Mapping[int, str] | None = None,
        notes: Mapping[str, Occurrences] | None = None,
        images: Mapping[str, Any] | None = None,
    ) -> ShardResult:
        """Make the result of a sealed shard."""
        return cls(
            writer.location.name,
            writer.record_count,
            writer.size_bytes,
            writer.crc32c,
            bytes_in,
            schema.packed(),
            skipped or {},
            notes or {},
            images or {},
        )

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return {
            "file": self.file,
            "records": self.record_count,
            "size_bytes": self.size_bytes,
            "crc32c": self.crc32c,
            "bytes_in": self.bytes_in,
            "schema": self.schema.to_json(),
            "skipped": list(self.skipped.items()),
            "notes": {what: vars(noted) for what, noted in self.notes.items()},
            "images": dict(self.images),
            "was_reused": self.was_reused,
            "plan": self.plan,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ShardResult:
        """Restore a result from `to_json`."""
        return cls(
            str(document["file"]),
            count_in_json(document["records"]),
            count_in_json(document["size_bytes"]),
            count_in_json(document["crc32c"]),
            count_in_json(document["bytes_in"]),
            Schema.from_json(document["schema"]).packed(),
            {integer_in_json(number): str(why) for number, why in document["skipped"]},
            {what: Occurrences.from_json(noted) for what, noted in document["notes"].items()},
            dict(document["images"]),
            bool(document["was_reused"]),
            sys.intern(str(document["plan"])),
        )

    @property
    def entry(self) -> ShardEntry:
        """The entry of the shard in the manifest."""
        return ShardEntry(self.file, self.record_count, self.size_bytes, self.crc32c)


def other_plan_error(result: ShardResult, plan: str) -> OptionError:
    """Return the error for a result that does not belong to a plan."""
    return OptionError(
        f"the result for {result.file} belongs to another plan",
        option="results",
        value=result.plan,
        expected=f"results of the plan {plan}",
    )


def merge_notes(parts: Iterable[Mapping[str, Occurrences]]) -> dict[str, Occurrences]:
    """The notes of all shards."""
    notes: dict[str, Occurrences] = {}
    for part in parts:
        for what, noted in part.items():
            notes.setdefault(what, Occurrences()).extend(noted)
    return notes


def partial_location(folder: Location, file: str) -> Location:
    """Where a shard or index waits until it is published: its own name, without renaming."""
    if folder.store.can_rename:
        return folder / INTERNAL_FOLDER / f"{file}{PARTIAL_SUFFIX}"
    return final_location(folder, file)


def final_location(folder: Location, file: str) -> Location:
    """Where a shard or index is in a complete dataset."""
    return folder / INTERNAL_FOLDER / file if file.endswith(".index") else folder / file


def done_location(folder: Location, file: str) -> Location:
    """Where the note is that a shard is complete."""
    return folder / INTERNAL_FOLDER / f"{file}{DONE_SUFFIX}"


def rows_prefix(plan: str) -> str:
    """How the names of files begin that have rows for the tasks of a plan."""
    return f"rows-{plan}-"


class VersionHash:
    """A hash of the versions of a shard's samples, in order."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)
        self._are_known = True

    def add(self, version: int | None) -> None:
        """Add the version of the next sample."""
        if version is None:
            self._are_known = False
        else:
            self._digest.update(version.to_bytes(16, "little", signed=True))

    def add_all(self, versions: Int64Array) -> None:
        """Add the versions of the next samples: int64, (count,)."""
        words = np.stack([versions, versions >> 63], axis=1).astype("<i8", copy=False)
        self._digest.update(words.tobytes())

    def hexdigest(self) -> str | None:
        """The hash of all versions; None for a source without version information."""
        return self._digest.hexdigest() if self._are_known else None


def completed_files(folder: Location) -> list[str]:
    """The names of the shards that an interrupted job completed, according to their notes."""
    names = (location.name for location in (folder / INTERNAL_FOLDER).list())
    return sorted(name.removesuffix(DONE_SUFFIX) for name in names if name.endswith(DONE_SUFFIX))


def save_result(folder: Location, versions: str | None, result: ShardResult) -> None:
    """Write the note that a shard is complete."""
    is_remote = folder.store.is_remote
    document = {
        "version": _VERSION,
        "object_version": final_location(folder, result.file).info().version if is_remote else None,
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
    """The result of a complete and verified shard; None if it must be written.

    Removes a note that does not match the shard.

    Args:
        versions: returns the hash of the samples' versions; called only if a note exists.
        trusting: whether to assume that a source without version information is unchanged.
        keeps_skipped: whether a shard may lack samples that could not be read.
    """
    note = done_location(folder, file)
    result = None
    try:
        result = _verified_result(read_note(note), folder, fingerprint, versions, file, trusting)
    except MissingFileError:
        return None
    except (FileAccessError, *NOT_AS_EXPECTED):
        pass
    if result is None or (result.skipped and not keeps_skipped):
        note.delete()
        return None
    return result


def _verified_result(
    note: bytes,
    folder: Location,
    fingerprint: str,
    versions: Callable[[], str | None],
    file: str,
    trusting: bool,
) -> ShardResult | None:
    document = json.loads(note)
    result = replace(ShardResult.from_json(document), was_reused=True)
    if result.plan != fingerprint or result.file != file:
        return None
    known = versions()
    if document.get("versions_hash") != known or (known is None and not trusting):
        return None
    expected = (result.size_bytes, result.crc32c)
    version = document.get("object_version")  # None for local files
    # under its final name if the job was killed while publishing
    for location in (partial_location(folder, file), folder / file):
        with suppress(FileAccessError):
            if (
                version is not None
                and location.info().version == version
                and folder.store.has_identity(version)
            ) or size_and_checksum(location) == expected:
                return result
            if location.name != file:
                location.delete()
    return None


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
