"""Datasets with layers, and what is in their files, read without recordsmith."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from recordsmith.stores import PlaceLike, as_folder
from recordsmith.writing.layers.adding import LayerReport, add_layer

from .reference import parse

Row = Mapping[str, Any]


def add(folder: PlaceLike, name: str, rows: Iterable[Row], **options: Any) -> LayerReport:
    """Add a layer of a table with these rows, by `id`."""
    pa = pytest.importorskip("pyarrow")
    table = pa.Table.from_pylist([dict(row) for row in rows])
    return add_layer(folder, table, **{"name": name, "on": "id", "threads": 1, **options})


def payloads(data: bytes) -> Iterator[bytes]:
    """The records of a file."""
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        yield data[at + 12 : at + 12 + size]
        at += size + 16


def merged_payloads(place: PlaceLike) -> dict[str, list[bytes]]:
    """Each record of each split with the bytes of its layers behind it."""
    folder = as_folder(place)
    document = json.loads((folder / "dataset.json").read())
    found: dict[str, list[bytes]] = {}
    for split, shards in document["splits"].items():
        found[split] = []
        for shard in shards:
            files = [folder / shard["file"]]
            for layer in document.get("layers", []):
                files += [
                    folder / "layers" / layer["name"] / own["file"]
                    for own in layer["shards"]
                    if own["of_crc32c"] == shard["crc32c"]
                    and own["of_size_bytes"] == shard["size_bytes"]
                ]
            records = zip(*(payloads(file.read()) for file in files), strict=True)
            found[split] += [b"".join(record) for record in records]
    return found


def rows_of(place: PlaceLike) -> dict[str, list[dict[str, Any]]]:
    """The features of each record of each split, as protobuf reads them; a list for each."""

    def values(feature: Any) -> list[Any]:
        kind = feature.WhichOneof("kind")
        return [] if kind is None else list(getattr(feature, kind).value)

    return {
        split: [
            {
                key: values(feature)
                for key, feature in sorted(parse("Example", data).features.feature.items())
            }
            for data in records
        ]
        for split, records in merged_payloads(place).items()
    }


def layer_files(place: PlaceLike) -> set[str]:
    """All files in the folders of layers but what is kept of shards."""
    folder = as_folder(place)
    found = {str(location.relative_to(folder)) for location in (folder / "layers").list()}
    return {name for name in found if not name.endswith((".index", ".columns"))}


def listed_files(place: PlaceLike) -> set[str]:
    """The files of layers that the manifest lists."""
    document = json.loads((as_folder(place) / "dataset.json").read())
    return {
        f"layers/{layer['name']}/{shard['file']}"
        for layer in document.get("layers", [])
        for shard in layer["shards"]
    }
