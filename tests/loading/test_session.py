"""The session of a loader: one place, moved by the loop of the iteration begun last."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from types import ModuleType

import pytest

import recordsmith as rs
from recordsmith.dataset import ShardWriter

from ..numbered_examples import write_shard


@pytest.fixture
def dataset(tmp_path: Path) -> rs.Dataset:
    return rs.open(write_shard(tmp_path / "data.tfrecord", range(20)))


def loader_of(dataset: rs.Dataset, **options: int) -> rs.Loader:
    return rs.Loader(dataset, {"at": rs.Position()}, batch_size=4, shuffle=True, **options)


def test_a_state_of_another_jpeg_decoder_is_loaded_with_a_warning(
    tmp_path: Path, images: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = {"image/encoded": [images.jpeg()], "id": [7]}
    with ShardWriter(tmp_path / "images.tfrecord") as writer:
        writer.write_example(example)
        writer.write_example(example)
    dataset = rs.open(tmp_path / "images.tfrecord")
    states = {}
    for decoder in ("simplejpeg", "Pillow"):
        monkeypatch.setattr("recordsmith.loading.loader.jpeg_decoder", lambda: decoder)  # noqa: B023
        loader = rs.Loader(dataset, {"image": rs.Image(size=8)}, batch_size=1)
        next(iter(loader))
        states[decoder] = loader.state_dict()
        assert states[decoder]["jpeg_decoder"] == decoder
        loader.load_state_dict(states[decoder])
    with pytest.warns(UserWarning, match="decoded JPEG with simplejpeg, but this one has Pillow"):
        loader.load_state_dict(states["simplejpeg"])
    assert loader.state_dict() == states["Pillow"]
    assert len(list(loader)) == 1
    ids = rs.Loader(dataset, ["id"], batch_size=1)
    assert "jpeg_decoder" not in ids.state_dict()
    ids.load_state_dict(states["simplejpeg"])  # decodes nothing
    loader.load_state_dict(ids.state_dict())


def positions(loader: rs.Loader) -> list[list[int]]:
    return [batch["at"].tolist() for batch in loader]


@pytest.mark.parametrize("threads", [0, 2])
def test_batches_read_ahead_move_the_loader_when_its_loop_receives_them(
    dataset: rs.Dataset, threads: int
) -> None:
    expected = positions(loader_of(dataset))
    loader = loader_of(dataset, threads=threads)
    iteration = iter(loader)
    made = list(iteration.ahead())
    assert [batch["at"].tolist() for batch, _ in made] == expected
    assert loader.state_dict() == loader_of(dataset).state_dict()
    for count, (_, after) in enumerate(made, start=1):
        iteration.deliver(after)
        assert loader.state_dict() == loader_of(dataset).state_after(count)
        travelled = pickle.loads(pickle.dumps(loader))
        travelled.load_state_dict(loader.state_dict())
        assert positions(travelled)[: 5 - count] == expected[count:]
    iteration.deliver(iteration.end)
    assert loader.state_dict() == loader_of(dataset).state_after(5)


def test_only_the_iteration_begun_last_moves_the_loader(dataset: rs.Dataset) -> None:
    loader = loader_of(dataset, threads=0)
    first, second = iter(loader), iter(loader)
    next(first)
    next(second)
    state = loader.state_dict()
    next(first)
    first.undo()
    assert loader.state_dict() == state
    loader.load_state_dict(loader.state_after(2))
    state = loader.state_dict()
    next(second)
    second.undo()
    assert loader.state_dict() == state
    assert loader.session.is_resuming
    assert len(loader) == 3


def test_an_iteration_that_was_undone_no_longer_moves_the_loader(dataset: rs.Dataset) -> None:
    loader = loader_of(dataset, threads=0)
    iteration = iter(loader)
    expected = [batch["at"].tolist() for batch in iteration]
    iteration.undo()
    assert list(iteration) == []
    assert positions(loader) == expected


def test_a_worker_begins_where_its_loader_would(dataset: rs.Dataset) -> None:
    loader = loader_of(dataset, threads=0, epochs=2)
    loader.load_state_dict(loader.state_after(3))
    travelled = [pickle.loads(pickle.dumps(loader.for_worker(at, 2))) for at in range(2)]
    even, odd = (positions(worker) for worker in travelled)
    expected = positions(loader)
    assert [even, odd] == [expected[::2], expected[1::2]]
    assert {worker.state_dict()["begun"] for worker in travelled} == {2}


def test_other_ranks_resume_from_a_state(dataset: rs.Dataset) -> None:
    state = loader_of(dataset).state_after(2)
    seen = positions(loader_of(dataset))[:2]
    for rank in range(2):
        resumed = loader_of(dataset, rank=rank, world_size=2)
        resumed.load_state_dict(state)
        seen += positions(resumed)
    assert sorted(at for batch in seen for at in batch) == list(range(20))


def test_a_copy_of_a_loader_has_a_place_of_its_own(dataset: rs.Dataset) -> None:
    loader = loader_of(dataset, threads=0, epochs=2)
    iteration = iter(loader)
    next(iteration)
    state = loader.state_dict()
    loader.load_state_dict(state)
    copied = copy.copy(loader)
    assert copied.state_dict() == state
    rest = positions(copied)
    assert len(rest) == 9
    assert loader.state_dict() == state
    assert positions(loader) == rest
    assert positions(copied) == positions(loader)
