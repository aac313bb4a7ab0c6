"""The options of `reshard`: checked early, and converted to JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recordsmith.building import ShardCounts, check_shard_options, is_valid_file_name
from recordsmith.dataset import DEFAULT_TEMPLATE
from recordsmith.dataset.shares import check_shares
from recordsmith.errors import OptionError, option
from recordsmith.reshaping.editing.edits import Edits
from recordsmith.serialization import fields_to_json
from recordsmith.where import Where
from recordsmith.wire import check_compression


@dataclass(frozen=True)
class ReshardOptions:
    """The options of `reshard` that determine the output, as described there.

    Raises:
        OptionError: one is invalid, or they contradict each other.
    """

    split: str | None = None
    selection: Any = None
    """The description of the selected records of a Dataset; None for all."""
    shards: ShardCounts | None = None
    shard_size_bytes: int | None = None
    shuffle: bool = False
    seed: int = 0
    take: int | None = None
    sample: float | None = None
    splits: Mapping[str, float] | None = None
    where: Where | None = None
    edits: Edits | None = None
    tiles: bool = False
    compression: str | None = None
    shard_names: str = DEFAULT_TEMPLATE
    keep_shards: bool = False
    """Each input becomes one shard, with the same name if possible."""

    def __post_init__(self) -> None:
        check_shard_options(self.shards, self.shard_size_bytes, self.shard_names)
        if self.compression is not None:
            check_compression(self.compression)
        if not isinstance(self.seed, int):
            raise OptionError(option="seed", value=self.seed, expected="an integer")
        if self.take is not None and (not isinstance(self.take, int) or self.take < 1):
            raise OptionError(option="take", value=self.take, expected="a positive integer")
        if self.sample is not None and not (
            isinstance(self.sample, (int, float)) and 0 < self.sample <= 1
        ):
            raise OptionError(
                option="sample",
                value=self.sample,
                expected="a share above 0 and at most 1, such as 0.1",
                remedy=f"For a number of random records, pass {option('shuffle', True)} and "
                f"{option('take')}.",
            )
        if not isinstance(self.edits, Edits | None):
            expected = 'recordsmith.Edits, such as Edits(drop=["name"])'
            raise OptionError(option="edits", value=self.edits, expected=expected)
        if self.splits is not None:
            check_shares(self.splits)
            for name in self.splits:
                if not is_valid_file_name(name):
                    raise OptionError(
                        f"split name {name!r} is not valid in a file name",
                        option="splits",
                        value=name,
                    )

    def to_json(self) -> dict[str, Any]:
        """Return the options that are set as a JSON-able dict."""
        is_set = [
            name for name, value in vars(self).items() if value is not None and value is not False
        ]
        return fields_to_json(self, is_set)
