"""Makes the records of windows: reads their episodes, takes the steps, and encodes them.

The windows of a request are made together: each episode is read and decoded once, and the steps of
all windows are taken with NumPy. Bytes, such as frames, are not copied before they are encoded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import Dataset, EpisodeLayout, Faults, RecordLocation, records_of
from recordsmith.format.example import (
    BytesArray,
    Column,
    ColumnDecoder,
    ColumnEncoder,
    FeatureSpec,
    RaggedArray,
    valid_rows,
)
from recordsmith.image import decode_image
from recordsmith.loading.episodes.window_shape import WindowShape
from recordsmith.loading.memory import RecycledMemory
from recordsmith.loading.order.inputs import MadePayloads, in_order
from recordsmith.loading.record_cache import RecordCache
from recordsmith.support.buffers import AllocateBytes, Int64Array, empty_bytes, offsets_from_lengths
from recordsmith.support.errors import CorruptDataError, DataError, Defect, option
from recordsmith.support.words import count as counted

EPISODE, START, IS_STEP = "window/episode", "window/start", "window/is_step"
"""Keys that each window has: its episode, its first step, and which of its steps are in the
episode; and `window/is_step/KEY` for a feature with other steps."""

_DECODED_AT_ONCE = 8 << 20  # bytes of episodes


@dataclass(frozen=True)
class WindowTable:
    """Where the windows of a dataset are.

    ends: int64, (episode_count,): how many windows there are up to the end of each episode.
    """

    dataset: Dataset
    shape: WindowShape
    layout: EpisodeLayout
    ends: Int64Array

    def find(self, positions: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the episodes of windows, and their numbers in them."""
        episodes = np.searchsorted(self.ends, positions, side="right")
        return episodes, positions - self.first(episodes)

    def first(self, episodes: Int64Array) -> Int64Array:
        """Return the positions of the first windows of episodes."""
        return np.where(episodes > 0, self.ends[episodes - 1], 0)

    def is_of_steps(self, key: str) -> bool:
        """Whether a feature of a window has values for each step."""
        if key in (EPISODE, START):
            return False
        return key.startswith(IS_STEP) or self.layout.is_of_steps(key)

    @property
    def keys(self) -> list[str]:
        own = [EPISODE, START, IS_STEP, *(f"{IS_STEP}/{key}" for key in self.shape.ranges)]
        return [*self.layout.kinds, *own]


class _Group(NamedTuple):
    """Episodes that are decoded together: which they are, and their payloads if they are kept.

    byte_count: how many bytes they have.
    """

    rows: list[int]
    payloads: list[npt.NDArray[np.uint8]]
    byte_count: int


class WindowReader:
    """The windows of a dataset as records: a RecordSource. Thread-safe."""

    def __init__(
        self,
        table: WindowTable,
        keys: Collection[str],
        cache_bytes: int,
        checked: Collection[str] = (),
    ) -> None:
        """`keys`: of the features that the records have; `checked`: those of the images that are
        decoded before any window of their episode is made.
        """
        self._checked = sorted(checked)
        self._is_intact = np.zeros(len(table.ends) if checked else 0, np.bool_)
        self._table = table
        self._records = records_of(table.dataset)
        layout = table.layout
        own = {key for key in keys if key.startswith(f"{IS_STEP}/")} | {EPISODE, START, IS_STEP}
        self._own_keys = own.intersection(keys)
        self._keys = sorted(set(keys) - own)
        read: dict[str, FeatureSpec] = {}
        for key in (*self._keys, layout.count_key):
            is_count = key == layout.count_key
            kind = layout.kinds.get(key) or ("int64" if is_count else None)
            read[key] = FeatureSpec(kind, "ragged")
            lengths = layout.lengths_key(key) if layout.is_of_steps(key) else None
            if lengths is not None:
                read[lengths] = FeatureSpec("int64", "ragged")
        self._read_specs = read
        self._cache = RecordCache(cache_bytes)
        self._reset()

    def _reset(self) -> None:
        self._decoders: deque[ColumnDecoder] = deque()
        self._memory = RecycledMemory(2)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_decoders": None, "_memory": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._reset()

    def record_sizes(self, positions: Int64Array) -> Int64Array:
        return self._records.record_sizes(self._table.find(positions)[0])

    def locate_record(self, position: int) -> RecordLocation:
        return self._records.locate_record(int(self._table.find(np.array([position]))[0][0]))

    def read_records(
        self,
        positions: Int64Array,
        allocate: AllocateBytes = empty_bytes,
        faults: Faults | None = None,
    ) -> BytesArray:
        positions = np.asarray(positions, np.int64)
        episodes, numbers = self._table.find(positions)
        firsts = self._table.shape.first_steps(numbers)
        used, of_window = np.unique(episodes, return_inverse=True)
        pieces: list[tuple[Int64Array, BytesArray]] = []
        read_byte_count = 0
        for group in self._groups(used):
            read_byte_count += 0 if group.payloads else group.byte_count
            group_of = np.full(len(used), -1, np.int64)
            group_of[group.rows] = np.arange(len(group.rows))
            members = np.flatnonzero(group_of[of_window] >= 0)
            of_member = group_of[of_window[members]]
            own_faults: Faults | None = None if faults is None else {}
            rows, windows = self._windows(
                used[group.rows], group.payloads, of_member, firsts[members], own_faults
            )
            if faults is not None and own_faults:
                for member, row in zip(members.tolist(), of_member.tolist(), strict=True):
                    if row in own_faults:
                        faults[member] = own_faults[row]
            pieces.append((members[rows], windows))
        return MadePayloads(in_order(pieces, len(positions), allocate), read_byte_count)

    def _groups(self, episodes: Int64Array) -> Iterator[_Group]:
        """Yield episodes that are decoded together: those that are kept, then the others."""
        sizes = self._records.record_sizes(episodes).tolist()
        kept = list(map(self._cache.get, episodes.tolist(), sizes))
        for is_kept in (True, False):
            rows: list[int] = []
            payloads: list[npt.NDArray[np.uint8]] = []
            byte_count = 0
            for row, payload in enumerate(kept):
                if (payload is not None) is not is_kept:
                    continue
                if byte_count and byte_count + sizes[row] > _DECODED_AT_ONCE:
                    yield _Group(rows, payloads, byte_count)
                    rows, payloads, byte_count = [], [], 0
                rows.append(row)
                if payload is not None:
                    payloads.append(payload)
                byte_count += sizes[row]
            if rows:
                yield _Group(rows, payloads, byte_count)

    # -- episodes ----------------------------------------------------------------------------------

    def _read(self, episodes: Int64Array, faults: Faults | None) -> BytesArray:
        """Return the payloads of episodes that are not in the cache."""
        payloads = self._records.read_records(episodes, self._allocate, faults)
        if self._table.layout.is_sequence:
            payloads = self._as_examples(payloads, episodes, faults)
        for row, (begin, end) in enumerate(pairwise(payloads.offsets.tolist())):
            if faults is None or row not in faults:
                self._cache.keep(int(episodes[row]), payloads.buffer[begin:end])
        return payloads

    def _joined(self, kept: list[npt.NDArray[np.uint8]]) -> BytesArray:
        offsets = offsets_from_lengths([len(payload) for payload in kept])
        if len(kept) == 1:
            return BytesArray(kept[0], offsets)
        data = self._allocate(int(offsets[-1]))
        np.concatenate(kept, out=data)
        return BytesArray(data, offsets)

    def _as_examples(
        self, payloads: BytesArray, episodes: Int64Array, faults: Faults | None
    ) -> BytesArray:
        examples = []
        for row, payload in enumerate(payloads.views()):
            example = b""
            if faults is None or row not in faults:
                try:
                    example = self._table.layout.as_example(payload, self._read_specs)
                except DataError as error:
                    self._fail(error, row, episodes, faults)
            examples.append(example)
        return BytesArray.from_values(examples)

    def _allocate(self, byte_count: int, name: str = "") -> npt.NDArray[np.uint8]:
        return self._memory.empty(name, (byte_count,), np.uint8)

    def _fail(
        self, error: DataError, row: int, episodes: Int64Array, faults: Faults | None
    ) -> None:
        """Record the error of an episode, with its place; raise it without `faults`."""
        located = self._records.locate_record(int(episodes[row])).located(error)
        if faults is None:
            raise located
        faults[row] = located.with_traceback(None)

    def _decode(
        self, payloads: BytesArray, episodes: Int64Array, faults: Faults | None
    ) -> tuple[dict[str, Any], dict[str, npt.NDArray[np.uint8]], Int64Array]:
        """Return ragged columns, their validity, and which episodes they are of."""
        lengths = payloads.lengths
        while True:
            rows = np.array([row for row in range(len(episodes)) if row not in (faults or ())])
            rows = rows.astype(np.int64)
            try:
                decoder = self._decoders.pop()
            except IndexError:
                specs = self._read_specs
                borrowed = [key for key, spec in specs.items() if spec.kind == "bytes"]
                decoder = ColumnDecoder(specs, borrowed=borrowed, presence_of=list(specs))
            try:
                decoder.append(payloads.buffer, payloads.offsets[rows], lengths[rows])
            except DataError as error:
                self._fail(error, int(rows[error.record or 0]), episodes, faults)
            else:
                columns, validity = decoder.finish_with_validity(is_strict=False)
                self._decoders.append(decoder)
                return columns, validity, rows

    # -- windows -----------------------------------------------------------------------------------

    def _windows(
        self,
        episodes: Int64Array,
        kept: list[npt.NDArray[np.uint8]],
        of_window: Int64Array,
        firsts: Int64Array,
        faults: Faults | None,
    ) -> tuple[Int64Array, BytesArray]:
        """Make windows of episodes; return which windows they are, and their payloads.

        Args:
            kept: the payloads of the episodes, if they are in the cache.
            of_window: int64, (windows,): the row of the episode of each window.
            firsts: int64, (windows,): their first steps.
        """
        payloads = self._joined(kept) if kept else self._read(episodes, faults)
        columns, validity, rows = self._decode(payloads, episodes, faults)
        layout, shape = self._table.layout, self._table.shape
        table_rows = np.full(len(episodes), -1, np.int64)
        table_rows[rows] = np.arange(len(rows))
        step_counts = layout.step_counts(columns)
        bad = self._check(columns, validity, step_counts, episodes, rows, faults)
        if self._checked:
            self._check_images(columns, episodes, rows, bad, faults)
        table_rows[rows[bad]] = -1
        made = np.flatnonzero(table_rows[of_window] >= 0)
        of_row, firsts = table_rows[of_window[made]], firsts[made]
        windows: dict[str, Column] = {}
        valid: dict[str, npt.NDArray[np.bool_]] = {}
        taken: dict[range, tuple[Int64Array, npt.NDArray[np.bool_]]] = {}

        def steps_of(key: str) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
            at = shape.steps(key)
            if at not in taken:
                steps = firsts[:, np.newaxis] + np.arange(at.start, at.stop, at.step)
                last = step_counts[of_row][:, np.newaxis] - 1
                taken[at] = np.clip(steps, 0, last), (steps >= 0) & (steps <= last)
            return taken[at]

        for key in self._keys:
            if key not in columns:
                continue
            column = columns[key]
            if layout.is_of_steps(key):
                steps, are_inside = steps_of(key)
                lengths_key = layout.lengths_key(key)
                lengths = None if lengths_key is None else columns[lengths_key]
                starts, counts = _spans(column, lengths, step_counts, of_row, steps)
                outside = ~are_inside if shape.pad == "zero" else None
                if outside is not None and key in layout.ragged_keys:
                    counts = np.where(outside, 0, counts)  # no values, as their lengths are 0
                windows[key] = _take(column, starts, counts, outside)
            else:
                windows[key] = column[of_row]
            if key in validity:
                valid[key] = valid_rows(validity, key, len(rows))[of_row]
        for key in self._own_keys:
            if key == EPISODE:
                windows[key] = episodes[rows][of_row]
            elif key == START:
                windows[key] = firsts
            else:
                windows[key] = steps_of(key.removeprefix(f"{IS_STEP}/"))[1].astype(np.int64)
        if not windows:
            return made, BytesArray(empty_bytes(0), np.zeros(len(made) + 1, np.int64))
        allocate = partial(self._allocate, name="windows")
        return made, BytesArray(*ColumnEncoder(windows, valid).encode(0, len(made), allocate))

    def _check(
        self,
        columns: dict[str, Any],
        validity: dict[str, npt.NDArray[np.uint8]],
        step_counts: Int64Array,
        episodes: Int64Array,
        rows: Int64Array,
        faults: Faults | None,
    ) -> npt.NDArray[np.bool_]:
        """Return which episodes have features of other lengths than their number of steps."""
        table = self._table
        window_counts = table.ends[episodes[rows]] - table.first(episodes[rows])
        bad: npt.NDArray[np.bool_] = table.shape.counts(step_counts) != window_counts

        count_key = table.layout.count_key

        def fail(row: int, key: str, found: str, expected: str) -> None:
            error = CorruptDataError(
                Defect.FEATURE_SHAPE,
                f"feature {key!r} does not have values for each step",
                found=found,
                expected=expected,
                remedy=f"If it is not of steps, rename it or pass another {option('prefix')}."
                if not table.layout.is_sequence and key != count_key
                else "",
                feature=key,
            )
            self._fail(error, int(rows[row]), episodes, faults)

        is_counted = valid_rows(
            validity, table.layout.lengths_key(count_key) or count_key, len(rows)
        )
        for row in np.flatnonzero(~is_counted).tolist():
            bad[row] = True
            error = CorruptDataError(
                Defect.MISSING_FEATURE,
                f"feature {count_key!r}, which counts the steps, is missing",
                remedy=f"Pass {option('count_by')} to count the values of another feature.",
                feature=count_key,
            )
            self._fail(error, int(rows[row]), episodes, faults)
        for row in np.flatnonzero(bad & is_counted).tolist():
            found = counted(int(step_counts[row]), "step")
            windows = counted(int(window_counts[row]), "window")
            fail(row, count_key, found, f"steps for {windows}, as in the index")
        for key in self._keys:
            if key not in columns or not table.layout.is_of_steps(key):
                continue
            value_counts = columns[key].lengths
            is_there = valid_rows(validity, key, len(rows))
            lengths_key = table.layout.lengths_key(key)
            if lengths_key is None:
                wrong = value_counts % np.maximum(step_counts, 1) != 0
            elif lengths_key in columns:
                lengths = columns[lengths_key]
                sums = np.diff(offsets_from_lengths(lengths.values)[lengths.row_splits])
                wrong = (lengths.lengths != step_counts) | (sums != value_counts)
                wrong |= _any_negative(lengths)
            else:
                wrong = is_there
            for row in np.flatnonzero(wrong & is_there & ~bad).tolist():
                found = counted(int(value_counts[row]), "value")
                if lengths_key in columns:
                    found += f" in {counted(int(columns[lengths_key].lengths[row]), 'step')}"
                fail(row, key, found, f"values for {counted(int(step_counts[row]), 'step')}")
                bad[row] = True
        return bad

    def _check_images(
        self,
        columns: dict[str, Any],
        episodes: Int64Array,
        rows: Int64Array,
        bad: npt.NDArray[np.bool_],
        faults: Faults | None,
    ) -> None:
        """Decode all images of the episodes that are not known to be intact; others become bad."""
        for row in np.flatnonzero(~bad & ~self._is_intact[episodes[rows]]).tolist():
            try:
                for key in self._checked:
                    _check_decodes(key, columns[key][row])
            except DataError as error:
                self._fail(error, int(rows[row]), episodes, faults)
                bad[row] = True
            else:
                self._is_intact[episodes[rows[row]]] = True


def _check_decodes(key: str, images: BytesArray) -> None:
    for number, data in enumerate(images.views()):
        try:
            if len(data):
                decode_image(data)
        except DataError as error:
            error.problem = f"image {number} of {len(images)} of the episode: {error.problem}"
            error.feature = key
            raise


def _any_negative(lengths: RaggedArray) -> npt.NDArray[np.bool_]:
    of_value = np.repeat(np.arange(len(lengths)), lengths.lengths)
    negative = np.zeros(len(lengths), np.bool_)
    negative[of_value[np.asarray(lengths.values) < 0]] = True
    return negative


def _spans(
    column: RaggedArray,
    lengths: RaggedArray | None,
    step_counts: Int64Array,
    of_row: Int64Array,
    steps: Int64Array,
) -> tuple[Int64Array, Int64Array]:
    """Return where the values of the steps of windows begin, and their number: (windows, steps)."""
    rows = of_row[:, np.newaxis]
    if lengths is None:
        per_step = (column.lengths // np.maximum(step_counts, 1))[rows]
        return column.row_splits[rows] + steps * per_step, np.broadcast_to(per_step, steps.shape)
    numbers: Any = lengths.values
    if not len(numbers):
        return np.zeros_like(steps), np.zeros_like(steps)
    at = np.minimum(lengths.row_splits[rows] + steps, len(numbers) - 1)
    return offsets_from_lengths(numbers)[at], numbers[at]


def _take(
    column: RaggedArray,
    starts: Int64Array,
    lengths: Int64Array,
    outside: npt.NDArray[np.bool_] | None,
) -> RaggedArray:
    """Return the values of spans, (windows, steps), as rows; steps `outside` are 0 or empty."""
    flat = lengths.reshape(-1)
    offsets = offsets_from_lengths(flat)
    places = np.arange(offsets[-1]) + np.repeat(starts.reshape(-1) - offsets[:-1], flat)
    values: Any = column.values[places]
    cleared = np.repeat(
        np.zeros_like(flat, np.bool_) if outside is None else outside.reshape(-1), flat
    )
    if cleared.any():
        if isinstance(values, BytesArray):
            values = values.cleared(cleared)
        else:
            values[cleared] = 0
    return RaggedArray(values, offsets[:: lengths.shape[1]])
