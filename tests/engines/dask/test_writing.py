"""Dask DataFrames as datasets, written by two worker processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from ...raising import raises
from ..tensorflow_reads import tensorflow_rows
from .conftest import COUNT, example

dask = pytest.importorskip("dask")
pytest.importorskip("dask.dataframe")
pa = pytest.importorskip("pyarrow")

import dask.dataframe as dd  # noqa: E402
import pandas as pd  # noqa: E402

from recordsmith.dask import read, write  # noqa: E402 - needs dask


def source(folder: Path) -> Any:
    return read(folder, part_bytes="4kB")


def examples(dataset: Any) -> list[dict[str, Any]]:
    """The features of all records as plain values, without those that are missing."""
    return [
        {key: [*map(_plain, values)] for key, values in sorted(record.items())}
        for record in rs.open(dataset)
    ]


def _plain(value: Any) -> Any:
    return value if isinstance(value, bytes) else value.item()


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_round_trip(client: Any, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(source(folder), out)
    assert rs.verify(out, deep=True).is_good
    assert examples(out) == examples(folder)
    back = read(out, restore_types=True)
    assert (
        back.compute()
        .reset_index(drop=True)
        .equals(source(folder).compute().reset_index(drop=True))
    )
    count = source(folder).npartitions
    names = [f"train-{number:05d}-of-{count:05d}.tfrecord" for number in range(count)]
    assert sorted(path.name for path in out.glob("train-*")) == names


def test_tensorflow_reads_what_was_written(client: Any, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(source(folder), out)
    found = tensorflow_rows(out.glob("*.tfrecord"))
    assert len(found) == COUNT
    for number, row in enumerate(found):
        wanted = {
            key: [
                item.hex() if isinstance(item, bytes) else item
                for item in (
                    single.encode() if isinstance(single, str) else single
                    for single in (value if isinstance(value, list) else [value])
                )
            ]
            for key, value in sorted(example(number).items())
        }
        assert row == wanted


def test_columns_of_pandas(client: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({
        "int8": np.arange(4, dtype=np.int8),
        "float64": [0.5, 1.5, np.nan, 2.5],
        "bool": [True, False, True, True],
        "text": ["a", None, "ä", ""],
        "bytes": [b"\xff", b"", None, b"x"],
        "lists": [[1, 2], [], None, [3]],
        "arrays": [np.arange(2.0), np.zeros(0), np.ones(1), np.ones(3)],
        "nothing": [None] * 4,
        "kinds": pd.Categorical(["x", "y", "x", "x"]),
        "time": pd.to_datetime(["2024-01-01"] * 4).astype("datetime64[ms]"),
    })  # fmt: skip
    with_index = frame.set_index(pd.Index([3, 2, 1, 0], name="dropped"))
    out = tmp_path / "out"
    with dask.config.set({"dataframe.convert-string": False}):  # Dask takes bytes for text
        write(dd.from_pandas(with_index, npartitions=3, sort=False), out, compression="gzip")
    assert examples(out) == [
        {"arrays": [0.0, 1.0], "bool": [1], "bytes": [b"\xff"], "float64": [0.5], "int8": [0],
         "kinds": [b"x"], "lists": [1, 2], "text": [b"a"], "time": [1704067200000]},
        {"arrays": [], "bool": [0], "bytes": [b""], "float64": [1.5], "int8": [1],
         "kinds": [b"y"], "lists": [], "time": [1704067200000]},
        {"arrays": [1.0], "bool": [1], "int8": [2],
         "kinds": [b"x"], "text": ["ä".encode()], "time": [1704067200000]},
        {"arrays": [1.0, 1.0, 1.0], "bool": [1], "bytes": [b"x"], "float64": [2.5], "int8": [3],
         "kinds": [b"x"], "lists": [3], "text": [b""], "time": [1704067200000]},
    ]  # fmt: skip
    assert {shard.compression for shard in rs.open(out).shards} == {"gzip"}


@pytest.mark.parametrize("killed", ["seal", "written_blocks", "publish"])
def test_a_lost_worker_is_replaced(
    client: Any,
    folder: Path,
    tmp_path: Path,
    kill_a_worker: Callable[[str], Callable[[], bool]],
    killed: str,
) -> None:
    was_killed = kill_a_worker(f"recordsmith.dataset:ShardWriter.{killed}")
    out = tmp_path / "out"
    write(source(folder), out)
    assert was_killed()
    assert rs.verify(out, deep=True).is_good
    assert examples(out) == examples(folder)
    shards = {path.name for path in out.glob("train-*")}
    assert {*files(out)} == {
        "dataset.json", *shards, *(f"{name}.index" for name in shards)
    } | ({"lock"} & {*files(out)})  # fmt: skip


def test_a_failed_part_leaves_no_dataset(client: Any, folder: Path, tmp_path: Path) -> None:
    frame = source(folder)

    def broken(part: Any) -> Any:
        if 300 in part["id"].tolist():
            raise ArithmeticError("a user's mistake")
        return part

    out = tmp_path / "out"
    with pytest.raises(ArithmeticError):
        write(frame.map_partitions(broken, meta=frame._meta), out)
    _wait_for_running_parts(client)
    assert not out.exists() or files(out) in ([], ["lock"])
    write(frame, out)
    kept = examples(out)
    with pytest.raises(ArithmeticError):
        write(frame.map_partitions(broken, meta=frame._meta), out, overwrite=True)
    assert examples(out) == kept
    assert rs.verify(out).is_good


def _wait_for_running_parts(client: Any) -> None:
    """Dask cannot interrupt a task; one that ends after the job removes what it has written."""
    deadline = time.monotonic() + 60
    while any(client.run(_running_part_count).values()):  # the scheduler has forgotten them
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _running_part_count(dask_worker: Any) -> int:
    return len(dask_worker.active_threads)


def test_unsuitable_columns_are_named_before_any_is_computed(
    client: Any, folder: Path, tmp_path: Path
) -> None:
    struct = pd.ArrowDtype(pa.struct([("a", pa.int64())]))
    frame = source(folder)
    meta = frame._meta.assign(bad=pd.Series([], dtype=struct))
    with raises(rs.OptionError, option="columns", match="'bad'"):
        write(frame.map_partitions(lambda _: 1 / 0, meta=meta), tmp_path / "out")
    with raises(rs.OptionError, option="frame"):
        write(pd.DataFrame({"x": [1]}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_partitions_with_other_kinds_of_values(client: Any, tmp_path: Path) -> None:
    mixed = pd.DataFrame({"x": [[1], [2.5]], "same": [1, 2]})
    with (
        dask.config.set({"dataframe.convert-string": False}),
        raises(rs.OptionError, option="columns", value="x"),
    ):
        write(dd.from_pandas(mixed, npartitions=2), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("options_are", ["passed", "found"])
def test_to_s3(client: Any, request: pytest.FixtureRequest, folder: Path, options_are: str) -> None:
    if options_are == "passed":
        url, options = request.getfixturevalue("s3").new_bucket()
    else:
        url, options = request.getfixturevalue("s3_workers"), None
    place = f"{url}/out"
    write(source(folder), place, store_options=options)
    there = rs.remote(place, store_options=options)
    assert rs.verify(there, deep=True).is_good
    assert examples(there) == examples(folder)
    assert len(read(there, columns=["id"]).compute()) == COUNT
    manifest = (there / "dataset.json").read()
    assert b"secret" not in manifest.lower()
    with pytest.raises(rs.OptionError):
        write(source(folder), place, store_options=options)
    write(source(folder)[["id"]], place, store_options=options, overwrite=True)
    assert len(rs.open(there)[0]) == 1
