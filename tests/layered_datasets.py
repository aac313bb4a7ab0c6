"""Datasets with layers, and the same records merged by protobuf, in shards of the same sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np

import recordsmith as rs
from recordsmith.dataset import MANIFEST_NAME, Manifest, ShardEntry, ShardWriter, shard_name
from recordsmith.format.example import Schema, SchemaSurvey
from recordsmith.stores import Location, as_folder
from recordsmith.writing.layers import adding

AnyPlace = TypeVar("AnyPlace", Path, Location)
Rows = Sequence[Mapping[str, Any]]


def write(
    place: AnyPlace,
    splits: Mapping[str, Sequence[Sequence[bytes]]],
    compression: Any = "none",
    class_names: Any = None,
) -> AnyPlace:
    """A folder with a manifest, with the payloads of each shard of each split."""
    folder = as_folder(place)
    folder.make_folder()
    entries: dict[str, list[ShardEntry]] = {split: [] for split in splits}
    for split, shards in splits.items():
        for number, payloads in enumerate(shards):
            path = folder / shard_name(split, number, len(shards), compression)
            with ShardWriter(path, compression=compression) as writer:
                for payload in payloads:
                    writer.write(payload)
            entry = ShardEntry(path.name, len(payloads), writer.size_bytes, writer.crc32c)
            entries[split].append(entry)
    schemas = {split: schema_of(*shards) for split, shards in splits.items()}
    manifest = Manifest(
        {split: tuple(shards) for split, shards in entries.items()},
        Schema.merged(schemas.values()),
        schemas,
        compression,
        class_names,
        {"seed": 0},
    )
    (folder / MANIFEST_NAME).put(manifest.to_bytes())
    return place


def schema_of(*shards: Sequence[bytes]) -> Schema:
    survey = SchemaSurvey()
    for payloads in shards:
        for payload in payloads:
            survey.update(payload, np.zeros(1, np.int64), np.array([len(payload)]))
    return survey.finish()


class _Joined:
    """Rows of a table for each record, as `join_table` returns them."""

    notices: tuple[str, ...] = ()
    missing_count = 0

    def __init__(self, rows: Rows, class_names: Any) -> None:
        self._rows = rows
        self.features = tuple(dict.fromkeys(key for row in rows for key in row))
        self.class_names = class_names
        self.identity = repr(rows)

    def blocks(self, start: int, stop: int) -> Iterator[tuple[bytes, Any]]:
        payloads = [rs.encode_example(row) for row in self._rows[start:stop]]
        sizes = np.array([0, *accumulate(map(len, payloads))], np.int64)
        yield b"".join(payloads), sizes


def add(place: AnyPlace, name: str, rows: Rows, **options: Any) -> AnyPlace:
    """Add a layer with these features of each record, in order; rows must repeat what they hide."""
    joined = _Joined(rows, rs.open(place).class_names)
    with patch.object(adding, "join_table", lambda *_: joined):
        adding.add_layer(place, "rows", name=name, on="position", **options)
    return place


def layer_files(place: AnyPlace, name: str) -> list[Location]:
    """The files of a layer, in the order of the shards."""
    shards = rs.open(place).shards
    folder = as_folder(place) / "layers" / name
    return [file.location for s in shards for file in s.layers if file.location.parent == folder]
