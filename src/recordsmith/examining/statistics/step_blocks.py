"""The feature lists of some neighbouring SequenceExamples -> values of one kind each, as arrays.

Their steps are found level by level in all records at once, and the numbers of all steps decoded
together. That goes where everything lies as protobuf writes it; a list that is otherwise is decoded
record by record, which takes many times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.examining.statistics.feature_blocks import (
    LISTS_FIELD,
    FeatureBlock,
    Takes,
    Values,
    survey_blocks,
    take_rows,
)
from recordsmith.example import (
    BytesArray,
    InnerSpans,
    decode_example,
    decode_sequence_example,
    delimited,
    spans_of_field,
)
from recordsmith.example.payload import KIND_NUMBERS, decode_key
from recordsmith.example.spans import entries_of, field_bytes, payloads_of

_NUMBER_BYTES = 128  # a byte below is the last of a number


def list_blocks(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, takes: Takes
) -> dict[str, FeatureBlock] | None:
    """The feature lists of the SequenceExamples at buffer[starts[i]:starts[i] + lengths[i]], by
    name; None and errors as of `example_blocks`.
    """
    surveyed = survey_blocks(buffer, starts, lengths, LISTS_FIELD, takes)
    if surveyed is None:
        return None
    blocks = {block.key: block for block, _ in surveyed}
    lists = _lists_by_name(buffer, starts, lengths)
    odd = {
        key
        for key, block in blocks.items()
        if key not in lists or not _take_steps(block, buffer, lists[key])
    }
    if odd:
        decoded = map(decode_sequence_example, payloads_of(buffer, starts, lengths))
        rows = (
            {key: steps for key, steps in example.feature_lists.items() if key in odd}
            for example in decoded
        )
        take_rows(blocks, rows, has_steps=True)
    return blocks


def _lists_by_name(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> dict[str, InnerSpans]:
    """Where the steps of each list are: one span for each record that has it, which is its owner.
    Those are left out that a record has twice, or that are otherwise not as they are written.
    """
    entries = entries_of(buffer, starts, lengths, LISTS_FIELD)
    numbers = np.arange(len(entries.owners))
    keys = spans_of_field(buffer, entries.starts, entries.lengths, 1)
    values = spans_of_field(buffer, entries.starts, entries.lengths, 2)
    for found in (keys, values):  # one of each in each entry
        if not np.array_equal(found.owners, numbers):
            return {}
    by_name: dict[bytes, list[int]] = {}
    for number, key in enumerate(payloads_of(buffer, keys.starts, keys.lengths)):
        by_name.setdefault(bytes(key), []).append(number)
    lists = {}
    for name, places in by_name.items():
        at = np.array(places)
        owners = entries.owners[at]
        if (owners[1:] > owners[:-1]).all():
            lists[decode_key(name)] = InnerSpans(owners, values.starts[at], values.lengths[at])
    return lists


def _take_steps(block: FeatureBlock, buffer: BytesLike, lists: InnerSpans) -> bool:
    """Take all values of a feature list; False if its steps are not as protobuf writes them."""
    kinds: list[Any] = [kind for kind in block.records if kind != "none"]
    if len(kinds) > 1:
        return False
    steps = spans_of_field(buffer, lists.starts, lists.lengths, 1)
    counts = np.zeros(len(steps.owners), np.int64)
    if kinds:
        of_kind = spans_of_field(buffer, steps.starts, steps.lengths, KIND_NUMBERS[kinds[0]])
        found = spans_of_field(buffer, of_kind.starts, of_kind.lengths, 1)
        if not (_cover(steps.lengths, of_kind) and _cover(of_kind.lengths, found)):
            return False
        values, per_span = _values(kinds[0], buffer, found)
        np.add.at(counts, of_kind.owners[found.owners], per_span)
        if len(values):
            block.values[kinds[0]] = values
            block.rows[kinds[0]] = np.repeat(lists.owners[steps.owners], counts)
    block.lengths = counts
    block.steps = np.bincount(steps.owners, minlength=len(lists.owners))
    return True


def _cover(lengths: Int64Array, inner: InnerSpans) -> bool:
    """Whether messages of these lengths have nothing but the fields that were found in them."""
    covered = np.zeros(len(lengths), np.int64)
    np.add.at(covered, inner.owners, field_bytes(inner.lengths))
    return np.array_equal(covered, lengths)


def _values(kind: str, buffer: BytesLike, found: InnerSpans) -> tuple[Values, Int64Array]:
    """The values of one kind, of bytes as views, and how many lie in each span."""
    if kind == "bytes":
        ends = np.stack([found.starts, found.starts + found.lengths], axis=1).ravel()
        whole = np.frombuffer(as_view(buffer), np.uint8)
        views = BytesArray(whole, ends, np.arange(0, len(ends), 2))
        return views, np.ones(len(found.starts), np.int64)
    packed = b"".join(payloads_of(buffer, found.starts, found.lengths))
    if kind == "float":
        return np.frombuffer(packed, "<f4").astype(np.float32), found.lengths // 4
    is_last = np.frombuffer(packed, np.uint8) < _NUMBER_BYTES
    before = np.concatenate([[0], np.cumsum(is_last)])
    stops = np.cumsum(found.lengths)
    feature = delimited(2, delimited(3, delimited(1, packed)))
    values: Any = decode_example(delimited(1, delimited(1, delimited(1, b"all"), feature)))["all"]
    return values, before[stops] - before[stops - found.lengths]
