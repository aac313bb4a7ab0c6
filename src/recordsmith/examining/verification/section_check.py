"""Checks the features of one section against their rules, many records at once.

A block whose counts (kinds, numbers of values, contents) satisfy all rules needs no check of single
records. Otherwise the block is halved until the records that break a rule are found. Good records
therefore cost no Python each.

The number of features counted at once is limited: blocks with more are halved too, and a single
record with more is checked in pieces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array, as_view
from recordsmith.errors import CorruptDataError, DataError, Defect
from recordsmith.examining.rules import FeatureRule, Rules
from recordsmith.examining.verification.record_parts import RecordParts
from recordsmith.examining.verification.shard_features import Counted, ShardFeatures
from recordsmith.example import (
    BytesArray,
    ColumnDecoder,
    FeatureSpec,
    RaggedArray,
)
from recordsmith.example.kernel.survey import FeatureSurvey
from recordsmith.example.payload import KIND_NAMES, decode_key, malformed_example_error
from recordsmith.example.schema import UNBOUNDED
from recordsmith.example.spans import delimited, have_many_entries, map_entries

COUNTED_AT_ONCE = 1 << 14
"""How many different features are counted at once; each takes about a kilobyte."""

_NO_RULE = FeatureRule()


class SectionCheck:
    """Checks the messages of one section against rules, or against earlier records."""

    def __init__(self, parts: RecordParts, rules: Rules | None, seen: ShardFeatures) -> None:
        self._parts = parts
        self._seen = seen
        self._rules = {} if rules is None else rules.sections.get(parts.section, {})
        self._default = _NO_RULE if rules is None else None  # for features without a rule
        self._knows_all = rules is not None and rules.knows_all
        self._kinds_agree = rules is None or rules.kinds_agree

    def errors(self) -> Iterator[DataError]:
        """Yield the defects; the record number of an error is that of the message."""
        parts = self._parts
        spans = parts.buffer, parts.starts, parts.lengths
        is_wide = have_many_entries(*spans, parts.field, COUNTED_AT_ONCE)
        waiting = [np.flatnonzero(~is_wide)]
        while waiting:
            rows = waiting.pop()
            if not len(rows):
                continue
            survey, done = self._count(rows)
            if done < len(rows):
                yield _placed(malformed_example_error(), rows[done])
                waiting += [rows[done + 1 :], rows[:done]]
            elif survey.settle() and self._are_good(counted := _finish(survey), len(rows)):
                self._seen.add_images(parts.section, counted)
                yield from self._wrong_values(rows)
            elif len(rows) > 1:
                waiting += [rows[len(rows) // 2 :], rows[: len(rows) // 2]]
            else:
                for error in self._wrong(counted, 1):
                    yield _placed(error, rows[0])
        for row in np.flatnonzero(is_wide).tolist():
            for error in self._wrong_in_pieces(row):
                yield _placed(error, row)

    def _count(self, rows: Int64Array) -> tuple[FeatureSurvey, int]:
        """Count the features of some messages; also return how many precede a malformed one."""
        parts = self._parts
        survey = FeatureSurvey(COUNTED_AT_ONCE, UNBOUNDED)
        spans = parts.starts[rows], parts.lengths[rows]
        return survey, survey.update(parts.buffer, *spans, parts.field, parts.is_lists)

    def _are_good(self, counted: Counted, count: int) -> bool:
        self._seen.add_kinds(self._parts.section, counted)
        return next(self._wrong(counted, count), None) is None

    def _wrong(self, counted: Counted, count: int) -> Iterator[DataError]:
        """Yield the defects in the counts of `count` messages."""
        full = {key for key, (_, _, present, *_) in counted.items() if present == count}
        yield from self._missing(full)
        for key, about in counted.items():
            yield from self._wrong_feature(key, *about)

    def _missing(self, full: Collection[str]) -> Iterator[DataError]:
        """Yield missing features; `full` holds the features that all messages have."""
        for key, rule in self._rules.items():
            if rule.required and key not in full:
                yield CorruptDataError(
                    Defect.MISSING_FEATURE,
                    f"feature {key!r} is missing; it is required in every {self._parts.word}",
                    feature=key,
                )

    def _wrong_feature(
        self, key: str, kinds: Any, contents: Any, _: int, lengths: Any, *__: Any
    ) -> Iterator[DataError]:
        rule = self._rules.get(key, self._default)
        if rule is None:
            if self._knows_all:
                yield CorruptDataError(
                    Defect.UNEXPECTED_FEATURE,
                    f"feature {key!r} is not in the schema",
                    feature=key,
                )
            return
        kind = rule.kind
        source = "" if kind else ", as in other records"
        if kind is None and self._kinds_agree:
            kind = self._seen.kinds.get((self._parts.section, key))
        if kind is not None and sum(kinds[1:]) != kinds[KIND_NAMES.index(kind)]:
            found = [name for name, count in zip(KIND_NAMES[1:], kinds[1:], strict=True) if count]
            yield CorruptDataError(
                Defect.FEATURE_KIND,
                f"feature {key!r} has the wrong kind",
                found=" and ".join(found),
                expected=f"{kind}{source}",
                feature=key,
            )
            return
        low, high = lengths
        if low < rule.min_values or (rule.max_values is not None and high > rule.max_values):
            yield CorruptDataError(
                Defect.FEATURE_SHAPE,
                f"feature {key!r} has the wrong number of values",
                found=describe_range(low, high),
                expected=rule.describe_count(),
                feature=key,
            )
        yield from wrong_content(key, rule, contents)

    def _wrong_values(self, rows: Int64Array) -> Iterator[DataError]:
        """Yield values of these messages that rules do not allow."""
        parts = self._parts
        rules = {key: rule for key, rule in self._rules.items() if rule.restricts_values}
        if not rules or not parts.are_examples:
            return
        kinds = {
            key: rule.kind or self._seen.kinds.get((parts.section, key))
            for key, rule in rules.items()
        }
        specs: Any = {
            key: FeatureSpec(kind=kind, shape="ragged")  # type: ignore[arg-type]
            for key, kind in kinds.items()
            if kind is not None
        }
        if not specs:
            return
        decoder = ColumnDecoder(specs)
        decoder.append(parts.buffer, parts.starts[rows], parts.lengths[rows])
        for key, column in decoder.finish().items():
            assert isinstance(column, RaggedArray)
            for place, value in bad_values(column.values, rules[key]):
                row = int(np.searchsorted(column.row_splits, place, side="right")) - 1
                error = CorruptDataError(
                    Defect.FEATURE_VALUE,
                    f"feature {key!r} has a value that is not allowed",
                    found=f"{value!r:.80}",
                    expected=expected_values(rules[key]),
                    feature=key,
                )
                yield _placed(error, rows[row])

    def _wrong_in_pieces(self, row: int) -> Iterator[DataError]:
        """Check a message with very many features, COUNTED_AT_ONCE of them at a time."""
        parts = self._parts
        required = {key for key, rule in self._rules.items() if rule.required}
        is_good = True
        for piece in _pieces(parts, row):
            survey = FeatureSurvey()
            span = np.zeros(1, np.int64), np.full(1, len(piece), np.int64)
            survey.update(piece, *span, parts.field, parts.is_lists)
            counted = _finish(survey)
            required -= counted.keys()
            self._seen.add_kinds(parts.section, counted)
            for key, about in counted.items():
                for error in self._wrong_feature(key, *about):
                    is_good = False
                    yield error
            if is_good:
                self._seen.add_images(parts.section, counted)
        for error in self._missing(self._rules.keys() - required):
            is_good = False
            yield error
        if is_good:
            yield from self._wrong_values(np.array([row]))


def _placed(error: DataError, row: int) -> DataError:
    error.record = int(row)
    return error


def _finish(survey: FeatureSurvey) -> Counted:
    return {decode_key(key): tuple(counted) for key, *counted in survey.finish()}


def _pieces(parts: RecordParts, row: int) -> Iterator[bytes]:
    """Split a message into messages with COUNTED_AT_ONCE of its features each, in order."""
    view = as_view(parts.buffer)
    span = parts.starts[row : row + 1], parts.lengths[row : row + 1]
    found = map_entries(parts.buffer, *span, parts.field)
    for at in range(0, len(found.starts), COUNTED_AT_ONCE):
        piece = slice(at, at + COUNTED_AT_ONCE)
        spans = zip(found.starts[piece].tolist(), found.lengths[piece].tolist(), strict=True)
        entries = b"".join(delimited(1, view[start : start + length]) for start, length in spans)
        yield delimited(parts.field, entries)


def wrong_content(key: str, rule: FeatureRule, contents: Any) -> Iterator[DataError]:
    raw, text, image = contents
    if rule.content == "image" and raw + text:
        yield CorruptDataError(
            Defect.UNREADABLE_IMAGE,
            f"feature {key!r} does not hold an image",
            expected="the first bytes of a known image format",
            feature=key,
        )
    if rule.content == "text" and raw + image:
        yield CorruptDataError(
            Defect.FEATURE_VALUE,
            f"feature {key!r} holds bytes that are not text",
            expected="UTF-8 without control characters",
            feature=key,
        )


def describe_range(low: int, high: int) -> str:
    if low == high:
        return "1 value" if low == 1 else f"{low} values"
    return f"{low} to {high} values"


def bad_values(values: Any, rule: FeatureRule) -> Iterator[tuple[int, Any]]:
    if isinstance(values, BytesArray):
        allowed = {
            value.encode() if isinstance(value, str) else value for value in rule.allowed or ()
        }
        if rule.allowed is not None:
            for place, value in enumerate(values):
                if value not in allowed:
                    yield place, value
        return
    bad = np.zeros(len(values), bool)
    if rule.min_value is not None:
        bad |= ~(values >= rule.min_value)
    if rule.max_value is not None:
        bad |= ~(values <= rule.max_value)
    if rule.allowed is not None:
        bad |= ~np.isin(values, np.asarray(rule.allowed, values.dtype))
    for place in np.flatnonzero(bad).tolist():
        yield place, values[place].item()


def expected_values(rule: FeatureRule) -> str:
    if rule.allowed is not None:
        shown = ", ".join(map(repr, rule.allowed[:8]))
        return f"one of {shown}" + (" …" if len(rule.allowed) > 8 else "")
    low = "" if rule.min_value is None else f"{rule.min_value:g} or more"
    high = "" if rule.max_value is None else f"{rule.max_value:g} or less"
    return " and ".join(filter(None, (low, high)))
