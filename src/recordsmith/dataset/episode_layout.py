"""Which features of episodes have a value for each step, and how many steps an episode has.

An episode is an Example as TensorFlow Datasets writes it, with the values of all steps of a feature
in one list, or a SequenceExample, which is read as such an Example.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from recordsmith.dataset.column_file import record_counts, record_steps
from recordsmith.dataset.dataset import Dataset
from recordsmith.dataset.measuring import measure_records
from recordsmith.format.example import (
    BytesArray,
    ColumnDecoder,
    FeatureSpec,
    Kind,
    RaggedArray,
    decode_sequence_example,
    encode_columns,
    valid_rows,
)
from recordsmith.format.example.spans import select_features
from recordsmith.support.buffers import BytesLike, Int64Array, as_view
from recordsmith.support.errors import CorruptDataError, DataError, OptionError
from recordsmith.support.words import suggest_names

_PREVIEW_COUNT = 16
_FLAT, _ROW_LENGTHS = "/ragged_flat_values", "/ragged_row_lengths_"  # of TensorFlow Datasets
_LENGTHS = f"{_ROW_LENGTHS}0"
_PREFIX = "steps/"
_STEP_FIELDS = frozenset(
    ("action", "actions", "discount", "is_first", "is_last", "is_terminal", "observation", "reward")
)  # of RLDS


def step_prefix(keys: Iterable[str], *, is_sequence: bool) -> str | None:
    """Return what the keys of steps begin with; None if the records are not episodes.

    Checks and statistics detect episodes by it: one of the keys must be a field of the steps of
    RLDS, such as `steps/action`, or a feature list `action` of SequenceExamples.
    """
    prefix = "" if is_sequence else _PREFIX
    fields = (key[len(prefix) :].partition("/")[0] for key in keys if key.startswith(prefix))
    return None if _STEP_FIELDS.isdisjoint(fields) else prefix


def find_count_key(lengths: Mapping[str, int], prefix: str) -> str:
    """Return the feature with one value for each step: `is_first`, or the one with the fewest."""
    is_first = f"{prefix}is_first"
    if is_first in lengths:
        return is_first
    keys = (key for key in sorted(lengths) if not (key.endswith(_FLAT) or is_inner_lengths(key)))
    return min(keys, key=lambda key: lengths[key] or np.inf, default="")


def row_lengths_key(key: str) -> str | None:
    """Return the feature with the number of values of each step; None if it is constant."""
    return key.removesuffix(_FLAT) + _LENGTHS if key.endswith(_FLAT) else None


def is_inner_lengths(key: str) -> bool:
    """Whether a feature has the lengths of sequences inside those of a step."""
    return _ROW_LENGTHS in key and not key.endswith(_LENGTHS)


@dataclass(frozen=True)
class EpisodeLayout:
    """The features of episodes.

    kinds: of all features; None if they are unknown or differ.
    step_keys: which of them have values for each step.
    ragged_keys: which of these have various numbers of values in their steps.
    count_key: the feature with one value for each step.
    prefix: of the keys of steps.
    is_sequence: whether episodes are SequenceExamples, whose lists are the steps.
    is_complete: whether no episode can have other features.
    """

    kinds: Mapping[str, Kind | None]
    step_keys: frozenset[str]
    ragged_keys: frozenset[str]
    count_key: str
    prefix: str
    is_sequence: bool
    is_complete: bool

    def is_of_steps(self, key: str) -> bool:
        """Whether a feature has values for each step."""
        return key in self.step_keys or (not self.is_sequence and key.startswith(self.prefix))

    def step_counts(self, columns: Mapping[str, Any]) -> Int64Array:
        """Return the number of steps of decoded episodes; none if a column is missing."""
        key = self.count_key + _LENGTHS if self.is_sequence else self.count_key
        lengths: Int64Array = columns[key].lengths
        return lengths

    def lengths_key(self, key: str) -> str | None:
        """Return the feature that has the number of values of each step; None if it is constant."""
        if not self.is_sequence:
            if is_inner_lengths(key):
                return key.rpartition(_ROW_LENGTHS)[0] + _LENGTHS
            return row_lengths_key(key)
        return None if key.removesuffix(_LENGTHS) in self.ragged_keys - {key} else key + _LENGTHS

    def as_example(self, payload: BytesLike, keys: Collection[str]) -> bytes:
        """Return a SequenceExample as an Example: some features, and how long their steps are.

        As in TensorFlow Datasets, `KEY/ragged_row_lengths_0` has the lengths of the steps of KEY.
        """
        names = {*keys, *(key.removesuffix(_LENGTHS) for key in keys)}
        context, lists = decode_sequence_example(select_features(payload, names.__contains__))
        columns: dict[str, Any] = {key: [values] for key, values in context.items()}
        for key, steps in lists.items():
            values = [value for of_step in steps for value in of_step]
            if values:  # no values have no kind
                columns[key] = [values]
            lengths = np.array([len(of_step) for of_step in steps], np.int64)
            columns[key + _LENGTHS] = RaggedArray(lengths, np.array([0, len(steps)]))
        return encode_columns(columns)[0].tobytes()


def find_layout(dataset: Dataset, prefix: str, count_by: str | None) -> EpisodeLayout:
    """Return the layout of the episodes of a dataset; OptionError if its records have no steps."""
    schema, is_complete = dataset.view.preview_schema(_PREVIEW_COUNT)
    outer = dataset.view.outer_schema
    if outer is not None and outer.is_complete:
        schema, is_complete = outer, True
    is_sequence = schema.payload == "SequenceExample"
    if is_sequence:
        steps = {**schema.sections.get("feature_lists", {})}
        context = {**schema.sections.get("context", {})}
        lengths_keys = {key + _LENGTHS for key in steps}
        both = sorted((steps.keys() & context.keys()) | (lengths_keys & (steps | context).keys()))
        if both:
            raise OptionError(
                f"{both[0]!r} is both in the context and a feature list of the records, or the "
                "lengths of another list",
                option="dataset",
                remedy="Rename one of them.",
            )
    else:
        steps = {key: known for key, known in schema.features.items() if key.startswith(prefix)}
        context = {key: known for key, known in schema.features.items() if key not in steps}
    lengths = {
        key: (known.max_steps if is_sequence else known.max_length) or 0
        for key, known in steps.items()
        if not key.endswith(_FLAT)
    }
    if not any(lengths.values()) and schema.record_count:
        names = suggest_names(prefix, schema.features, "they have no features")
        raise OptionError(
            "the records have no feature lists"
            if is_sequence
            else f"no feature of the records begins with {prefix!r}; {names}",
            option="prefix",
            value=prefix,
            expected="the beginning of the keys that have values for each step",
        )
    if count_by is None:
        # what never has more than one value is likely not of steps
        several = {key: length for key, length in lengths.items() if length > 1}
        is_first = f"{prefix}is_first"
        count_by = is_first if is_first in lengths else find_count_key(several or lengths, prefix)
    elif count_by not in lengths and schema.record_count:
        raise OptionError(
            f"{count_by!r} is not a feature of steps; "
            f"{suggest_names(count_by, lengths, 'there are none')}",
            option="count_by",
            value=count_by,
        )
    kinds: dict[str, Kind | None] = {
        key: None if known.kind == "mixed" or known.kind == "none" else known.kind  # noqa: PLR1714 - types
        for key, known in {**context, **steps}.items()
    }
    ragged = {key for key in steps if key.endswith(_FLAT) or is_inner_lengths(key)}
    if is_sequence:
        ragged = {key for key, known in steps.items() if known.min_length != known.max_length}
        kinds |= {key + _LENGTHS: "int64" for key in sorted(ragged)}
    step_keys = frozenset(steps).union(key + _LENGTHS for key in ragged if is_sequence)
    return EpisodeLayout(
        kinds, step_keys, frozenset(ragged), count_by, prefix, is_sequence, is_complete
    )


def step_counts(dataset: Dataset, layout: EpisodeLayout) -> Int64Array:
    """Return the number of steps of each episode: int64, (len(dataset),); -1 if it is damaged.

    So is one without the feature that counts its steps; one with an empty list has no steps.
    """
    count = record_steps if layout.is_sequence else record_counts
    uncounted = np.arange(len(dataset))
    counts = np.full(len(dataset), -1, np.int64)
    with suppress(CorruptDataError):
        counts = count(dataset, layout.count_key).astype(np.int64)
        uncounted = np.flatnonzero(counts == 0)
    counts[uncounted] = -1
    rows, found, _ = measure_records(dataset, partial(_step_counts, layout), uncounted)
    counts[rows] = found
    return counts


def _step_counts(
    layout: EpisodeLayout, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> Int64Array:
    """Return the numbers of steps of episodes; -1 without the feature that counts them."""
    key = layout.count_key
    if layout.is_sequence:
        payloads = []
        for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            try:
                payload = as_view(buffer)[start : start + length]
                payloads.append(layout.as_example(payload, [key]))
            except DataError as error:
                error.record = row
                raise
        examples = BytesArray.from_values(payloads)
        buffer, starts, lengths = examples.buffer, examples.offsets[:-1], examples.lengths
        key += _LENGTHS
    spec = FeatureSpec(layout.kinds.get(key, "int64"), "ragged")
    decoder = ColumnDecoder({key: spec}, presence_of=[key])
    decoder.append(buffer, starts, lengths)
    columns, validity = decoder.finish_with_validity(is_strict=False)
    if key not in columns:  # without a kind, as all lists are empty
        return np.where(valid_rows(validity, key, len(starts)), 0, -1)
    column: Any = columns[key]
    return np.where(valid_rows(validity, key, len(starts)), column.lengths, -1)
