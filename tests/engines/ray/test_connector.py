"""Datasets as Ray Datasets, on a cluster of two nodes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from ...raising import raises
from ..connector_contract import COUNT, Check, Connector, ConnectorContract, assert_whole, tables

ray = pytest.importorskip("ray")
pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("ray.data")

from ray.data.block import BlockAccessor  # noqa: E402 - installed
from ray.data.expressions import col  # noqa: E402 - needs ray

from recordsmith.ray.reading import RecordsmithDatasource, read  # noqa: E402 - needs ray
from recordsmith.ray.writing import RecordsmithDatasink, write  # noqa: E402 - needs ray

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    pytest.mark.filterwarnings("ignore"),  # of Ray itself
]


class _Ray(Connector):
    def read(self, paths: Any, split: str | None = None, **options: Any) -> Any:
        blocks = ray.get(read(paths, split, **options).to_arrow_refs())
        return pa.concat_tables([block for block in blocks if len(block)]).sort_by("id")

    def write(
        self, tables: Sequence[Any], out: Any, check: Check | None = None, **options: Any
    ) -> None:
        def passed(batch: Any) -> Any:
            if check is not None:
                check(batch["id"].to_pylist())
            return batch

        data = ray.data.from_arrow(list(tables))
        if check is not None:
            data = data.map_batches(passed, batch_format="pyarrow", batch_size=10)
        write(data, out, **options)

    def sent(self, path: str) -> bytes:
        tasks = RecordsmithDatasource(path).get_read_tasks(3)
        return ray.cloudpickle.dumps(tasks)  # type: ignore[no-any-return]

    @contextmanager
    def raises(self, kind: type[Exception], **fields: Any) -> Iterator[Any]:
        with raises(kind, **fields) as caught:
            try:
                yield caught
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None


class TestRay(ConnectorContract):
    @pytest.fixture
    def connector(self) -> Connector:
        return _Ray()

    def test_ray_is_started_by_the_first_read(self, folder: Path) -> None:
        code = f"import recordsmith.ray; print(recordsmith.ray.read({str(folder)!r}).count())"
        shown = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"RAY_AUTH_MODE": "disabled"},
            check=True,
            stdout=subprocess.PIPE,
            timeout=300,
        ).stdout
        assert shown.split()[-1] == b"%d" % COUNT

    def test_schema_is_known_before_any_record_is_read(self, folder: Path, tmp_path: Path) -> None:
        copied = tmp_path / "copied"
        shutil.copytree(folder, copied)
        for shard in copied.glob("*.tfrecord"):
            shard.write_bytes(bytes(shard.stat().st_size))  # nothing that could be read
        data = read(copied)
        expected = rs.open(folder).to_arrow(restore_types=False).schema
        assert data.schema().base_schema.equals(expected)
        assert data.count() == COUNT

    @pytest.mark.parametrize("parallelism", [1, 2, 3, 7, 50])
    def test_tasks(self, folder: Path, parallelism: int) -> None:
        """Tasks are shards and ranges of shards, in order, with known numbers of rows."""
        source = RecordsmithDatasource(folder)
        tasks = source.get_read_tasks(parallelism)
        assert len(tasks) == parallelism
        blocks = [block for task in tasks for block in task()]
        assert pa.concat_tables(blocks)["id"].to_pylist() == [*range(COUNT)]
        for task in tasks:
            assert task.metadata.num_rows == sum(map(len, task()))
        assert sum(task.metadata.size_bytes for task in tasks) == pytest.approx(
            source.estimate_inmemory_data_size(), rel=0.05
        )

    def test_projection_and_filter_reach_the_source(self, folder: Path) -> None:
        data = read(folder).filter(expr=(col("id") > 7) & col("name").is_not_null())
        expected = [number for number in range(8, COUNT) if number % 5]
        assert data.select_columns(["id"]).to_pandas()["id"].to_list() == expected
        assert data.count() == len(expected)
        source = RecordsmithDatasource(folder).apply_projection({"id": "id"})
        source = source.apply_predicate(col("many").is_not_null() & (col("id") < 9))
        blocks = [block for task in source.get_read_tasks(4) for block in task()]
        assert pa.concat_tables(blocks).to_pydict() == {"id": list(range(9))}
        with raises(rs.OptionError, option="columns", value="nope"):
            source.apply_predicate(col("nope") > 0)
        source = RecordsmithDatasource(folder).apply_projection({})
        assert sum(len(block) for task in source.get_read_tasks(4) for block in task()) == COUNT

    def test_relative_paths(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(folder.parent)
        data = read(folder.name)
        monkeypatch.chdir("/")
        assert data.sum("id") == sum(range(COUNT))


def test_after_functions_of_numpy(tmp_path: Path) -> None:
    """Ragged columns come back as arrays and objects of Ray."""

    def double(batch: Any) -> Any:
        batch["double"] = batch["id"] * 2
        batch["ones"] = [np.ones(number % 3, np.float32) for number in batch["id"]]
        return batch

    write(ray.data.from_arrow(tables()).map_batches(double), tmp_path / "out")
    for number, example in enumerate(rs.open(tmp_path / "out")):
        assert example["double"].tolist() == [2 * number]
        assert example["ones"].tolist() == [1.0] * (number % 3)
        assert example["many"].tolist() == [*range(number % 4)]
        assert [*example.get("words", [])] == [b"a", b""][: number % 3 if number % 7 else 0]


@pytest.mark.parametrize("value", [{"a": 1}, np.zeros((2, 2)), [[1], [2, 3]], 1j], ids=str)
def test_rejected_columns(tmp_path: Path, value: Any) -> None:
    data = ray.data.range(8).map(lambda one: {"id": one["id"], "bad": value})
    with raises(rs.OptionError, match="'bad'"):
        write(data, tmp_path / "out")
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


def test_sink_of_ray(tmp_path: Path) -> None:
    """Without `write`, as users of Ray's own method have it."""
    data = ray.data.from_arrow(tables())
    data.write_datasink(RecordsmithDatasink(tmp_path / "out"))
    assert_whole(tmp_path / "out")
    with raises(rs.OptionError, option="out"):
        data.write_datasink(RecordsmithDatasink(tmp_path / "out"))
    with raises(rs.OptionError, option="store_options"):
        RecordsmithDatasink(tmp_path / "out", store_options={})
