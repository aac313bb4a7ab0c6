"""The action for each feature by its key, and checks for conflicting names.

Actions are numbered: unchanged keys, dropped keys, then one action per key with its own edit.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from fnmatch import translate

from recordsmith.errors import OptionError, option
from recordsmith.example import FeatureSchema, KeyAction
from recordsmith.example.payload import decode_key, encode_key
from recordsmith.reshaping.editing.recoder import Recoder

UNCHANGED, DROPPED = 0, 1
"""Numbers of actions: the feature is unchanged; the feature is dropped."""


class Actions:
    """The action for each key. Thread-safe."""

    def __init__(
        self,
        drop: Collection[str],
        rename: Mapping[str, str],
        add: Collection[str],
        recoders: Mapping[str, Recoder],
    ) -> None:
        """
        Raises:
            OptionError: they contradict each other.
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
        """The actions by number."""
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

    def action_number(self, key: bytes) -> int:
        """Return the number of the action for an encoded key."""
        if self._drop and self.dropped_by(decode_key(key)) is not None:
            return DROPPED
        return self._numbers.get(key, UNCHANGED)

    def matches(self, name: str, key: str) -> bool:
        """Whether a dropped name or pattern matches this feature."""
        pattern = self._patterns.get(name)
        return name == key or (pattern is not None and pattern.match(key) is not None)

    def dropped_by(self, key: str) -> str | None:
        """Return the name or pattern that drops a feature, or None."""
        return next((name for name in self._drop if self.matches(name, key)), None)

    def check_record(self, keys: Iterable[tuple[int, bytes]]) -> None:
        """Check that no two features of a record get the same name.

        Args:
            keys: of the record, each with the field of its section.

        Raises:
            OptionError: two do.
        """
        kept, renamed = set(), []
        for field, key in keys:
            action = self.numbered[self.action_number(key)]
            if action.name is not None:
                renamed.append((field, action.name, key))
            elif not action.drops:
                kept.add((field, key))
        for field, new, old in renamed:
            if (field, new) in kept:
                raise OptionError(
                    f"cannot rename {decode_key(old)!r} to {decode_key(new)!r}: a record already "
                    "has that feature",
                    option="rename",
                    value=decode_key(new),
                    remedy="Drop it, or choose another name.",
                )
        for key in self._added:
            if (1, key) in kept:
                raise OptionError(
                    f"cannot add {decode_key(key)!r}: a record already has that feature",
                    option="add",
                    value=decode_key(key),
                    remedy="To replace it, drop it as well.",
                )

    def check_section(
        self, field: int, features: Mapping[str, FeatureSchema], record_count: int
    ) -> None:
        """Check for conflicts that must occur in some record, from the schema alone."""
        for key in self._add:
            if key in features:
                self.check_record([(field, encode_key(key))])
        for old, new in self._rename.items():
            pair = [features[key] for key in (old, new) if key in features]
            if sum(feature.present for feature in pair) > record_count:
                self.check_record([(field, encode_key(key)) for key in (old, new)])

    def _check_names(self) -> None:
        """Check for conflicts between the options."""
        news = list(self._rename.values())
        for old, new in self._rename.items():
            encode_key(new)
            if news.count(new) > 1:
                raise OptionError(
                    f"{option('rename')} gives several features the name {new!r}",
                    option="rename",
                    value=new,
                )
            if new in self._add:
                raise OptionError(
                    f"{option('rename')} and {option('add')} both create the feature {new!r}",
                    option="add",
                    value=new,
                )
            if old == new:
                raise OptionError(
                    f"{option('rename')} gives {old!r} the same name", option="rename", value=new
                )
        for key in (*self._rename, *self._recoders):
            name = self.dropped_by(key)
            if name is not None:
                pattern = "" if name == key else f" (by {name!r})"
                raise OptionError(
                    f"{option('drop')} removes {key!r}{pattern}, which is also renamed or recoded",
                    option="drop",
                    value=name,
                )
