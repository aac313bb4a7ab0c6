"""What came of one shard: kept in a small file beside it, until the dataset is complete.

A job that was stopped looks there for what is done. A shard counts as done if the note is of the
same plan and of samples that have not changed, and the file has the size and the checksum that
the note says. Whatever is wrong with a note, the shard is simply written again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recordsmith.dataset import ShardEntry, ShardWriter
from recordsmith.dataset.documents import NOT_AS_EXPECTED, integer_in_json
from recordsmith.dataset.names import DONE_SUFFIX, PARTIAL_SUFFIX
from recordsmith.errors import FileAccessError
from recordsmith.example import Schema
from recordsmith.files import (
    INTERNAL_FOLDER,
    NOTE_BYTES,
    accessing,
    open_file,
    read_document,
    remove,
    write_atomically,
)
from recordsmith.wire import crc32c

MOST_PLACES = 1000
_BLOCK_BYTES = 1 << 20


@dataclass
class Noted:
    """How often something was noted, and where; of very many places only the first are kept."""

    count: int = 0
    places: list[str] = field(default_factory=list)

    def add(self, where: str) -> None:
        """It happened here, too."""
        self.extend(Noted(1, [where]))

    def extend(self, other: Noted) -> None:
        """It happened there as well."""
        self.count += other.count
        self.places += other.places[: MOST_PLACES - len(self.places)]


@dataclass(frozen=True)
class ShardResult:
    """What was written into one shard, and what was not.

    crc32c: over the bytes of the file.
    bytes_in: size of what was packed, as the source tells it.
    skipped: number in the listing, and why, of each sample that could not be read.
    notes: what was changed or should be known of samples.
    was_kept: an earlier run, which was stopped, had completed it; now it was only checked.
    """

    file: str
    record_count: int
    size_bytes: int
    crc32c: int
    bytes_in: int
    schema: Schema
    skipped: Mapping[int, str] = field(default_factory=dict)
    notes: Mapping[str, Noted] = field(default_factory=dict)
    was_kept: bool = False

    @classmethod
    def of(
        cls,
        writer: ShardWriter,
        schema: Schema,
        bytes_in: int,
        *,
        skipped: Mapping[int, str] | None = None,
        notes: Mapping[str, Noted] | None = None,
    ) -> ShardResult:
        """Of a shard that is sealed."""
        return cls(
            writer.path.name,
            writer.record_count,
            writer.size_bytes,
            writer.crc32c,
            bytes_in,
            schema.packed(),
            skipped or {},
            notes or {},
        )

    @property
    def entry(self) -> ShardEntry:
        """What the manifest says of it."""
        return ShardEntry(self.file, self.record_count, self.size_bytes, self.crc32c)


def partial_path(folder: Path, file: str) -> Path:
    """Where a shard (or its index) waits for its name."""
    return folder / INTERNAL_FOLDER / f"{file}{PARTIAL_SUFFIX}"


def done_path(folder: Path, file: str) -> Path:
    """Where the note lies that a shard is complete."""
    return folder / INTERNAL_FOLDER / f"{file}{DONE_SUFFIX}"


class Versions:
    """A hash over the versions of a shard's samples, one after the other."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)
        self._are_told = True

    def add(self, version: int | None) -> None:
        """The version of the next sample."""
        if version is None:
            self._are_told = False
        else:
            self._digest.update(version.to_bytes(16, "little", signed=True))

    def hexdigest(self) -> str | None:
        """The hash of all; None if the source does not tell versions."""
        return self._digest.hexdigest() if self._are_told else None


def complete_shards(folder: Path) -> list[str]:
    """The shards of a job that was stopped which need not be written again, as their notes say."""
    return sorted(note.stem for note in (folder / INTERNAL_FOLDER).glob(f"*{DONE_SUFFIX}"))


def keep_result(folder: Path, plan: str, versions: str | None, result: ShardResult) -> None:
    """Note that a shard is complete; `plan` is the fingerprint."""
    document = {
        "plan": plan,
        "versions": versions,
        "file": result.file,
        "records": result.record_count,
        "size_bytes": result.size_bytes,
        "crc32c": result.crc32c,
        "bytes_in": result.bytes_in,
        "schema": result.schema.to_json(),
        "skipped": list(result.skipped.items()),
        "notes": {what: vars(noted) for what, noted in result.notes.items()},
    }
    write_atomically(done_path(folder, result.file), json.dumps(document).encode())


def complete_result(
    folder: Path, plan: str, versions: Callable[[], str | None], file: str, *, trusting: bool
) -> ShardResult | None:
    """What came of a shard that is complete and right; None if it has to be written.

    Args:
        versions: of its samples; asked only if there is a note that says what they were.
        trusting: whether a source that does not tell versions is taken to be unchanged.
    """
    try:
        document = json.loads(read_document(done_path(folder, file), NOTE_BYTES))
        result = _parse(document)
    except (FileAccessError, *NOT_AS_EXPECTED):
        return None
    if document.get("plan") != plan or result.file != file:
        return None
    known = versions()
    if document.get("versions") != known or (known is None and not trusting):
        return None
    expected = (result.size_bytes, result.crc32c)
    for path in (partial_path(folder, file), folder / file):  # the latter if it was killed late
        with suppress(FileAccessError):
            if _size_and_checksum(path) == expected:
                return result
            if path.name != file:
                remove(path)
    return None


def _parse(document: Any) -> ShardResult:
    names = ("records", "size_bytes", "crc32c", "bytes_in")
    record_count, size_bytes, checksum, bytes_in = (
        integer_in_json(document[name]) for name in names
    )
    return ShardResult(
        file=str(document["file"]),
        record_count=record_count,
        size_bytes=size_bytes,
        crc32c=checksum,
        bytes_in=bytes_in,
        schema=Schema.from_json(document["schema"]).packed(),
        skipped={integer_in_json(number): str(why) for number, why in document["skipped"]},
        notes={
            str(what): Noted(integer_in_json(noted["count"]), list(map(str, noted["places"])))
            for what, noted in document["notes"].items()
        },
        was_kept=True,
    )


def _size_and_checksum(path: Path) -> tuple[int, int]:
    """Of a whole file."""
    buffer = bytearray(_BLOCK_BYTES)
    view = memoryview(buffer)
    size, checksum = 0, 0
    with open_file(path) as file, accessing(path):
        while count := file.readinto(buffer):  # type: ignore[attr-defined]
            checksum = crc32c(view[:count], checksum)
            size += count
    return size, checksum
