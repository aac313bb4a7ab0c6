"""New names of shards when others are added: `-of-00004` becomes `-of-00006` in all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from recordsmith.building import is_valid_file_name, shard_files_by_split
from recordsmith.errors import OptionError
from recordsmith.wire import Compression

_NUMBERED = re.compile(r"(.*?)([0-9]+)-of-([0-9]+)(.*)", re.DOTALL)
_REWRITE = "Rewrite the dataset with `recordsmith reshard` and append to the copy."


class Renumbered(NamedTuple):
    """The new names of shards.

    renamed: new names of existing shards by old ones, without unchanged names.
    added: names of new shards by split.
    """

    renamed: dict[str, str]
    added: dict[str, list[str]]


class _Pattern(NamedTuple):
    """The pattern of the names of a split; widths are in digits."""

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
    """Return the names of new shards, and the new names of existing ones.

    Args:
        files: the existing shards of each split, in order.
        added: the number of new shards of each split; a split may be new.
        compression: of all of them.

    Raises:
        OptionError: existing names are not numbered, or a new name exists.
    """
    renamed: dict[str, str] = {}
    new: dict[str, list[str]] = {}
    for split, count in added.items():
        old = files.get(split, ())
        pattern = _find_pattern(old) if old else _pattern_like(split, files)
        if pattern is None and old:
            raise OptionError(
                f"the shards of split {split!r} are not numbered consistently: {old[0]!r}",
                option="out",
                value=old[0],
                remedy=_REWRITE,
            )
        total = len(old) + count
        if pattern is None:
            names = shard_files_by_split({split: total}, compression)[split]
        else:
            names = [pattern.name(number, total) for number in range(total)]
        renamed |= {a: b for a, b in zip(old, names, strict=False) if a != b}
        new[split] = names[len(old) :]
    _check_names(files, renamed, new)
    return Renumbered(renamed, new)


def _find_pattern(names: Sequence[str]) -> _Pattern | None:
    """Return the pattern of the first name, or None if other names do not match it."""
    match = _NUMBERED.fullmatch(names[0])
    if match is None:
        return None
    pattern = _Pattern(match[1], len(match[2]), len(match[3]), match[4])
    expected = [pattern.name(number, len(names)) for number in range(len(names))]
    return pattern if list(names) == expected else None


def _pattern_like(split: str, files: Mapping[str, Sequence[str]]) -> _Pattern | None:
    """Return the pattern of another split with the name of a new one, or None."""
    if not is_valid_file_name(split):
        raise OptionError(option="split", value=split, expected="part of a valid file name")
    for other, names in files.items():
        pattern = _find_pattern(names) if names else None
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
            f"two shards would get the name {(taken or new)[0]!r}",
            option="out",
            value=(taken or new)[0],
            remedy=_REWRITE,
        )
