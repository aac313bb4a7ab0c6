"""A loader of records with layers has the batches of one of the same records merged by protobuf.

What is kept for a shard (the values of a feature in a column file, counts of classes, lengths) is
that of the layer, which hides the feature of the shard: the shard's own columns are made first.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import kept_values

from .. import layered_datasets as layered
from ..images import jpeg
from ..raising import raises

COUNT = 48
Make = Callable[[rs.Dataset], Any]


def base(at: int) -> dict[str, Any]:
    """A record whose label, tokens and steps are wrong until a layer hides them."""
    return {
        "id": at,
        "label": 0,
        "tokens": [1] * 3,
        "steps/x": [0.0],
        "image/encoded": jpeg(at),
        "size": 5,
    }


LABELS = [{"label": at % 3 + at // 24} for at in range(COUNT)]
MORE = [
    {"tokens": [at * 100 + n for n in range(1 + at * 7 % 9)], "steps/x": [0.5] * (1 + at * 5 % 6)}
    for at in range(COUNT)
]


@pytest.fixture(scope="module")
def both(tmp_path_factory: Any, reference: Any) -> tuple[rs.Dataset, rs.Dataset]:
    folder, payloads = (
        tmp_path_factory.mktemp("layers"),
        [rs.encode_example(base(n)) for n in range(COUNT)],
    )
    layered.write(folder / "out", {"train": [payloads[:20], [], payloads[20:]]})
    before = rs.open(folder / "out")
    use_kept_columns(before)
    for name, rows in (("labels", LABELS), ("more", MORE)):
        layered.add(folder / "out", name, rows)
        payloads = [p + rs.encode_example(row) for p, row in zip(payloads, rows, strict=True)]
    message = reference.messages().Example
    whole = [message.FromString(p).SerializeToString(deterministic=True) for p in payloads]
    layered.write(folder / "merged", {"train": [whole[:20], [], whole[20:]]})
    return rs.open(folder / "out"), rs.open(folder / "merged")


def use_kept_columns(dataset: rs.Dataset) -> None:
    for source in (rs.Weighted(dataset, by="label"), rs.Packed(dataset, "tokens", length=16)):
        next(
            iter(
                rs.Loader(
                    source,
                    ["id"] if isinstance(source, rs.Weighted) else None,
                    batch_size=4,
                    shuffle=True,
                )
            )
        )


def values(batch: Any) -> Any:
    return {
        key: [row.tolist() for row in value]
        if hasattr(value, "lengths")
        else np.asarray(value).tolist()
        for key, value in batch.items()
    }


FEATURES = {"id": rs.Scalar("id"), "label": rs.Scalar("label"), "tokens": rs.Ragged("tokens")}
IMAGES = {"image": rs.Image("image/encoded", (8, 8)), "label": rs.OneHot("label", 5)}


def loader(make: Make = lambda dataset: dataset, features: Any = FEATURES, **options: Any) -> Make:
    settings = {"batch_size": 4, "shuffle": True, "seed": 3, "threads": 0} | options
    return lambda dataset: rs.Loader(make(dataset), features, **settings)


LOADERS: dict[str, Make] = {
    "in order": loader(shuffle=False),
    "shuffled": loader(),
    "threads": loader(threads=2),
    "blocks": loader(shuffle=rs.BlockShuffle(4)),
    "ranks": loader(rank=1, world_size=3),
    "images": loader(features=IMAGES, epochs=2),
    "filtered": loader(lambda dataset: dataset.filter("label == 2")),
    "by class": loader(lambda dataset: rs.ByClass(dataset, "label", classes=2, examples=2)),
    "weighted": loader(lambda dataset: rs.Weighted(dataset, by="label", length=40)),
    "weighted by weights": loader(lambda dataset: rs.Weighted(dataset, weights="label", length=40)),
    "mix": loader(lambda dataset: rs.Mix([(dataset[:9], 1), (dataset[9:], 2)], length=30)),
    "buckets": loader(buckets=rs.BucketBySize()),
    "packed": loader(lambda dataset: rs.Packed(dataset, "tokens", length=16), features=None),
    "episodes": loader(
        lambda dataset: rs.Episodes(dataset, window=2, pad="drop", count_by="steps/x"),
        features=["id"],
    ),
}


@pytest.mark.parametrize("make", LOADERS.values(), ids=LOADERS)
def test_batches(both: tuple[rs.Dataset, rs.Dataset], make: Make) -> None:
    batches = []
    for dataset in both:
        with make(dataset) as loader:
            batches.append([values(batch) for batch in loader])
    assert batches[0] == batches[1]
    assert batches[0]


def test_lookups_of_kept_columns(both: tuple[rs.Dataset, rs.Dataset]) -> None:
    """The first reading makes the columns of the layer, the next ones use them."""
    for _ in range(2):
        dataset = pickle.loads(pickle.dumps(both[0]))
        weights = rs.Weighted(dataset, by="label", length=400)
        with rs.Loader(weights, {"label": rs.Scalar("label")}, batch_size=400, shuffle=True) as one:
            counts = np.bincount(next(iter(one))["label"])
        assert counts.tolist() == [100] * 4


def test_a_state_belongs_to_the_layers(tmp_path: Path) -> None:
    payloads = [rs.encode_example(base(at)) for at in range(COUNT)]
    folder = layered.write(tmp_path / "out", {"train": [payloads]})
    make = loader()
    with make(rs.open(folder)) as one:
        next(iter(one))
        state = one.state_dict()
    with make(rs.open(folder)) as same:
        same.load_state_dict(state)
    layered.add(folder, "labels", LABELS)
    with make(rs.open(folder)) as other, raises(rs.OptionError):
        other.load_state_dict(state)


def test_values_kept_next_to_a_hidden_feature(tmp_path: Path) -> None:
    """`pack` keeps the values of labels, and so does the layer that hides them."""
    key = "image/class/label"
    rs.pack(rs.Rows([{key: 7, "id": at} for at in range(COUNT)]), tmp_path / "out", shards=2)

    def kept() -> list[int]:
        columns = [kept_values(shard, [key])[key] for shard in rs.open(tmp_path / "out").shards]
        return [int(number) for column in columns for number in column.numbers]

    assert kept() == [7] * COUNT
    ids = rs.open(tmp_path / "out").read_columns(["id"])["id"]
    layered.add(tmp_path / "out", "labels", [{key: int(at) % 4} for at in ids])
    assert kept() == (ids % 4).tolist()


@pytest.mark.parametrize("name", ["packed", "episodes"])
def test_damage_is_that_of_the_layer(tmp_path: Path, name: str) -> None:
    """Also where rows are made of several records, or of parts of one."""
    payloads = [rs.encode_example(base(at)) for at in range(COUNT)]
    folder = layered.write(tmp_path / "out", {"train": [payloads]})
    layered.add(folder, "more", MORE)
    (file,) = layered.layer_files(folder, "more")
    with LOADERS[name](rs.open(folder)) as damaged:
        with open(str(file), "r+b") as opened:
            opened.seek(-5, 2)
            opened.write(b"?")
        with raises(rs.CorruptDataError, path=file, record=COUNT - 1):
            list(damaged)
