"""Recover the intact records of one damaged shard.

Skips what cannot be read or decompressed, searches for frames whose two checksums match, and writes
them byte for byte. Compressed shards, and those with very long frames, are read back.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import BinaryIO, Literal, cast

import numpy as np

from recordsmith.building import ShardResult, open_partial_shard, survey_written
from recordsmith.dataset import Shard, ShardWriter
from recordsmith.dataset.names import INTERNAL_FOLDER
from recordsmith.errors import accessing, located
from recordsmith.example import Schema, SchemaSurvey
from recordsmith.reshaping.salvaging.fault_tolerant_file import FaultTolerantFile
from recordsmith.reshaping.salvaging.salvage_report import SalvagedShard
from recordsmith.stores import Location
from recordsmith.stores.local.scratch import ScratchFile
from recordsmith.wire import (
    FRAME_BYTES,
    HEAD_BYTES,
    HEADER_BYTES,
    Compression,
    IntactFrames,
    LostBytes,
    Repair,
    detect_compression,
    detect_other_format,
    inflate_damaged_stream,
    recover,
    scan,
)
from recordsmith.wire.recovery import LONGEST_HELD_BYTES


class VerifiedFrames:
    """Collects the schema of written frames, as long as all can be held in memory."""

    def __init__(self) -> None:
        self._survey = SchemaSurvey()
        self._pieces = bytearray()  # of an incomplete frame
        self._is_active = True

    def add(self, whole: IntactFrames) -> None:
        """Add the next written piece."""
        if not self._is_active:
            return
        frames, lengths = whole.frames, whole.lengths
        count = len(lengths)
        if self._pieces or len(frames) != int(lengths.sum()) + FRAME_BYTES * count:
            self._add_piece(whole)
            return
        starts = np.cumsum(lengths + FRAME_BYTES) - lengths - (FRAME_BYTES - HEADER_BYTES)
        self._survey.update(frames, starts, lengths)

    def schema_of(self, record_count: int) -> Schema | None:
        """Return the schema if this number of records was seen, otherwise None."""
        schema = self._survey.finish()
        return schema if schema.record_count == record_count else None

    def _add_piece(self, whole: IntactFrames) -> None:
        if len(self._pieces) + len(whole.frames) > LONGEST_HELD_BYTES:
            self._stop()
            return
        self._pieces += whole.frames
        if not len(whole.lengths):
            return
        found = scan(self._pieces)
        if found.stop != len(self._pieces) or found.lengths.tolist() != whole.lengths.tolist():
            self._stop()
            return
        self._survey.update(self._pieces, found.starts, found.lengths)
        self._pieces = bytearray()

    def _stop(self) -> None:
        self._is_active = False
        self._pieces = bytearray()


class ShardRecovery:
    """Writes the intact records of damaged shards. Thread-safe."""

    def __init__(
        self, folder: Location, compression: Compression, advance: Callable[[int], None]
    ) -> None:
        """
        Args:
            folder: of the new dataset.
            compression: of its shards.
            advance: called with the number of bytes processed since the last call.
        """
        self._folder = folder
        self._compression = compression
        self._advance = advance

    def rewrite(self, shard: Shard, name: str) -> tuple[SalvagedShard, ShardResult | None]:
        """Write the intact records under a temporary name.

        Returns:
            The report, and the written shard; None if a damaged shard has no intact records.

        Raises:
            FileAccessError: the shard cannot be opened, read or written. Read errors of the disk
                are not raised: they count as lost data.
        """
        salvaged = SalvagedShard(
            str(shard.location),
            shard.split,
            expected_count=None if shard.entry is None else shard.entry.record_count,
        )
        return salvaged, self._rewrite(shard, salvaged, name)

    def _rewrite(self, shard: Shard, salvaged: SalvagedShard, name: str) -> ShardResult | None:
        location = shard.location
        with ExitStack() as stack:
            opened = stack.enter_context(shard.open_read())
            stack.enter_context(accessing(location))
            stack.enter_context(located(location))
            salvaged.size_bytes = opened.size_bytes
            tolerant = FaultTolerantFile(opened)
            file = cast(BinaryIO, tolerant)
            head = file.read(HEAD_BYTES)
            salvaged.compression = detect_compression(head)
            stream = file
            if salvaged.compression != "none":
                stream = self._inflated(file, salvaged)
            writer = stack.enter_context(open_partial_shard(self._folder, name, self._compression))
            verified = self._copy(stream, writer, salvaged, counted=stream is file)
            salvaged.add_unreadable(tolerant.unreadable)
            salvaged.record_count = writer.record_count
            is_damaged = salvaged.lost_count or salvaged.breaks or salvaged.expected_count
            if not writer.record_count and salvaged.expected_count != 0 and is_damaged:
                salvaged.problem = _failure_reason(head)
                writer.discard()
                return None
            is_verbatim = self._compression == "none"
            schema = verified.schema_of(writer.record_count) if is_verbatim else None
            if schema is None:
                schema = survey_written(writer)
        salvaged.file = name
        return ShardResult.from_writer(writer, schema, salvaged.size_bytes)

    def _copy(
        self, stream: BinaryIO, writer: ShardWriter, salvaged: SalvagedShard, *, counted: bool
    ) -> VerifiedFrames:
        """Copy all intact frames."""
        reported = 0
        verified = VerifiedFrames()
        for finding in recover(stream):
            if isinstance(finding, IntactFrames):
                writer.write_piece(finding.frames, finding.lengths)
                if self._compression == "none":
                    verified.add(finding)
                reached = finding.offset + len(finding.frames)
            elif isinstance(finding, Repair):
                salvaged.add_repair(finding)
                reached = finding.offset
            else:
                salvaged.add_lost(finding)
                reached = finding.stop
            self._advance(max(0, reached - reported) if counted else 0)
            reported = max(reported, reached)
        return verified

    def _inflated(self, file: BinaryIO, salvaged: SalvagedShard) -> BinaryIO:
        """Decompress a shard to an unnamed temporary file, which is seekable."""
        internal = self._folder / INTERNAL_FOLDER
        spool = ScratchFile(folder=internal if internal.store.can_rename else None)
        compression = cast(Literal["gzip", "zlib"], salvaged.compression)
        reported = 0
        for piece in inflate_damaged_stream(file, compression):
            if isinstance(piece, LostBytes):
                salvaged.breaks.append(piece)
                continue
            spool.append(piece)
            reached = file.tell()
            self._advance(max(0, reached - reported))
            reported = max(reported, reached)
        return cast(BinaryIO, spool)


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
