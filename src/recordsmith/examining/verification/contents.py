"""What is inside of the records of a shard, judged block by block as it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from recordsmith.errors import CorruptDataError, Defect, RecordsmithError
from recordsmith.examining.rules import Rules
from recordsmith.examining.verification import report
from recordsmith.examining.verification.picture_check import USUAL_KEYS, check_pictures
from recordsmith.examining.verification.report import ShardFindings
from recordsmith.examining.verification.rule_check import RuleCheck
from recordsmith.example import decode_example
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
        if self._pool is not None and self.check.payload == "Example" and not self.is_cut_short:
            bad = {error.position for error in errors}
            count, of_pictures = self._pictures(
                block, [row for row in range(len(block)) if row not in bad]
            )
            findings.picture_count += count
            errors += of_pictures
        errors.sort(key=lambda error: error.position or 0)
        for error in errors:
            row = error.position or 0
            error.position = block.position + row
            error.offset = block.offset + int(block.starts[row]) - HEADER_BYTES
        self._error_count += len(errors)
        findings.add(errors)

    def _pictures(
        self, block: RecordBlock, rows: Sequence[int]
    ) -> tuple[int, list[CorruptDataError]]:
        known = {key for section, key in self.check.kinds if section == "features"}
        keys = sorted(self.check.picture_keys | (known & set(USUAL_KEYS)))
        if not keys or not rows or self._pool is None:
            return 0, []

        def decode(piece: Sequence[int]) -> tuple[int, list[CorruptDataError]]:
            count, errors = 0, []
            for row in piece:
                self._advance(0)  # where the user wants to stop, it stops
                start = int(block.starts[row])
                try:
                    example = decode_example(block.buffer[start : start + int(block.lengths[row])])
                    decoded, wrong = check_pictures(example, keys)
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

        pieces = np.array_split(np.asarray(rows), min(len(rows), self._thread_count * _PIECES))
        total, found = 0, []
        for count, errors in self._pool.map(decode, [piece.tolist() for piece in pieces]):
            total += count
            found += errors
        return total, found


@dataclass
class DeepCheck:
    """What looks at the payloads of shards: made for each of them, and kept by path when it has."""

    new: Callable[[], ShardContents]
    done: dict[str, ShardContents] = field(default_factory=dict)
