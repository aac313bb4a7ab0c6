"""Decides which split and which fold each sample belongs to."""

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

_MOST_CLASSES = 1000  # whose deviations are reported
_EQUAL = 1e-5  # as scikit-learn compares them


def divide(
    order: Int64Array,
    labels: npt.NDArray[Any] | None,
    groups: npt.NDArray[np.uint64] | None,
    source_splits: Mapping[str, npt.NDArray[np.bool_]],
    splits: Mapping[str, float] | None,
    resplit: str | Sequence[str] | None,
    *,
    stratify: bool,
    has_folds: bool = False,
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
    divided = _splits_to_divide(given, splits, resplit, stratify=stratify and not has_folds)
    kept = {name: order[source_splits[name][order]] for name in given if name not in divided}
    if given and not divided:
        return kept
    if given:
        is_divided = np.logical_or.reduce([source_splits[name] for name in divided])
        order = order[is_divided[order]]
    shares = {"train": 1.0} if splits is None else splits
    parts = np.zeros(len(order), np.int64)
    labels = labels[order] if stratify and labels is not None else None
    if len(shares) > 1 and groups is None:
        classes = parts if labels is None else np.unique(labels, return_inverse=True)[1]
        parts = _parts_by_rank(classes, _sizes_of_shares(classes, shares))
    elif len(shares) > 1 and groups is not None and labels is None:
        parts = _parts_of_groups(groups[order], shares)
    elif len(shares) > 1 and groups is not None and labels is not None:
        parts = _parts_of_balanced_groups(groups[order], labels, [*shares.values()])
    members = {split: order[parts == part] for part, split in enumerate(shares)}
    _check_all_have_samples(members, shares, stratify=stratify, has_groups=groups is not None)
    first = given.index(divided[0]) if divided else 0
    names = [*kept]
    names[first:first] = shares
    return {name: (kept | members)[name] for name in names}


def divide_folds(
    order: Int64Array,
    labels: npt.NDArray[Any] | None,
    groups: npt.NDArray[np.uint64] | None,
    split_of: Int64Array,
    fold_count: int,
) -> Int64Array:
    """Divide samples into folds of equal size, which have equal parts of each split and class.

    Args:
        order: the numbers of all samples, in the order of their hashes.
        labels: of the samples, if the folds should have equal parts of each class.
        groups: as in `divide`.
        split_of: the number of the split of each sample.

    Returns:
        The fold of each sample, from 0: int64, (samples,).
    """
    strata = split_of
    if labels is not None:
        classes, class_of = np.unique(labels, return_inverse=True)
        strata = strata * len(classes) + class_of
    if groups is None:
        numbers = np.unique(strata[order], return_inverse=True)[1]
        parts = _parts_by_rank(numbers, _sizes_of_folds(numbers, fold_count))
    else:
        shares = [1 / fold_count] * fold_count
        parts = _parts_of_balanced_groups(groups[order], strata[order], shares)
    if (empty := fold_count - len(np.unique(parts))) > 0:
        what = "samples" if groups is None else "groups"
        found = len(order) if groups is None else len(np.unique(groups))
        raise OptionError(
            f"{empty} of {fold_count} folds would be empty: the samples have {found:,} {what}",
            option="folds",
            value=fold_count,
            remedy="Choose fewer folds.",
        )
    folds = np.empty(len(order), np.int64)
    folds[order] = parts
    return folds


def class_deviations(
    labels: npt.NDArray[Any], members: Mapping[str, Int64Array], shares: Mapping[str, float]
) -> dict[str, dict[int, float]]:
    """For each split the share of each class in it, by label, minus the share of the split.

    Those of the _MOST_CLASSES classes that deviate most, in this order.
    """
    classes, class_of = np.unique(labels, return_inverse=True)
    counts = {
        split: np.bincount(class_of[members[split]], minlength=len(classes)) for split in shares
    }
    totals = np.sum([*counts.values()], axis=0)
    known = np.flatnonzero((totals > 0) & (classes >= 0))
    found: dict[str, dict[int, float]] = {}
    for split, share in shares.items():
        off = np.round(counts[split][known] / totals[known] - share, 6)
        order = np.argsort(-np.abs(off), kind="stable")[:_MOST_CLASSES]
        found[split] = dict(zip(classes[known[order]].tolist(), off[order].tolist(), strict=True))
    return found


def _sizes_of_shares(classes: Int64Array, shares: Mapping[str, float]) -> Int64Array:
    """How many samples of each class each split gets: (classes, splits)."""
    counts = np.bincount(classes).tolist()
    return np.array([[*share_counts(count, shares).values()] for count in counts], np.int64)


def _sizes_of_folds(classes: Int64Array, fold_count: int) -> Int64Array:
    """As `_sizes_of_shares`; what is left of each class goes to the folds after those before."""
    sizes, left = np.divmod(np.bincount(classes), fold_count)
    begins = np.cumsum(left) - left
    places = (np.arange(fold_count) - begins[:, np.newaxis]) % fold_count
    return sizes[:, np.newaxis] + (places < left[:, np.newaxis])  # type: ignore[no-any-return]


def _parts_by_rank(classes: Int64Array, sizes: Int64Array) -> Int64Array:
    """Cut the samples of each class into consecutive runs, one for each split."""
    parts = np.empty(len(classes), np.int64)
    of_class = np.broadcast_to(np.arange(sizes.shape[1]), sizes.shape)
    parts[np.argsort(classes, kind="stable")] = np.repeat(of_class.ravel(), sizes.ravel())
    return parts


def _parts_of_balanced_groups(
    groups: npt.NDArray[np.uint64], labels: npt.NDArray[Any], shares: Sequence[float]
) -> Int64Array:
    """Put each group into the split where the shares of its classes then deviate least.

    The rule of scikit-learn's StratifiedGroupKFold, for any shares: groups with the least even
    classes come first, equal ones in the order of their hashes; among splits that deviate equally,
    the emptiest gets the group. A step takes as long as the group has classes, times the splits.
    """
    _, group_of, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    _, class_of, totals = np.unique(labels, return_inverse=True, return_counts=True)
    pairs, counts = np.unique(group_of * len(totals) + class_of, return_counts=True)
    owners, classes = np.divmod(pairs, len(totals))
    bounds = np.searchsorted(owners, np.arange(len(sizes) + 1))
    squares = np.add.reduceat(counts.astype(np.float64) ** 2, bounds[:-1])
    spread = len(totals) * squares - sizes.astype(np.float64) ** 2
    wanted = np.array(shares, np.float64)
    surplus = np.zeros((len(totals), len(shares)))  # samples beyond the share of those placed
    filled = np.zeros(len(shares))
    parts = np.empty(len(sizes), np.int64)
    for group in np.argsort(-spread, kind="stable").tolist():
        own = slice(bounds[group], bounds[group + 1])
        numbers, added = classes[own], counts[own, np.newaxis]
        before = surplus[numbers] - added * wanted
        after = (before * before).sum(axis=1, keepdims=True) + added * (2 * before + added)
        deviations = np.sqrt(np.maximum(after, 0)) / totals[numbers, np.newaxis]
        deviation = deviations.sum(axis=0)
        are_least = deviation <= deviation.min() * (1 + _EQUAL)
        part = int(np.where(are_least, filled / wanted, np.inf).argmin())
        before[:, part] += added[:, 0]
        surplus[numbers] = before
        filled[part] += sizes[group]
        parts[group] = part
    of_samples: Int64Array = parts[group_of]
    return of_samples


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
