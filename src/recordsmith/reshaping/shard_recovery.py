"""Recovers the intact records of one damaged shard.

Skips what cannot be decompressed, searches for frames whose two checksums match, and writes
them byte for byte. The written shard is read back.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal, cast

from recordsmith.building import ShardResult, open_partial_shard, survey_written
from recordsmith.dataset import Shard, ShardWriter
from recordsmith.dataset.names import INTERNAL_FOLDER
from recordsmith.errors import accessing, located
from recordsmith.serialization import fields_to_json
from recordsmith.stores import Location
from recordsmith.stores.local.scratch import ScratchFile
from recordsmith.wire import (
    HEAD_BYTES,
    Compression,
    IntactFrames,
    LostBytes,
    Repair,
    detect_compression,
    detect_other_format,
    inflate_damaged_stream,
    recover,
)

MAX_LISTED = 1000
"""The most ranges and repairs of a shard that are listed; all are counted."""


@dataclass
class SalvagedShard:
    """The result of one shard.

    path: the damaged file.
    file: its name in the new dataset; None if no record could be recovered.
    record_count: number of recovered records.
    expected_count: number of records in the manifest; None without a manifest.
    size_bytes: of the damaged file.
    compression: none, gzip or zlib.
    lost: byte ranges without intact records, at most MAX_LISTED; in the decompressed data if the
        file is compressed.
    lost_count, lost_bytes: number and total size of all these ranges.
    breaks: ranges of the file that cannot be decompressed, at most MAX_LISTED; an empty range at
        the end of the file means that the end mark is missing.
    repairs: fixed bits, at most MAX_LISTED.
    repair_count: number of fixed bits.
    problem: why no record could be recovered; otherwise empty.
    """

    path: str
    split: str
    file: str | None = None
    record_count: int = 0
    expected_count: int | None = None
    size_bytes: int = 0
    compression: str = "none"
    lost: list[LostBytes] = field(default_factory=list)
    lost_count: int = 0
    lost_bytes: int = 0
    breaks: list[LostBytes] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    repair_count: int = 0
    problem: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is lost."""
        return not (
            self.lost_count
            or self.breaks
            or self.problem
            or (self.expected_count or 0) > self.record_count
        )

    def add_lost(self, lost: LostBytes) -> None:
        self.lost_count += 1
        self.lost_bytes += lost.stop - lost.start
        if len(self.lost) < MAX_LISTED:
            self.lost.append(lost)

    def add_repair(self, repair: Repair) -> None:
        self.repair_count += 1
        if len(self.repairs) < MAX_LISTED:
            self.repairs.append(repair)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict."""
        return fields_to_json(self)


def recover_shard(
    shard: Shard,
    folder: Location,
    name: str,
    compression: Compression,
    advance: Callable[[int], None],
) -> tuple[SalvagedShard, ShardResult | None]:
    """Write the intact records of a shard under a temporary name.

    Args:
        folder, name, compression: of the new shard.
        advance: called with the number of bytes processed since the last call.

    Returns:
        The report, and the written shard; None if a damaged shard has no intact records.
    """
    expected = None if shard.entry is None else shard.entry.record_count
    salvaged = SalvagedShard(str(shard.location), shard.split, expected_count=expected)
    with ExitStack() as stack:
        opened = stack.enter_context(shard.open_read())
        stack.enter_context(accessing(shard.location))
        stack.enter_context(located(shard.location))
        salvaged.size_bytes = opened.size_bytes
        file = cast(BinaryIO, opened)
        head = file.read(HEAD_BYTES)
        salvaged.compression = detect_compression(head)
        if salvaged.compression == "none":
            stream, advance_copy = file, advance
        else:
            stream, advance_copy = _inflate(file, salvaged, folder, advance), _ignore
        writer = stack.enter_context(open_partial_shard(folder, name, compression))
        _copy(stream, writer, salvaged, advance_copy)
        salvaged.record_count = writer.record_count
        is_damaged = salvaged.lost_count or salvaged.breaks or expected
        if not writer.record_count and expected != 0 and is_damaged:
            salvaged.problem = _failure_reason(head)
            writer.discard()
            return salvaged, None
        schema = survey_written(writer)
    salvaged.file = name
    return salvaged, ShardResult.from_writer(writer, schema, salvaged.size_bytes)


def _copy(
    stream: BinaryIO, writer: ShardWriter, salvaged: SalvagedShard, advance: Callable[[int], None]
) -> None:
    """Copy all intact frames."""
    reported = 0
    for finding in recover(stream):
        if isinstance(finding, IntactFrames):
            writer.write_piece(finding.frames, finding.lengths)
            reached = finding.offset + len(finding.frames)
        elif isinstance(finding, Repair):
            salvaged.add_repair(finding)
            reached = finding.offset
        else:
            salvaged.add_lost(finding)
            reached = finding.stop
        advance(max(0, reached - reported))
        reported = max(reported, reached)


def _inflate(
    file: BinaryIO, salvaged: SalvagedShard, folder: Location, advance: Callable[[int], None]
) -> BinaryIO:
    """Decompress a shard to an unnamed temporary file, which is seekable."""
    internal = folder / INTERNAL_FOLDER
    spool = ScratchFile(folder=internal if internal.store.can_rename else None)
    compression = cast(Literal["gzip", "zlib"], salvaged.compression)
    reported = 0
    for piece in inflate_damaged_stream(file, compression):
        if isinstance(piece, LostBytes):
            if len(salvaged.breaks) < MAX_LISTED:
                salvaged.breaks.append(piece)
            continue
        spool.append(piece)
        reached = file.tell()
        advance(max(0, reached - reported))
        reported = max(reported, reached)
    return cast(BinaryIO, spool)


def _ignore(_: int) -> None:
    """Report no progress: decompressing the file has reported all of it."""


def _failure_reason(head: bytes) -> str:
    """Explain from the first bytes of a file why no record was recovered."""
    if not head:
        return "it is empty"
    foreign = detect_other_format(head)
    if foreign is not None:
        return foreign.sentences.removesuffix(".")
    if not any(head):
        return "it begins with zeros and has no record with matching checksums"
    return "it has no record with matching checksums"
