"""The options that determine the bytes of the shards, as a JSON-able recipe.

The manifest stores the recipe of a dataset; a plan stores it for other machines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordsmith.building import ShardCounts
from recordsmith.dataset import DEFAULT_TEMPLATE
from recordsmith.errors import OptionError, option
from recordsmith.image import ImageOptions
from recordsmith.packing.keys import KeyScheme, resolve_keys
from recordsmith.packing.planning import Plan, make_plan
from recordsmith.packing.preparing import Preparation
from recordsmith.packing.tfds_keys import PRESET, TfdsKeys, shard_names_for, tfds_template
from recordsmith.serialization import fields_to_json
from recordsmith.sources import Listing, Source
from recordsmith.wire import Compression, check_compression

_PLACES = ("folder", "file", "files")


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
        if self.keys == PRESET:
            self._check_for_tfds()

    def plan(self, source: Source, listing: Listing) -> Plan:
        """Plan the job for a listing.

        Raises:
            OptionError: options conflict with each other or with the listing.
        """
        # the location of the source is not part of the plan: it may differ between machines
        described = source.describe().items()
        other_options: dict[str, Any] = {
            "source": {name: value for name, value in described if name not in _PLACES}
        }
        scheme = self._scheme()
        if scheme is not None:
            other_options["keys"] = scheme.to_json()
        if self.image_options is not None and not self.image_options.is_default:
            other_options["image_options"] = self.image_options.to_json()
        if self.check_images:
            other_options["check_images"] = True
        return make_plan(
            listing,
            splits=self.splits,
            resplit=self.resplit,
            shards=self.shards,
            shard_size_bytes=self.shard_size_bytes,
            seed=self.seed,
            stratify=self.stratify,
            shuffle=self.shuffle,
            compression=self.shard_compression,
            shard_names=self.file_names,
            other_options=other_options,
        )

    def preparation(self, listing: Listing) -> Preparation:
        """Return the converter for the samples of a listing."""
        scheme = (
            TfdsKeys.of(listing.class_names, listing.tfds)
            if self.keys == PRESET
            else self._scheme()
        )
        return Preparation(
            listing.reader.kinds(),
            scheme,
            self.image_options,
            checks_images=self.check_images,
        )

    def to_json(self) -> dict[str, Any]:
        """Return all options as a JSON-able dict."""
        return fields_to_json(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Recipe:
        """Restore a recipe from `to_json`.

        Raises:
            OptionError: an option is unknown to this version.
        """
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

    @property
    def file_names(self) -> str:
        """The template of shard names."""
        return shard_names_for(self.keys, self.shard_names)

    def _check_for_tfds(self) -> None:
        """Raise OptionError for options that TFDS cannot read."""
        tfds_template(self.file_names)
        if check_compression(self.compression) != "none":
            raise OptionError(
                f"{option('keys', PRESET)} excludes {option('compression')}: TensorFlow Datasets "
                "reads only plain shards",
                option="compression",
                value=self.compression,
            )
        if self.image_options is not None and self.image_options.store == "raw":
            raise OptionError(
                f"{option('keys', PRESET)} excludes raw images: TensorFlow Datasets reads only "
                "encoded ones",
                option="image_options",
                remedy="Store them as PNG.",
            )

    def _scheme(self) -> KeyScheme | None:
        return resolve_keys(self.keys)
