"""Datasets as Ray Datasets, on a cluster of two nodes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.building.table_writing import begin, finish, write_part
from recordsmith.errors import Defect

from ...raising import raises
from ..zoo_tables import check_file
from .conftest import COUNT, table

ray = pytest.importorskip("ray")
pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("ray.data")

from ray.data.expressions import col  # noqa: E402 - needs ray

from recordsmith.ray import RecordsmithDatasource, read  # noqa: E402 - needs ray

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    pytest.mark.filterwarnings("ignore"),  # of Ray itself
]


def test_ray_is_started_by_the_first_read(folder: Path) -> None:
    code = f"import recordsmith.ray; print(recordsmith.ray.read({str(folder)!r}).count())"
    variables = os.environ | {"RAY_AUTH_MODE": "disabled"}
    shown = subprocess.run(
        [sys.executable, "-c", code], env=variables, check=True, stdout=subprocess.PIPE, timeout=300
    ).stdout
    assert shown.split()[-1] == b"%d" % COUNT


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with a manifest, of three shards."""
    folder = tmp_path_factory.mktemp("data") / "packed"
    job = begin(folder)
    parts = [table(COUNT * part // 3, COUNT * (part + 1) // 3) for part in range(3)]
    finish(job, [write_part(job, number, [part]) for number, part in enumerate(parts)])
    return folder


def rows(data: Any) -> list[dict[str, Any]]:
    blocks = [block for block in ray.get(data.to_arrow_refs()) if len(block)]
    return pa.concat_tables(blocks).to_pylist() if blocks else []  # type: ignore[no-any-return]


def expected(dataset: Any, columns: Any = None) -> list[dict[str, Any]]:
    """The same by one process."""
    return dataset.to_arrow(columns, restore_types=False).read_all().to_pylist()  # type: ignore[no-any-return]


def test_all_rows_and_types(folder: Path) -> None:
    data = read(folder)
    dataset = rs.open(folder)
    assert rows(data) == expected(dataset)
    assert len(expected(dataset)) == COUNT
    assert data.schema().base_schema.equals(dataset.to_arrow(restore_types=False).schema)


def test_schema_is_known_before_any_record_is_read(folder: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(folder, copied)
    for shard in copied.glob("*.tfrecord"):
        shard.write_bytes(bytes(shard.stat().st_size))  # nothing that could be read
    data = read(copied)
    assert data.schema().base_schema.equals(rs.open(folder).to_arrow(restore_types=False).schema)
    assert data.count() == COUNT


@pytest.mark.parametrize("parallelism", [1, 2, 3, 7, 50])
def test_tasks(folder: Path, parallelism: int) -> None:
    """Tasks are shards and ranges of shards, in order, with known numbers of rows."""
    source = RecordsmithDatasource(folder)
    tasks = source.get_read_tasks(parallelism)
    assert len(tasks) == parallelism
    found = [block for task in tasks for block in task()]
    assert pa.concat_tables(found).to_pylist() == expected(rs.open(folder))
    for task in tasks:
        assert task.metadata.num_rows == sum(map(len, task()))
    assert sum(task.metadata.size_bytes for task in tasks) == pytest.approx(
        source.estimate_inmemory_data_size(), rel=0.05
    )


def test_columns(folder: Path) -> None:
    data = read(folder, columns=["words", "id"])
    assert rows(data) == expected(rs.open(folder), ["words", "id"])
    with raises(rs.OptionError, option="columns", value="nope"):
        read(folder, columns=["nope"])


def test_projection_and_filter_reach_the_source(folder: Path) -> None:
    data = read(folder).filter(expr=(col("id") > 7) & col("name").is_not_null())
    found = data.select_columns(["id"])
    wanted = [one["id"] for one in expected(rs.open(folder)) if one["id"] > 7 and one["name"]]
    assert [one["id"] for one in rows(found)] == wanted
    assert data.count() == len(wanted)
    source = RecordsmithDatasource(folder).apply_projection({"id": "id"})
    source = source.apply_predicate(col("many").is_not_null() & (col("id") < 9))
    found = [block for task in source.get_read_tasks(4) for block in task()]
    assert pa.concat_tables(found).to_pydict() == {"id": list(range(9))}
    with raises(rs.OptionError, option="columns", value="nope"):
        source.apply_predicate(col("nope") > 0)


def test_rows_without_columns(folder: Path) -> None:
    source = RecordsmithDatasource(folder).apply_projection({})
    assert sum(len(block) for task in source.get_read_tasks(4) for block in task()) == COUNT


def test_filter_of_recordsmith(folder: Path) -> None:
    data = read(folder, columns=["id"], filter="id in (3, 400)")
    assert rows(data) == [{"id": 3}, {"id": 400}]
    assert data.count() == 2
    with raises(rs.OptionError, option="where"):
        read(folder, filter="id ==")


def test_original_types(folder: Path) -> None:
    data = read(folder, restore_types=True)
    assert data.schema().base_schema.types == table().schema.types
    assert rows(data) == table().to_pylist()


def test_relative_paths(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    data = read(folder.name)
    monkeypatch.chdir("/")
    assert data.sum("id") == sum(range(COUNT))


def test_damage_is_named(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.tfrecord"
    data = bytearray(min(folder.glob("*.tfrecord")).read_bytes())
    path.write_bytes(data)
    found = read(rs.open(path), columns=["id"])
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(rs.CorruptDataError) as caught:
        found.materialize()
    cause = getattr(caught.value, "cause", caught.value)
    assert cause.defect is Defect.PAYLOAD_CRC
    assert cause.path == str(path)


def test_worker_that_is_killed(folder: Path, killed_once: tuple[Callable[..., Any], Any]) -> None:
    pass_on, was_killed = killed_once
    found = read(folder).map_batches(pass_on, batch_format="pyarrow", batch_size=10)
    assert sorted(one["id"] for one in rows(found)) == list(range(COUNT))
    assert was_killed()


def test_bucket(folder: Path, bucket: tuple[str, dict[str, Any]]) -> None:
    url, options = bucket
    place = rs.remote(f"{url}/data", store_options=options)
    for file in folder.rglob("*"):
        if file.is_file():
            (place / str(file.relative_to(folder))).put(file.read_bytes())
    data = read(f"{url}/data", store_options=options)
    assert rows(data) == expected(rs.open(folder))
    assert rows(read(rs.open(place)[7:9])) == expected(rs.open(folder)[7:9])


def test_credentials_of_the_environment_stay(
    folder: Path, bucket: tuple[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks have no options that the user did not pass; a worker without its own cannot read."""
    url, options = bucket
    place = rs.remote(f"{url}/data", store_options=options)
    for file in folder.iterdir():
        if file.is_file():
            (place / file.name).put(file.read_bytes())
    monkeypatch.setenv("RECORDSMITH_STORE_OPTIONS", json.dumps(options))
    source = RecordsmithDatasource(f"{url}/data")
    text = ray.cloudpickle.dumps(source.get_read_tasks(3))
    secrets = [str(value) for name, value in options.items() if "secret" in name.lower()]
    assert secrets
    assert not [value for value in secrets if value.encode() in text]


def test_zoo(zoo_row: dict[str, Any], zoo: Path) -> None:
    def read_file() -> Any:
        source = RecordsmithDatasource(zoo / zoo_row["file"])
        empty = source.read_schema.empty_table()  # of files without records
        blocks = [block for task in source.get_read_tasks(2) for block in task()]
        return pa.concat_tables([empty, *blocks])

    check_file(zoo_row, read_file)
