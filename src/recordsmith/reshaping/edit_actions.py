"""What happens to each feature, told by its key; and do the names go together afterwards?

The actions are numbered: that of all keys that stay, of all that are dropped, then one for each
key of which more is said. Whoever asks for many keys remembers the answers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from fnmatch import translate

from recordsmith.errors import OptionError
from recordsmith.example import FeatureSchema, KeyAction
from recordsmith.example.payload import decode_key, encode_key
from recordsmith.reshaping.recoder import Recoder

STAYS, DROPPED = 0, 1
"""Numbers of actions: nothing is said of a key; its features are left out."""


class Actions:
    """What happens to each key. Threads may share it."""

    def __init__(
        self,
        drop: Collection[str],
        rename: Mapping[str, str],
        add: Collection[str],
        recoders: Mapping[str, Recoder],
    ) -> None:
        """
        Raises:
            OptionError: they contradict each other, whatever records there are.
        """
        self._drop = drop
        self._rename = rename
        self._add = add
        self._recoders = recoders
        self._patterns = {
            name: re.compile(translate(name)) for name in drop if set(name) & set("*?[")
        }
        self._check_names()
        self._added = [encode_key(key) for key in add]
        self.numbered = [KeyAction(), KeyAction(drops=True)]
        """What is done, by the number of the action."""
        self._numbers: dict[bytes, int] = {}
        for key in dict.fromkeys((*rename, *recoders, *rename.values(), *add)):
            new = rename.get(key)
            self._numbers[encode_key(key)] = len(self.numbered)
            self.numbered.append(
                KeyAction(
                    name=None if new is None else encode_key(new),
                    new_value=recoders.get(key),
                    key=encode_key(key),
                )
            )

    def number_of(self, key: bytes) -> int:
        """The number of the action of a key, as it is stored."""
        if self._drop and self.dropped_by(decode_key(key)) is not None:
            return DROPPED
        return self._numbers.get(key, STAYS)

    def means(self, name: str, key: str) -> bool:
        """Whether a name or pattern that is dropped speaks of this feature."""
        pattern = self._patterns.get(name)
        return name == key or (pattern is not None and pattern.match(key) is not None)

    def dropped_by(self, key: str) -> str | None:
        """The name or pattern that takes a feature away; None: it stays."""
        return next((name for name in self._drop if self.means(name, key)), None)

    def check_record(self, keys: Iterable[tuple[int, bytes]]) -> None:
        """Two features of one record cannot have one name.

        Args:
            keys: those of the record, each with the field of its section.
        """
        kept, made = set(), []
        for field, key in keys:
            action = self.numbered[self.number_of(key)]
            if action.name is not None:
                made.append((field, action.name, key))
            elif not action.drops:
                kept.add((field, key))
        for field, new, old in made:
            if (field, new) in kept:
                raise OptionError(
                    f"{decode_key(old)!r} cannot be renamed to {decode_key(new)!r}: a record has a "
                    "feature of that name, too. Drop it as well, or choose another name."
                )
        for key in self._added:
            if (1, key) in kept:
                raise OptionError(
                    f"{decode_key(key)!r} cannot be added: a record has a feature of that name. To "
                    "replace it, drop it as well."
                )

    def check_section(
        self, field: int, features: Mapping[str, FeatureSchema], record_count: int
    ) -> None:
        """What must happen in some record, whichever has which feature."""
        for key in self._add:
            if key in features:
                self.check_record([(field, encode_key(key))])
        for old, new in self._rename.items():
            pair = [features[key] for key in (old, new) if key in features]
            if sum(feature.present for feature in pair) > record_count:
                self.check_record([(field, encode_key(key)) for key in (old, new)])

    def _check_names(self) -> None:
        """Whatever contradicts itself, without any record."""
        news = list(self._rename.values())
        for old, new in self._rename.items():
            encode_key(new)
            if news.count(new) > 1:
                raise OptionError(f"rename gives several features the name {new!r}")
            if new in self._add:
                raise OptionError(f"rename and add both make a feature {new!r}")
            if old == new:
                raise OptionError(f"rename gives {old!r} the name that it has")
        for key in (*self._rename, *self._recoders):
            name = self.dropped_by(key)
            if name is not None:
                raise OptionError(
                    f"drop takes {key!r} away{'' if name == key else f' by {name!r}'}, which "
                    "is also to be renamed or recoded"
                )
