"""The options of `pack` that determine the bytes of the shards, which the manifest stores, and the
encoder that converts samples by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset import DEFAULT_TEMPLATE, ShardCounts
from recordsmith.format.example import (
    Kind,
    SequenceExample,
    decode_payload,
    encode_example,
    encode_sequence_example,
)
from recordsmith.format.wire import Compression, check_compression
from recordsmith.image import ImageOptions
from recordsmith.sources import Content, Note
from recordsmith.stores import as_location
from recordsmith.support.errors import OptionError, option
from recordsmith.support.serialization import fields_to_json
from recordsmith.writing.packing.images import (
    IMAGES,
    apply_image_options,
    check_images,
    check_png_chunks,
)
from recordsmith.writing.packing.keys import resolve_keys
from recordsmith.writing.reshaping.edits import Edits

FOLD = "fold"
"""The feature with the number of the fold of a record."""

_MOST_FOLDS = 100
_LABEL, _FIRST_STEPS = "image/class/label", "steps/is_first"
"""What `Weighted` and `Episodes` read of each record before the first batch."""


@dataclass(frozen=True)
class PackOptions:
    """The options of `pack` that determine the content of the shards; see `pack`."""

    splits: Mapping[str, float] | str | None = None
    resplit: str | Sequence[str] | None = None
    shards: ShardCounts | None = None
    shard_size_bytes: int | None = None
    seed: int = 0
    stratify: bool = False
    group_pattern: str | None = None
    groups: str | None = None
    folds: int | None = None
    shuffle: bool = True
    image_options: ImageOptions | None = None
    keys: str | Mapping[str, str | None] | None = None
    shard_names: str = DEFAULT_TEMPLATE
    compression: str | None = None
    check_images: bool = False
    license: str | None = None
    citation: str | None = None
    numbers_of: Sequence[str] = ()
    together: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.image_options, ImageOptions | None):
            raise OptionError(
                option="image_options",
                value=self.image_options,
                expected="recordsmith.ImageOptions(...)",
            )
        if not isinstance(self.check_images, bool):
            raise OptionError(
                option="check_images", value=self.check_images, expected="True or False"
            )
        if not isinstance(self.numbers_of, (list, tuple)) or not all(
            isinstance(key, str) for key in self.numbers_of
        ):
            raise OptionError(
                option="numbers_of", value=self.numbers_of, expected="a list of keys of features"
            )
        object.__setattr__(self, "numbers_of", tuple(self.numbers_of))  # equal after JSON
        for name in ("splits", "groups"):
            if isinstance(path := getattr(self, name), str):
                path = as_location(path.removeprefix("@"))
                object.__setattr__(self, name, f"@{path}")  # without credentials
        is_count = isinstance(self.folds, int) and not isinstance(self.folds, bool)
        if self.folds is not None and not (is_count and 2 <= self.folds <= _MOST_FOLDS):
            expected = f"an integer from 2 to {_MOST_FOLDS}"
            raise OptionError(option="folds", value=self.folds, expected=expected)
        check_compression(self.compression)
        resolve_keys(self.keys)

    def options_of_records(self) -> dict[str, Any]:
        """Return what counts in the fingerprint: options of records, terms of use; no defaults."""
        options: dict[str, Any] = {}
        scheme = resolve_keys(self.keys)
        if scheme is not None:
            options["keys"] = scheme.to_json()
        if self.image_options is not None and not self.image_options.is_default:
            options["image_options"] = self.image_options.to_json()
        if self.check_images:
            options["check_images"] = True
        if self.folds is not None:
            options["folds"] = self.folds
        terms = {"license": self.license, "citation": self.citation}
        return options | {name: text for name, text in terms.items() if text is not None}

    def kept_columns(self) -> list[str]:
        """Return the features of which a number of each record is kept next to the shards."""
        scheme = resolve_keys(self.keys)
        label = _LABEL if scheme is None else scheme.new_key(_LABEL)
        keys = (*self.numbers_of, label, _FIRST_STEPS)
        return [key for key in dict.fromkeys(keys) if key is not None]

    def to_json(self) -> dict[str, Any]:
        """Return all options as a JSON-able dict."""
        return fields_to_json(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> PackOptions:
        """Restore options from `to_json`."""
        unknown = sorted(set(document) - set(vars(cls())))
        if unknown:
            raise OptionError(f"{unknown[0]!r} is not an option that this version supports")
        image_options = document.get("image_options")
        if image_options is not None:
            document = {**document, "image_options": ImageOptions.from_json(image_options)}
        return cls(**document)

    @property
    def shard_compression(self) -> Compression:
        """The compression of the shards."""
        return check_compression(self.compression)


class SampleEncoder:
    """Converts the content of samples to payloads, by the options of a job. Thread-safe."""

    def __init__(self, options: PackOptions, kinds: Mapping[str, Kind]) -> None:
        """`kinds`: of features whose kind does not follow from values, by canonical key."""
        self._keys = keys = resolve_keys(options.keys)
        self._kinds = kinds if keys is None else keys.renamed(kinds)
        self._images = options.image_options or ImageOptions()
        self._checks_images = options.check_images
        self.is_heavy = options.check_images or not self._images.is_default
        """Whether preparing a sample costs more than handing it to another thread."""
        self.keeps_records = not self.is_heavy and keys is None and options.folds is None
        """Whether the payloads of records are stored unchanged and unchecked."""
        named = IMAGES if keys is None else map(keys.new_key, IMAGES)
        self._image_keys = frozenset(key for key in named if key is not None)
        self._folds = [Edits(add={FOLD: number}) for number in range(options.folds or 0)]

    def payload(self, content: Content, note: Note, fold: int | None = None) -> bytes:
        """Convert the content of a sample to the payload of a record, in a fold or in none."""
        payload = self._payload(content, note)
        if fold is not None:
            try:
                payload = self._folds[fold].apply(payload)
            except OptionError as error:
                raise OptionError(
                    f"{option('folds')} adds the feature {FOLD!r}: {error.problem}",
                    option="folds",
                    value=len(self._folds),
                    remedy=f"Rename the other feature with {option('keys')}.",
                ) from None
        if self._checks_images:
            check_images(payload, self._image_keys)
        return payload

    def _payload(self, content: Content, note: Note) -> bytes:
        changes = self._keys is not None or not self._images.is_default
        if isinstance(content, bytes):
            if not changes:
                return content
            content = decode_payload(content)
        if isinstance(content, SequenceExample):
            if changes:
                raise OptionError(
                    f"{option('keys')} and image options do not support SequenceExamples",
                    option="keys" if self._keys is not None else "image_options",
                )
            return encode_sequence_example(*content, self._kinds)
        check_png_chunks(content)
        content = apply_image_options(content, self._images, note)
        if self._keys is not None:
            content = self._keys.apply(content)
        return encode_example(content, self._kinds)
