"""Decides which split each sample belongs to, in one pass in the order of the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array, offsets_from_lengths
from recordsmith.dataset.shares import share_counts
from recordsmith.errors import OptionError, option
from recordsmith.sources.problems import join_names


class SampleColumns(Protocol):
    """Some samples as arrays: `number`, `size`, `label`, `split`, `group`."""

    def __len__(self) -> int: ...
    def __getitem__(self, name: str, /) -> npt.NDArray[Any]: ...


class DivisibleSamples(Protocol):
    """All samples of a listing.

    split_counts: by split of the listing; empty if it has none.
    has_groups: whether a sample belongs to a group.
    """

    split_counts: Int64Array
    has_groups: bool

    def __len__(self) -> int: ...

    def portions(self) -> Iterator[SampleColumns]:
        """Yield all samples, some at a time, in any order."""
        ...


class Division:
    """The splits of a job, and which samples belong to each.

    splits: their names, in order.
    counts: how many samples each has.
    """

    def __init__(
        self,
        samples: DivisibleSamples,
        source_splits: Sequence[str],
        splits: Mapping[str, float] | None,
        resplit: str | Sequence[str] | None,
        *,
        stratify: bool,
    ) -> None:
        """Options as in `pack`.

        Raises:
            OptionError: they contradict each other or the source, or a split would be empty.
        """
        counts = samples.split_counts.tolist()
        given = [split for split, count in zip(source_splits, counts, strict=True) if count]
        divided = splits_to_divide(given, splits, resplit, stratify=stratify)
        shares = {} if given and not divided else {"train": 1.0} if splits is None else splits
        kept = [split for split in given if split not in divided]
        self._first = given.index(divided[0]) if divided else 0
        self.splits = (*kept[: self._first], *shares, *kept[self._first :])
        self._of_source = np.array(
            [self.splits.index(split) if split in kept else -1 for split in source_splits], np.int64
        )
        self._rule: _Ranks | _Groups | None = None
        self.counts = [counts[source_splits.index(split)] for split in kept]
        if shares:
            self._rule = self._make_rule(samples, shares, stratify=stratify)
            self.counts[self._first : self._first] = self._rule.counts.tolist()
            self._check_all_have_samples(samples, shares, stratify=stratify)

    def parts(self, samples: SampleColumns) -> Int64Array:
        """Return the index of the split of each sample, for samples in the order of the plan."""
        if self._rule is None:
            return self._of_source.take(samples["split"])
        if (self._of_source < 0).all():
            return self._rule.parts(self._rule.values(samples))
        found = self._of_source.take(samples["split"])
        is_divided = found < 0
        found[is_divided] = self._first + self._rule.parts(self._rule.values(samples)[is_divided])
        return found

    def _make_rule(
        self, samples: DivisibleSamples, shares: Mapping[str, float], *, stratify: bool
    ) -> _Ranks | _Groups:
        if stratify and samples.has_groups:
            raise OptionError(
                f"{option('stratify')} cannot be used with a source that has groups: groups are "
                "never divided, so the class balance of the splits cannot be chosen",
                option="stratify",
                value=True,
                remedy="Use only one of them.",
            )
        if samples.has_groups:
            return _Groups(*_merged_counts(self._divided(samples, "group")), shares)
        if stratify:
            return _Ranks("label", *_merged_counts(self._divided(samples, "label")), shares)
        is_divided = self._of_source < 0
        count = int(samples.split_counts[is_divided].sum()) if len(is_divided) else len(samples)
        return _Ranks("", np.zeros(1, np.int64), np.array([count]), shares)

    def _divided(self, samples: DivisibleSamples, column: str) -> Iterator[npt.NDArray[Any]]:
        """Yield a column of the samples that are divided."""
        for portion in samples.portions():
            values = portion[column]
            yield (
                values
                if not len(self._of_source)
                else values[self._of_source[portion["split"]] < 0]
            )

    def _check_all_have_samples(
        self, samples: DivisibleSamples, shares: Mapping[str, float], *, stratify: bool
    ) -> None:
        assert self._rule is not None
        counts = self._rule.counts
        every = " of every class" if stratify else ""
        for split, count in zip(shares, counts.tolist(), strict=True):
            if not count:
                whole = "; groups are never divided" if samples.has_groups else ""
                raise OptionError(
                    f"split {split!r} would be empty: its share is {shares[split]:g}{every} of "
                    f"{int(counts.sum())} samples{whole}",
                    option="splits",
                    value=split,
                    remedy="Give it a larger share.",
                )


class _Ranks:
    """Cuts the samples of each class into consecutive runs, one for each split.

    counts: the number of samples of each split.
    """

    def __init__(
        self,
        column: str,
        classes: npt.NDArray[Any],
        class_counts: Int64Array,
        shares: Mapping[str, float],
    ) -> None:
        """
        Args:
            column: what the classes are; empty for one class of all samples.
            classes: ascending.
        """
        self._column = column
        self._classes = classes
        cut = [[*share_counts(count, shares).values()] for count in class_counts.tolist()]
        of_classes = np.array(cut, np.int64).reshape(-1, len(shares))
        self.counts: Int64Array = of_classes.sum(axis=0)
        self._ends = np.cumsum(of_classes, axis=1)
        self._seen = np.zeros(len(classes), np.int64)

    def values(self, samples: SampleColumns) -> npt.NDArray[Any]:
        return samples[self._column] if self._column else np.zeros(len(samples), np.int8)

    def parts(self, values: npt.NDArray[Any]) -> Int64Array:
        """Return the index of the split of each sample: continues where the last call ended."""
        parts = np.zeros(len(values), np.int64)
        if len(self.counts) == 1:
            return parts
        if len(self._classes) == 1:
            classes = np.zeros(1, np.int64)
            ranks = np.arange(len(values)) + self._seen
            self._seen += len(values)
        else:
            classes = np.searchsorted(self._classes, values)
            ranks = self._ranks(classes)
        for ends in self._ends[:, :-1].T:
            parts += ranks >= ends[classes]
        return parts

    def _ranks(self, classes: Int64Array) -> Int64Array:
        """Number the samples of each class."""
        counts = np.bincount(classes, minlength=len(self._classes))
        first = self._seen - offsets_from_lengths(counts)[:-1]
        order = np.argsort(classes, kind="stable")
        ranks = np.empty(len(classes), np.int64)
        ranks[order] = np.arange(len(classes)) + first[classes[order]]
        self._seen += counts
        return ranks


class _Groups:
    """Puts each group into the split where its middle falls, in the order of their hashes."""

    def __init__(
        self, groups: npt.NDArray[Any], group_counts: Int64Array, shares: Mapping[str, float]
    ) -> None:
        """`groups`: their hashes, ascending; 16 bytes each are kept."""
        self._groups = groups
        ends = np.cumsum(group_counts)
        bounds = np.cumsum([*share_counts(int(group_counts.sum()), shares).values()])
        parts = np.searchsorted(bounds, ends - group_counts / 2, side="right")
        self._parts = np.minimum(parts, len(shares) - 1)
        self.counts: Int64Array = np.bincount(
            self._parts, weights=group_counts, minlength=len(shares)
        ).astype(np.int64)

    def values(self, samples: SampleColumns) -> npt.NDArray[Any]:
        return samples["group"]

    def parts(self, values: npt.NDArray[Any]) -> Int64Array:
        found: Int64Array = self._parts[np.searchsorted(self._groups, values)]
        return found


def _merged_counts(found: Iterator[npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], Int64Array]:
    """Return the different values of some arrays, ascending, and how often they occur."""
    waiting: list[tuple[npt.NDArray[Any], Int64Array]] = []
    for values in found:
        waiting.append(np.unique(values, return_counts=True))
        while len(waiting) > 1 and len(waiting[-2][0]) <= 2 * len(waiting[-1][0]):
            waiting[-2:] = [_merged_two(*waiting[-2:])]
    while len(waiting) > 1:
        waiting[-2:] = [_merged_two(*waiting[-2:])]
    return waiting[0]


def _merged_two(
    left: tuple[npt.NDArray[Any], Int64Array], right: tuple[npt.NDArray[Any], Int64Array]
) -> tuple[npt.NDArray[Any], Int64Array]:
    values, places = np.unique(np.concatenate([left[0], right[0]]), return_inverse=True)
    counts = np.zeros(len(values), np.int64)
    counts[places[: len(left[0])]] += left[1]
    counts[places[len(left[0]) :]] += right[1]
    return values, counts


def splits_to_divide(
    given: Sequence[str],
    splits: Mapping[str, float] | None,
    resplit: str | Sequence[str] | None,
    *,
    stratify: bool = False,
) -> tuple[str, ...]:
    """Which splits of the source are divided, in its order; the others are kept.

    Args:
        given: the splits of the source that have samples.

    Raises:
        OptionError: the options contradict each other or the splits of the source.
    """
    if resplit is None and (splits is None or not given):
        if stratify and given:
            raise OptionError(
                f"{option('stratify')} has no effect on the source's own splits: "
                f"{join_names(given)}",
                option="stratify",
                value=True,
                remedy=f"Leave it out, or divide splits with {option('splits')} and "
                f"{option('resplit', [given[0]])}.",
            )
        return ()
    if resplit is None:
        if len(given) == 1:
            return tuple(given)
        raise OptionError(
            f"the source has its own splits: {join_names(given)}",
            option="splits",
            value=splits,
            remedy=f"Leave out {option('splits')} to keep them, pass "
            f"{option('resplit', [given[0]])} to divide only that split, or "
            f"{option('resplit', list(given))} to divide all samples together, which may move "
            "test samples into training.",
        )
    wanted = [resplit] if isinstance(resplit, str) else list(resplit)
    if splits is None or not wanted:
        raise OptionError(
            f"{option('resplit')} divides splits of the source into those of {option('splits')}; "
            f"both need names",
            option="resplit",
            value=resplit,
            remedy=f"Pass shares with {option('splits')}, or leave out {option('resplit')}.",
        )
    for name in wanted:
        if name not in given:
            raise OptionError(
                option="resplit",
                value=name,
                expected=f"one of {join_names(given)}" if given else "a source with splits",
            )
    for name in given:
        if name in splits and name not in wanted:
            raise OptionError(
                f"the source's split {name!r} is kept, and a new split has the same name",
                option="splits",
                value=name,
                remedy=f"Choose another name, or add {name!r} to {option('resplit')}.",
            )
    return tuple(name for name in given if name in wanted)
