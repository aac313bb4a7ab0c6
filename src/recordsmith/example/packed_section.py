"""A section of a schema in little memory: for those that wait until all shards are done.

A job keeps the schema of each shard until it writes the manifest. Where shards have tens of
thousands of features, that is most of its memory, and much of it is alike: so it waits compressed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, ItemsView, Iterator, Mapping
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class PackedSection(Mapping[str, _T], Generic[_T]):
    """Features by name. Whoever wants more than one of them asks for `items()`."""

    def __init__(self, section: Mapping[str, _T], read: Callable[[Any], _T]) -> None:
        """`read` makes a feature of what its `to_json()` gave."""
        features: Any = section
        document = [[key, feature.to_json()] for key, feature in features.items()]
        self._data = zlib.compress(json.dumps(document).encode(), 1)
        self._length = len(section)
        self._read = read

    def items(self) -> ItemsView[str, _T]:
        """Names and features, made anew."""
        document = json.loads(zlib.decompress(self._data))
        return {key: self._read(feature) for key, feature in document}.items()

    def __getitem__(self, key: str) -> _T:
        return dict(self.items())[key]

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self.items()))

    def __len__(self) -> int:
        return self._length
