"""Locates the messages that have features within the records of a block.

For an Example or a SequenceExample, this is the record itself. A ranking list contains Examples,
which are checked one by one, and a context.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.errors import CorruptDataError, DataError, Defect
from recordsmith.examining.rules import SECTION_FIELDS, RulePayload
from recordsmith.example import InnerSpans, classify, decode_example, inner_spans
from recordsmith.example.payload import malformed_example_error
from recordsmith.example.spans import field_sizes

_FIELDS = b"\x0a\x12"  # the first bytes of the Examples of a list, and of its context


@dataclass
class RecordParts:
    """The messages of one section in some records.

    section: its name in schemas and rules.
    field: the field number of the features in each message.
    is_lists: whether the features are lists of steps.
    are_examples: whether each message is an Example.
    rows: int64, (count,): the record of the block that contains each message.
    numbers: int64, (count,): the number of each Example in its list; None outside of lists.
    is_context: whether each message is the context of a list.
    """

    section: str
    field: int
    is_lists: bool
    are_examples: bool
    buffer: BytesLike
    starts: Int64Array
    lengths: Int64Array
    rows: Int64Array
    numbers: Int64Array | None = None
    is_context: bool = False

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def word(self) -> str:
        """The name of such a message in error messages."""
        if self.numbers is None:
            return "context" if self.is_context else "record"
        return "Example"

    def placed(self, error: DataError) -> DataError:
        """Change the record number of an error from that of the message to that of its record."""
        number = error.record or 0
        error.record = int(self.rows[number])
        if self.numbers is not None:
            error.problem = in_list(int(self.numbers[number]), error.problem)
        elif self.is_context:
            error.problem = f"context of the list: {error.problem}"
        return error


def in_list(number: int, detail: str) -> str:
    """Prefix a message with the number of an Example in its ranking list, counted from 0."""
    return f"Example {number} of the list: {detail}"


def parts_of(
    payload: RulePayload,
    buffer: BytesLike,
    starts: Int64Array,
    lengths: Int64Array,
    rows: Int64Array,
) -> Iterator[RecordParts]:
    """Yield the parts of the records buffer[starts[i]:starts[i] + lengths[i]] for i in rows."""
    sections = SECTION_FIELDS[payload]
    if payload != "ELWC":
        is_example = payload == "Example"
        for section, (field, is_lists) in sections.items():
            spans = buffer, starts[rows], lengths[rows]
            yield RecordParts(section, field, is_lists, is_example, *spans, rows)
        return
    contexts, examples = inner_spans(buffer, starts[rows], lengths[rows])
    yield from _contexts(buffer, contexts, rows)
    owners = examples.owners
    numbers = np.arange(len(owners)) - np.searchsorted(owners, owners)
    spans = buffer, examples.starts, examples.lengths
    yield RecordParts("examples", 1, False, True, *spans, rows[owners], numbers)


def _contexts(buffer: BytesLike, found: InnerSpans, rows: Int64Array) -> Iterator[RecordParts]:
    """Yield one context per record: empty if it has none, joined if it has several pieces."""

    def part(
        data: BytesLike, starts: Int64Array, lengths: Int64Array, owners: Int64Array
    ) -> RecordParts:
        of = rows[owners]
        return RecordParts("context", 1, False, True, data, starts, lengths, of, is_context=True)

    counts = np.bincount(found.owners, minlength=len(rows))
    is_single = counts[found.owners] == 1
    starts, lengths = np.zeros((2, len(rows)), np.int64)
    starts[found.owners[is_single]] = found.starts[is_single]
    lengths[found.owners[is_single]] = found.lengths[is_single]
    whole = np.flatnonzero(counts < 2)
    yield part(buffer, starts[whole], lengths[whole], whole)
    view = as_view(buffer)
    for owner in np.flatnonzero(counts > 1).tolist():
        at = np.flatnonzero(found.owners == owner)
        spans = zip(found.starts[at].tolist(), found.lengths[at].tolist(), strict=True)
        joined = b"".join(view[start : start + length] for start, length in spans)
        span = np.zeros(1, np.int64), np.full(1, len(joined), np.int64)
        yield part(joined, *span, np.full(1, owner, np.int64))


def explain_invalid_list(payload: memoryview) -> DataError | None:
    """Explain why a payload is not a ranking list.

    Returns None if it is one, but without any value, so that `classify` could not recognize it.
    """
    contexts, examples = inner_spans(
        payload, np.zeros(1, np.int64), np.full(1, len(payload), np.int64)
    )
    lengths = np.concatenate([contexts.lengths, examples.lengths])
    covered = int(field_sizes(lengths).sum())
    if covered != len(payload):
        if payload[covered] in _FIELDS:
            return CorruptDataError(
                Defect.MALFORMED_EXAMPLE,
                "the payload is not a well-formed ranking list: a length in it exceeds its end",
                remedy="If its checksum matches, it was written like this.",
            )
        return CorruptDataError(Defect.NOT_AN_EXAMPLE, "the payload is not a ranking list")
    for spans, is_context in ((examples, False), (contexts, True)):
        for number in range(len(spans.starts)):
            start = int(spans.starts[number])
            inner = payload[start : start + int(spans.lengths[number])]
            if classify(inner) == "Example":
                continue
            try:
                decode_example(inner)
                error: DataError = malformed_example_error()
            except DataError as found:
                error = found
            problem = error.problem
            error.problem = (
                f"context of the list: {problem}" if is_context else in_list(number, problem)
            )
            return error
    return None
