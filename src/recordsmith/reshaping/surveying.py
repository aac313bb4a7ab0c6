"""Do the records have the features that a condition and a change speak of?

Answered from the schema before anything is written; where no manifest tells it, by a pass over all
records. A Selection or Change of a caller's own need not be able to answer.
"""

from __future__ import annotations

from collections.abc import Callable

from recordsmith.dataset import ClassNames
from recordsmith.errors import located
from recordsmith.example import Schema, SchemaSurvey
from recordsmith.reshaping.contract import Selection
from recordsmith.reshaping.edits import Edits
from recordsmith.reshaping.options import ReshardOptions
from recordsmith.reshaping.records import Records
from recordsmith.reshaping.where import Where


def check_with(schema: Schema, options: ReshardOptions, class_names: ClassNames | None) -> None:
    """
    Raises:
        OptionError: no record has a feature that is asked for, or one cannot be changed like this.
    """
    if isinstance(options.where, Where):
        options.where.check(schema)
    if isinstance(options.change, Edits):
        options.change.check(schema, class_names)


def check_seen(where: Selection) -> None:
    """After all records were asked.

    Raises:
        OptionError: none had a feature that was asked for.
    """
    if isinstance(where, Where):
        where.check_seen()


def survey(records: Records, number: int, advance: Callable[[int], None]) -> Schema:
    """The schema of input `number`.

    Args:
        advance: told how many more bytes are read.

    Raises:
        CorruptDataError: a record is damaged, or cannot be understood.
    """
    found = SchemaSurvey()
    if records.counts[number]:
        path = records.path(number)
        for block in records.shard(number).blocks():
            with located(path, block.position):
                found.update(block.buffer, block.starts, block.lengths)
            advance(len(block.frames()))
    return found.finish().packed()
