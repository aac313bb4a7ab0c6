"""Records with the features of their layers inside, as other programs expect them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import NoReturn

from recordsmith.dataset import Shard
from recordsmith.format.example import KeyAction, Rewriter, with_features
from recordsmith.format.example.payload import encode_key
from recordsmith.support.errors import located

_ACTIONS = (KeyAction(), KeyAction(drops=True))


def merged_records(shard: Shard) -> Iterator[bytes]:
    """Yield the records of a shard with layers: one map of features each, without hidden ones."""
    files = (shard.alone(), *shard.layers)
    hidden: set[str] = set()
    streams: list[Iterator[memoryview]] = []
    for file in reversed(files):
        streams.insert(0, _without(file, frozenset(hidden)))
        hidden |= file.features
    for payload, *layers in zip(*streams, strict=True):
        yield with_features(payload, layers)


def _without(shard: Shard, hidden: Collection[str]) -> Iterator[memoryview]:
    keys = {encode_key(key) for key in hidden}
    rewriter = Rewriter(_ACTIONS, lambda key: int(key in keys), {}, _refuse)
    for block in shard.blocks():
        with located(shard.location, block.position):
            for data, offsets in rewriter.rewrite(block.buffer, block.starts, block.lengths):
                for start, stop in pairwise(offsets.tolist()):
                    yield data[start:stop]


def _refuse(keys: Collection[tuple[int, bytes]]) -> NoReturn:
    raise AssertionError(keys)  # nothing is renamed
