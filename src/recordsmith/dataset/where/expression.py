"""Selection of records by an expression over their features.

Decodes only the features in the expression, a block of records at a time, without copying bytes.
Of SequenceExamples, the context and the values of all steps of feature lists are used.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import numpy.typing as npt

from recordsmith.dataset.where.conditions import Columns, Condition
from recordsmith.dataset.where.parser import parse_condition, unknown_feature
from recordsmith.format.example import (
    ColumnDecoder,
    FeatureSpec,
    Schema,
    SchemaSurvey,
)
from recordsmith.format.wire import RecordBlock
from recordsmith.support.buffers import BytesLike, Int64Array
from recordsmith.support.errors import DataError, Defect

_SAMPLED = 100


class Where:
    """A condition on the features of a record: a `Selection`. Thread-safe."""

    def __init__(self, condition: Condition, text: str) -> None:
        self._condition = condition
        self._text = text
        self.keys = tuple(sorted({part.key for part in condition.comparisons()}))
        """The features in the expression."""
        self._specs = dict.fromkeys(self.keys, FeatureSpec(shape="ragged"))
        self._unseen = set(self.keys)
        self._known: tuple[str, ...] | None = None  # the features of the first records

    def matches(self, block: RecordBlock) -> npt.NDArray[np.bool_]:
        """Return whether each record of a block matches: bool, (len(block),).

        Raises:
            CorruptDataError: a payload cannot be parsed; `record` counts from the stream's start.
            OptionError: a feature has a kind that cannot be compared this way.
        """
        if self._known is None and len(block):
            self._known = _feature_spans(block)
        try:
            return self._holds(block.buffer, block.starts, block.lengths)
        except DataError as error:
            if error.record is not None:
                error.record += block.position
            raise

    def holds(self, columns: Columns, row_count: int) -> npt.NDArray[np.bool_]:
        """Return whether each row of the columns of `keys` matches: bool, (row_count,)."""
        self._unseen.difference_update(columns)
        return self._condition.evaluate(columns, row_count)

    def check(self, schema: Schema) -> None:
        """Raise OptionError if, by the schema, no record has a feature, or it has another kind."""
        if schema.payload in ("none", "mixed"):
            return
        known = schema.columns
        for key in self.keys:
            if key not in known and schema.is_complete:
                raise unknown_feature(key, known)
        for comparison in self._condition.comparisons():
            if comparison.key in known:
                comparison.check_kind(known[comparison.key].kind)

    def check_features_found(self) -> None:
        """Raise OptionError if none of all records, now evaluated, had a value of a feature."""
        if self._known is not None:
            for key in self.keys:
                if key in self._unseen and key not in self._known:
                    raise unknown_feature(key, self._known)

    def to_json(self) -> str:
        """Return the expression in a normal form."""
        return self._text

    __str__ = to_json

    def __repr__(self) -> str:
        return f"Where({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Where) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def _holds(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
    ) -> npt.NDArray[np.bool_]:
        decoder = ColumnDecoder(self._specs, borrowed=self.keys, with_lists=True)
        try:
            decoder.append(buffer, starts, lengths)
        except DataError as error:
            if error.defect is Defect.FEATURE_KIND and len(starts) > 1:
                return self._holds_one_by_one(buffer, starts, lengths)
            raise
        return self.holds(decoder.finish(is_strict=False), len(starts))  # type: ignore[arg-type]

    def _holds_one_by_one(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
    ) -> npt.NDArray[np.bool_]:
        """Evaluate single records, for features with several kinds in one block."""
        held = np.zeros(len(starts), np.bool_)
        for row in range(len(starts)):
            try:
                held[row] = self._holds(buffer, starts[row : row + 1], lengths[row : row + 1])[0]
            except DataError as error:
                error.record = row
                raise
        return held


def parse_where(text: str) -> Where:
    """Parse a where expression, in Python's grammar.

    Such as `image/class/label in (1, 2)` or `256 <= image/height < 512 and not has(image/mask)`.
    A comparison is true for a record if it is true for any value of the feature, and false if the
    feature is missing. `all(feature)` requires all values, `len(feature)` is their number. The
    values of a feature list of a SequenceExample are those of all steps. Write text in quotes, and
    names with characters other than letters, digits and `_ / . : -` in backticks.

    Raises:
        OptionError: the expression is invalid; the excerpt shows the place.
    """
    return Where(*parse_condition(text))


def _feature_spans(block: RecordBlock) -> tuple[str, ...]:
    """Return the names of the features of the first records."""
    survey = SchemaSurvey()
    with suppress(DataError):
        survey.update(block.buffer, block.starts[:_SAMPLED], block.lengths[:_SAMPLED])
    schema = survey.finish()
    return tuple(schema.columns)
