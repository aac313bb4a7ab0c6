"""What is inside of the records of a shard, judged block by block as it is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from recordsmith.buffers import Int64Array, as_view
from recordsmith.errors import CorruptDataError, Defect, RecordsmithError
from recordsmith.examining.rules import SECTION_FIELDS, Rules
from recordsmith.examining.verification import report
from recordsmith.examining.verification.picture_check import check_pictures, names_beside
from recordsmith.examining.verification.record_parts import RecordParts
from recordsmith.examining.verification.report import ShardFindings
from recordsmith.examining.verification.rule_check import RuleCheck
from recordsmith.example import Features, decode_example, decode_sequence_example
from recordsmith.example.pieces import narrowed
from recordsmith.wire import HEADER_BYTES, RecordBlock

_PIECES = 4  # for each thread of a block: pictures differ in size


class ShardContents:
    """Judges the payloads of one shard.

    is_cut_short: so much was wrong that the rest was not looked at.
    """

    def __init__(
        self,
        rules: Rules | None,
        advance: Callable[[int], None],
        pool: ThreadPoolExecutor | None,
        thread_count: int,
    ) -> None:
        """`pool` decodes pictures; None leaves them alone."""
        self.check = RuleCheck(rules)
        self.is_cut_short = False
        self._advance = advance
        self._pool = pool
        self._thread_count = thread_count
        self._error_count = 0

    def look(self, block: RecordBlock, findings: ShardFindings) -> None:
        """Judge the records of a block."""
        if self.is_cut_short:
            return
        errors = []
        for error in self.check.look(block.buffer, block.starts, block.lengths):
            errors.append(error)
            if self._error_count + len(errors) >= report.MAX_DEFECTS_PER_SHARD:
                self.is_cut_short = True
                break
        if self._pool is not None and not self.is_cut_short:
            bad = {error.position for error in errors}
            rows = np.array([row for row in range(len(block)) if row not in bad], np.int64)
            count, of_pictures = self._pictures(block, rows)
            findings.picture_count += count
            errors += of_pictures
        errors.sort(key=lambda error: error.position or 0)
        for error in errors:
            row = error.position or 0
            error.position = block.position + row
            error.offset = block.offset + int(block.starts[row]) - HEADER_BYTES
        self._error_count += len(errors)
        findings.add(errors)

    def _pictures(self, block: RecordBlock, rows: Int64Array) -> tuple[int, list[CorruptDataError]]:
        if self._pool is None or self.check.payload not in SECTION_FIELDS:
            return 0, []
        total = 0
        found: list[CorruptDataError] = []
        for parts in self.check.parts(block.buffer, block.starts, block.lengths, rows):
            keys = self.check.seen.pictures_of(parts.section)
            there = np.flatnonzero(parts.lengths)
            if not keys or not len(there):
                continue
            decode = partial(self._decode, parts, keys, names_beside(keys))
            pieces = np.array_split(there, min(len(there), self._thread_count * _PIECES))
            for count, errors in self._pool.map(decode, [piece.tolist() for piece in pieces]):
                total += count
                found += map(parts.placed, errors)
        return total, found

    def _decode(
        self, parts: RecordParts, keys: Sequence[str], names: Collection[str], rows: Sequence[int]
    ) -> tuple[int, list[CorruptDataError]]:
        """How many pictures some messages have, and what is wrong with them."""
        count, errors = 0, []
        for row in rows:
            self._advance(0)  # where the user wants to stop, it stops
            start = int(parts.starts[row])
            payload = as_view(parts.buffer)[start : start + int(parts.lengths[row])]
            try:
                features = _features_of(narrowed(payload, names.__contains__), parts)
                decoded, wrong = check_pictures(features, keys)
            except CorruptDataError as error:
                decoded, wrong = 0, [error]
            except (RecordsmithError, MemoryError) as error:
                decoded = 0
                wrong = [CorruptDataError(Defect.UNREADABLE_IMAGE, str(error))]
            for one in wrong:
                one.position = row
            count += decoded
            errors += wrong
        return count, errors


def _features_of(payload: bytes, parts: RecordParts) -> Features:
    """What stands beside each other in a message; of a feature list the values of all steps."""
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
    """What looks at the payloads of shards: made for each of them, and kept by path when it has."""

    new: Callable[[], ShardContents]
    done: dict[str, ShardContents] = field(default_factory=dict)
