"""Records with the features of their layers inside, as other programs expect them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import pairwise

from recordsmith.dataset import Shard
from recordsmith.format.example import KeyAction, Rewriter, with_features
from recordsmith.format.example.payload import encode_key
from recordsmith.format.wire import RecordBlock
from recordsmith.support.errors import DataError, located

_ACTIONS = (KeyAction(), KeyAction(drops=True))


def merged_records(shard: Shard) -> Iterator[bytes]:
    """Yield the records of a shard with layers: one map of features each, without hidden ones.

    Features are left out before the files are joined, so unknown fields stay. `merged` takes a
    single record whose files are joined already.
    """
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
    for block in shard.blocks():
        with located(shard.location, block.position):
            yield from select_in_block(block, lambda key: key not in keys)


def select_in_block(block: RecordBlock, takes: Callable[[bytes], bool]) -> Iterator[memoryview]:
    """Yield the payloads of a block with only some features, by key, without decoding values."""
    rewriter = Rewriter(_ACTIONS, lambda key: int(not takes(key)), {}, lambda _: None)
    try:
        for data, offsets in rewriter.rewrite(block.buffer, block.starts, block.lengths):
            for start, stop in pairwise(offsets.tolist()):
                yield data[start:stop]
    except DataError as error:
        error.record = rewriter.row
        raise
