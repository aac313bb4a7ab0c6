"""Small datasets of numbered Examples: foreign ones, and packed ones with a manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from recordsmith.dataset import (
    LABELS_NAME,
    MANIFEST_NAME,
    Manifest,
    Shard,
    ShardEntry,
    ShardWriter,
    labels_to_bytes,
    shard_name,
)
from recordsmith.format.example import SchemaSurvey
from recordsmith.stores import Location, as_folder

AnyPlace = TypeVar("AnyPlace", Path, Location)

class_names = ("daisy", "müsli", "a b")


def features(number: int) -> dict[str, Any]:
    """Example `number`: scalars of each kind, and a list of another length in each."""
    return {
        "id": number,
        "name": f"näm {number}",
        "score": number / 4,
        "steps": list(range(number % 4)),
    }


def write_shard(path: AnyPlace, ids: Sequence[int], compression: str = "none") -> AnyPlace:
    """One shard with the Examples `ids`."""
    with ShardWriter(path, compression=compression) as writer:
        for number in ids:
            writer.write_example(features(number), {"steps": "int64"})
    return path


def packed(
    place: AnyPlace, splits: Mapping[str, Sequence[int]], compression: Any = "none"
) -> AnyPlace:
    """A folder with a manifest; `splits` says how many records each shard of a split has.

    Ids count up through all shards.
    """
    folder = as_folder(place)
    folder.make_folder()
    survey = SchemaSurvey()
    surveys = {split: SchemaSurvey() for split in splits}
    entries: dict[str, list[ShardEntry]] = {}
    number = 0
    for split, counts in splits.items():
        for at, count in enumerate(counts):
            path = folder / shard_name(split, at, len(counts), compression)
            with ShardWriter(path, compression=compression) as writer:
                for _ in range(count):
                    writer.write_example(features(number), {"steps": "int64"})
                    number += 1
            entries.setdefault(split, []).append(
                ShardEntry(path.name, count, writer.size_bytes, writer.crc32c)
            )
            for block in Shard(path, split).blocks():
                survey.update(block.buffer, block.starts, block.lengths)
                surveys[split].update(block.buffer, block.starts, block.lengths)
    manifest = Manifest(
        {split: tuple(shards) for split, shards in entries.items()},
        survey.finish(),
        {split: of_split.finish() for split, of_split in surveys.items()},
        compression,
        class_names,
        {"seed": 0},
    )
    (folder / MANIFEST_NAME).put(manifest.to_bytes())
    (folder / LABELS_NAME).put(labels_to_bytes(class_names))
    return place


def ids_of(examples: Any) -> list[int]:
    """The ids of decoded examples."""
    return [int(example["id"][0]) for example in examples]


def assert_is_example(example: Any, number: int) -> None:
    """Every feature of Example `number`, value for value."""
    expected = features(number)
    assert example.keys() == expected.keys()
    np.testing.assert_array_equal(example["id"], [number])
    assert example["name"] == [expected["name"].encode()]
    np.testing.assert_array_equal(example["score"], [expected["score"]])
    np.testing.assert_array_equal(example["steps"], expected["steps"])
