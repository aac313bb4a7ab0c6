"""Which records are meant? Answered by an expression over their features.

Only the features that are named are decoded, a whole block of records at a time, and bytes are not
even copied. Records may be Examples, or SequenceExamples, of which the context is asked.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example import (
    ColumnDecoder,
    FeatureSpec,
    Schema,
    SchemaSurvey,
    classify,
    context_payload,
)
from recordsmith.reshaping.conditions import Condition
from recordsmith.reshaping.where_text import parse_condition, unknown_feature
from recordsmith.wire import RecordBlock

_LOOKED_AT = 100


class Where:
    """A condition on the features of a record: a `Selection`. Threads may share it."""

    def __init__(self, condition: Condition) -> None:
        self._condition = condition
        self.keys = tuple(sorted(set(condition.keys())))
        """The features it asks for."""
        self._specs = dict.fromkeys(self.keys, FeatureSpec(shape="ragged"))
        self._unseen = set(self.keys)
        self._known: tuple[str, ...] | None = None  # the features of the first records asked

    def chosen(self, block: RecordBlock) -> npt.NDArray[np.bool_]:
        """For which records of a block it holds: bool, (len(block),).

        Raises:
            CorruptDataError: a payload cannot be understood; its position is that in the stream.
            OptionError: a feature is of a kind that cannot be compared like this.
        """
        if self._known is None and len(block):
            self._known = _features_of(block)
        try:
            return self._holds(block.buffer, block.starts, block.lengths)
        except CorruptDataError as error:
            if error.position is not None:
                error.position += block.position
            raise

    def check(self, schema: Schema) -> None:
        """Compare with the schema of all records, before any is read.

        Raises:
            OptionError: it asks for a feature that no record has, or for values of another kind.
        """
        if schema.payload in ("none", "mixed"):
            return
        known = schema.sections.get("context", schema.features)
        for key in self.keys:
            if key not in known and schema.is_complete:
                raise unknown_feature(key, known)
        for comparison in self._condition.comparisons():
            if comparison.key in known:
                comparison.check_kind(known[comparison.key].kind)

    def check_seen(self) -> None:
        """After all records were asked: each feature was seen.

        Raises:
            OptionError: no record had a value of one of them.
        """
        if self._known is not None:
            for key in self.keys:
                if key in self._unseen:
                    raise unknown_feature(key, self._known)

    def to_json(self) -> str:
        """The expression: the same for all spellings of it."""
        return str(self._condition)

    def __str__(self) -> str:
        return str(self._condition)

    def __repr__(self) -> str:
        return f"Where({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Where) and self._condition == other._condition

    def __hash__(self) -> int:
        return hash(self._condition)

    def _holds(
        self,
        buffer: BytesLike,
        starts: Int64Array,
        lengths: Int64Array,
        *,
        may_be_sequences: bool = True,
    ) -> npt.NDArray[np.bool_]:
        decoder = ColumnDecoder(self._specs, borrowed=self.keys)
        try:
            decoder.append(buffer, starts, lengths)
        except CorruptDataError as error:
            if error.defect is Defect.FEATURE_KIND and len(starts) > 1:
                return self._hold_one_by_one(buffer, starts, lengths)
            if error.defect is Defect.NOT_AN_EXAMPLE and may_be_sequences:
                contexts = _contexts(buffer, starts, lengths)
                if contexts is not None:
                    return self._holds(*contexts, may_be_sequences=False)
            raise
        columns = decoder.finish(all_there=False)
        self._unseen.difference_update(columns)
        return self._condition.holds(columns, len(starts))  # type: ignore[arg-type]

    def _hold_one_by_one(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
    ) -> npt.NDArray[np.bool_]:
        """A feature has several kinds among these: where blocks end shall not matter."""
        held = np.zeros(len(starts), np.bool_)
        for row in range(len(starts)):
            try:
                held[row] = self._holds(buffer, starts[row : row + 1], lengths[row : row + 1])[0]
            except CorruptDataError as error:
                error.position = row
                raise
        return held


def parse_where(text: str) -> Where:
    """Read a where expression.

    Such as `image/class/label in (1, 2)` or `image/height >= 256 and not has(image/object/mask)`.
    A comparison holds for a record if it does for any value of the feature; for a record without
    the feature it does not. `all(feature)` asks that each value is so, `len(feature)` is their
    number. Names that hold other signs than letters, digits and `_ / . : -` stand in backticks,
    text in quotes.

    Raises:
        OptionError: it cannot be understood; says where, and what was expected.
    """
    return Where(parse_condition(text))


def _features_of(block: RecordBlock) -> tuple[str, ...]:
    """The names of the features that some of these records have."""
    survey = SchemaSurvey()
    with suppress(CorruptDataError):
        survey.update(block.buffer, block.starts[:_LOOKED_AT], block.lengths[:_LOOKED_AT])
    schema = survey.finish()
    return tuple(schema.sections.get("context", schema.features))


def _contexts(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> tuple[bytes, Int64Array, Int64Array] | None:
    """The contexts of SequenceExamples as Examples; None if there are other payloads."""
    view = as_view(buffer)
    pieces = []
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        payload = view[start : start + length]
        kind = classify(payload)
        if kind not in ("Example", "SequenceExample"):
            return None
        pieces.append(payload if kind == "Example" else context_payload(payload))
    sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
    return b"".join(pieces), np.cumsum(sizes) - sizes, sizes
