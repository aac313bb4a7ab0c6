"""Checks that the records have the features used by a condition and by edits.

Uses the schema from manifests, or else reads all records.
"""

from __future__ import annotations

from collections.abc import Callable

from recordsmith.dataset import ClassNames
from recordsmith.errors import located
from recordsmith.example import Schema, SchemaSurvey
from recordsmith.reshaping.inputs.input_records import InputRecords
from recordsmith.reshaping.resharding.reshard_options import ReshardOptions


def check_options(schema: Schema, options: ReshardOptions, class_names: ClassNames | None) -> None:
    """Check the condition and the edits against a schema.

    Raises:
        OptionError: no record has a feature, or it cannot be changed this way.
    """
    if options.where is not None:
        options.where.check(schema)
    if options.edits is not None:
        options.edits.check(schema, class_names)


def survey(records: InputRecords, number: int, advance: Callable[[int], None]) -> Schema:
    """Return the schema of input `number`.

    Args:
        records: of all inputs.
        number: of the input.
        advance: called with the number of bytes read since the last call.

    Raises:
        CorruptDataError: a record is damaged or cannot be parsed.
    """
    found = SchemaSurvey()
    if records.counts[number]:
        path = records.location(number)
        for block in records.shard(number).blocks():
            with located(path, block.position):
                found.update(block.buffer, block.starts, block.lengths)
            advance(len(block.frames()))
    return found.finish().packed()
