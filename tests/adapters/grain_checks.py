"""Run by `test_grain.py` in a process of its own."""

from __future__ import annotations

import json
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import grain
import numpy as np
import pytest
from absl import flags

import recordsmith as rs
import recordsmith.grain as adapter
from recordsmith.format.example import BytesArray, RaggedArray

from ..raising import raises
from ..reading import written
from .conftest import FEATURES, example_of_kinds

flags.FLAGS.mark_as_parsed()  # grain asks for it before it begins processes

pytestmark = pytest.mark.timeout(120)  # seconds: what goes wrong in a process must not hang


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    """22 records."""
    return written(tmp_path_factory.mktemp("grain"), map(example_of_kinds, range(22)))


def make(dataset: rs.Dataset, **options: Any) -> rs.Loader:
    return rs.Loader(dataset, FEATURES, **{"batch_size": 4, "shuffle": True, "seed": 1, **options})


def ids(stream: Any) -> list[Any]:
    return [np.asarray(element["id"]).tolist() for element in stream]


def processes(count: int) -> Any:
    return grain.MultiprocessingOptions(num_workers=count)


def close(iterator: Any) -> None:
    """End grain's processes; older ones end when the iterator is collected."""
    if hasattr(iterator, "close"):
        iterator.close()


def in_processes(dataset: Any, count: int, state: Any = None) -> tuple[list[Any], Any]:
    """What grain's processes give, and their state before and after each element."""
    iterator = iter(dataset.mp_prefetch(processes(count)))
    if state is not None:
        iterator.set_state(json.loads(json.dumps(state)))
    seen, states = [], [iterator.get_state()]
    try:
        for element in iterator:
            seen.append(np.array(element["id"]).tolist())
            states.append(iterator.get_state())
    finally:
        close(iterator)
    return seen, states


def assert_goes_on_from_every_step(begin: Callable[[], Any]) -> None:
    iterator = iter(begin())
    wanted, states = [], [iterator.get_state()]
    for element in iterator:
        wanted.append(np.asarray(element["id"]).tolist())
        states.append(json.loads(json.dumps(iterator.get_state())))
    assert len(wanted) > 3
    for count, state in enumerate(states):
        again = iter(begin())
        again.set_state(state)
        assert ids(again) == wanted[count:]
    again.set_state(states[1])  # back, in the same iterator
    assert ids(again) == wanted[1:]


# -- a source --------------------------------------------------------------------------------------


def test_it_is_the_rows_of_batches(dataset: rs.Dataset) -> None:
    source = adapter.examples(dataset, FEATURES)
    assert isinstance(source, grain.sources.RandomAccessDataSource)
    assert len(source) == 22
    with pytest.raises(IndexError, match=r"position 22 .* 22 records"):
        source[22]
    for shown in ("Examples", ", ".join(FEATURES), "22"):
        assert shown in repr(source)
    (batch,) = rs.Loader(dataset, FEATURES, batch_size=22)
    for at in (0, 5, 21):
        example = source[at]
        assert list(example) == list(batch)
        assert example["id"] == batch["id"][at]
        assert example["many"].tolist() == batch["many"][at].tolist()
        assert example["name"] == batch["name"][at]
        assert example["raw"] == bytes([at, 0])
        assert example["raws"].dtype == object
        assert example["raws"].tolist() == [b"\0"] * (at % 2)


def test_what_a_source_is_not_made_of(dataset: rs.Dataset, tmp_path: Path) -> None:
    with pytest.raises(rs.OptionError, match=r"dataset must be"):
        adapter.examples("folder")  # type: ignore[arg-type]
    with pytest.raises(rs.OptionError, match=r"'idd'.* 'id'"):
        adapter.examples(dataset, {"id": "idd"})
    with rs.ShardWriter(tmp_path / "a.tfrecord.gz", compression="gzip") as writer:
        writer.write_example({"id": 1})
    with pytest.raises(rs.OptionError, match=r"a\.tfrecord\.gz is compressed"):
        adapter.examples(rs.open(tmp_path / "a.tfrecord.gz"))


def test_it_travels_and_takes_slices(dataset: rs.Dataset) -> None:
    source = pickle.loads(pickle.dumps(adapter.examples(dataset[3:9:2], FEATURES)))
    assert [int(source[at]["id"]) for at in range(len(source))] == [3, 5, 7]


def pipeline(source: Any, **reading: Any) -> Any:
    return (
        grain.MapDataset.source(source)
        .shuffle(seed=3)
        .map(lambda example: {"id": np.squeeze(example["id"])})
        .batch(4)
        .repeat(2)
        .to_iter_dataset(grain.ReadOptions(**reading))
    )


@pytest.mark.parametrize("is_decoded", [False, True])
def test_a_pipeline_of_grain(dataset: rs.Dataset, is_decoded: bool) -> None:
    source = adapter.examples(dataset, FEATURES) if is_decoded else dataset

    def begin() -> Any:
        return pipeline(source, num_threads=3, prefetch_buffer_size=8)

    seen = ids(begin())
    assert len(seen) == 12
    assert sorted(chain(*seen[:6])) == sorted(chain(*seen[6:])) == list(range(22))
    assert seen[:6] != seen[6:]
    unthreaded = pipeline(source, num_threads=0, prefetch_buffer_size=0)
    assert ids(unthreaded) == seen
    assert_goes_on_from_every_step(begin)


def test_a_pipeline_in_processes(dataset: rs.Dataset) -> None:
    source = adapter.examples(dataset, FEATURES)
    wanted = ids(pipeline(source))
    assert in_processes(pipeline(source), 2)[0] == wanted


def data_loader(dataset: rs.Dataset, features: Any, worker_count: int, **operation: Any) -> Any:
    return grain.DataLoader(
        data_source=adapter.examples(dataset, features),
        sampler=grain.samplers.IndexSampler(
            len(dataset), grain.sharding.NoSharding(), shuffle=True, seed=1, num_epochs=1
        ),
        operations=[grain.transforms.Batch(4)],
        worker_count=worker_count,
        **operation,
    )


def test_a_data_loader(dataset: rs.Dataset) -> None:
    features = {"id": "id"}
    iterator = iter(data_loader(dataset, features, 2))
    seen, states = [], []
    for element in iterator:
        seen.append(np.array(element["id"]).tolist())
        states.append(iterator.get_state())
    assert sorted(chain(*seen)) == list(range(22))
    again = iter(data_loader(dataset, features, 2))
    again.set_state(states[2])
    assert next(again)["id"].tolist() == seen[3]
    close(again)
    other = iter(data_loader(dataset, {**features, "name": "name"}, 2))
    with pytest.raises(ValueError, match="DataSource in checkpoint"):
        other.set_state(states[2])


def damaged(path: Path) -> rs.Dataset:
    """12 records; of the last one, a byte is not what it was."""
    written(path, map(example_of_kinds, range(12)))
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    return rs.open(path)


@pytest.mark.parametrize("count", [0, 1])
def test_a_damaged_record(tmp_path: Path, count: int) -> None:
    dataset = damaged(tmp_path / "a.tfrecord")
    streams = (
        grain.MapDataset.source(adapter.examples(dataset)).to_iter_dataset(),
        adapter.batches(make(dataset, shuffle=False)),
    )
    for stream in streams[: 1 if count else 2]:  # what batches raise there is tested below
        iterator = iter(stream.mp_prefetch(processes(count)))
        # of processes, older versions of grain tell the words only
        expected = (rs.CorruptDataError, RuntimeError) if count else rs.CorruptDataError
        words = r"a\.tfrecord, record 11, byte \d+: payload-crc-mismatch"
        with pytest.raises(expected, match=words):
            for _ in iterator:
                pass
        close(iterator)


# -- batches ---------------------------------------------------------------------------------------


def test_a_batch_has_plain_arrays(dataset: rs.Dataset) -> None:
    (batch,) = make(dataset, batch_size=22)
    (made,) = adapter.batches(make(dataset, batch_size=22))
    assert list(made) == list(FEATURES)
    assert made["id"].tolist() == batch["id"].tolist()
    assert isinstance(made["many"], adapter.RaggedParts)
    assert made["many"].values.tolist() == batch["many"].values.tolist()
    assert made["many"].row_splits.tolist() == batch["many"].row_splits.tolist()
    assert made["raws"].values.dtype == made["raw"].dtype == made["name"].dtype == object
    assert made["raw"].tolist() == batch["raw"].tolist()
    assert made["raws"].values.tolist() == batch["raws"].values.tolist()
    for value in (BytesArray.from_values([b"a"]), RaggedArray(np.arange(1), np.array([0, 1]))):
        assert not isinstance(adapter.convert({"x": value})["x"], type(value))


def test_batches_are_those_of_the_loader(dataset: rs.Dataset) -> None:
    loader = make(dataset, epochs=2)
    stream = adapter.batches(loader)
    wanted = ids(make(dataset, epochs=2))
    assert ids(stream) == ids(stream) == wanted  # from the beginning each time
    assert loader.state_dict() == make(dataset, epochs=2).state_dict()
    assert ids(stream.map(lambda batch: {"id": batch["id"] + 1})) == [
        [number + 1 for number in batch] for batch in wanted
    ]
    later = make(dataset, epochs=2)
    later.load_state_dict(loader.state_after(3))
    assert ids(adapter.batches(later)) == wanted[3:]


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("buffer_size", [0, 3])
def test_checkpoints(dataset: rs.Dataset, epochs: int, buffer_size: int) -> None:
    def begin() -> Any:
        stream = adapter.batches(make(dataset, epochs=epochs))
        if not buffer_size:
            return stream
        return grain.experimental.ThreadPrefetchIterDataset(
            stream, prefetch_buffer_size=buffer_size
        )

    assert_goes_on_from_every_step(begin)


def test_a_checkpoint_holds_for_other_ranks(dataset: rs.Dataset) -> None:
    """Two ranks take two steps; one goes on alone, with another batch size."""
    seen: list[int] = []
    for rank in range(2):
        loader = make(dataset, batch_size=3, rank=rank, world_size=2)
        iterator = iter(adapter.batches(loader, any_rank=True))
        seen += [number for _ in range(2) for number in next(iterator)["id"].tolist()]
        state = iterator.get_state()
    alone = iter(adapter.batches(make(dataset, batch_size=5)))
    alone.set_state(state)
    seen += [number for batch in ids(alone) for number in batch]
    assert sorted(seen) == list(range(22))


def test_processes_take_the_batches_in_turn(dataset: rs.Dataset) -> None:
    wanted = ids(make(dataset))
    seen, states = in_processes(adapter.batches(make(dataset)), 2)
    assert seen == wanted
    assert in_processes(adapter.batches(make(dataset)), 2, states[3])[0] == wanted[3:]


def test_what_grain_asks_of_them_in_a_process(dataset: rs.Dataset) -> None:
    """There the dataset is cut; a state from before the first batch is of one that is not."""
    stream = adapter.batches(make(dataset))
    state = iter(stream).get_state()
    stream.set_slice(slice(1, None, 2))
    iterator = iter(stream)
    iterator.set_state(state)
    assert ids(iterator) == ids(make(dataset))[1::2]


def test_states_that_are_no_such_state(dataset: rs.Dataset) -> None:
    iterator = iter(adapter.batches(make(dataset)))
    for state in ({}, {"next_index": 3}, make(dataset).state_dict(), None):
        with pytest.raises(rs.OptionError, match="get_state"):
            iterator.set_state(state)
    state = iterator.get_state()
    for wrong in ({"taken": -3}, {"taken": "1"}, {"has_ended": 0}):
        with raises(rs.OptionError, option="state", match="has_ended"):
            iterator.set_state({**state, **wrong})
    with raises(rs.OptionError, option="state", value=(0, 3), match="0 of 3.* 0 of 1"):
        iterator.set_state({**state, "taken": 2, "worker_count": 3})
    other = iter(adapter.batches(make(dataset, seed=2)))
    with pytest.raises(rs.OptionError, match=r"seed=1,.* seed=2"):
        other.set_state(state)
    assert len(ids(other)) == 6


def test_a_function_that_raises_in_a_process(dataset: rs.Dataset) -> None:
    def fail(batch: Any, _: Any) -> Any:
        raise KeyError(len(batch["id"]))

    iterator = iter(adapter.batches(make(dataset, map_batches=fail)).mp_prefetch(processes(1)))
    with pytest.raises(rs.FunctionError, match="map_batches raised KeyError: 4"):
        next(iterator)
    close(iterator)


@pytest.fixture
def two_processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if JAX said that this is process 1 of 2."""
    distributed = types.SimpleNamespace(is_initialized=lambda: True)
    told: Any = types.SimpleNamespace(
        distributed=distributed, process_index=lambda: 1, process_count=lambda: 2
    )
    monkeypatch.setitem(sys.modules, "jax", told)
    yield
    monkeypatch.undo()


def test_ranks_alone(dataset: rs.Dataset) -> None:
    assert adapter.this_rank() == {"rank": 0, "world_size": 1}
    loader = make(dataset, rank=1, world_size=2)
    with raises(rs.OptionError, option="rank", value=1, match="1 of 2.* 0 of 1.*any_rank"):
        adapter.batches(loader)
    assert ids(adapter.batches(loader, any_rank=True)) == ids(make(dataset, rank=1, world_size=2))


def test_ranks_of_jax(dataset: rs.Dataset, two_processes: None) -> None:
    assert adapter.this_rank() == {"rank": 1, "world_size": 2}
    with raises(rs.OptionError, option="rank", value=0, match="0 of 1.* 1 of 2"):
        adapter.batches(make(dataset))
    adapter.batches(make(dataset, **adapter.this_rank()))
