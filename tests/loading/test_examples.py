"""Examples at positions are the rows of a loader's batches."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from tests.raising import raises

import recordsmith as rs
from recordsmith.dataset import ShardWriter

FEATURES: dict[str, Any] = {
    "image": rs.Image("image", size=(8, 8)),
    "id": "id",
    "many": rs.Ragged("many"),
    "name": rs.Text("name"),
    "at": rs.Position(),
}


def jitter(example: dict[str, Any], generator: np.random.Generator) -> dict[str, Any]:
    return {**example, "jitter": generator.random()}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory, images: Any) -> rs.Dataset:
    folder = tmp_path_factory.mktemp("examples")
    for shard in range(2):
        with ShardWriter(folder / f"{shard}.tfrecord") as writer:
            for number in range(shard * 5, shard * 5 + 5):
                writer.write_example(
                    {
                        "image": images.jpeg(number, 9, 7 + number),
                        "id": number,
                        "many": list(range(number)),
                        "name": f"n{number}",
                    }
                )
    return rs.open(folder)


def equal(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return list(a) == list(b) and all(np.array_equal(a[name], b[name]) for name in a)


def test_they_are_the_rows_of_batches(dataset: rs.Dataset) -> None:
    (batch,) = rs.Loader(dataset, FEATURES, batch_size=10)
    examples = rs.Examples(dataset, FEATURES)
    assert len(examples) == 10
    assert repr(examples) == "Examples(10 examples: image, id, many, name, at)"
    for number, example in enumerate(examples):
        assert equal(example, {name: entry[number] for name, entry in batch.items()})
    assert equal(examples[-1], examples[np.int64(9)])
    chosen = [7, 0, -1, 7]
    some = examples.batch(chosen)
    assert some["at"].tolist() == [7, 0, 9, 7]
    for row, position in enumerate(chosen):
        assert equal({name: entry[row] for name, entry in some.items()}, examples[position])
    assert len(examples.batch([])["id"]) == 0
    mask = np.isin(np.arange(10), [2, 5])
    assert examples.batch(mask)["at"].tolist() == [2, 5]


def test_random_numbers_belong_to_position_and_epoch(dataset: rs.Dataset) -> None:
    features = {"image": rs.Image("image", size=4, fit="random-crop"), "at": rs.Position()}
    examples = rs.Examples(dataset, features, seed=3, map_examples=jitter)
    batch = examples.batch([4, 2])
    assert equal(examples[2], {name: entry[1] for name, entry in batch.items()})
    travelled = pickle.loads(pickle.dumps(examples))
    assert equal(travelled[2], examples[2])
    before = examples[2]
    examples.set_epoch(1)
    assert examples[2]["jitter"] != before["jitter"]
    assert not np.array_equal(examples[2]["image"], before["image"])
    other = rs.Examples(dataset, features, seed=4, map_examples=jitter)
    assert other[2]["jitter"] != before["jitter"]


@pytest.mark.parametrize("position", [10, -11])
def test_there_is_no_such_position(dataset: rs.Dataset, position: int) -> None:
    examples = rs.Examples(dataset, FEATURES)
    with pytest.raises(IndexError, match=f"position {position} .* 10 records"):
        examples[position]
    with pytest.raises(IndexError, match=f"position {position} .* 10 records"):
        examples.batch([0, position])
    with pytest.raises(IndexError, match=r"position 0 .* 0 records"):
        rs.Examples(dataset[:0], FEATURES)[0]
    with pytest.raises(TypeError):
        examples[0.5]  # type: ignore[index]


def test_what_it_is_not_made_of(dataset: rs.Dataset, tmp_path: Any) -> None:
    with raises(rs.OptionError, option="dataset"):
        rs.Examples("folder")  # type: ignore[arg-type]
    with raises(rs.OptionError, option="features"):
        rs.Examples(dataset, {"id": "idd"})
    with ShardWriter(tmp_path / "a.tfrecord.gz", compression="gzip") as writer:
        writer.write_example({"id": 1})
    with raises(rs.OptionError, option="dataset"):
        rs.Examples(rs.open(tmp_path / "a.tfrecord.gz"))
