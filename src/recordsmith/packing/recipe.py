"""The options that determine the bytes of the shards, as a JSON-able recipe.

The manifest stores the recipe of a dataset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordsmith.building import ShardCounts
from recordsmith.dataset import DEFAULT_TEMPLATE
from recordsmith.errors import OptionError
from recordsmith.image import ImageOptions
from recordsmith.packing.keys import resolve_keys
from recordsmith.packing.sample_encoder import SampleEncoder
from recordsmith.serialization import fields_to_json
from recordsmith.sources import Listing
from recordsmith.wire import Compression, check_compression


@dataclass(frozen=True)
class Recipe:
    """The options of `pack` that determine the content of the shards; see `pack`."""

    splits: Mapping[str, float] | None = None
    resplit: str | Sequence[str] | None = None
    shards: ShardCounts | None = None
    shard_size_bytes: int | None = None
    seed: int = 0
    stratify: bool = False
    shuffle: bool = True
    image_options: ImageOptions | None = None
    keys: str | Mapping[str, str | None] | None = None
    shard_names: str = DEFAULT_TEMPLATE
    compression: str | None = None
    check_images: bool = False

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

    def options_of_records(self) -> dict[str, Any]:
        """Return the options that change records, for the fingerprint; without defaults."""
        options: dict[str, Any] = {}
        scheme = resolve_keys(self.keys)
        if scheme is not None:
            options["keys"] = scheme.to_json()
        if self.image_options is not None and not self.image_options.is_default:
            options["image_options"] = self.image_options.to_json()
        if self.check_images:
            options["check_images"] = True
        return options

    def encoder(self, listing: Listing) -> SampleEncoder:
        """Return the encoder for the samples of a listing."""
        return SampleEncoder(
            listing.reader.kinds(),
            resolve_keys(self.keys),
            self.image_options,
            checks_images=self.check_images,
        )

    def to_json(self) -> dict[str, Any]:
        """Return all options as a JSON-able dict."""
        return fields_to_json(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Recipe:
        """Restore a recipe from `to_json`."""
        unknown = sorted(set(document) - set(vars(cls())))
        if unknown:
            raise OptionError(
                f"the recipe has the option {unknown[0]!r}, which this version does not support"
            )
        image_options = document.get("image_options")
        if image_options is not None:
            document = {**document, "image_options": ImageOptions.from_json(image_options)}
        return cls(**document)

    @property
    def shard_compression(self) -> Compression:
        """The compression of the shards."""
        return check_compression(self.compression)
