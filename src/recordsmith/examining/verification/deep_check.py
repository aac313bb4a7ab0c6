"""Checks the contents of the records of a shard, block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from recordsmith.buffers import Int64Array, as_view
from recordsmith.errors import PAYLOAD_NAMES, CorruptDataError, DataError, Defect, RecordsmithError
from recordsmith.examining.rules import SECTION_FIELDS, Rules
from recordsmith.examining.verification import verify_report as report
from recordsmith.examining.verification.image_check import check_example_images, needed_features
from recordsmith.examining.verification.record_parts import RecordParts
from recordsmith.examining.verification.rule_check import RuleCheck
from recordsmith.examining.verification.verify_report import ShardFindings
from recordsmith.example import Features, decode_example, decode_sequence_example
from recordsmith.example.spans import select_features
from recordsmith.wire import HEADER_BYTES, RecordBlock

_PIECES = 4  # of a block, per thread: images differ in size


@dataclass(frozen=True)
class CheckedContents:
    """What is compared between the shards of a dataset, and what was not checked in one.

    payload: the message type of its records; None without records.
    kinds: the kind of each feature, by section and name.
    is_full, is_cut: as in `ShardFeatures`.
    is_cut_short: whether the check stopped at the limit of defects.
    """

    payload: str | None
    kinds: Mapping[tuple[str, str], str]
    is_full: bool
    is_cut: bool
    is_cut_short: bool


class ShardContents:
    """Checks the payloads of one shard."""

    def __init__(
        self,
        rules: Rules | None,
        advance: Callable[[int], None],
        pool: ThreadPoolExecutor | None,
        thread_count: int,
    ) -> None:
        """`pool` decodes images; None skips them."""
        self._check = RuleCheck(rules)
        self._is_cut_short = False
        self._advance = advance
        self._pool = pool
        self._thread_count = thread_count
        self._error_count = 0

    def check_block(self, block: RecordBlock, findings: ShardFindings) -> None:
        """Check the records of a block."""
        if self._is_cut_short:
            return
        errors = []
        for error in self._check.check_records(block.buffer, block.starts, block.lengths):
            errors.append(error)
            if self._error_count + len(errors) >= report.MAX_DEFECTS_PER_SHARD:
                self._is_cut_short = True
                break
        if self._pool is not None and not self._is_cut_short:
            bad = {error.record for error in errors}
            rows = np.array([row for row in range(len(block)) if row not in bad], np.int64)
            count, of_images = self._images(block, rows)
            findings.image_count += count
            errors += of_images
        errors.sort(key=lambda error: error.record or 0)
        for error in errors:
            row = error.record or 0
            error.record = block.position + row
            error.offset = block.offset + int(block.starts[row]) - HEADER_BYTES
        self._error_count += len(errors)
        findings.add(errors)

    def finish(self) -> CheckedContents:
        """Return what is compared with other shards, after the last block."""
        check = self._check
        check.finish()
        seen = check.seen
        return CheckedContents(
            check.payload, seen.kinds, seen.is_full, seen.is_cut, self._is_cut_short
        )

    def _images(self, block: RecordBlock, rows: Int64Array) -> tuple[int, list[DataError]]:
        if self._pool is None or self._check.payload not in SECTION_FIELDS:
            return 0, []
        total = 0
        found: list[DataError] = []
        for parts in self._check.parts(block.buffer, block.starts, block.lengths, rows):
            keys = self._check.seen.images_of(parts.section)
            nonempty = np.flatnonzero(parts.lengths)
            if not keys or not len(nonempty):
                continue
            decode = partial(self._decode, parts, keys, needed_features(keys))
            pieces = np.array_split(nonempty, min(len(nonempty), self._thread_count * _PIECES))
            for count, errors in self._pool.map(decode, [piece.tolist() for piece in pieces]):
                total += count
                found += map(parts.placed, errors)
        return total, found

    def _decode(
        self, parts: RecordParts, keys: Sequence[str], names: Collection[str], rows: Sequence[int]
    ) -> tuple[int, list[DataError]]:
        """Decode the images of some messages; return how many there are, and their defects."""
        count, errors = 0, []
        for row in rows:
            self._advance(0)  # raises if the user cancels
            start = int(parts.starts[row])
            payload = as_view(parts.buffer)[start : start + int(parts.lengths[row])]
            try:
                features = _features_of(select_features(payload, names.__contains__), parts)
                decoded, wrong = check_example_images(features, keys)
            except DataError as error:
                decoded, wrong = 0, [error]
            except (RecordsmithError, MemoryError) as error:
                decoded = 0
                wrong = [CorruptDataError(Defect.UNREADABLE_IMAGE, str(error))]
            for one in wrong:
                one.record = row
            count += decoded
            errors += wrong
        return count, errors


def _features_of(payload: bytes, parts: RecordParts) -> Features:
    """Decode the features of a message; for feature lists, the values of all steps."""
    if parts.are_examples:
        return decode_example(payload)
    context, lists = decode_sequence_example(payload)
    if not parts.is_lists:
        return context
    of_bytes = {
        key: [value for step in steps for value in step]
        for key, steps in lists.items()
        if all(isinstance(step, list) for step in steps)
    }
    return {**context, **of_bytes}


@dataclass
class DeepCheck:
    """Makes a ShardContents for each shard, and keeps the results by path."""

    new: Callable[[], ShardContents]
    done: dict[str, CheckedContents] = field(default_factory=dict)


_Checked: TypeAlias = tuple[ShardFindings, CheckedContents]


def compare_shards(checked: Sequence[_Checked], rules: Rules | None) -> None:
    """Add a defect to each shard that differs from most shards where no rule applies."""
    open_keys = None
    if rules is None:
        _compare_payloads(checked)
    else:
        open_keys = {
            (section, key)
            for section, its in rules.sections.items()
            for key, rule in its.items()
            if rules.kinds_agree and rule.kind is None
        }
    shards_by_key = _with_several_kinds(checked)
    for section, key in sorted(
        shards_by_key if open_keys is None else shards_by_key.keys() & open_keys
    ):
        shards = shards_by_key[section, key]
        kinds = [check.kinds[section, key] for _, check in shards]
        usual = _usual(shards, kinds)
        for (findings, _), kind in zip(shards, kinds, strict=True):
            if kind != usual:
                others = [
                    Path(other.path).name
                    for (other, _), its in zip(shards, kinds, strict=True)
                    if its == usual
                ]
                findings.add(
                    [
                        CorruptDataError(
                            Defect.FEATURE_KIND,
                            f"feature {key!r} has different kinds in different shards",
                            found=str(kind),
                            expected=f"{usual}, as in {_some(others)}",
                            remedy="Readers that declare one kind fail on the other.",
                            feature=key,
                        )
                    ]
                )


def _with_several_kinds(checked: Sequence[_Checked]) -> dict[tuple[str, str], list[_Checked]]:
    """For each feature whose kind differs between shards, return the shards that have it."""
    first: dict[tuple[str, str], str] = {}
    differing = set()
    for _, check in checked:
        for key, kind in check.kinds.items():
            if first.setdefault(key, kind) != kind:
                differing.add(key)
    shards_by_key: dict[tuple[str, str], list[_Checked]] = {key: [] for key in differing}
    for one in checked if differing else ():
        for key in one[1].kinds:
            if key in differing:
                shards_by_key[key].append(one)
    return shards_by_key


def _compare_payloads(checked: Sequence[_Checked]) -> None:
    payloads = [check.payload for _, check in checked]
    usual = _usual(checked, payloads)
    for (findings, _), payload in zip(checked, payloads, strict=True):
        if payload is not None and payload != usual:
            findings.add(
                [
                    CorruptDataError(
                        Defect.NOT_AN_EXAMPLE,
                        "the records differ in type from those of most other shards",
                        found=_plural(payload),
                        expected=_plural(usual),
                        remedy="The shard may belong to another dataset.",
                    )
                ]
            )


def _plural(payload: str | None) -> str:
    return PAYLOAD_NAMES[str(payload)][1]


def _usual(checked: Sequence[_Checked], values: Sequence[str | None]) -> str | None:
    """Return the value of the shards with the most records."""
    counts: Counter[str] = Counter()
    for (findings, _), value in zip(checked, values, strict=True):
        if value is not None:
            counts[value] += findings.record_count
    return counts.most_common(1)[0][0] if counts else None


def _some(names: Sequence[str]) -> str:
    if len(names) <= 3:
        return ", ".join(names)
    return f"{', '.join(names[:2])} and {len(names) - 2:,} other shards"
