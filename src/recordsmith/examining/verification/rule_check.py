"""Does every record keep the rules? First what it is, then the features of its sections.

Without rules, they are learned from the shard itself: the kind that a feature has first is the kind
that it shall have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.examining.rules import SECTION_FIELDS, Rules
from recordsmith.examining.verification.record_parts import (
    RecordParts,
    parts_of,
    why_no_ranking_list,
)
from recordsmith.examining.verification.section_check import SectionCheck
from recordsmith.examining.verification.seen_features import SeenFeatures
from recordsmith.example import decode_example
from recordsmith.example.kernel.payloads import classify_many
from recordsmith.example.payload import PAYLOAD_KINDS, PAYLOAD_WORDS

_NUMBERS: dict[str, int] = {name: number for number, name in enumerate(PAYLOAD_KINDS)}


class RuleCheck:
    """Holds the records of one shard against rules, or against what came first in it.

    payload: what the records are; None as long as there was none.
    seen: the features that there were.
    """

    def __init__(self, rules: Rules | None) -> None:
        self._rules = rules
        self.payload: str | None = None if rules is None else rules.payload
        self.seen = SeenFeatures()

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
            said = lengths > 0  # an empty payload can be any of them
            self.payload = _most(kinds[said] if said.any() else kinds)
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
            error.position = row
            yield error
        for parts in self.parts(buffer, starts, lengths, np.flatnonzero(fits)):
            for error in SectionCheck(parts, self._rules, self.seen).errors():
                yield parts.placed(error)

    def parts(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array, rows: Int64Array
    ) -> Iterator[RecordParts]:
        """The messages with features in these records."""
        payload: Any = self.payload
        return parts_of(payload, buffer, starts, lengths, rows)

    def let_go(self) -> None:
        """After the last record: keep what is compared with other shards, of the first features."""
        self.seen.let_go(has_rules=self._rules is not None)

    def _foreign_payloads(self, kinds: npt.NDArray[np.uint8]) -> Iterator[CorruptDataError]:
        """Of what is no Example only the sort of message can be told."""
        for row in np.flatnonzero(kinds != _NUMBERS[str(self.payload)]).tolist():
            yield CorruptDataError(
                Defect.NOT_AN_EXAMPLE,
                f"the record is {PAYLOAD_WORDS[PAYLOAD_KINDS[kinds[row]]][0]}; those before it are "
                f"{PAYLOAD_WORDS[str(self.payload)][1]}.",
                position=row,
            )


def _most(kinds: npt.NDArray[np.uint8]) -> str:
    """What most payloads are. Lists that are left out make an Example of a SequenceExample."""
    counts = np.bincount(kinds, minlength=len(PAYLOAD_KINDS))
    sequences, examples = counts[_NUMBERS["SequenceExample"]], counts[_NUMBERS["Example"]]
    if sequences + examples > len(kinds) // 2:
        return "SequenceExample" if 4 * sequences >= examples and sequences else "Example"
    return PAYLOAD_KINDS[int(counts.argmax())]


def _not_expected(payload: memoryview, found: Any, expected: str) -> CorruptDataError | None:
    """The error for a payload that is not what it should be; None if it may be that after all."""
    if expected == "Example":
        try:
            decode_example(payload)
        except CorruptDataError as error:  # it knows whether it is another message, or broken
            return error
    if expected == "ELWC" and found in ("Example", "other"):
        wrong = why_no_ranking_list(payload)
        if wrong is None or (found == "other" and wrong.defect is Defect.MALFORMED_EXAMPLE):
            return wrong
    return CorruptDataError(
        Defect.NOT_AN_EXAMPLE,
        f"the record is {PAYLOAD_WORDS[found][0]}; the others are {PAYLOAD_WORDS[expected][1]}.",
    )
