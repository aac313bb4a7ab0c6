"""Checks the contents of the records of a shard: message types, features and images.

Records are checked many at once. A block whose counts (kinds, numbers of values, contents) satisfy
all rules needs no check of single records; otherwise it is halved until the records that break a
rule are found. Without rules, the first records of the shard define them: a feature must keep the
kind it has first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.checking.rules import SECTION_FIELDS, FeatureRule, RulePayload, Rules
from recordsmith.checking.verification import verify_report as report
from recordsmith.checking.verification.episode_check import episode_errors
from recordsmith.checking.verification.image_check import (
    USUAL_KEYS,
    check_example_images,
    needed_features,
)
from recordsmith.checking.verification.verify_report import ShardFindings
from recordsmith.format.example import (
    BytesArray,
    ColumnDecoder,
    Features,
    FeatureSpec,
    RaggedArray,
    SequenceExample,
    decode_example,
    decode_payload,
)
from recordsmith.format.example.kernel.payloads import classify_many
from recordsmith.format.example.kernel.survey import FeatureSurvey
from recordsmith.format.example.keys import has_value_per_object, object_count_key
from recordsmith.format.example.payload import (
    KIND_NAMES,
    PAYLOAD_KINDS,
    decode_key,
    malformed_example_error,
)
from recordsmith.format.example.schema import UNBOUNDED
from recordsmith.format.example.serialized_tensor import TensorSchema
from recordsmith.format.example.spans import have_many_entries, select_features
from recordsmith.format.wire import HEADER_BYTES, RecordBlock
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import (
    PAYLOAD_NAMES,
    CorruptDataError,
    DataError,
    Defect,
    MissingExtraError,
    RecordsmithError,
)

MAX_FEATURES = 1 << 14
"""How many features of a record are counted, at about a kilobyte each; records with more are not
checked. Also of how many features of a shard the kinds are compared.
"""

_PIECES = 4  # of a block, per thread: images differ in size
_NO_RULE = FeatureRule()
_NUMBERS: dict[str, int] = {name: number for number, name in enumerate(PAYLOAD_KINDS)}

Counted: TypeAlias = Mapping[str, tuple[Any, ...]]
"""The result of a FeatureSurvey by name: kinds, contents, present, lengths, steps and others."""


@dataclass
class PayloadSummary:
    """What is compared between the shards of a dataset, and what was not checked in one.

    payload: the message type of its records; None without records.
    kinds: the kind of each feature, by section and name.
    has_more: whether there are more features, whose kinds are not known.
    wide_count: number of records that have too many features to be checked.
    is_cut_short: whether the check stopped at the limit of defects.
    """

    payload: str | None = None
    kinds: dict[tuple[str, str], str] = field(default_factory=dict)
    has_more: bool = False
    wide_count: int = 0
    is_cut_short: bool = False


class PayloadCheck:
    """Checks the payloads of one shard."""

    def __init__(
        self,
        rules: Rules | None,
        advance: Callable[[int], None],
        pool: ThreadPoolExecutor | None,
        thread_count: int,
    ) -> None:
        """`pool` decodes images; None skips them."""
        self.summary = PayloadSummary(None if rules is None else rules.payload)
        self._rules = rules
        self._advance = advance
        self._pool = pool
        self._thread_count = thread_count
        self._error_count = 0
        self._contents: dict[str, npt.NDArray[np.int64]] = {}  # raw, text and images by feature

    def check_block(self, block: RecordBlock, findings: ShardFindings) -> None:
        """Check some records. Findings without places are cut short at the limit of defects."""
        if self.summary.is_cut_short or not len(block):
            return
        errors = []
        for error in self._payload_errors(block):
            errors.append(error)
            count = self._error_count + len(errors)
            if findings.places is None and count >= report.MAX_DEFECTS_PER_SHARD:
                self.summary.is_cut_short = True
                break
        else:
            bad = {error.record for error in errors}
            rows = [row for row in np.flatnonzero(block.lengths).tolist() if row not in bad]
            for count, image_errors in self._images(block, rows):
                findings.image_count += count
                errors += image_errors
        errors.sort(key=lambda error: error.record or 0)
        for error in errors:
            row = error.record or 0
            error.record = block.position + row
            error.offset = block.offset + int(block.starts[row]) - HEADER_BYTES
        self._error_count += len(errors)
        findings.add(errors)

    def _payload_errors(self, block: RecordBlock) -> Iterator[DataError]:
        """Yield the defects of payloads; the record number of an error is the row of the block."""
        kinds = np.empty(len(block), np.uint8)
        classify_many(block.buffer, block.starts, block.lengths, kinds)
        if self.summary.payload is None:
            has_data = block.lengths > 0  # an empty payload is valid for every type
            self.summary.payload = _most_common(kinds[has_data] if has_data.any() else kinds)
        payload: Any = self.summary.payload
        fits = (kinds == _NUMBERS[payload]) | (block.lengths == 0)
        if payload == "ELWC":  # lists without values may look like any other message
            return
        if payload == "SequenceExample":  # without lists it looks like an Example
            fits |= kinds == _NUMBERS["Example"]
        for row in np.flatnonzero(~fits).tolist():
            error = _type_error(_payload(block, row), PAYLOAD_KINDS[kinds[row]], payload)
            yield _with_row(error, row)
        for section in SECTION_FIELDS.get(payload, ()):
            for error in self._section_errors(payload, section, block, np.flatnonzero(fits)):
                fits[error.record] = False
                yield error
        yield from self._episode_errors(block, np.flatnonzero(fits))
        yield from self._object_errors(block, np.flatnonzero(fits))

    def _episode_errors(self, block: RecordBlock, rows: Int64Array) -> Iterator[DataError]:
        """Yield the defects of episodes, with their rows; rules of users are not about them."""
        if self._pool is None:
            return
        is_sequence = self.summary.payload == "SequenceExample"
        steps = "feature_lists" if is_sequence else "features"
        kinds: Any = {
            key: kind for (section, key), kind in self.summary.kinds.items() if section == steps
        }
        spans = block.starts[rows], block.lengths[rows]
        with suppress(DataError):  # kinds that rules allow to differ
            for error in episode_errors(kinds, block.buffer, *spans, is_sequence=is_sequence):
                yield _with_row(error, rows[error.record])

    def _object_errors(self, block: RecordBlock, rows: Int64Array) -> Iterator[DataError]:
        """Yield records whose objects have different numbers of values, which no loader reads."""
        if self._pool is None or self.summary.payload != "Example":
            return
        specs: Any = {
            key: FeatureSpec(kind, "ragged")  # type: ignore[arg-type]
            for (_, key), kind in self.summary.kinds.items()
            if has_value_per_object(key)
        }
        if (count_key := object_count_key(specs)) is None:
            return
        decoder = ColumnDecoder(specs)
        try:
            decoder.append(block.buffer, block.starts[rows], block.lengths[rows])
        except DataError:  # kinds that rules allow to differ
            return
        columns: Any = decoder.finish()
        counts = columns[count_key].lengths
        for key, column in columns.items():
            for place in np.flatnonzero((column.lengths != counts) & (column.lengths > 0)).tolist():
                error = CorruptDataError(
                    Defect.FEATURE_SHAPE,
                    f"feature {key!r} has the wrong number of values",
                    found=str(column.lengths[place]),
                    expected=f"{counts[place]}, as {count_key!r} has: one for each object",
                    feature=key,
                )
                yield _with_row(error, rows[place])

    def _section_errors(
        self, payload: RulePayload, section: str, block: RecordBlock, rows: Int64Array
    ) -> Iterator[DataError]:
        field, is_lists = SECTION_FIELDS[payload][section]
        buffer, starts, lengths = block.buffer, block.starts, block.lengths
        is_wide = have_many_entries(buffer, starts[rows], lengths[rows], field, MAX_FEATURES)
        self.summary.wide_count += int(np.count_nonzero(is_wide))
        waiting = [rows[~is_wide]]
        while waiting:
            rows = waiting.pop()
            if not len(rows):
                continue
            survey = FeatureSurvey(MAX_FEATURES, UNBOUNDED)
            done = survey.update(buffer, starts[rows], lengths[rows], field, is_lists)
            if done < len(rows):
                yield _with_row(malformed_example_error(), rows[done])
                waiting += [rows[done + 1 :], rows[:done]]
                continue
            if survey.settle():
                counted = {decode_key(key): tuple(about) for key, *about in survey.finish()}
                self._remember_kinds(section, counted)
                errors = self._count_errors(section, counted, len(rows))
                first = next(errors, None)
                if first is None:
                    self._remember_contents(counted)
                    yield from self._value_errors(payload, section, block, rows)
                    continue
                if len(rows) == 1:
                    yield from (_with_row(error, rows[0]) for error in (first, *errors))
                    continue
            waiting += [rows[len(rows) // 2 :], rows[: len(rows) // 2]]

    def _remember_kinds(self, section: str, counted: Counted) -> None:
        """Set the expected kind of new features: the most common one where they first occur."""
        known = self.summary.kinds
        for key, (kinds, *_) in counted.items():
            if any(kinds[1:]) and (section, key) not in known:
                if len(known) >= MAX_FEATURES:
                    self.summary.has_more = True
                    return
                most = max(range(1, len(kinds)), key=kinds.__getitem__)
                known[section, key] = KIND_NAMES[most]

    def _remember_contents(self, counted: Counted) -> None:
        for key, (_, contents, *_) in counted.items():
            if any(contents) and (key in self._contents or len(self._contents) < MAX_FEATURES):
                seen = self._contents.setdefault(key, np.zeros(3, np.int64))
                seen += contents

    def _count_errors(self, section: str, counted: Counted, count: int) -> Iterator[DataError]:
        rules = {} if self._rules is None else self._rules.sections.get(section, {})
        for key, rule in rules.items():
            if rule.required and (key not in counted or counted[key][2] < count):
                problem = f"feature {key!r} is missing; it is required in every record"
                yield CorruptDataError(Defect.MISSING_FEATURE, problem, feature=key)
        for key, about in counted.items():
            if key in rules or self._rules is None:
                yield from self._feature_errors(section, key, rules.get(key, _NO_RULE), about)
            elif self._rules.knows_all:
                problem = f"feature {key!r} is not in the schema"
                yield CorruptDataError(Defect.UNEXPECTED_FEATURE, problem, feature=key)

    def _feature_errors(
        self, section: str, key: str, rule: FeatureRule, about: tuple[Any, ...]
    ) -> Iterator[DataError]:
        kinds, (raw, text, image), _, (low, high), _, _, tensors = about
        kind: str | None = rule.kind
        source = ""
        if kind is None and (self._rules is None or self._rules.kinds_agree):
            kind, source = self.summary.kinds.get((section, key)), ", as in other records"
        if kind is not None and sum(kinds[1:]) != kinds[KIND_NAMES.index(kind)]:
            names = [name for name, count in zip(KIND_NAMES[1:], kinds[1:], strict=True) if count]
            yield CorruptDataError(
                Defect.FEATURE_KIND,
                f"feature {key!r} has the wrong kind",
                found=" and ".join(names),
                expected=f"{kind}{source}",
                feature=key,
            )
            return
        if low < rule.min_values or (rule.max_values is not None and high > rule.max_values):
            number = f"{low} to {high} values" if low < high else f"{low} value{'s' * (low != 1)}"
            yield CorruptDataError(
                Defect.FEATURE_SHAPE,
                f"feature {key!r} has the wrong number of values",
                found=number,
                expected=rule.describe_count(),
                feature=key,
            )
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
        if rule.content == "tensor" and raw + text + image:
            found = TensorSchema.of_counts(*tensors) if tensors and not text + image else None
            if found is None or not found.is_of(rule.tensor):
                yield CorruptDataError(
                    Defect.FEATURE_VALUE,
                    f"feature {key!r} does not hold the serialised tensor",
                    found=str(found or "other bytes"),
                    expected=str(rule.tensor or "a value of tf.io.serialize_tensor"),
                    feature=key,
                )

    def _value_errors(
        self, payload: RulePayload, section: str, block: RecordBlock, rows: Int64Array
    ) -> Iterator[DataError]:
        if self._rules is None or payload != "Example":
            return
        rules = {
            key: (rule, kind)
            for key, rule in self._rules.sections.get(section, {}).items()
            if rule.restricts_values
            and (kind := rule.kind or self.summary.kinds.get((section, key))) is not None
        }
        if not rules:
            return
        specs: Any = {key: FeatureSpec(kind, "ragged") for key, (_, kind) in rules.items()}  # type: ignore[arg-type]
        decoder = ColumnDecoder(specs)
        decoder.append(block.buffer, block.starts[rows], block.lengths[rows])
        for key, column in decoder.finish().items():
            assert isinstance(column, RaggedArray)
            rule, _ = rules[key]
            for place, value in _bad_values(column.values, rule):
                error = CorruptDataError(
                    Defect.FEATURE_VALUE,
                    f"feature {key!r} has a value that is not allowed",
                    found=f"{value!r:.80}",
                    expected=rule.describe_values(),
                    feature=key,
                )
                row = np.searchsorted(column.row_splits, place, side="right") - 1
                yield _with_row(error, rows[row])

    def _images(
        self, block: RecordBlock, rows: Sequence[int]
    ) -> Iterator[tuple[int, list[DataError]]]:
        """Decode the images of some records; yield how many there are, and their defects."""
        if self._pool is None or self.summary.payload not in SECTION_FIELDS or not rows:
            return
        usual = {key for _, key in self.summary.kinds if key in USUAL_KEYS}
        mostly = {key for key, seen in self._contents.items() if 2 * seen[2] >= seen.sum()}
        if keys := sorted(usual | mostly):
            decode = partial(self._decode, block, keys)
            pieces = np.array_split(rows, min(len(rows), self._thread_count * _PIECES))
            yield from self._pool.map(decode, [piece.tolist() for piece in pieces])

    def _decode(
        self, block: RecordBlock, keys: Sequence[str], rows: Sequence[int]
    ) -> tuple[int, list[DataError]]:
        names, count = needed_features(keys), 0
        errors: list[DataError] = []
        for row in rows:
            self._advance(0)  # raises if the user cancels
            try:
                features = _features(select_features(_payload(block, row), names.__contains__))
                decoded, wrong = check_example_images(features, keys)
            except DataError as error:
                decoded, wrong = 0, [error]
            except MissingExtraError:
                raise
            except (RecordsmithError, MemoryError) as error:
                decoded, wrong = 0, [CorruptDataError(Defect.UNREADABLE_IMAGE, str(error))]
            count += decoded
            errors += (_with_row(error, row) for error in wrong)
        return count, errors


def _with_row(error: DataError, row: Any) -> DataError:
    error.record = int(row)
    return error


def _payload(block: RecordBlock, row: int) -> memoryview:
    start = int(block.starts[row])
    return block.buffer[start : start + int(block.lengths[row])]


def _features(payload: bytes) -> Features:
    """Decode the features of a record; for feature lists, the values of all steps."""
    example = decode_payload(payload)
    if not isinstance(example, SequenceExample):
        return example
    lists = {
        key: [value for step in steps for value in step]
        for key, steps in example.feature_lists.items()
        if all(isinstance(step, list) for step in steps)
    }
    return {**example.context, **lists}


def _most_common(kinds: npt.NDArray[np.uint8]) -> str:
    """Return the type of most payloads. A SequenceExample without lists looks like an Example."""
    counts = np.bincount(kinds, minlength=len(PAYLOAD_KINDS))
    sequences, examples = counts[_NUMBERS["SequenceExample"]], counts[_NUMBERS["Example"]]
    if sequences + examples > len(kinds) // 2:
        return "SequenceExample" if 4 * sequences >= examples and sequences else "Example"
    return PAYLOAD_KINDS[int(counts.argmax())]


def _type_error(payload: memoryview, kind: str, expected: str) -> DataError:
    if expected == "Example":
        try:
            decode_example(payload)
        except DataError as error:  # distinguishes another type from a broken message
            return error
    return CorruptDataError(
        Defect.NOT_AN_EXAMPLE,
        "the record differs in type from the others",
        found=PAYLOAD_NAMES[kind][0],
        expected=PAYLOAD_NAMES[expected][0],
    )


def _bad_values(values: Any, rule: FeatureRule) -> Iterator[tuple[int, Any]]:
    """Yield the values that a rule does not allow, with their places."""
    allowed = rule.allowed
    if isinstance(values, BytesArray):
        if allowed is not None:
            known = {value.encode() if isinstance(value, str) else value for value in allowed}
            yield from ((n, value) for n, value in enumerate(values) if value not in known)
        return
    bad = np.zeros(len(values), bool)
    if rule.min_value is not None:
        bad |= ~(values >= rule.min_value)
    if rule.max_value is not None:
        bad |= ~(values <= rule.max_value)
    if allowed is not None:
        bad |= ~np.isin(values, np.asarray(allowed, values.dtype))
    for place in np.flatnonzero(bad).tolist():
        yield place, values[place].item()


Checked: TypeAlias = tuple[ShardFindings, PayloadSummary]


def compare_shards(checked: Sequence[Checked], rules: Rules | None) -> None:
    """Add a defect to each shard that differs from most shards where no rule applies."""
    if rules is None:
        payloads = [(found, seen.payload) for found, seen in checked if seen.payload is not None]
        for findings, payload, usual in _unusual(payloads):
            error = CorruptDataError(
                Defect.NOT_AN_EXAMPLE,
                "the records differ in type from those of most other shards",
                found=PAYLOAD_NAMES[payload][1],
                expected=PAYLOAD_NAMES[usual][1],
                remedy="The shard may belong to another dataset.",
            )
            findings.add([error])
    first: dict[tuple[str, str], str] = {}
    differing = set()
    for _, seen in checked:
        for name, kind in seen.kinds.items():
            if first.setdefault(name, kind) != kind and _is_open(rules, *name):
                differing.add(name)
    for name in sorted(differing):
        kinds = [(found, seen.kinds[name]) for found, seen in checked if name in seen.kinds]
        for findings, kind, usual in _unusual(kinds):
            error = CorruptDataError(
                Defect.FEATURE_KIND,
                f"feature {name[1]!r} has different kinds in different shards",
                found=kind,
                expected=f"{usual}, as in most other shards",
                remedy="Readers that declare one kind fail on the other.",
                feature=name[1],
            )
            findings.add([error])


def _is_open(rules: Rules | None, section: str, key: str) -> bool:
    """Return whether no rule states the kind of a feature, but all records must have the same."""
    if rules is None:
        return True
    rule = rules.sections.get(section, {}).get(key)
    return rule is not None and rule.kind is None and rules.kinds_agree


def _unusual(
    values: Sequence[tuple[ShardFindings, str]],
) -> Iterator[tuple[ShardFindings, str, str]]:
    """Yield shards whose value differs from that of most records, with both values."""
    counts: Counter[str] = Counter()
    for findings, value in values:
        counts[value] += findings.record_count
    for findings, value in values:
        usual = counts.most_common(1)[0][0]
        if value != usual:
            yield findings, value, usual
