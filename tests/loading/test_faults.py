"""Bad records stop the loader or are skipped: each once, with its place, with any threads."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.raising import raises
from tests.reading import written

import recordsmith as rs
from recordsmith.dataset import records_of
from recordsmith.stores import Location

pytestmark = pytest.mark.usefixtures("_nothing_stays")
NO_EXAMPLE = b"\xff\xff\xff\xffnothing"
THREADS = [0, 1, 4]


@pytest.fixture
def damaged(numbered: Any, place: Location) -> SimpleNamespace:
    """60 records in three shards; `bad`: position -> what is wrong with it, first of all."""
    without = {**numbered.features(31)}
    del without["score"]
    changed = {
        8: NO_EXAMPLE,
        22: {**numbered.features(22), "id": "a word"},
        31: without,
        47: {**numbered.features(47), "corner": [1, 2, 3]},
    }
    folder = numbered.write(place / "data", [15, 30, 15], changed)
    numbered.damage(rs.open(folder), [2, 3, 40])
    dataset = rs.open(folder)
    bad = {
        2: "payload-crc-mismatch",
        3: "payload-crc-mismatch",
        8: "not-an-example",
        22: "feature-kind-mismatch",
        31: "missing-feature",
        40: "payload-crc-mismatch",
        47: "feature-shape-mismatch",
        52: "unreadable-image",
        59: "unreadable-image",
    }
    features = {
        "id": rs.Scalar("id"),
        "score": rs.Scalar("score"),
        "corner": rs.Tensor("corner", (2,)),
        "image": numbered.Painted(bad=(47, 52, 59)),
    }
    whole = rs.open(numbered.write(place / "whole", [60]))
    return SimpleNamespace(dataset=dataset, bad=bad, features=features, whole=whole)


def place(dataset: rs.Dataset, error: Any) -> int:
    """The position in the dataset that an error names."""
    for position in range(len(dataset)):
        where = records_of(dataset).locate_record(position)
        if (where.path, where.number) == (error.path, error.record):
            assert error.offset == where.offset
            return position
    raise AssertionError(f"{error} names no record")


def kept(batches: Any) -> list[list[int]]:
    found = []
    for batch in batches:
        numbers = batch["id"].tolist()
        np.testing.assert_array_equal(batch["score"], np.array(numbers) / 4)
        assert (batch["image"] == batch["id"][:, None, None]).all()
        assert batch["corner"].tolist() == [[number, -number] for number in numbers]
        found.append(numbers)
    return found


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("shuffle", [False, True, rs.BlockShuffle(5, 2)])
def test_bad_records_are_skipped(damaged: Any, threads: int, shuffle: Any) -> None:
    loader = rs.Loader(
        damaged.dataset, damaged.features, batch_size=8, shuffle=shuffle, seed=2, epochs=2,
        threads=threads, skip_errors=len(damaged.bad),
    )  # fmt: skip
    batches = kept(loader)
    assert len(batches) == len(loader) == 16
    undamaged = rs.Loader(
        damaged.whole, {"id": rs.Scalar("id")}, batch_size=8, shuffle=shuffle, seed=2, epochs=2
    )
    whole = [batch["id"].tolist() for batch in undamaged]
    expected = [[number for number in batch if number not in damaged.bad] for batch in whole]
    assert batches == expected
    found = {place(damaged.dataset, error): str(error.defect) for error in loader.skipped}
    assert found == damaged.bad
    assert len(loader.skipped) == len(damaged.bad)
    assert all(error.__traceback__ is None for error in loader.skipped)  # it holds their batch
    assert loader.stats().skipped_count == 2 * len(damaged.bad)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("limit", [1, 4, 8])
def test_one_more_stops(damaged: Any, threads: int, limit: int) -> None:
    loader = rs.Loader(
        damaged.dataset, damaged.features, batch_size=4, threads=threads, skip_errors=limit
    )
    iteration = iter(loader)
    with pytest.raises(rs.DataError) as caught:
        for batch in iteration:
            kept([batch])
    position = sorted(damaged.bad)[limit]
    assert place(damaged.dataset, caught.value) == position
    assert str(caught.value.defect) == damaged.bad[position]
    assert len(loader.skipped) == limit
    assert next(iteration, None) is None
    assert loader.state_dict()["read"] == position // 4 * 4  # the batches before it were given


@pytest.mark.parametrize("shuffle", [False, True])
def test_damage_does_not_hide_what_the_records_have(
    numbered: Any, tmp_path: Path, shuffle: bool
) -> None:
    """The first records are looked at to know the kinds: also past those that are damaged."""
    dataset = rs.open(numbered.write(tmp_path / "data", [70, 30], {1: NO_EXAMPLE}))
    numbered.damage(dataset, [0, 5])
    features = {"id": rs.Scalar("id"), "score": rs.Scalar("score")}
    loader = rs.Loader(dataset, features, batch_size=50, skip_errors=3, shuffle=shuffle)
    scores = np.concatenate([batch["score"] for batch in loader])
    assert scores.dtype == np.float32
    assert sorted(scores * 4) == [number for number in range(100) if number not in (0, 1, 5)]
    with raises(rs.OptionError, option="features"):
        rs.Loader(dataset, {"x": rs.Scalar("scor")}, batch_size=50, skip_errors=3)


@pytest.mark.parametrize("threads", THREADS)
def test_a_whole_batch_may_be_bad(numbered: Any, tmp_path: Path, threads: int) -> None:
    changed = dict.fromkeys(range(4, 8), NO_EXAMPLE)
    dataset = rs.open(numbered.write(tmp_path / "data", [12], changed))
    numbered.damage(dataset, [4, 5])
    features = {
        "id": rs.Scalar("id"), "image": numbered.Painted(), "corner": rs.Tensor("corner", (2,)),
    }  # fmt: skip
    loader = rs.Loader(
        dataset, features, batch_size=4, threads=threads, skip_errors=4,
        map_examples=lambda example, _: {**example, "extra": 1},
        map_batches=lambda batch, _: {**batch, "more": batch["id"]},
    )  # fmt: skip
    batches = list(loader)
    assert [len(batch["id"]) for batch in batches] == [4, 0, 4]
    assert list(batches[1]) == ["id", "image", "corner"]  # it is not mapped
    assert [batches[1][name].shape for name in batches[1]] == [(0,), (0, 6, 6), (0, 2)]
    assert all(batches[1][name].dtype == batches[0][name].dtype for name in batches[1])


@pytest.mark.parametrize("threads", THREADS)
def test_a_shard_without_an_index_counts_record_by_record(
    numbered: Any, tmp_path: Path, threads: int
) -> None:
    """Its frames are broken: not one error, but as many as there are records."""
    dataset = rs.open(numbered.write(tmp_path / "data", [10, 10]))
    len(dataset)
    for shard in dataset.shards[1:]:
        data = bytearray(shard.location.read())
        data[9] ^= 1  # the first record's length no longer has its checksum
        Path(shard.location).write_bytes(data)
        shard._index = None
    loader = rs.Loader(
        dataset, {"id": rs.Scalar("id")}, batch_size=4, threads=threads, skip_errors=5
    )
    seen = []
    with raises(rs.CorruptDataError, defect="length-crc-mismatch", record=0):
        for batch in loader:
            seen += batch["id"].tolist()
    assert seen == list(range(10))
    assert len(loader.skipped) == 5


def test_what_is_no_fault_of_a_record_is_not_skipped(numbered: Any, tmp_path: Path) -> None:
    dataset = rs.open(numbered.write(tmp_path / "data", [10, 10]))
    loader = rs.Loader(dataset, {"id": rs.Scalar("id")}, batch_size=4, skip_errors=100)
    for shard in dataset.shards:
        shard.location.delete()
        shard.close()
    with pytest.raises(rs.FileAccessError):
        list(loader)
    assert loader.skipped == []


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("kept", [10, 0])
def test_a_shard_that_is_cut_or_replaced_while_it_is_read(
    numbered: Any, tmp_path: Path, kept: int, threads: int
) -> None:
    """Cut between two records, or another shard with the numbers of others: no record is read that
    is not the one that was opened.
    """
    dataset = rs.open(numbered.write(tmp_path / "data", [20, 20]))
    longer = {number: {**numbered.features(number), "more": number} for number in range(60)}
    other = rs.open(numbered.write(tmp_path / "other", [60], longer))
    where = records_of(dataset).locate_record(20 + kept)
    with rs.Loader(
        dataset, {"id": rs.Scalar("id")}, batch_size=4, threads=threads, skip_errors=99, prefetch=0
    ) as loader:
        iteration = iter(loader)
        read = next(iteration)["id"].tolist()
        if kept:
            os.truncate(where.path, where.offset)
        else:
            shutil.copy(records_of(other).locate_record(0).path, where.path)
        read += [number for batch in iteration for number in batch["id"].tolist()]
        assert len(loader.skipped) == 40 - len(read)
    assert read == list(range(20 + kept))


@pytest.mark.parametrize("options", [{"by": "label"}, {"by": "name"}, {"weights": "weight"}])
def test_records_that_are_damaged_before_they_are_drawn(
    tmp_path: Path, numbered: Any, options: dict[str, Any]
) -> None:
    """A record that cannot be read is met as often as most others."""
    records = [
        {"id": number, "label": number % 3, "name": "abc"[number % 3], "weight": 1.0 + number % 2}
        for number in range(40)
    ]
    dataset = written(tmp_path, records)
    numbered.damage(dataset, [7, 21])
    path = dataset.shards[0].location
    weighted = rs.Weighted(rs.open(path), **options)
    loader = rs.Loader(weighted, ["id"], batch_size=4, shuffle=True, skip_errors=2, epochs=5)
    ids = {number for batch in loader for number in batch["id"].tolist()}
    assert ids == set(range(40)) - {7, 21}
    assert {error.record for error in loader.skipped} == {7, 21}
    with raises(rs.CorruptDataError, defect="payload-crc-mismatch"):
        list(rs.Loader(weighted, ["id"], batch_size=4, shuffle=True, epochs=5))


def test_an_intact_record_without_a_class_is_an_error(tmp_path: Path, numbered: Any) -> None:
    """Also where others are damaged: a loader of other features would not meet it."""
    records: list[Any] = [{"id": number, "label": 1} for number in range(40)]
    records[30] = {"id": 30}
    dataset = written(tmp_path, records)
    numbered.damage(dataset, [7])
    dataset = rs.open(dataset.shards[0].location)
    with raises(rs.CorruptDataError, record=30, feature="label"):
        rs.Weighted(dataset, by="label")
    numbered.damage(dataset, [number for number in range(40) if number not in (7, 30)])
    with raises(rs.OptionError, option="key", value="label"):
        rs.Weighted(rs.open(dataset.shards[0].location), by="label")
