"""Which features has one shard, as far as was seen? Their kinds, and which of them are pictures.

Names come from the file: of very many not all are remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.examining.verification.picture_check import USUAL_KEYS
from recordsmith.example.payload import KIND_NAMES
from recordsmith.example.schema import MOST_FEATURES

MOST_COMPARED = 4096
"""The kinds of so many features of a shard are compared with those in other shards."""

Counted: TypeAlias = Mapping[str, tuple[Any, ...]]
"""What a FeatureSurvey counted: kinds, contents, present, lengths, steps, value_bytes, by name."""


class SeenFeatures:
    """What was seen of the features of a shard, by section and name.

    kinds: the kind of each.
    picture_keys: those that hold pictures.
    is_full: whether there are so many that of some of them no kind is remembered.
    is_cut: whether there are so many that not all are compared with other shards.
    """

    def __init__(self) -> None:
        self.kinds: dict[tuple[str, str], str] = {}
        self.picture_keys: set[tuple[str, str]] = set()
        self.is_full = False
        self.is_cut = False
        self._contents: dict[tuple[str, str], npt.NDArray[np.int64]] = {}

    def learn_kinds(self, section: str, counted: Counted) -> None:
        """The kind that most records have where a feature is first met is the one it shall have."""
        for key, (kinds, *_) in counted.items():
            if any(kinds[1:]) and (section, key) not in self.kinds:
                if len(self.kinds) >= MOST_FEATURES:
                    self.is_full = True
                    return
                most = max(range(1, len(kinds)), key=kinds.__getitem__)
                self.kinds[section, key] = KIND_NAMES[most]

    def learn_pictures(self, section: str, counted: Counted) -> None:
        """Features hold pictures if most of their values begin like one."""
        for key, (_, contents, *_) in counted.items():
            name = section, key
            if not any(contents) or (
                name not in self._contents and len(self._contents) >= MOST_FEATURES
            ):
                continue
            seen = self._contents.setdefault(name, np.zeros(3, np.int64))
            seen += contents
            if seen[2] and 2 * seen[2] >= seen.sum():
                self.picture_keys.add(name)

    def pictures_of(self, section: str) -> list[str]:
        """Its features that hold pictures, or by their names shall."""
        usual = {key for key in USUAL_KEYS if (section, key) in self.kinds}
        return sorted(usual | {key for its, key in self.picture_keys if its == section})

    def let_go(self, *, has_rules: bool) -> None:
        """After the last record: keep what is compared with other shards, of the first features."""
        self._contents.clear()
        if len(self.kinds) > MOST_COMPARED:
            self.is_cut = not has_rules
            self.kinds = {key: self.kinds[key] for key in sorted(self.kinds)[:MOST_COMPARED]}
