"""Layers: features of the records of a dataset in files of their own.

A layer has a shard of Examples for each shard of the dataset, with as many records, in
`layers/NAME/`. A record that is read is the shard's record with the bytes of the layer's behind it:
protobuf merges messages that follow each other, and the later value of a key wins. All values of a
layer's features are in the layer, so it hides these features of the shard.

A layer belongs to a shard by the bytes of the shard, as shards are renamed. Its files never change,
and those that the manifest lists are all there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import msgspec
import numpy as np

from recordsmith.format.wire import (
    FOOTER_BYTES,
    HEADER_BYTES,
    RecordBlock,
    encode_slices,
    gather,
)
from recordsmith.support.buffers import as_view, offsets_from_lengths

LAYERS_FOLDER = "layers"
LAYER_REMEDY = (
    "It is the file of a layer: fetch it again, make it again with `recordsmith layers add "
    "--overwrite`, or take the layer away with `recordsmith layers remove`."
)

ShardKey: TypeAlias = tuple[int, int]
"""What a layer knows a shard by: its CRC-32C and its size in bytes."""


class ShardEntry(msgspec.Struct, frozen=True):
    """The entry of one shard in the manifest. crc32c is over the bytes of the file."""

    file: str
    record_count: int
    size_bytes: int
    crc32c: int

    @property
    def key(self) -> ShardKey:
        return self.crc32c, self.size_bytes


class Layer(msgspec.Struct, frozen=True):
    """A layer in the manifest.

    features: what it has; in its shards, no other place counts for these.
    hidden: those of them that the records had without it.
    shards: its shards by those of the dataset; may lack some.
    most: how many layers a dataset may have.
    """

    most: ClassVar[int] = 1000

    name: str
    features: tuple[str, ...]
    hidden: tuple[str, ...]
    shards: Mapping[ShardKey, ShardEntry]

    @property
    def folder(self) -> str:
        """The folder of its files in that of the dataset."""
        return f"{LAYERS_FOLDER}/{self.name}"

    @property
    def size_bytes(self) -> int:
        return sum(shard.size_bytes for shard in self.shards.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "features": list(self.features),
            "hidden": list(self.hidden),
            "shards": [
                {
                    "of_crc32c": f"{crc32c:08x}",
                    "of_size_bytes": size_bytes,
                    "file": shard.file,
                    "records": shard.record_count,
                    "size_bytes": shard.size_bytes,
                    "crc32c": f"{shard.crc32c:08x}",
                }
                for (crc32c, size_bytes), shard in self.shards.items()
            ],
        }


class _JoinedBlock(RecordBlock, frozen=True):
    """Records of a shard with layers. Their bytes are not those of a file."""

    def frames(self) -> memoryview:
        data = np.concatenate([np.frombuffer(payload, np.uint8) for payload in self.payloads()])
        return as_view(encode_slices(data, offsets_from_lengths(self.lengths)))


def joined_block(data: memoryview, lengths: Any, position: int, offset: int = 0) -> RecordBlock:
    """Return a block of payloads that follow each other without frames."""
    starts = offsets_from_lengths(lengths)[:-1]
    return _JoinedBlock(data, starts, lengths, position, offset)


def join_blocks(blocks: Sequence[Iterator[RecordBlock]]) -> Iterator[RecordBlock]:
    """Yield the records of a shard, each with those of its layers behind it.

    Args:
        blocks: of the same records, in order: first of the shard, then of each layer.
    """
    rest: list[RecordBlock | None] = [None] * len(blocks)
    data = np.empty(0, np.uint8)  # used again: a block is valid until the next one
    while True:
        parts = []
        for number, (own, left) in enumerate(zip(blocks, rest, strict=True)):
            part = left if left is not None else next(own, None)
            if part is None:
                for other in blocks:  # each has as many records: it raises otherwise
                    for _ in other:
                        pass
                return
            rest[number] = part
            parts.append(part)
        count = min(map(len, parts))
        lengths = sum(part.lengths[:count] for part in parts)
        places = offsets_from_lengths(lengths)
        if len(data) < places[-1]:
            data = np.empty(int(places[-1]), np.uint8)
        at = places[:-1].copy()
        for number, part in enumerate(parts):
            starts, own_lengths = part.starts[:count], part.lengths[:count]
            begins, ends = starts - HEADER_BYTES, starts + own_lengths + FOOTER_BYTES
            gather(part.buffer, begins, ends, at, data, check_payloads=False)
            at += own_lengths
            rest[number] = None if count == len(part) else _rest(part, count)
        yield joined_block(as_view(data[: places[-1]]), lengths, parts[0].position, parts[0].offset)


def _rest(block: RecordBlock, count: int) -> RecordBlock:
    return msgspec.structs.replace(
        block,
        starts=block.starts[count:],
        lengths=block.lengths[count:],
        position=block.position + count,
    )
