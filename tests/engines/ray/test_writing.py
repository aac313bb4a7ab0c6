"""Ray Datasets as datasets of TFRecord files, on a cluster of two nodes."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from ...places import contents, visible
from ...raising import raises
from ..tensorflow_reads import tensorflow_rows
from .conftest import COUNT, row, schema, table

ray = pytest.importorskip("ray")
pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("ray.data")

from ray.data.block import BlockAccessor  # noqa: E402 - installed

from recordsmith.ray import RecordsmithDatasink, read, write  # noqa: E402 - needs ray

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    pytest.mark.filterwarnings("ignore"),  # of Ray itself
]


def blocks(count: int = 4) -> Any:
    """A Ray Dataset of the rows in several blocks."""
    bounds = [COUNT * number // count for number in range(count + 1)]
    return ray.data.from_arrow([table(*pair) for pair in pairwise(bounds)])


def original(dataset: rs.Dataset) -> list[dict[str, Any]]:
    return dataset.to_arrow(restore_types=True).read_all().to_pylist()  # type: ignore[no-any-return]


def test_round_trip(tmp_path: Path) -> None:
    dataset = write(blocks(), tmp_path / "out")
    assert original(dataset) == table().to_pylist()
    assert dataset.to_arrow(restore_types=True).schema.types == schema().types
    assert rs.verify(tmp_path / "out", deep=True).is_good
    assert "train-00003-of-00004.tfrecord" in visible(tmp_path / "out")
    again = write(read(tmp_path / "out", restore_types=True), tmp_path / "again")
    assert original(again) == table().to_pylist()


def test_tensorflow_reads_the_files(tmp_path: Path) -> None:
    write(blocks(), tmp_path / "out")
    expected = []
    for number in range(COUNT):
        features = {}
        for name, value in sorted(row(number).items()):
            if value is None:
                continue
            values = value if isinstance(value, list) else [value]
            values = [one.encode() if isinstance(one, str) else one for one in values]
            features[name] = [
                one.hex() if isinstance(one, bytes) else int(one) if name == "flag" else one
                for one in values
            ]
        expected.append(features)
    assert tensorflow_rows((tmp_path / "out").glob("*.tfrecord")) == expected


def test_after_functions_of_numpy(tmp_path: Path) -> None:
    """Ragged columns come back as arrays and objects of Ray."""

    def double(batch: Any) -> Any:
        batch["double"] = batch["id"] * 2
        batch["ones"] = [np.ones(number % 3, np.float32) for number in batch["id"]]
        return batch

    write(blocks().map_batches(double), tmp_path / "out")
    found = rs.open(tmp_path / "out").to_arrow(["id", "double", "ones", "many", "words", "pair"])
    for one in found.read_all().to_pylist():
        number = one["id"]
        expected = row(number)
        assert one["double"] == 2 * number
        assert one["ones"] == [1.0] * (number % 3)
        assert one["many"] == expected["many"]
        assert (one["words"] or []) == (expected["words"] or [])
        assert one["pair"] == expected["pair"]


@pytest.mark.parametrize("value", [{"a": 1}, np.zeros((2, 2)), [[1], [2, 3]], 1j], ids=str)
def test_rejected_columns(tmp_path: Path, value: Any) -> None:
    data = ray.data.range(8).map(lambda one: {"id": one["id"], "bad": value})
    with pytest.raises(rs.OptionError) as caught:
        write(data, tmp_path / "out")
    assert "'bad'" in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.fixture(params=["V1", "V2", "ARROW_NATIVE"])
def tensors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each type that Ray has for columns of arrays."""
    from ray.data._internal.tensor_extensions.arrow import FixedShapeTensorFormat

    chosen = getattr(FixedShapeTensorFormat, request.param)
    context = ray.data.DataContext.get_current()
    monkeypatch.setattr(context, "arrow_fixed_shape_tensor_format", chosen)


@pytest.mark.usefixtures("tensors")
@pytest.mark.parametrize("shape", [(2,), (2, 2), (2, 1)], ids=str)
def test_tensors(tmp_path: Path, shape: tuple[int, ...]) -> None:
    def add(batch: Any) -> Any:
        batch["x"] = np.stack([np.full(shape, number, np.float32) for number in batch["id"]])
        return batch

    data = ray.data.range(8, override_num_blocks=4).map_batches(add)
    if len(shape) > 1:
        with raises(rs.OptionError, option="columns", value="x"):
            write(data, tmp_path / "out")
        return
    found = {int(one["id"][0]): one["x"].tolist() for one in write(data, tmp_path / "out")}
    assert found == {number: [float(number)] * 2 for number in range(8)}


@pytest.mark.usefixtures("tensors")
def test_tensors_without_rows(tmp_path: Path) -> None:
    block = BlockAccessor.batch_to_block({"x": np.ones((3, 2), np.float32)})
    empty = block.filter(pa.array([False] * 3))
    sink = RecordsmithDatasink(tmp_path / "out")
    sink.on_write_start()
    result = sink.write([empty, block, empty], SimpleNamespace(task_idx=0))
    sink.on_write_complete(SimpleNamespace(write_returns=[result]))
    assert [one["x"].tolist() for one in rs.open(tmp_path / "out")] == [[1.0, 1.0]] * 3


def test_worker_that_is_killed_while_it_writes(
    tmp_path: Path, killed_once: tuple[Callable[..., Any], Any]
) -> None:
    pass_on, was_killed = killed_once
    data = blocks().map_batches(pass_on, batch_format="pyarrow", batch_size=10)
    dataset = write(data, tmp_path / "out")
    assert was_killed()
    assert original(dataset) == table().to_pylist()
    assert len(contents(tmp_path / "out")) == 4 + 4 + 1


def test_failed_job_leaves_nothing(tmp_path: Path) -> None:
    def fail(batch: Any) -> Any:
        if batch["id"][0] >= COUNT // 2:
            raise RuntimeError("no")
        return batch

    data = blocks().map_batches(fail, batch_size=10)
    with pytest.raises(ray.exceptions.RayTaskError):
        write(data, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "kept").mkdir()
    with pytest.raises(ray.exceptions.RayTaskError):
        write(data, tmp_path / "kept")
    assert os.listdir(tmp_path / "kept") == []


def test_sink_of_ray(tmp_path: Path) -> None:
    """Without `write`, as users of Ray's own method have it."""
    blocks().write_datasink(RecordsmithDatasink(tmp_path / "out", split="all"))
    assert original(rs.open(tmp_path / "out", "all")) == table().to_pylist()
    with raises(rs.OptionError, option="out"):
        blocks().write_datasink(RecordsmithDatasink(tmp_path / "out"))
    with raises(rs.OptionError, option="store_options"):
        RecordsmithDatasink(tmp_path / "out", store_options={})


def test_bucket(
    bucket: tuple[str, dict[str, Any]], killed_once: tuple[Callable[..., Any], Any]
) -> None:
    url, options = bucket
    pass_on, was_killed = killed_once
    data = blocks().map_batches(pass_on, batch_format="pyarrow", batch_size=10)
    dataset = write(data, f"{url}/out", store_options=options)
    assert was_killed()
    assert original(dataset) == table().to_pylist()
    place = rs.remote(f"{url}/out", store_options=options)
    assert len(contents(place)) == 4 + 4 + 1
    with raises(rs.OptionError, option="out"):
        write(blocks(), place)
    write(read(f"{url}/out", store_options=options), place.parent / "again")
    assert len(rs.open(place.parent / "again")) == COUNT
