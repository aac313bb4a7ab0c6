"""What features are called: the usual keys, those of well-known tutorials, or any others.

Sources speak of features by the usual keys (TensorFlow's object detection and TF-Slim have them).
A scheme is applied last, when a record is encoded.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

from recordsmith.errors import CorruptDataError, OptionError, SourceError
from recordsmith.example.keys import (
    CLASS_LABEL,
    CLASS_TEXT,
    DEPTH,
    FILENAME,
    FORMAT,
    HEIGHT,
    MASK,
    PICTURE,
    WIDTH,
)
from recordsmith.image import channel_count

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class KeyScheme:
    """How features are called in the records.

    name: of a preset; "custom" for one that was given as a dict.
    keys: usual key -> key in the records; None leaves the feature out.
    keeps_others: whether features that `keys` does not name are kept, under their names.
    formats: values of `image/format` that are spelled otherwise.
    """

    name: str
    keys: Mapping[str, str | None]
    keeps_others: bool = True
    formats: Mapping[bytes, bytes] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        wanted = [key for key in self.keys.values() if key is not None]
        for key in wanted:
            if not isinstance(key, str) or not key:
                raise OptionError(f"keys has {key!r}; expected the name of a feature, or None")
            if wanted.count(key) > 1:
                raise OptionError(f"keys gives two features the name {key!r}")

    def key_of(self, key: str) -> str | None:
        """What a usual key is called in the records; None if it is left out."""
        return self.keys.get(key, key if self.keeps_others else None)

    def apply(self, features: Mapping[str, Any]) -> dict[str, Any]:
        """Features by usual keys -> features as they go into a record.

        Raises:
            OptionError: two features would have the same key, or what the scheme promises is
                missing.
        """
        if DEPTH in self.keys and DEPTH not in features and PICTURE in features:
            features = {**features, DEPTH: _depth(_only(features[PICTURE]))}
        if self.formats and FORMAT in features:
            value = _only(features[FORMAT])
            known = value.encode() if isinstance(value, str) else value
            features = {**features, FORMAT: self.formats.get(known, value)}
        renamed = self.renamed(features)
        missing = [key for key, new in self.keys.items() if new is not None and key not in features]
        if missing and not self.keeps_others:
            raise OptionError(
                f"the keys {self.name!r} need the feature {missing[0]!r}, which these samples do "
                f"not have; they have {', '.join(sorted(features))}"
            )
        if missing and not any(key in features for key in self.keys):
            close = difflib.get_close_matches(missing[0], features, 1)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            raise OptionError(
                f"keys names {missing[0]!r}, but the samples have {', '.join(sorted(features))}"
                f"{meant}"
            )
        return renamed

    def renamed(self, values: Mapping[str, _Value]) -> dict[str, _Value]:
        """The same values under their keys in the records."""
        renamed: dict[str, _Value] = {}
        for key, value in values.items():
            new = self.key_of(key)
            if new is None:
                continue
            if new in renamed:
                raise OptionError(f"keys calls two features {new!r}, one of them {key!r}")
            renamed[new] = value
        return renamed

    def to_json(self) -> Any:
        """A JSON-able form: the name of a preset, or the keys."""
        return self.name if self.name in PRESETS else dict(self.keys)


def resolve_keys(keys: str | Mapping[str, str | None] | None) -> KeyScheme | None:
    """A scheme from what a caller gave: the name of a preset, a dict, or None for the usual keys.

    Raises:
        OptionError: there is no such preset, or the dict gives two features one name.
    """
    if keys is None:
        return None
    if isinstance(keys, str):
        if keys not in PRESETS:
            raise OptionError(
                f"keys is {keys!r}; expected one of {', '.join(PRESETS)}, or a dict of new names"
            )
        return PRESETS[keys]
    if not isinstance(keys, Mapping):
        raise OptionError(f"keys is {keys!r}; expected a dict of new names by usual keys")
    return KeyScheme("custom", dict(keys))


def _only(value: Any) -> Any:
    """One value, also where it comes as a list, as from a record that is packed again."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _depth(encoded: bytes) -> int:
    try:
        return channel_count(encoded)
    except CorruptDataError:
        raise SourceError("its number of channels is wanted, but it is no picture") from None


PRESETS: Mapping[str, KeyScheme] = MappingProxyType(
    {
        scheme.name: scheme
        for scheme in (
            KeyScheme(  # class folders, as TF-Slim's scripts and the tutorials after them have it
                "slim",
                {key: key for key in (PICTURE, FORMAT, CLASS_LABEL, HEIGHT, WIDTH)},
                keeps_others=False,
                formats=MappingProxyType({b"jpeg": b"jpg"}),
            ),
            KeyScheme(  # pairs of picture and mask as raw arrays
                "raw-pairs",
                {
                    HEIGHT: "height",
                    WIDTH: "width",
                    PICTURE: "image_raw",
                    MASK: "mask_raw",
                },
                keeps_others=False,
            ),
            KeyScheme(  # pictures with their shape beside them, raw or encoded
                "rows-cols",
                {
                    FILENAME: "filename",
                    HEIGHT: "rows",
                    WIDTH: "cols",
                    DEPTH: "channels",
                    PICTURE: "image",
                    CLASS_LABEL: "label",
                },
                keeps_others=False,
            ),
            KeyScheme(  # just enough to train a classifier
                "label-text-encoded",
                {
                    CLASS_LABEL: "label",
                    CLASS_TEXT: "text",
                    PICTURE: "encoded",
                },
                keeps_others=False,
            ),
        )
    }
)
