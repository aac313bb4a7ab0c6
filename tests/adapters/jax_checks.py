"""Run by `test_jax.py` in a process with four devices on the CPU."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

import recordsmith as rs
import recordsmith.jax as adapter

from ..raising import raises
from ..reading import written
from .conftest import FEATURES, example_of_kinds

P = PartitionSpec
MESH = Mesh(np.array(jax.devices()), ("data",))
ROWS = NamedSharding(MESH, P("data"))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    """22 records."""
    return written(tmp_path_factory.mktemp("jax"), map(example_of_kinds, range(22)))


def make(dataset: rs.Dataset, **options: Any) -> rs.Loader:
    options = {"batch_size": 4, "shuffle": True, "seed": 1, **options}
    return rs.Loader(dataset, {"id": "id", "pair": "pair"}, **options)


def ids(batches: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


# -- one batch -------------------------------------------------------------------------------------


def test_what_becomes_of_each_kind(dataset: rs.Dataset) -> None:
    loader = rs.Loader(dataset, FEATURES, batch_size=22)
    (batch,) = loader
    (made,) = adapter.batches(loader)
    assert list(made) == list(FEATURES)
    assert made["id"].dtype == "int32"
    assert made["pair"].dtype == "float32"
    for name in ("id", "pair"):
        assert isinstance(made[name], jax.Array)
        np.testing.assert_array_equal(made[name], batch[name])
    many = made["many"]
    assert isinstance(many, adapter.RaggedParts)
    assert isinstance(many.values, jax.Array)
    rows = [many.values[a:b].tolist() for a, b in pairwise(many.row_splits)]
    assert rows == [list(range(at % 4)) for at in range(22)]
    assert made["name"] == [f"name {at}" for at in range(22)]
    assert made["names"] == [["é"] * (at % 3) for at in range(22)]
    assert made["raw"] == [bytes([at, 0]) for at in range(22)]
    assert made["raws"] == [[b"\0"] * (at % 2) for at in range(22)]
    leaves = jax.tree.leaves({name: made[name] for name in ("id", "pair", "many")})
    assert len(leaves) == 4


def test_images_are_not_copied_on_the_cpu(train: rs.Dataset) -> None:
    for batch in rs.Loader(train, {"image": rs.Image(size=16)}, batch_size=8):
        made = adapter.convert(batch)
        assert made["image"].unsafe_buffer_pointer() == batch["image"].ctypes.data


@pytest.mark.parametrize(
    ("array", "word"),
    [
        (np.array([1, 2**31]), "2147483648"),
        (np.array([-(2**31) - 1, 0]), "-2147483649"),
        (np.array([2**32], np.uint64), "4294967296"),
        (np.array([1.0, -1e39]), "-1e\\+39"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(array: Any, word: str) -> None:
    with pytest.raises(rs.OptionError, match=rf"'it' has {word}.*jax_enable_x64"):
        adapter.convert({"it": array})
    jax.config.update("jax_enable_x64", True)
    try:
        made = adapter.convert({"it": array})["it"]
        assert made.dtype == array.dtype
        assert made.tolist() == array.tolist()
    finally:
        jax.config.update("jax_enable_x64", False)


# -- shardings -------------------------------------------------------------------------------------


def assert_rows_are_spread(array: jax.Array, whole: Any) -> None:
    assert len(array.addressable_shards) == 4
    for number, shard in enumerate(array.addressable_shards):
        assert shard.device == jax.devices()[number]
        size = len(whole) // 4
        np.testing.assert_array_equal(shard.data, whole[number * size : (number + 1) * size])


def test_rows_are_spread_over_devices(dataset: rs.Dataset) -> None:
    loader = make(dataset, batch_size=8, last_batch="pad")
    wanted = list(loader)
    sharded = adapter.batches(make(dataset, batch_size=8, last_batch="pad"), ROWS)
    assert len(sharded) == 3
    for batch, whole in zip(sharded, wanted, strict=True):
        for name in ("id", "pair"):
            assert batch[name].sharding.is_equivalent_to(ROWS, batch[name].ndim)
            assert_rows_are_spread(batch[name], whole[name])


def test_a_device_or_copies_need_no_even_rows(dataset: rs.Dataset) -> None:
    everywhere = NamedSharding(MESH, P())
    second = SingleDeviceSharding(jax.devices()[1])
    for sharding, count in ((everywhere, 4), (second, 1)):
        for batch in adapter.batches(make(dataset, batch_size=5, skip_errors=3), sharding):
            assert len(batch["id"].devices()) == count
            assert batch["id"].devices() <= {*jax.devices()}


def test_a_mesh_of_two_axes(dataset: rs.Dataset) -> None:
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
    shardings = {
        "id": NamedSharding(mesh, P("data")),
        "pair": NamedSharding(mesh, P("data", "model")),
    }
    whole = next(iter(make(dataset, batch_size=6, last_batch="drop")))
    batch = next(iter(adapter.batches(make(dataset, batch_size=6, last_batch="drop"), shardings)))
    for shard in batch["pair"].addressable_shards:
        assert shard.data.shape == (3, 1)
        np.testing.assert_array_equal(shard.data, whole["pair"][shard.index])
    both = NamedSharding(mesh, P(("data", "model")))
    with raises(rs.OptionError, option="batch_size", value=6, expected="a multiple of 4"):
        adapter.batches(make(dataset, batch_size=6, last_batch="drop"), both)


@pytest.mark.parametrize(
    ("options", "option", "words"),
    [
        ({}, "sharding", "the 8 records.*last_batch='drop'"),
        ({"batch_size": 6, "last_batch": "drop"}, "batch_size", "multiple of 4"),
        ({"last_batch": "drop", "skip_errors": 1}, "sharding", "skip_errors removes"),
        ({"last_batch": "pad", "filter": lambda _: True}, "sharding", "filter removes"),
        (
            {"last_batch": "pad", "rank": 1, "world_size": 2},
            *("rank", r"1 of 2.* 0 of 1.*this_rank\(sharding\)"),
        ),
    ],
)
def test_what_cannot_be_spread_is_refused_before_reading(
    dataset: rs.Dataset, options: Any, option: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = make(dataset, **{"batch_size": 8, **options})
    monkeypatch.setattr(rs.Dataset, "read_records", None)
    with raises(rs.OptionError, option=option, match=words):
        adapter.batches(loader, ROWS)


def test_what_is_found_in_the_batch(dataset: rs.Dataset) -> None:
    def first(features: Any, sharding: Any, **options: Any) -> Any:
        loader = rs.Loader(dataset, features, batch_size=4, last_batch="pad", **options)
        return next(iter(adapter.batches(loader, sharding)))

    with raises(rs.OptionError, option="sharding", match="'many'.* lengths.*Padded"):
        first({"many": "many"}, ROWS)
    with raises(rs.OptionError, option="sharding", value="idd", match="no such.* 'id'"):
        first({"id": "id"}, {"idd": ROWS})
    with raises(rs.OptionError, option="sharding", value="name", match="not an array"):
        first({"name": rs.Text("name")}, {"name": ROWS})
    with raises(rs.OptionError, option="sharding", match=r"'id'.* \(4,\).* 2 axes"):
        first({"id": "id"}, NamedSharding(MESH, P(None, "data")))
    with pytest.raises(rs.OptionError, match=r"entry 'pair', float32 \(4, 2\)"):
        first({"pair": "pair"}, NamedSharding(MESH, P(None, "data")))
    with raises(rs.OptionError, option="sharding", value=3, expected="a multiple of 4"):
        first({"id": "id"}, ROWS, map_batches=lambda batch, _: {"id": batch["id"][:3]})


@pytest.mark.parametrize(
    ("sharding", "words"),
    [
        ("data", "sharding must be"),
        ({"id": P("data")}, "sharding has .* 'id'"),
    ],
)
def test_what_is_no_sharding(dataset: rs.Dataset, sharding: Any, words: str) -> None:
    with raises(rs.OptionError, option="sharding", match=words):
        adapter.batches(make(dataset), sharding)
    with raises(rs.OptionError, option="sharding", match=words):
        adapter.convert({"id": np.arange(4)}, sharding)


def test_jit_over_batches(train: rs.Dataset) -> None:
    @jax.jit
    def step(total: Any, batch: Any) -> Any:
        return total + (batch["image"].astype(jnp.float32).mean(axis=(1, 2, 3)) > 0).sum()

    features: dict[str, Any] = {"image": rs.Image(size=16), "label": "image/class/label"}
    loader = rs.Loader(train, features, batch_size=8, last_batch="drop")
    total = jnp.zeros((), jnp.int32)
    for batch in adapter.batches(loader, ROWS):
        total = step(total, batch)
    assert total == 40


# -- the loop --------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefetch", [0, 1, 3, 50])
def test_the_state_is_that_of_the_loop(dataset: rs.Dataset, prefetch: int) -> None:
    bare = make(dataset, epochs=2)
    wanted = ids(bare)
    batches = adapter.batches(make(dataset, epochs=2), prefetch=prefetch)
    states = [batches.state_dict()]
    for batch, expected in zip(batches, wanted, strict=True):
        assert batch["id"].tolist() == expected
        states.append(batches.state_dict())
    assert batches.state_dict() == bare.state_dict()
    reference = make(dataset, epochs=2)
    for count, state in enumerate(states):
        assert state == reference.state_after(count)
        if count < len(wanted):
            resumed = adapter.batches(make(dataset, epochs=2), prefetch=prefetch)
            resumed.load_state_dict(state)
            assert len(resumed) == len(wanted) - count
            assert ids(resumed) == wanted[count:]


@pytest.mark.parametrize("prefetch", [0, 2, 50])
@pytest.mark.parametrize("count", [1, 5, 6, 7, 12, 17, 18])
def test_iterations_that_are_broken_off(dataset: rs.Dataset, prefetch: int, count: int) -> None:
    """As with the loader itself, the next one begins with the epoch after the loop's."""
    bare = make(dataset, epochs=3)
    batches = adapter.batches(make(dataset, epochs=3), prefetch=prefetch)
    for _ in range(2):
        one, other = iter(bare), iter(batches)
        assert ids(islice(other, count)) == ids(islice(one, count))
        assert batches.state_dict() == bare.state_dict()
        one.close()
        other.close()
        assert not list(other)
    assert ids(batches) == ids(bare)


def test_what_fails_ahead_is_raised_in_its_turn(tmp_path: Path) -> None:
    numbers = [*range(9), 2**40, *range(10, 16)]
    dataset = written(tmp_path, [{"id": number} for number in numbers])
    batches = adapter.batches(rs.Loader(dataset, {"id": "id"}, batch_size=4), prefetch=9)
    iteration = iter(batches)
    assert next(iteration)["id"].tolist() == [0, 1, 2, 3]
    assert next(iteration)["id"].tolist() == [4, 5, 6, 7]
    with pytest.raises(rs.OptionError, match=f"entry 'id' has {2**40}"):
        next(iteration)
    assert batches.state_dict()["read"] == 8
    assert not list(iteration)


@pytest.mark.filterwarnings("ignore:os.fork")  # of JAX: the child only raises
def test_an_iteration_stays_in_its_process(dataset: rs.Dataset) -> None:
    iteration = iter(adapter.batches(make(dataset)))
    next(iteration)
    next(iteration)  # another one is put ahead
    child = os.fork()
    if not child:
        try:
            next(iteration)
        except rs.OptionError as error:
            os._exit(0 if "another process" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list(iteration)) == 4


def test_threads_end(dataset: rs.Dataset) -> None:
    def threads() -> Iterator[str]:
        return (name for name in (t.name for t in threading.enumerate()) if "recordsmith" in name)

    batches = adapter.batches(make(dataset, threads=2, epochs=None))
    iteration = iter(batches)
    next(iteration)
    assert list(threads())
    iteration.close()
    assert not list(threads())
    iteration = iter(batches)
    next(iteration)
    del iteration
    gc.collect()
    for _ in range(1000):
        if not list(threads()):
            break
        threading.Event().wait(0.01)
    assert not list(threads())


def test_what_it_is_not_made_of(dataset: rs.Dataset, train: rs.Dataset) -> None:
    with raises(rs.OptionError, option="loader", expected="a recordsmith.Loader"):
        adapter.batches(dataset)  # type: ignore[arg-type]
    with raises(rs.OptionError, option="prefetch"):
        adapter.batches(make(dataset), prefetch=-1)
    with pytest.raises(TypeError, match="endless"):
        len(adapter.batches(make(dataset, epochs=None)))


def test_ranks(dataset: rs.Dataset) -> None:
    assert adapter.this_rank() == adapter.this_rank(ROWS) == {"rank": 0, "world_size": 1}
    with pytest.raises(rs.OptionError, match="any_rank=True"):
        adapter.batches(make(dataset, rank=1, world_size=3))
    other = adapter.batches(make(dataset, rank=1, world_size=3), any_rank=True)
    assert ids(other) == ids(make(dataset, rank=1, world_size=3))
