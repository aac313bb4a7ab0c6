"""Decodes the feature lists of neighboring SequenceExamples to arrays of values, by kind.

Finds steps level by level in all records at once, and decodes the numbers of all steps together.
Lists that are not encoded as protobuf writes them are decoded record by record, which is much
slower.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.examining.stats.feature_blocks import (
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
    field_spans,
)
from recordsmith.example.payload import KIND_NUMBERS, decode_key
from recordsmith.example.spans import field_sizes, map_entries, payload_views

_NUMBER_BYTES = 128  # smaller bytes end a number


def list_blocks(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, takes: Takes
) -> dict[str, FeatureBlock] | None:
    """Decode the feature lists of the SequenceExamples at buffer[starts[i]:starts[i] + lengths[i]],
    by name; returns None and raises as `example_blocks` does.
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
        decoded = map(decode_sequence_example, payload_views(buffer, starts, lengths))
        rows = (
            {key: steps for key, steps in example.feature_lists.items() if key in odd}
            for example in decoded
        )
        take_rows(blocks, rows, has_steps=True)
    return blocks


def _lists_by_name(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> dict[str, InnerSpans]:
    """Find the steps of each list: one span for each record that has it. Skips lists that occur
    twice in a record or are encoded unusually.
    """
    entries = map_entries(buffer, starts, lengths, LISTS_FIELD)
    numbers = np.arange(len(entries.owners))
    keys = field_spans(buffer, entries.starts, entries.lengths, 1)
    values = field_spans(buffer, entries.starts, entries.lengths, 2)
    for found in (keys, values):  # one key and one value per entry
        if not np.array_equal(found.owners, numbers):
            return {}
    by_name: dict[bytes, list[int]] = {}
    for number, key in enumerate(payload_views(buffer, keys.starts, keys.lengths)):
        by_name.setdefault(bytes(key), []).append(number)
    lists = {}
    for name, places in by_name.items():
        at = np.array(places)
        owners = entries.owners[at]
        if (owners[1:] > owners[:-1]).all():
            lists[decode_key(name)] = InnerSpans(owners, values.starts[at], values.lengths[at])
    return lists


def _take_steps(block: FeatureBlock, buffer: BytesLike, lists: InnerSpans) -> bool:
    """Decode all values of a feature list; False if its steps are encoded unusually."""
    kinds: list[Any] = [kind for kind in block.records if kind != "none"]
    if len(kinds) > 1:
        return False
    steps = field_spans(buffer, lists.starts, lists.lengths, 1)
    counts = np.zeros(len(steps.owners), np.int64)
    if kinds:
        of_kind = field_spans(buffer, steps.starts, steps.lengths, KIND_NUMBERS[kinds[0]])
        values_spans = field_spans(buffer, of_kind.starts, of_kind.lengths, 1)
        if not (_cover(steps.lengths, of_kind) and _cover(of_kind.lengths, values_spans)):
            return False
        values, per_span = _values(kinds[0], buffer, values_spans)
        np.add.at(counts, of_kind.owners[values_spans.owners], per_span)
        if len(values):
            block.values[kinds[0]] = values
            block.rows[kinds[0]] = np.repeat(lists.owners[steps.owners], counts)
    block.lengths = counts
    block.steps = np.bincount(steps.owners, minlength=len(lists.owners))
    return True


def _cover(lengths: Int64Array, inner: InnerSpans) -> bool:
    """Return whether messages of these lengths have only the fields found in them."""
    covered = np.zeros(len(lengths), np.int64)
    np.add.at(covered, inner.owners, field_sizes(inner.lengths))
    return np.array_equal(covered, lengths)


def _values(kind: str, buffer: BytesLike, spans: InnerSpans) -> tuple[Values, Int64Array]:
    """Return the values of one kind, bytes as views, and their number in each span."""
    if kind == "bytes":
        ends = np.stack([spans.starts, spans.starts + spans.lengths], axis=1).ravel()
        whole = np.frombuffer(as_view(buffer), np.uint8)
        views = BytesArray(whole, ends, np.arange(0, len(ends), 2))
        return views, np.ones(len(spans.starts), np.int64)
    packed = b"".join(payload_views(buffer, spans.starts, spans.lengths))
    if kind == "float":
        return np.frombuffer(packed, "<f4").astype(np.float32), spans.lengths // 4
    is_last = np.frombuffer(packed, np.uint8) < _NUMBER_BYTES
    before = np.concatenate([[0], np.cumsum(is_last)])
    stops = np.cumsum(spans.lengths)
    feature = delimited(2, delimited(3, delimited(1, packed)))
    values: Any = decode_example(delimited(1, delimited(1, delimited(1, b"all"), feature)))["all"]
    return values, before[stops] - before[stops - spans.lengths]
