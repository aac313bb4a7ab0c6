"""What folders and files of splits are usually called, and in which order splits come."""

from __future__ import annotations

from collections.abc import Iterable

SPLIT_NAMES = frozenset(
    ("train", "training", "trainval", "val", "valid", "validation", "dev", "test", "testing")
)


def is_split_name(name: str) -> bool:
    """Whether a folder or file of this name is a split, by what is usual."""
    return name.lower() in SPLIT_NAMES


def are_split_names(names: Iterable[str]) -> bool:
    """Whether all of these are what people call splits; False if there are none."""
    lowered = {name.lower() for name in names}
    return bool(lowered) and lowered <= SPLIT_NAMES


def in_split_order(names: Iterable[str]) -> tuple[str, ...]:
    """What trains first (`train`, `train2017`), what validates, what tests, then others by name."""
    starts = ("train", "val", "dev", "test")

    def rank(name: str) -> tuple[int, str]:
        lower = name.lower()
        return next((n for n, start in enumerate(starts) if lower.startswith(start)), 9), name

    return tuple(sorted(set(names), key=rank))
