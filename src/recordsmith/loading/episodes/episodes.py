"""Windows of the steps of episodes, as what a loader reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any, get_args

import numpy as np

from recordsmith.dataset import Dataset, EpisodeLayout, find_layout, records_of, step_counts
from recordsmith.format.example import BytesArray, FeatureSchema, SchemaSurvey
from recordsmith.loading.episodes.window_reader import WindowReader, WindowTable
from recordsmith.loading.episodes.window_shape import Pad, WindowShape
from recordsmith.loading.order.inputs import LoaderInput, RecordSource, check_random_access
from recordsmith.loading.order.shuffle import BlockShuffle, DatasetOrder, PositionOrder
from recordsmith.loading.preview import Preview
from recordsmith.support.errors import DataError, OptionError, option
from recordsmith.support.explaining import check_word
from recordsmith.support.number_options import count_number, whole_number
from recordsmith.support.words import count as counted
from recordsmith.support.words import parse_size, suggest_names

_LARGEST_STEPS = 1 << 20
_PREVIEWED_EPISODES = 16
_RANGES = "a dict of ranges by key, such as {'steps/action': range(0, 8)}"


class Episodes(LoaderInput):
    """Windows of the steps of episodes, for a Loader: the records of a dataset are read in place.

    A record is an episode: an Example as TensorFlow Datasets writes it (RLDS, Open X-Embodiment),
    with the values of all steps of a feature end to end, or a SequenceExample, whose feature lists
    are the steps. Each window is like a record of its own: a feature of steps has the values of its
    `window` steps, `Tensor("steps/action", (8, 7))` or `Text("steps/language_instruction", (8,))`,
    and images are (batch, 8, height, width, channels). Other features are those of the episode.

    Positions count the windows of all episodes. With `shuffle=True` each window reads its episode;
    a BlockShuffle reads an episode once for windows that are near each other. Only the features
    that the loader has are taken, and only the images of the window are decoded.

    Each window also has `window/episode`, the position of its episode; `window/start`, its first
    step; and `window/is_step`, (window,), with 1 for steps of the episode and 0 for padding.

    `skip_errors` of a loader skips the windows with a damaged image, or with `skip_whole_episodes`
    all windows of its episode. A damaged episode counts once.

    Attributes:
        dataset: of episodes.
        window, stride, pad, skip_whole_episodes: as passed.

    Example:
        with rs.ShardWriter("robot.tfrecord") as writer:
            for length in (20, 30):
                action, is_first = np.zeros(7 * length), np.eye(1, length, dtype=int)[0]
                writer.write_example({"steps/action": action, "steps/is_first": is_first})
        windows = rs.Episodes(rs.open("robot.tfrecord"), window=4)
        features = {"action": rs.Tensor("steps/action", shape=(4, 7))}
        loader = rs.Loader(windows, features, batch_size=8, shuffle=True)
        print(next(iter(loader))["action"].shape)  # (8, 4, 7)
    """

    has_each_once = True

    def __init__(
        self,
        dataset: Dataset,
        *,
        window: int,
        stride: int = 1,
        pad: Pad = "drop",
        ranges: Mapping[str, range] | None = None,
        prefix: str = "steps/",
        count_by: str | None = None,
        cache_bytes: int | str = "64MiB",
        skip_whole_episodes: bool = False,
    ) -> None:
        """Cut episodes into windows. Counts the steps of all episodes, and keeps the counts.

        Args:
            dataset: whose records are episodes.
            window: the number of steps of a window.
            stride: how many steps a window begins after the one before.
            pad: `drop` has only windows whose steps are all in the episode. The others have a
                window for each step of the episode (with a stride, for some): steps before the
                first or after the last are a copy of it (`repeat`), or have numbers 0, empty bytes
                and black images (`zero`).
            ranges: other steps for some features, counted from the first step of the window:
                `{"steps/action": range(1, 9)}` has the next 8 actions,
                `{"steps/image": range(-1, 1)}` the image of the step before and of this one.
                `window/is_step/KEY` shows which of them are in the episode.
            prefix: features whose key begins with it are those of steps. SequenceExamples need
                none.
            count_by: the key of a feature of steps with one value for each step. Default:
                `is_first` after the prefix, else the feature with the fewest values.
            cache_bytes: how many bytes of episodes to keep for other windows, such as "64MiB".
            skip_whole_episodes: an episode with a damaged image is damaged as a whole, so that none
                of its windows are loaded, on any rank. For that, all its images are decoded when
                its first window is.

        Raises:
            OptionError: the records have no steps, all episodes are shorter than a window, or a
                key of `ranges` is unknown.
        """
        check_random_access(dataset)
        check_word("pad", pad, get_args(Pad))
        self.dataset = dataset
        self.window = count_number("window", window, _LARGEST_STEPS)
        self.stride = count_number("stride", stride, _LARGEST_STEPS)
        self.pad: Pad = pad
        size = parse_size(cache_bytes) if isinstance(cache_bytes, str) else cache_bytes
        self._cache_bytes = whole_number("cache_bytes", size, 0)
        self.skip_whole_episodes = skip_whole_episodes
        layout = find_layout(dataset, prefix, count_by)
        shape = WindowShape(self.window, self.stride, pad, _checked_ranges(ranges, layout))
        steps = step_counts(dataset, layout)
        ends = np.cumsum(np.where(steps < 0, 1, shape.counts(np.maximum(steps, 0))))
        if len(steps) and not ends[-1]:
            begin, end = shape.reach
            raise OptionError(
                f"no episode has {counted(end - begin, 'step')}, which {layout.count_key!r} counts",
                option="window",
                value=window,
                expected=f"at most {steps.max()}, as the longest episode has",
                remedy=f"Use a smaller {option('window')} or {option('pad', 'repeat')}, or pass "
                f"{option('count_by')} if another feature has one value for each step.",
            )
        self._table = WindowTable(dataset, shape, layout, ends)
        self.datasets = (dataset,)
        self.records = self.reading(self._table.keys)
        self.record_count = int(ends[-1]) if len(ends) else 0

    def __len__(self) -> int:
        """Return how many windows there are."""
        return self.record_count

    def __repr__(self) -> str:
        windows = counted(len(self), "window")
        return f"Episodes({windows} of {self.window} steps in {len(self.dataset)} episodes)"

    def reading(self, keys: Collection[str], images: Collection[str] = ()) -> RecordSource:
        """Return the windows as records that have only some features, some of them images."""
        checked = images if self.skip_whole_episodes else ()
        return WindowReader(self._table, keys, self._cache_bytes, checked)

    def order(self, *, shuffle: bool | BlockShuffle, seed: int) -> PositionOrder:
        """Return the order of an epoch."""
        return DatasetOrder(len(self), shuffle=shuffle, seed=seed)

    def describe(self) -> Any:
        """Return a JSON-able description of the episodes and their windows."""
        return {"episodes": records_of(self.dataset).describe(), **self._table.shape.describe()}

    def previews(self) -> list[Preview]:
        """Return the schema of the first windows, in which each feature of steps has an axis."""
        survey = SchemaSurvey()
        for _, payload in self._first_windows:
            survey.update(payload, np.zeros(1, np.int64), np.array([len(payload)]))
        layout = self._table.layout
        kinds = layout.kinds
        listed = None
        if layout.is_complete or layout.is_sequence:  # a list that is not in the layout is not read
            keys = self._table.keys
            listed = {key: FeatureSchema(kinds.get(key) or "none", 0, 0, 0) for key in keys}
        schema = survey.finish()
        features = {
            key: dataclasses.replace(known, shape=(1,))
            if known.shape == () and self._table.is_of_steps(key)
            else known
            for key, known in schema.features.items()
        }
        return [
            Preview(
                dataclasses.replace(schema, sections={"features": features}),
                schema.record_count == len(self),
                listed,
                layout.is_complete,
                lambda: iter(self._first_windows),
                self.dataset.view.find_key,
                self._first[1],
            )
        ]

    def first_payloads(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield 0, position and payload of the first window of the first episodes."""
        for position, payload in self._first_windows:
            yield 0, position, payload

    @property
    def _first_windows(self) -> list[tuple[int, bytes]]:
        return self._first[0]

    @cached_property
    def _first(self) -> tuple[list[tuple[int, bytes]], dict[str, DataError]]:
        """The first window of each of the first episodes, and the errors of features.

        It is the first one without padding before it, where the episode is as long. Then the first
        of all, as some features may have steps in no other one.
        """
        ends = self._table.ends
        counts = np.diff(ends, prepend=0)
        before = -(-max(0, -self._table.shape.reach[0]) // self.stride) if self.pad != "drop" else 0
        used = np.flatnonzero(counts)[:_PREVIEWED_EPISODES]
        firsts = (ends - counts)[used]
        positions = (firsts + np.minimum(before, counts[used] - 1)).tolist()
        positions = [*dict.fromkeys((*positions, *firsts[:1].tolist()))]
        keys, records = self._table.keys, self.records
        left_out: dict[str, DataError] = {}
        while True:
            windows: list[tuple[int, bytes]] = []
            faults: dict[str | None, DataError] = {}
            for position in positions:
                try:
                    payloads: BytesArray = records.read_records(np.array([position]))
                except DataError as error:
                    faults.setdefault(error.feature, error)
                else:
                    windows.append((position, payloads[0]))
            others = [key for key in keys if key not in faults]
            if windows or len(others) == len(keys):
                return windows, left_out
            left_out |= {key: faults[key] for key in keys if key in faults}
            keys, records = others, self.reading(others)


def _checked_ranges(ranges: object, layout: EpisodeLayout) -> dict[str, range]:
    if ranges is None:
        return {}
    if not isinstance(ranges, Mapping):
        raise OptionError(option="ranges", value=ranges, expected=_RANGES)
    for key, steps in ranges.items():
        if not (isinstance(steps, range) and len(steps) and steps.step > 0):
            raise OptionError(
                f"{option('ranges')} has {steps!r:.60} for {key!r:.60}",
                option="ranges",
                value=steps,
                expected="a range of steps that ascends, such as range(0, 8)",
            )
        if max(-steps[0], steps[-1]) > _LARGEST_STEPS:
            raise OptionError(
                f"{option('ranges')} has {steps!r} for {key!r}",
                option="ranges",
                value=steps,
                expected=f"at most {_LARGEST_STEPS:,} steps",
            )
        if key not in layout.step_keys:
            names = suggest_names(str(key), layout.step_keys, "there are none")
            raise OptionError(
                f"{option('ranges')} has {key!r:.60}, which is not a feature of steps; {names}",
                option="ranges",
                value=key,
            )
    return dict(ranges)
