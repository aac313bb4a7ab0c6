"""Find what the names of images and masks have in common: `x.jpg` and `x_mask.png` share `x`.

Large folders are compared by samples of their names; see `sampling_key`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from recordsmith.sources.files.file_tree import HIGHEST_KEY, FolderScan, sampling_key
from recordsmith.sources.pairs.pairing import MASK_ENDINGS

_MOST_AFFIXES = 6
_LONGEST = 3  # words before or behind the shared part
_COMMON_SHARE = 0.2
_LEAST_SHARED = 0.5
_NAMES_COUNTED = 200
_SEPARATORS = "_-. "


class Affix(NamedTuple):
    """What is before and behind the shared part of a name; with the suffix, if it has one."""

    head: str = ""
    tail: str = ""
    suffix: str = ""

    @property
    def pattern(self) -> str:
        return f"{self.head}*{self.tail}{self.suffix}"


PLAIN = Affix()


class Shared(NamedTuple):
    """Names of two folders that share a part.

    left, right: what else these names have.
    parts: the shared parts, some of them.
    left_share, right_share: how many of the names with these affixes have a partner, as shares.
    """

    left: Affix
    right: Affix
    parts: tuple[str, ...]
    share: float


@dataclass
class NamedFolder:
    """A folder that contains images."""

    folder: FolderScan
    _parts: dict[Affix, Mapping[str, str]] = field(default_factory=dict)
    _affixes: list[Affix] | None = None

    @property
    def path(self) -> str:
        return self.folder.path

    def names(self, affix: Affix) -> Mapping[str, str]:
        """The names with an affix, by what is left of them."""
        found = self._parts.get(affix)
        if found is None:
            found = {}
            for name in self.folder.images:
                stem, suffix = os.path.splitext(name)
                if (
                    stem.startswith(affix.head)
                    and stem.endswith(affix.tail)
                    and len(stem) > len(affix.head) + len(affix.tail)
                    and affix.suffix in ("", suffix)
                ):
                    found[stem[len(affix.head) : len(stem) - len(affix.tail)]] = name
            self._parts[affix] = found
        return found

    @property
    def affixes(self) -> list[Affix]:
        """Those that many of the names have, the plain one first."""
        if self._affixes is None:
            stems = [os.path.splitext(name)[0] for name in self.folder.images[:_NAMES_COUNTED]]
            tails = _common((tail for stem in stems for tail in _tails(stem)), len(stems))
            heads = _common((head for stem in stems for head in _heads(stem)), len(stems))
            found = [PLAIN, *(Affix(tail=tail) for tail in tails), *(Affix(head) for head in heads)]
            self._affixes = found[:_MOST_AFFIXES]
        return self._affixes


def share_names(left: NamedFolder, right: NamedFolder) -> list[Shared]:
    """How the names of two folders fit: one way if they are alike, else one for each affix."""
    whole = _shared(left, right, PLAIN, PLAIN)
    if whole is not None:
        return [whole]
    found = []
    for one in left.affixes:
        for other in right.affixes:
            shared = _shared(left, right, one, other) if (one, other) != (PLAIN, PLAIN) else None
            if shared is not None:
                found.append(shared)
    return found


def share_names_within(leaf: NamedFolder) -> list[Shared]:
    """How names in one folder fit each other: `x.jpg` and `x_mask.png`, `x.jpg` and `x.png`."""
    found = []
    for at, one in enumerate(leaf.affixes):
        for other in leaf.affixes[at + 1 :]:
            shared = _shared(leaf, leaf, one, other)
            if shared is not None:
                found.append(shared)
    suffixes = Counter(os.path.splitext(name)[1] for name in leaf.folder.images)
    common = [suffix for suffix, _ in suffixes.most_common(3)]
    for at, one_suffix in enumerate(common):
        for other_suffix in common[at + 1 :]:
            pair = Affix(suffix=one_suffix), Affix(suffix=other_suffix)
            shared = _shared(leaf, leaf, *pair)
            if shared is not None:
                found.append(shared)
    return found


def is_usual(images: Affix, masks: Affix) -> bool:
    """Whether masks are named as `match_names` expects without patterns."""
    return images == PLAIN and (
        masks == PLAIN
        or (not masks.head and not masks.suffix and masks.tail.lower() in MASK_ENDINGS)
    )


def _shared(left: NamedFolder, right: NamedFolder, one: Affix, other: Affix) -> Shared | None:
    of_left, of_right = left.names(one), right.names(other)
    highest = min(left.folder.highest_key, right.folder.highest_key)
    if highest < HIGHEST_KEY:  # samples: compare what is in both if it is in both folders
        of_left = {part: name for part, name in of_left.items() if sampling_key(name) < highest}
        of_right = {part: name for part, name in of_right.items() if sampling_key(name) < highest}
    parts = of_left.keys() & of_right.keys()
    least = min(len(of_left), len(of_right))
    if not parts or len(parts) < _LEAST_SHARED * least:
        return None
    return Shared(one, other, tuple(sorted(parts)), len(parts) / least)


def _common(affixes: Iterable[str], count: int) -> list[str]:
    """The affixes that many names have, the most common first; of equal ones the longest."""
    counts = Counter(affixes)
    common = [each for each in counts.items() if each[1] >= max(1, _COMMON_SHARE * count)]
    common.sort(key=lambda each: (-each[1], -len(each[0]), each[0]))
    found: list[tuple[str, int]] = []
    for affix, number in common:
        if not any(
            number == known_number and (known.endswith(affix) or known.startswith(affix))
            for known, known_number in found
        ):
            found.append((affix, number))
    return [affix for affix, _ in found]


def _tails(stem: str) -> Iterator[str]:
    """Words behind the rest of a name: `_gtFine_labelIds`, `_labelIds`."""
    letters = re.search(r"(?<=\d)[A-Za-z]{1,20}$", stem)
    if letters is not None:
        yield letters[0]
    end = len(stem)
    for _ in range(_LONGEST):
        start = max(stem.rfind(mark, 0, end) for mark in _SEPARATORS)
        if start <= 0 or not stem[start + 1 : start + 2].isalpha():
            return
        yield stem[start:]
        end = start


def _heads(stem: str) -> Iterator[str]:
    """Words before the rest of a name: `mask_`."""
    letters = re.match(r"[A-Za-z]{1,20}(?=\d)", stem)
    if letters is not None:
        yield letters[0]
    start = 0
    for _ in range(_LONGEST):
        ends = [end for mark in _SEPARATORS if (end := stem.find(mark, start + 1)) > 0]
        if not ends or not stem[start].isalpha() or min(ends) + 1 >= len(stem):
            return
        start = min(ends) + 1
        yield stem[:start]
