"""Remembers the features of one shard: their kinds, and which of them hold images.

Names come from the file, so the number of remembered features is limited.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.examining.verification.image_check import USUAL_KEYS
from recordsmith.example.payload import KIND_NAMES
from recordsmith.example.schema import MAX_FEATURES

MAX_KINDS_COMPARED = 4096
"""How many features of a shard are compared with those in other shards."""

Counted: TypeAlias = Mapping[str, tuple[Any, ...]]
"""The result of a FeatureSurvey by name: kinds, contents, present, lengths, steps, value_bytes."""


class ShardFeatures:
    """The features found in a shard, by section and name.

    kinds: the kind of each feature.
    image_keys: features that hold images.
    is_full: whether the limit is reached, so that the kinds of more features are not remembered.
    is_cut: whether only the first features are compared with other shards.
    """

    def __init__(self) -> None:
        self.kinds: dict[tuple[str, str], str] = {}
        self.image_keys: set[tuple[str, str]] = set()
        self.is_full = False
        self.is_cut = False
        self._contents: dict[tuple[str, str], npt.NDArray[np.int64]] = {}

    def add_kinds(self, section: str, counted: Counted) -> None:
        """Set the expected kind of new features: the most common one where they first occur."""
        for key, (kinds, *_) in counted.items():
            if any(kinds[1:]) and (section, key) not in self.kinds:
                if len(self.kinds) >= MAX_FEATURES:
                    self.is_full = True
                    return
                most = max(range(1, len(kinds)), key=kinds.__getitem__)
                self.kinds[section, key] = KIND_NAMES[most]

    def add_images(self, section: str, counted: Counted) -> None:
        """Mark features as images if most of their values begin like one."""
        for key, (_, contents, *_) in counted.items():
            name = section, key
            if not any(contents) or (
                name not in self._contents and len(self._contents) >= MAX_FEATURES
            ):
                continue
            seen = self._contents.setdefault(name, np.zeros(3, np.int64))
            seen += contents
            if seen[2] and 2 * seen[2] >= seen.sum():
                self.image_keys.add(name)

    def images_of(self, section: str) -> list[str]:
        """Return the features of a section that hold images, or should according to their names."""
        usual = {key for key in USUAL_KEYS if (section, key) in self.kinds}
        return sorted(usual | {key for its, key in self.image_keys if its == section})

    def finish(self, *, has_rules: bool) -> None:
        """Free memory after the last record; keep what is compared with other shards."""
        self._contents.clear()
        if len(self.kinds) > MAX_KINDS_COMPARED:
            self.is_cut = not has_rules
            self.kinds = {key: self.kinds[key] for key in sorted(self.kinds)[:MAX_KINDS_COMPARED]}
