"""Statistics of episodes: their number of steps, and the range of each dimension of the actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from recordsmith.checking.statistics.feature_blocks import FeatureBlock
from recordsmith.checking.statistics.number_stats import NumberBuilder, NumberStats
from recordsmith.checking.statistics.sampling import Builder, hash_positions
from recordsmith.checking.statistics.table_cells import format_number, short, spread, spread_table
from recordsmith.dataset import find_count_key, step_prefix
from recordsmith.format.example import Kind
from recordsmith.support.buffers import Int64Array
from recordsmith.support.reports import ReportTable
from recordsmith.support.summaries import Report
from recordsmith.support.words import count as format_count

MAX_DIMENSIONS = 64
"""How many dimensions of an action get statistics, as many features of actions: 1 MB for each."""


@dataclass(frozen=True, repr=False)
class EpisodeStats(Report):
    """Statistics of the steps of episodes.

    count: number of episodes.
    steps: number of steps of all episodes.
    lengths: numbers of steps of the episodes.
    actions: the numbers of each dimension, by feature.
    """

    count: int
    steps: int
    lengths: NumberStats
    actions: Mapping[str, tuple[NumberStats, ...]]

    def table(self) -> ReportTable:
        rows = [spread("steps of an episode", self.lengths, format_number)]
        for key, dimensions in self.actions.items():
            for number, dimension in enumerate(dimensions):
                name = short(key) + (f" [{number}]" if len(dimensions) > 1 else "")
                rows.append(spread(name, dimension, format_number))
        title = f"{format_count(self.count, 'episode')}, {format_count(self.steps, 'step')}"
        return spread_table(title, rows, "")


class EpisodeBuilder(Builder):
    """Collects the episodes of some shards."""

    def __init__(self) -> None:
        self._count = self._steps = 0
        self._lengths = NumberBuilder()
        self._actions: dict[tuple[str, str], dict[int, NumberBuilder]] = {}  # by key and kind

    def add(
        self, blocks: Mapping[str, FeatureBlock], places: Int64Array, *, is_lists: bool
    ) -> None:
        """Add some records; `places` numbers them. Does nothing if they are not episodes."""
        prefix = step_prefix(blocks, is_sequence=is_lists)
        if prefix is None:
            return
        steps_of = {
            key: _step_counts(block, len(places))
            for key, block in blocks.items()
            if key.startswith(prefix)
        }
        totals = {key: int(counts.max(initial=0)) for key, counts in steps_of.items()}
        steps = steps_of[find_count_key(totals, prefix)]
        self._count += len(places)
        self._steps += int(steps.sum())
        self._lengths.add(steps, hash_positions(places))
        for key, block in blocks.items():
            if key.startswith(f"{prefix}action"):
                self._add_action(block, steps, places)

    def _add_action(self, block: FeatureBlock, steps: Int64Array, places: Int64Array) -> None:
        """Add a feature with equally many numbers in each step of these episodes."""
        kinds: tuple[Kind, ...] = ("float", "int64")
        for kind in kinds:
            if (numbers_of_kind := block.numbers(kind)) is None:
                continue
            values, rows = numbers_of_kind
            counts = np.bincount(rows, minlength=len(places))
            sizes = np.unique(counts[counts > 0] / np.maximum(steps[counts > 0], 1))
            if len(sizes) != 1 or not sizes[0].is_integer():
                continue
            if (block.key, kind) not in self._actions and len(self._actions) >= MAX_DIMENSIONS:
                continue
            hashes = hash_positions(places[rows])
            dimensions = self._actions.setdefault((block.key, kind), {})
            for number in range(min(int(sizes[0]), MAX_DIMENSIONS)):
                every = slice(number, None, int(sizes[0]))
                numbers = dimensions.setdefault(number, NumberBuilder())
                numbers.add(values[every], hashes[every])

    def merge(self, other: EpisodeBuilder) -> None:
        more = [key for key in other._actions if key not in self._actions]
        for key in more[MAX_DIMENSIONS - len(self._actions) :]:
            del other._actions[key]
        super().merge(other)

    def finish(self) -> EpisodeStats | None:
        if not self._count:
            return None
        actions = {
            key: tuple(dimensions[number].finish() for number in sorted(dimensions))
            for (key, _), dimensions in sorted(self._actions.items())
        }
        return EpisodeStats(self._count, self._steps, self._lengths.finish(), actions)


def _step_counts(block: FeatureBlock, record_count: int) -> Int64Array:
    """Return how many steps each record has in a feature list, or how many values."""
    if block.long_list is not None:
        return block.lengths if block.steps is None else block.steps
    rows = [np.unique(rows) if block.steps is not None else rows for rows in block.rows.values()]
    counts = np.bincount(np.concatenate(rows or [np.zeros(0, np.int64)]), minlength=record_count)
    if block.steps is not None:
        if len(block.steps) == record_count:
            return block.steps
        if np.count_nonzero(counts) == len(block.steps):
            counts[counts > 0] = block.steps
    return counts
