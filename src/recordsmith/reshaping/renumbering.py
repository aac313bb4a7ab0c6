"""What are shards called when others come beside them? `-of-00004` becomes `-of-00006` in all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from recordsmith.building import files_of_splits, is_no_file_name
from recordsmith.errors import OptionError
from recordsmith.wire import Compression

_NUMBERED = re.compile(r"(.*?)([0-9]+)-of-([0-9]+)(.*)", re.DOTALL)


class Renumbered(NamedTuple):
    """The names of all shards afterwards.

    renamed: new names, by old ones, of those that are there; without those that keep theirs.
    added: for each split the names of its new shards.
    """

    renamed: dict[str, str]
    added: dict[str, list[str]]


class _Pattern(NamedTuple):
    """How the names of a split are made; widths are those of the numbers."""

    head: str
    number_width: int
    count_width: int
    tail: str

    def name(self, number: int, count: int) -> str:
        return (
            f"{self.head}{number:0{self.number_width}d}-of-{count:0{self.count_width}d}{self.tail}"
        )


def renumbered(
    files: Mapping[str, Sequence[str]], added: Mapping[str, int], compression: Compression
) -> Renumbered:
    """Find names for the new shards, and for those that are there.

    Args:
        files: the shards that each split has, in order.
        added: how many each split gets; a split may be new.
        compression: of all of them.

    Raises:
        OptionError: the names that are there have no numbers that could be changed.
    """
    renamed: dict[str, str] = {}
    new: dict[str, list[str]] = {}
    for split, count in added.items():
        old = files.get(split, ())
        pattern = _pattern_of(old) if old else _pattern_like(split, files)
        if pattern is None and old:
            raise OptionError(
                f"the shards of split {split!r} are not numbered as {old[0]!r} would have to be, "
                "so there is no name for another one. Write the dataset once more with "
                "`recordsmith reshard`, and append to that"
            )
        total = len(old) + count
        if pattern is None:
            names = files_of_splits({split: total}, compression)[split]
        else:
            names = [pattern.name(number, total) for number in range(total)]
        renamed |= {a: b for a, b in zip(old, names, strict=False) if a != b}
        new[split] = names[len(old) :]
    _check_names(files, renamed, new)
    return Renumbered(renamed, new)


def _pattern_of(names: Sequence[str]) -> _Pattern | None:
    """None if they do not all follow from the first one."""
    match = _NUMBERED.fullmatch(names[0])
    if match is None:
        return None
    pattern = _Pattern(match[1], len(match[2]), len(match[3]), match[4])
    expected = [pattern.name(number, len(names)) for number in range(len(names))]
    return pattern if list(names) == expected else None


def _pattern_like(split: str, files: Mapping[str, Sequence[str]]) -> _Pattern | None:
    """For a new split as for another one, whose name stands in the names of its shards."""
    if is_no_file_name(split):
        raise OptionError(f"split name {split!r} cannot be part of a file name")
    for other, names in files.items():
        pattern = _pattern_of(names) if names else None
        if pattern is not None and pattern.head.count(other) == 1 and other not in pattern.tail:
            return pattern._replace(head=pattern.head.replace(other, split))
    return None


def _check_names(
    files: Mapping[str, Sequence[str]],
    renamed: Mapping[str, str],
    added: Mapping[str, Iterable[str]],
) -> None:
    old = {name for names in files.values() for name in names}
    new = [*renamed.values(), *(name for names in added.values() for name in names)]
    taken = sorted(old.intersection(new))
    if taken or len(set(new)) < len(new):
        raise OptionError(
            f"two shards would have the name {(taken or new)[0]!r}; write the dataset once more "
            "with `recordsmith reshard`, and append to that"
        )
