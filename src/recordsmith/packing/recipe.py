"""Everything that decides the bytes of the shards, besides what the source holds.

A recipe can be written down as JSON: in the manifest it says how a dataset was made, in a plan it
tells another machine what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recordsmith.building import Shards
from recordsmith.dataset import DEFAULT_TEMPLATE
from recordsmith.errors import OptionError
from recordsmith.image import PictureOptions
from recordsmith.packing.keys import KeyScheme, resolve_keys
from recordsmith.packing.planning import Plan, make_plan
from recordsmith.packing.preparing import Preparation
from recordsmith.sources import Listing, Source
from recordsmith.wire import check_compression

_PLACES = ("folder", "file", "files")


@dataclass(frozen=True)
class Recipe:
    """The options of `pack` that decide what is in the shards; its docstring says what they are."""

    splits: Mapping[str, float] | None = None
    shards: Shards | None = None
    shard_size_bytes: int | None = None
    seed: int = 0
    stratify: bool = False
    shuffle: bool = True
    pictures: PictureOptions | None = None
    keys: str | Mapping[str, str | None] | None = None
    shard_names: str = DEFAULT_TEMPLATE
    compression: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.pictures, PictureOptions | None):
            raise OptionError(
                f"pictures is {self.pictures!r}; expected recordsmith.PictureOptions(...)"
            )

    def plan(self, source: Source, listing: Listing) -> Plan:
        """What this recipe makes of a listing.

        Raises:
            OptionError: options contradict each other or the listing.
        """
        # where the source lies is no part of the plan, only what it is and how it is read
        said = source.describe().items()
        making: dict[str, Any] = {
            "source": {name: value for name, value in said if name not in _PLACES}
        }
        scheme = self._scheme()
        if scheme is not None:
            making["keys"] = scheme.to_json()
        if self.pictures is not None and not self.pictures.is_default:
            making["pictures"] = self.pictures.to_json()
        return make_plan(
            listing,
            splits=self.splits,
            shards=self.shards,
            shard_size_bytes=self.shard_size_bytes,
            seed=self.seed,
            stratify=self.stratify,
            shuffle=self.shuffle,
            compression=check_compression(self.compression),
            shard_names=self.shard_names,
            making=making,
        )

    def preparation(self, source: Source) -> Preparation:
        """What is done with each sample."""
        return Preparation(source.kinds(), self._scheme(), self.pictures)

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict of all options."""
        return {
            "splits": None if self.splits is None else dict(self.splits),
            "shards": dict(self.shards) if isinstance(self.shards, Mapping) else self.shards,
            "shard_size_bytes": self.shard_size_bytes,
            "seed": self.seed,
            "stratify": self.stratify,
            "shuffle": self.shuffle,
            "pictures": None if self.pictures is None else self.pictures.to_json(),
            "keys": dict(self.keys) if isinstance(self.keys, Mapping) else self.keys,
            "shard_names": self.shard_names,
            "compression": self.compression,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Recipe:
        """What `to_json` gave.

        Raises:
            OptionError: there are options that this version does not know.
        """
        unknown = sorted(set(document) - set(vars(cls())))
        if unknown:
            raise OptionError(f"{unknown[0]!r} is no option of this version of recordsmith")
        pictures = document.get("pictures")
        if pictures is not None:
            document = {**document, "pictures": PictureOptions.from_json(pictures)}
        return cls(**document)

    def _scheme(self) -> KeyScheme | None:
        return resolve_keys(self.keys)
