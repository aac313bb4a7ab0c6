"""Decides which split each sample belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import share_counts
from recordsmith.sources import join_names
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import OptionError, option
from recordsmith.support.explaining import unknown_word


def divide(
    order: Int64Array,
    labels: npt.NDArray[Any] | None,
    groups: npt.NDArray[np.uint64] | None,
    source_splits: Mapping[str, npt.NDArray[np.bool_]],
    splits: Mapping[str, float] | None,
    resplit: str | Sequence[str] | None,
    *,
    stratify: bool,
) -> dict[str, Int64Array]:
    """Divide samples among the splits of a job; options as in `pack`.

    Args:
        order: the numbers of all samples, in the order of the plan.
        labels: of the samples; None without labels.
        groups: a hash for the group of each sample; None without groups.
        source_splits: which samples each split of the source has; empty without splits.

    Returns:
        The numbers of the samples of each split, in the order of the plan.
    """
    given = [split for split, has in source_splits.items() if has.any()]
    divided = _splits_to_divide(given, splits, resplit, stratify=stratify)
    kept = {name: order[source_splits[name][order]] for name in given if name not in divided}
    if given and not divided:
        return kept
    if given:
        is_divided = np.logical_or.reduce([source_splits[name] for name in divided])
        order = order[is_divided[order]]
    shares = {"train": 1.0} if splits is None else splits
    if stratify and groups is not None:
        raise OptionError(
            f"{option('stratify')} cannot be used with a source that has groups: groups are "
            "never divided, so the class balance of the splits cannot be chosen",
            option="stratify",
            value=True,
            remedy="Use only one of them.",
        )
    if groups is not None:
        parts = _parts_of_groups(groups[order], shares)
    elif len(shares) == 1:
        parts = np.zeros(len(order), np.int8)
    elif stratify and labels is not None:
        parts = _parts_by_rank(np.unique(labels[order], return_inverse=True)[1], shares)
    else:
        parts = _parts_by_rank(np.zeros(len(order), np.int64), shares)
    members = {split: order[parts == part] for part, split in enumerate(shares)}
    _check_all_have_samples(members, shares, stratify=stratify, has_groups=groups is not None)
    first = given.index(divided[0]) if divided else 0
    names = [*kept]
    names[first:first] = shares
    return {name: (kept | members)[name] for name in names}


def _parts_by_rank(classes: Int64Array, shares: Mapping[str, float]) -> Int64Array:
    """Cut the samples of each class into consecutive runs, one for each split."""
    counts = np.bincount(classes)
    ends = np.cumsum([[*share_counts(count, shares).values()] for count in counts.tolist()], axis=1)
    order = np.argsort(classes, kind="stable")
    starts = np.cumsum(counts) - counts
    ranks = np.empty(len(classes), np.int64)
    ranks[order] = np.arange(len(classes)) - np.repeat(starts, counts)
    parts = np.zeros(len(classes), np.int64)
    for end in ends[:, :-1].T:
        parts += ranks >= end[classes]
    return parts


def _parts_of_groups(groups: npt.NDArray[np.uint64], shares: Mapping[str, float]) -> Int64Array:
    """Put each group into the split where its middle falls, in the order of their hashes."""
    _, group_of, counts = np.unique(groups, return_inverse=True, return_counts=True)
    bounds = np.cumsum([*share_counts(len(groups), shares).values()])
    middles = np.cumsum(counts) - counts / 2
    parts = np.minimum(np.searchsorted(bounds, middles, side="right"), len(shares) - 1)
    of_samples: Int64Array = parts[group_of]
    return of_samples


def _check_all_have_samples(
    members: Mapping[str, Int64Array],
    shares: Mapping[str, float],
    *,
    stratify: bool,
    has_groups: bool,
) -> None:
    every = " of every class" if stratify else ""
    whole = "; groups are never divided" if has_groups else ""
    for split, numbers in members.items():
        if not len(numbers):
            raise OptionError(
                f"split {split!r} would be empty: its share is {shares[split]:g}{every} of "
                f"{sum(map(len, members.values()))} samples{whole}",
                option="splits",
                value=split,
                remedy="Give it a larger share.",
            )


def _splits_to_divide(
    given: Sequence[str],
    splits: Mapping[str, float] | None,
    resplit: str | Sequence[str] | None,
    *,
    stratify: bool = False,
) -> tuple[str, ...]:
    """Which splits of the source are divided, in its order; the others are kept."""
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
    chosen = [resplit] if isinstance(resplit, str) else list(resplit)
    if splits is None or not chosen:
        raise OptionError(
            f"{option('resplit')} divides splits of the source into those of {option('splits')}; "
            f"both need names",
            option="resplit",
            value=resplit,
            remedy=f"Pass shares with {option('splits')}, or leave out {option('resplit')}.",
        )
    for name in chosen:
        if name not in given:
            if given:
                raise unknown_word("resplit", name, given)
            raise OptionError(option="resplit", value=name, expected="a source with splits")
    for name in given:
        if name in splits and name not in chosen:
            raise OptionError(
                f"the source's split {name!r} is kept, and a new split has the same name",
                option="splits",
                value=name,
                remedy=f"Choose another name, or add {name!r} to {option('resplit')}.",
            )
    return tuple(name for name in given if name in chosen)
