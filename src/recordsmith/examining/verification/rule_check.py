"""Does every record keep the rules? Asked of a whole block, and of its halves where it does not.

A block whose counts (kinds, numbers of values, contents) keep all rules is good, without a look at
any record. Where they do not, the block is halved until the records are found that break them. So
what is good costs no Python per record, and what is bad some per bad record.

Without rules, they are learned from the shard itself: the kind that a feature has first is the kind
that it shall have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.examining.rules import SECTION_FIELDS, FeatureRule, Rules
from recordsmith.example import (
    BytesArray,
    ColumnDecoder,
    FeatureSpec,
    RaggedArray,
    decode_example,
)
from recordsmith.example.kernel.payloads import classify_many
from recordsmith.example.kernel.survey import FeatureSurvey
from recordsmith.example.payload import (
    KIND_NAMES,
    PAYLOAD_KINDS,
    PAYLOAD_WORDS,
    malformed_example,
)
from recordsmith.example.schema import MOST_FEATURES

MOST_COMPARED = 4096
"""The kinds of so many features of a shard are compared with those in other shards."""

_NUMBERS: dict[str, int] = {name: number for number, name in enumerate(PAYLOAD_KINDS)}


class RuleCheck:
    """Holds the records of one shard against rules, or against what came first in it.

    payload: what the records are; None as long as there was none.
    kinds: the kind of each feature, by section and name.
    picture_keys: features that hold pictures, as far as was seen.
    is_cut: whether there are so many that not all are compared with other shards.
    is_full: whether there are so many features that of some of them no kind is remembered.
    """

    def __init__(self, rules: Rules | None) -> None:
        self._rules = rules
        self.payload: str | None = None if rules is None else rules.payload
        self.kinds: dict[tuple[str, str], str] = {}
        self.picture_keys: set[str] = set()
        self.is_full = False
        self.is_cut = False
        self._contents: dict[str, npt.NDArray[np.int64]] = {}

    def look(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
    ) -> Iterator[CorruptDataError]:
        """What is wrong with the payloads buffer[starts[i]:starts[i] + lengths[i]]; `position`
        counts among them.
        """
        if not len(starts):
            return
        kinds = np.empty(len(starts), np.uint8)
        classify_many(buffer, starts, lengths, kinds)
        if self.payload is None:
            self.payload = _most(kinds)
        if self.payload not in SECTION_FIELDS:
            yield from self._foreign_payloads(kinds)
            return
        fits = kinds == _NUMBERS[self.payload]
        if self.payload == "SequenceExample":  # without lists it looks like an Example
            fits |= kinds == _NUMBERS["Example"]
        view = as_view(buffer)
        for row in np.flatnonzero(~fits).tolist():
            start = int(starts[row])
            payload = view[start : start + int(lengths[row])]
            error = _not_expected(payload, PAYLOAD_KINDS[kinds[row]], self.payload)
            error.position = row
            yield error
        rows = np.flatnonzero(fits)
        payload_kind: Any = self.payload
        for section, (number, is_lists) in SECTION_FIELDS[payload_kind].items():
            looked = _Section(self, section, number, is_lists, self._rules_of(section))
            yield from looked.judge(buffer, starts, lengths, rows)

    def _rules_of(self, section: str) -> Mapping[str, FeatureRule] | None:
        return None if self._rules is None else self._rules.sections.get(section, {})

    @property
    def knows_all(self) -> bool:
        """Whether a feature without a rule is wrong."""
        return self._rules is not None and self._rules.knows_all

    @property
    def kinds_agree(self) -> bool:
        """Whether a feature has one kind, also where no rule says which."""
        return self._rules is None or self._rules.kinds_agree

    def _foreign_payloads(self, kinds: npt.NDArray[np.uint8]) -> Iterator[CorruptDataError]:
        """Of what is no Example only the sort of message can be told."""
        for row in np.flatnonzero(kinds != _NUMBERS[str(self.payload)]).tolist():
            yield CorruptDataError(
                Defect.NOT_AN_EXAMPLE,
                f"the record is {PAYLOAD_WORDS[PAYLOAD_KINDS[kinds[row]]][0]}; those before it are "
                f"{PAYLOAD_WORDS[str(self.payload)][1]}.",
                position=row,
            )

    def let_go(self) -> None:
        """After the last record: keep what is compared with other shards, of the first features."""
        self._contents.clear()
        if len(self.kinds) > MOST_COMPARED:
            self.is_cut = self._rules is None
            self.kinds = {key: self.kinds[key] for key in sorted(self.kinds)[:MOST_COMPARED]}

    def note_contents(self, key: str, contents: Any) -> None:
        """Remember which features hold pictures: those of which most values begin like one."""
        if not any(contents) or (
            key not in self._contents and len(self._contents) >= MOST_FEATURES
        ):
            return
        seen = self._contents.setdefault(key, np.zeros(3, np.int64))
        seen += contents
        if seen[2] and 2 * seen[2] >= seen.sum():
            self.picture_keys.add(key)


class _Section:
    """The features of one section, in one block."""

    def __init__(
        self,
        check: RuleCheck,
        name: str,
        field: int,
        is_lists: bool,
        rules: Mapping[str, FeatureRule] | None,
    ) -> None:
        self._check = check
        self._name = name
        self._field = field
        self._is_lists = is_lists
        self._rules = rules

    def judge(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array, rows: Int64Array
    ) -> Iterator[CorruptDataError]:
        """What is wrong with some rows of the block."""
        waiting = [rows]
        while waiting:
            rows = waiting.pop()
            if not len(rows):
                continue
            survey = FeatureSurvey()
            done = survey.update(buffer, starts[rows], lengths[rows], self._field, self._is_lists)
            if done < len(rows):
                error = malformed_example()
                error.position = int(rows[done])
                yield error
                waiting += [rows[done + 1 :], rows[:done]]
                continue
            counted = {
                key.decode("utf-8", "surrogateescape"): tuple(values)
                for key, *values in survey.finish()
            }
            self._learn(counted)
            wrong = [*self._missing(counted, len(rows)), *self._wrong(counted)]
            if not wrong:
                self._note(counted)
                if self._rules:
                    yield from self._values(buffer, starts, lengths, rows)
            elif len(rows) > 1:
                waiting += [rows[len(rows) // 2 :], rows[: len(rows) // 2]]
            else:
                for error in wrong:
                    error.position = int(rows[0])
                    yield error

    def _learn(self, counted: Mapping[str, tuple[Any, ...]]) -> None:
        """The kind that most records have where a feature is first met is the one it shall have."""
        for key, (kinds, *_) in counted.items():
            if any(kinds[1:]) and (self._name, key) not in self._check.kinds:
                if len(self._check.kinds) >= MOST_FEATURES:
                    self._check.is_full = True
                    return
                most = max(range(1, len(kinds)), key=kinds.__getitem__)
                self._check.kinds[self._name, key] = KIND_NAMES[most]

    def _note(self, counted: Mapping[str, tuple[Any, ...]]) -> None:
        if self._name == "features":
            for key, (_, contents, *_) in counted.items():
                self._check.note_contents(key, contents)

    def _missing(
        self, counted: Mapping[str, tuple[Any, ...]], row_count: int
    ) -> Iterator[CorruptDataError]:
        for key, rule in (self._rules or {}).items():
            if rule.required and (key not in counted or counted[key][2] < row_count):
                yield CorruptDataError(
                    Defect.MISSING_FEATURE,
                    f"feature {key!r} is missing; every record must have it",
                    feature=key,
                )

    def _wrong(self, counted: Mapping[str, tuple[Any, ...]]) -> Iterator[CorruptDataError]:
        for key, (kinds, contents, _, lengths, *_) in counted.items():
            found = [name for name, count in zip(KIND_NAMES[1:], kinds[1:], strict=True) if count]
            rule = FeatureRule() if self._rules is None else self._rules.get(key)
            if rule is None:
                if self._check.knows_all:
                    yield CorruptDataError(
                        Defect.UNEXPECTED_FEATURE,
                        f"feature {key!r} is not in the schema, which names all that there are",
                        feature=key,
                    )
                continue
            kind = rule.kind
            why = "" if kind else ", as in other records"
            if kind is None and self._check.kinds_agree:
                kind = self._check.kinds.get((self._name, key))
            if kind is not None and any(name != kind for name in found):
                yield CorruptDataError(
                    Defect.FEATURE_KIND,
                    f"feature {key!r} is {' and '.join(found)}, expected {kind}{why}",
                    feature=key,
                )
                continue
            low, high = lengths
            if low < rule.min_values or (rule.max_values is not None and high > rule.max_values):
                yield CorruptDataError(
                    Defect.FEATURE_SHAPE,
                    f"feature {key!r} has {_in_words(low, high)}, expected {rule.count_in_words()}",
                    feature=key,
                )
            yield from _wrong_content(key, rule, contents)

    def _values(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array, rows: Int64Array
    ) -> Iterator[CorruptDataError]:
        rules = {key: rule for key, rule in (self._rules or {}).items() if rule.speaks_of_values}
        if not rules or self._name != "features":
            return
        kinds = {
            key: rule.kind or self._check.kinds.get((self._name, key))
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
        decoder.append(buffer, starts[rows], lengths[rows])
        for key, column in decoder.finish().items():
            assert isinstance(column, RaggedArray)
            for place, value in _bad_values(column.values, rules[key]):
                row = int(np.searchsorted(column.row_splits, place, side="right")) - 1
                yield CorruptDataError(
                    Defect.FEATURE_VALUE,
                    f"feature {key!r} has the value {value!r:.80}; expected "
                    f"{_expected(rules[key])}",
                    position=int(rows[row]),
                    feature=key,
                )


def _most(kinds: npt.NDArray[np.uint8]) -> str:
    """What most payloads are. Lists that are left out make an Example of a SequenceExample."""
    counts = np.bincount(kinds, minlength=len(PAYLOAD_KINDS))
    sequences, examples = counts[_NUMBERS["SequenceExample"]], counts[_NUMBERS["Example"]]
    if sequences + examples > len(kinds) // 2:
        return "SequenceExample" if 4 * sequences >= examples and sequences else "Example"
    return PAYLOAD_KINDS[int(counts.argmax())]


def _not_expected(payload: memoryview, found: Any, expected: str) -> CorruptDataError:
    if expected == "Example":
        try:
            decode_example(payload)
        except CorruptDataError as error:  # it knows whether it is another message, or broken
            return error
    return CorruptDataError(
        Defect.NOT_AN_EXAMPLE,
        f"the record is {PAYLOAD_WORDS[found][0]}; the others are {PAYLOAD_WORDS[expected][1]}.",
    )


def _wrong_content(key: str, rule: FeatureRule, contents: Any) -> Iterator[CorruptDataError]:
    raw, text, image = contents
    if rule.content == "image" and raw + text:
        yield CorruptDataError(
            Defect.UNREADABLE_IMAGE,
            f"feature {key!r} does not begin like a picture; expected one",
            feature=key,
        )
    if rule.content == "text" and raw + image:
        yield CorruptDataError(
            Defect.FEATURE_VALUE,
            f"feature {key!r} holds bytes that are no text; expected UTF-8 without control "
            "characters",
            feature=key,
        )


def _in_words(low: int, high: int) -> str:
    if low == high:
        return "1 value" if low == 1 else f"{low} values"
    return f"{low} to {high} values"


def _bad_values(values: Any, rule: FeatureRule) -> Iterator[tuple[int, Any]]:
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


def _expected(rule: FeatureRule) -> str:
    if rule.allowed is not None:
        shown = ", ".join(map(repr, rule.allowed[:8]))
        return f"one of {shown}" + (" …" if len(rule.allowed) > 8 else "")
    low = "" if rule.min_value is None else f"{rule.min_value:g} or more"
    high = "" if rule.max_value is None else f"{rule.max_value:g} or less"
    return " and ".join(filter(None, (low, high)))
