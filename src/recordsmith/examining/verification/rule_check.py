"""Checks records against rules: first the message type, then the features of each section.

Without rules, the first records of the shard define them: a feature must keep the kind it has
first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.errors import PAYLOAD_NAMES, CorruptDataError, DataError, Defect
from recordsmith.examining.rules import SECTION_FIELDS, Rules
from recordsmith.examining.verification.record_parts import (
    RecordParts,
    explain_invalid_list,
    parts_of,
)
from recordsmith.examining.verification.section_check import SectionCheck
from recordsmith.examining.verification.shard_features import ShardFeatures
from recordsmith.example import decode_example
from recordsmith.example.kernel.payloads import classify_many
from recordsmith.example.payload import PAYLOAD_KINDS

_NUMBERS: dict[str, int] = {name: number for number, name in enumerate(PAYLOAD_KINDS)}


class RuleCheck:
    """Checks the records of one shard against rules, or against its first records.

    payload: the message type of the records; None until the first record.
    seen: the features found so far.
    """

    def __init__(self, rules: Rules | None) -> None:
        self._rules = rules
        self.payload: str | None = None if rules is None else rules.payload
        self.seen = ShardFeatures()

    def check_records(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
    ) -> Iterator[DataError]:
        """Yield the defects of the payloads buffer[starts[i]:starts[i] + lengths[i]]; the record
        number of an error is `i`.
        """
        if not len(starts):
            return
        kinds = np.empty(len(starts), np.uint8)
        classify_many(buffer, starts, lengths, kinds)
        if self.payload is None:
            has_data = lengths > 0  # an empty payload is valid for every type
            self.payload = _most_common(kinds[has_data] if has_data.any() else kinds)
        if self.payload not in SECTION_FIELDS:
            yield from self._foreign_payloads(kinds)
            return
        fits = kinds == _NUMBERS[self.payload]
        if self.payload == "SequenceExample":  # without lists it looks like an Example
            fits |= kinds == _NUMBERS["Example"]
        if self.payload == "ELWC":
            fits |= lengths == 0
        view = as_view(buffer)
        for row in np.flatnonzero(~fits).tolist():
            start = int(starts[row])
            payload = view[start : start + int(lengths[row])]
            error = _not_expected(payload, PAYLOAD_KINDS[kinds[row]], self.payload)
            if error is None:
                fits[row] = True
                continue
            error.record = row
            yield error
        for parts in self.parts(buffer, starts, lengths, np.flatnonzero(fits)):
            for error in SectionCheck(parts, self._rules, self.seen).errors():
                yield parts.placed(error)

    def parts(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array, rows: Int64Array
    ) -> Iterator[RecordParts]:
        """Return the messages with features in these records."""
        payload: Any = self.payload
        return parts_of(payload, buffer, starts, lengths, rows)

    def finish(self) -> None:
        """Free memory after the last record; keep what is compared with other shards."""
        self.seen.finish(has_rules=self._rules is not None)

    def _foreign_payloads(self, kinds: npt.NDArray[np.uint8]) -> Iterator[DataError]:
        """Yield records of another type than the first ones, in a shard without Examples."""
        for row in np.flatnonzero(kinds != _NUMBERS[str(self.payload)]).tolist():
            yield CorruptDataError(
                Defect.NOT_AN_EXAMPLE,
                "the record differs in type from the records before it",
                found=PAYLOAD_NAMES[PAYLOAD_KINDS[kinds[row]]][0],
                expected=PAYLOAD_NAMES[str(self.payload)][0],
                record=row,
            )


def _most_common(kinds: npt.NDArray[np.uint8]) -> str:
    """Return the type of most payloads. A SequenceExample without lists looks like an Example."""
    counts = np.bincount(kinds, minlength=len(PAYLOAD_KINDS))
    sequences, examples = counts[_NUMBERS["SequenceExample"]], counts[_NUMBERS["Example"]]
    if sequences + examples > len(kinds) // 2:
        return "SequenceExample" if 4 * sequences >= examples and sequences else "Example"
    return PAYLOAD_KINDS[int(counts.argmax())]


def _not_expected(payload: memoryview, found: Any, expected: str) -> DataError | None:
    """Make the error for a payload of another type; None if it may be of the expected type."""
    if expected == "Example":
        try:
            decode_example(payload)
        except DataError as error:  # distinguishes another type from a broken message
            return error
    if expected == "ELWC" and found in ("Example", "SequenceExample", "other"):
        wrong = explain_invalid_list(payload)
        if wrong is None or (found == "other" and wrong.defect is Defect.MALFORMED_EXAMPLE):
            return wrong
    return CorruptDataError(
        Defect.NOT_AN_EXAMPLE,
        "the record differs in type from the others",
        found=PAYLOAD_NAMES[found][0],
        expected=PAYLOAD_NAMES[expected][0],
    )
