"""One damaged shard -> another with every whole record of it.

The file is read around what the disk cannot give, inflated around what cannot be decompressed, and
searched for frames that both checksums prove. These are written as they are; where the new shard is
compressed, or a frame is too long to be held, it is read back.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Literal, cast

from recordsmith.building import ShardResult, read_back, writing_partial
from recordsmith.dataset import Shard, ShardWriter
from recordsmith.errors import FileAccessError, located
from recordsmith.files import INTERNAL_FOLDER, accessing, open_file
from recordsmith.reshaping.patient_reading import PatientFile
from recordsmith.reshaping.proved_frames import ProvedFrames
from recordsmith.reshaping.salvage_report import SalvagedShard
from recordsmith.wire import (
    HEAD_BYTES,
    Compression,
    LostRange,
    Repair,
    Whole,
    describe_foreign,
    detect_compression,
    inflate_around_breaks,
    rescue,
)


class ShardRescue:
    """Writes what is whole in damaged shards. Safe to use from several threads."""

    def __init__(
        self, folder: Path, compression: Compression, advance: Callable[[int], None]
    ) -> None:
        """
        Args:
            folder: of the new dataset.
            compression: of its shards.
            advance: told how many more bytes of a damaged file are dealt with.
        """
        self._folder = folder
        self._compression = compression
        self._advance = advance

    def rewrite(self, shard: Shard, name: str) -> tuple[SalvagedShard, ShardResult | None]:
        """Write what is whole under a temporary name.

        Returns:
            What came of it, and what was written; None if that is nothing.

        Raises:
            FileAccessError: it cannot be written. That the shard cannot be read is part of the
                answer.
        """
        salvaged = SalvagedShard(
            shard.path,
            shard.split,
            expected_count=None if shard.entry is None else shard.entry.record_count,
        )
        try:
            return salvaged, self._rewrite(salvaged, name)
        except FileAccessError as error:
            if error.filename != os.fspath(shard.path):
                raise
            salvaged.record_count = 0
            salvaged.problem = str(error)
            return salvaged, None

    def _rewrite(self, salvaged: SalvagedShard, name: str) -> ShardResult | None:
        path = salvaged.path
        with ExitStack() as stack:
            opened = stack.enter_context(open_file(path))
            stack.enter_context(accessing(path))
            stack.enter_context(located(path))
            salvaged.size_bytes = os.fstat(opened.fileno()).st_size
            patient = PatientFile(opened)
            file = cast(BinaryIO, patient)
            head = file.read(HEAD_BYTES)
            salvaged.compression = detect_compression(head)
            stream = file
            if salvaged.compression != "none":
                stream = self._inflated(file, salvaged, stack)
            writer = stack.enter_context(writing_partial(self._folder, name, self._compression))
            proved = self._copy(stream, writer, salvaged, counted=stream is file)
            salvaged.add_unreadable(patient.unreadable)
            salvaged.record_count = writer.record_count
            if not writer.record_count and salvaged.expected_count != 0:
                salvaged.problem = _what_is_there(head)
                writer.discard()
                return None
            is_as_proved = self._compression == "none"
            schema = proved.schema_of(writer.record_count) if is_as_proved else None
            if schema is None:
                schema = read_back(writer)
        salvaged.file = name
        return ShardResult.of(writer, schema, salvaged.size_bytes)

    def _copy(
        self, stream: BinaryIO, writer: ShardWriter, salvaged: SalvagedShard, *, counted: bool
    ) -> ProvedFrames:
        """Everything whole, as it lies there."""
        told = 0
        proved = ProvedFrames()
        for finding in rescue(stream):
            if isinstance(finding, Whole):
                writer.write_piece(finding.frames, finding.lengths)
                if self._compression == "none":
                    proved.add(finding)
                reached = finding.offset + len(finding.frames)
            elif isinstance(finding, Repair):
                salvaged.add_repair(finding)
                reached = finding.offset
            else:
                salvaged.add_lost(finding)
                reached = finding.stop
            self._advance(max(0, reached - told) if counted else 0)
            told = max(told, reached)
        return proved

    def _inflated(self, file: BinaryIO, salvaged: SalvagedShard, stack: ExitStack) -> BinaryIO:
        """What a compressed shard holds, in a file without a name: any part of it may be wanted."""
        internal = self._folder / INTERNAL_FOLDER
        with accessing(internal, "write"):
            spool = tempfile.TemporaryFile(dir=internal)  # noqa: SIM115 - closed by the stack
        stack.enter_context(spool)
        compression = cast(Literal["gzip", "zlib"], salvaged.compression)
        told = 0
        for piece in inflate_around_breaks(file, compression):
            if isinstance(piece, LostRange):
                salvaged.breaks.append(piece)
                continue
            with accessing(internal, "write"):
                spool.write(piece)
            reached = file.tell()
            self._advance(max(0, reached - told))
            told = max(told, reached)
        with accessing(internal, "write"):
            spool.flush()
        return spool


def _what_is_there(head: bytes) -> str:
    """Why nothing was rescued, from the first bytes of the file."""
    if not head:
        return "the file has 0 bytes"
    foreign = describe_foreign(head)
    if foreign is not None:
        return foreign.sentences.removesuffix(".")
    if not any(head):
        return "it begins with zeros, and nowhere holds a record whose checksums are right"
    return "it nowhere holds a record whose checksums are right"
