"""Features make the same of a record whatever the ranks, threads and steps of resuming."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.loading.features.images.test_keypoints import with_points
from tests.reading import written
from tests.serialized_tensors import serialized

import recordsmith as rs
from recordsmith.format.example.keys import OBJECT_MASK

COUNT = 14
CROP: dict[str, Any] = {"size": 6, "fit": "random-crop", "flip": "both"}
CHOSEN: dict[str, Any] = {"frames": 2, "choose": "random"}
EXAMPLES: dict[str, Any] = {
    "image": rs.Image(size=24, fit="random-crop", flip="both"),
    "points": rs.Keypoints(of="boxes", points=3, flip_pairs=[(1, 2)]),
    "boxes": rs.Boxes(of="image", length=6, corners=True),
    "masks": rs.Mask(OBJECT_MASK),
    "images": rs.Image(OBJECT_MASK, **CROP, count="ragged"),
    "floats": rs.Image("band", **CROP, channels=1, raw_shape=(9, 8), raw_dtype="float32"),
    "tensor": rs.Serialized("tensor"),
    "stack": rs.Stack(["band", "band"], (9, 8)),
    "label": rs.Label("name", class_names=("a", "b", "c")),
    "one": rs.OneHot("number", 7),
    "hot": rs.MultiHot("numbers", 7),
    "one_of": rs.Text("captions", choose="random"),
}
SEQUENCES: dict[str, Any] = {
    "image": rs.Steps(rs.Image("frames", **CROP), **CHOSEN),
    "chosen": rs.Steps(rs.Bytes("frames"), **CHOSEN),
    "all": rs.Steps(rs.Bytes("frames"), "ragged"),
}


def example_of(number: int, images: Any) -> dict[str, Any]:
    return {
        **with_points(number, images),
        "band": np.random.default_rng(number).normal(size=72),
        "tensor": serialized(np.full((number % 4, 2), number)),
        "name": "abc"[number % 3],
        "number": number % 7,
        "numbers": [number % 3, 3],
        "captions": [f"{number} {n}" for n in range(1 + number % 5)],
    }


@pytest.mark.parametrize("features", [EXAMPLES, SEQUENCES], ids=["examples", "sequences"])
def test_ranks_and_resuming(tmp_path: Path, images: Any, features: dict[str, Any]) -> None:
    records: list[Any] = [example_of(number, images) for number in range(COUNT)]
    if features is SEQUENCES:
        frames = [images.jpeg(number) for number in range(5)]
        lists = [{"frames": frames[: number % 6]} for number in range(COUNT)]
        records = [rs.encode_sequence_example({}, own, {"frames": "bytes"}) for own in lists]
    dataset = written(tmp_path, records)

    def loader(**options: Any) -> rs.Loader:
        options = {"batch_size": 2, "threads": 0} | options
        declared = {**features, "at": rs.Position()}
        return rs.Loader(dataset, declared, shuffle=True, seed=5, **options)

    def rows(*batches: Any) -> dict[int, list[Any]]:
        """What each record became, by its position."""
        return {
            at: [entry[row : row + 1].tolist() for entry in batch.values()]
            for batch in batches
            for row, at in enumerate(batch["at"].tolist())
        }

    expected = rows(*loader(batch_size=COUNT))
    assert expected.keys() == {*range(COUNT)}
    for world_size in range(1, 6):
        found: dict[int, list[Any]] = {}
        for rank in range(world_size):
            found |= rows(*loader(rank=rank, world_size=world_size, threads=rank % 2))
        assert found == expected
    whole = loader()
    batches = [rows(batch) for batch in whole]
    for step in range(len(batches)):
        again = loader()
        again.load_state_dict(json.loads(json.dumps(whole.state_after(step))))
        again = pickle.loads(pickle.dumps(again))
        assert [rows(batch) for batch in again] == batches[step:]
