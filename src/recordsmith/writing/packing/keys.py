"""Renames features from the canonical keys to those of a preset or to custom keys.

Sources use the canonical keys of TensorFlow's object detection API and TF-Slim. A scheme is applied
last, when a record is encoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from recordsmith.format.example.feature_values import only_value
from recordsmith.format.example.keys import (
    CLASS_LABEL,
    CLASS_TEXT,
    DEPTH,
    FILENAME,
    FORMAT,
    HEIGHT,
    IMAGE,
    MASK,
    WIDTH,
)
from recordsmith.image import read_image_header
from recordsmith.support.errors import DataError, OptionError, SourceError, option
from recordsmith.support.words import did_you_mean

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class KeyScheme:
    """Maps canonical feature keys to the keys in the records.

    name: the name of a preset, or "custom" for a dict from the caller.
    keys: canonical key -> key in the records; None leaves the feature out.
    keeps_others: whether features that are not in `keys` are kept under their own names.
    formats: replacements for values of `image/format`.
    """

    name: str
    keys: Mapping[str, str | None]
    keeps_others: bool = True
    formats: Mapping[bytes, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [key for key in self.keys.values() if key is not None]
        for key in names:
            if not isinstance(key, str) or not key:
                raise OptionError(
                    f"a new key in {option('keys')} is {key!r:.60}",
                    option="keys",
                    value=key,
                    expected="the name of a feature, or None",
                )
            if names.count(key) > 1:
                raise _duplicate(key)

    def new_key(self, key: str) -> str | None:
        """The key in the records for a canonical key; None if the feature is left out."""
        return self.keys.get(key, key if self.keeps_others else None)

    def apply(self, features: Mapping[str, Any]) -> dict[str, Any]:
        """Rename the features of a sample."""
        if DEPTH in self.keys and DEPTH not in features and IMAGE in features:
            features = {**features, DEPTH: _depth(only_value(features, IMAGE) or b"")}
        if self.formats and FORMAT in features:
            value = only_value(features, FORMAT)
            known = value.encode() if isinstance(value, str) else value
            features = {**features, FORMAT: self.formats.get(known, features[FORMAT])}
        renamed = self.renamed(features)
        missing = [key for key, new in self.keys.items() if new is not None and key not in features]
        if missing and not self.keeps_others:
            raise OptionError(
                f"the preset {self.name!r} needs the feature {missing[0]!r}, which is missing; "
                f"the samples have {', '.join(sorted(features))}",
                option="keys",
                value=missing[0],
            )
        if missing and not any(key in features for key in self.keys):
            raise OptionError(
                f"unknown feature {missing[0]!r} in {option('keys')}; the samples have "
                f"{', '.join(sorted(features))}",
                option="keys",
                value=missing[0],
                remedy=did_you_mean(missing[0], features),
            )
        return renamed

    def renamed(self, values: Mapping[str, _Value]) -> dict[str, _Value]:
        """Return the values by their keys in the records."""
        renamed: dict[str, _Value] = {}
        for key, value in values.items():
            new = self.new_key(key)
            if new is None:
                continue
            if new in renamed:
                raise _duplicate(new)
            renamed[new] = value
        return renamed

    def to_json(self) -> Any:
        """A JSON-able form: the name of a preset, or the keys."""
        return self.name if self.name in PRESETS else dict(self.keys)


def resolve_keys(keys: str | Mapping[str, str | None] | None) -> KeyScheme | None:
    """Convert the `keys` option: the name of a preset, a dict, or None for the canonical keys."""
    if keys is None:
        return None
    if isinstance(keys, str):
        if keys not in PRESETS:
            raise OptionError(
                option="keys",
                value=keys,
                expected=f"one of {', '.join(PRESETS)}, or new names",
                remedy=did_you_mean(keys, PRESETS)
                or f"For new names, pass {option('keys', {'image/encoded': 'image'})}.",
            )
        return PRESETS[keys]
    if not isinstance(keys, Mapping):
        raise OptionError(
            option="keys", value=keys, expected="the name of a preset, or a dict of new names"
        )
    return KeyScheme("custom", dict(keys))


def _duplicate(key: str) -> OptionError:
    return OptionError(f"two features would have the key {key!r}", option="keys", value=key)


def _depth(encoded: bytes) -> int:
    try:
        return read_image_header(encoded).channels
    except DataError:
        raise SourceError("cannot read the number of channels: unsupported image format") from None


def _preset(name: str, keys: Mapping[str, str], **options: Any) -> KeyScheme:
    return KeyScheme(name, keys, keeps_others=False, **options)


_SLIM = {key: key for key in (IMAGE, FORMAT, CLASS_LABEL, HEIGHT, WIDTH)}
_RAW_PAIRS = {HEIGHT: "height", WIDTH: "width", IMAGE: "image_raw", MASK: "mask_raw"}
_ROWS_COLS = {
    FILENAME: "filename",
    HEIGHT: "rows",
    WIDTH: "cols",
    DEPTH: "channels",
    IMAGE: "image",
    CLASS_LABEL: "label",
}
PRESETS: Mapping[str, KeyScheme] = {
    scheme.name: scheme
    for scheme in (
        # class folders, as in TF-Slim's scripts
        _preset("slim", _SLIM, formats={b"jpeg": b"jpg"}),
        # pairs of image and mask as raw arrays
        _preset("raw-pairs", _RAW_PAIRS),
        # images with their shape, raw or encoded
        _preset("rows-cols", _ROWS_COLS),
        # just enough to train a classifier
        _preset("label-text-encoded", {CLASS_LABEL: "label", CLASS_TEXT: "text", IMAGE: "encoded"}),
    )
}
