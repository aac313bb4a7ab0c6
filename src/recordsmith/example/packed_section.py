"""A section of a schema, compressed in memory until all shards are done.

A job keeps the schema of each shard until it writes the manifest. With tens of thousands of
features per shard, schemas would take most of its memory.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, ItemsView, Iterator, Mapping
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class CompressedSection(Mapping[str, _T], Generic[_T]):
    """Features by name. Use `items()` to get more than one of them."""

    def __init__(self, section: Mapping[str, _T], read: Callable[[Any], _T]) -> None:
        """`read` converts the result of a feature's `to_json()` back."""
        features: Any = section
        document = [[key, feature.to_json()] for key, feature in features.items()]
        self._data = zlib.compress(json.dumps(document).encode(), 1)
        self._length = len(section)
        self._read = read

    def items(self) -> ItemsView[str, _T]:
        """Return names and features, decompressed on each call."""
        document = json.loads(zlib.decompress(self._data))
        return {key: self._read(feature) for key, feature in document}.items()

    def __getitem__(self, key: str) -> _T:
        return dict(self.items())[key]

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self.items()))

    def __len__(self) -> int:
        return self._length
