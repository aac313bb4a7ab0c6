"""Prove what was written: read it back, with every checksum."""

from __future__ import annotations

from recordsmith.dataset import ShardWriter
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example import Schema, SchemaSurvey


def read_back(writer: ShardWriter) -> Schema:
    """Prove what was written, every checksum, and count its features."""
    survey = SchemaSurvey()
    records = 0
    for block in writer.written_blocks():
        survey.update(block.buffer, block.starts, block.lengths)
        records += len(block)
    if records != writer.record_count:
        raise CorruptDataError(
            Defect.RECORD_COUNT,
            f"{writer.record_count} records were written, {records} came back; the disk or its "
            "file system is failing",
            path=writer.path,
        )
    return survey.finish()
