"""What every connector does with its cluster: it reads the tables of `to_arrow` and writes them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.writing import begin_table, finish_table, write_table_part

from ..places import contents, flip, visible
from ..raising import raises

COUNT = 600
Check = Callable[[Sequence[int]], None]


def row(number: int) -> dict[str, Any]:
    """Values of all kinds and shapes, some missing or empty."""
    return {
        "id": number,
        "name": None if number % 5 == 0 else f"näme {number}",
        "raw": bytes([255, number % 256]) * (number % 3),
        "many": [*range(number % 4)],
        "words": None if number % 7 == 0 else ["a", ""][: number % 3],
        "score": number / 2,
        "flag": number % 2 == 0,
    }


def table(start: int = 0, stop: int = COUNT) -> Any:
    """A pyarrow.Table of some rows."""
    import pyarrow as pa

    types = {
        "id": pa.int64(),
        "name": pa.string(),
        "raw": pa.binary(),
        "many": pa.list_(pa.int64()),
        "words": pa.list_(pa.string()),
        "score": pa.float32(),
        "flag": pa.bool_(),
    }
    return pa.Table.from_pylist([*map(row, range(start, stop))], schema=pa.schema(types))


def tables(count: int = 4) -> list[Any]:
    """All rows, in several tables."""
    bounds = [COUNT * number // count for number in range(count + 1)]
    return [table(*pair) for pair in pairwise(bounds)]


def write_dataset(out: Any) -> None:
    """Write a dataset with a manifest, whose shards have other numbers of rows."""
    job = begin_table(out)
    parts = [table(0, 100), table(100, 450), table(450)]
    finish_table(job, [write_table_part(job, number, [part]) for number, part in enumerate(parts)])


class Connector:
    """How tests call a connector."""

    def read(self, paths: Any, split: str | None = None, **options: Any) -> Any:
        """Read with the workers; return a pyarrow.Table in the order of `id`."""
        raise NotImplementedError

    def write(
        self, tables: Sequence[Any], out: Any, check: Check | None = None, **options: Any
    ) -> None:
        """Write a part of each table; call `check` in the workers with the `id`s of rows."""
        raise NotImplementedError

    def sent(self, path: str) -> bytes:
        """Return what is sent to the workers that read."""
        raise NotImplementedError

    def raises(self, kind: type[Exception], **fields: Any) -> AbstractContextManager[Any]:
        """Expect an error, with all its fields."""
        return raises(kind, **fields)


def killing(marker: Path) -> Check:
    """Return a check that kills its worker once, in the middle of the rows."""
    name, first = str(marker), COUNT // 2

    def check(ids: Sequence[int]) -> None:
        if max(ids, default=0) >= first:
            with suppress(FileExistsError):
                os.close(os.open(name, os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)

    return check


def failing() -> Check:
    """Return a check that fails in the middle of the rows."""

    def check(ids: Sequence[int]) -> None:
        if max(ids, default=0) >= 300:
            raise ArithmeticError("a user's mistake")

    return check


def assert_whole(out: Any, shard_count: int = 4) -> None:
    """Each row is there once, and only the files of the manifest are."""
    assert rs.verify(out, deep=True).is_good
    dataset = rs.open(out)
    found = dataset.to_arrow(restore_types=True).read_all().sort_by("id")
    assert found.to_pylist() == [*map(row, range(COUNT))]
    assert len(dataset.shards) == shard_count
    names = {shard.location.name for shard in dataset.shards}
    assert visible(out).keys() == {"dataset.json", *names}
    internal = {f".recordsmith/{name}.index" for name in names}
    assert {name for name in contents(out) if name.startswith(".")} - internal <= {
        ".recordsmith/lock"
    }


class ConnectorContract:
    """Subclasses have the fixture `connector`."""

    takes_datasets = True

    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("data") / "packed"
        write_dataset(folder)
        return folder

    def test_rows_with_a_layer(self, connector: Connector, tmp_path: Path) -> None:
        write_dataset(tmp_path / "out")
        import pyarrow as pa

        doubled = pa.table({"id": range(COUNT), "score": [float(n) for n in range(COUNT)]})
        rs.add_layer(tmp_path / "out", doubled, name="doubled", on="id")
        read = connector.read(str(tmp_path / "out"))
        assert read["score"].to_pylist() == [float(number) for number in range(COUNT)]
        assert read["name"].to_pylist() == [row(number)["name"] for number in range(COUNT)]

    def test_rows(self, connector: Connector, folder: Path) -> None:
        stored = rs.open(folder).to_arrow(restore_types=False).read_all()
        assert connector.read(folder).to_pylist() == stored.to_pylist()
        restored = connector.read(folder, restore_types=True)
        assert restored.select(table().column_names).to_pylist() == table().to_pylist()

    def test_shards_without_a_manifest(self, connector: Connector, tmp_path: Path) -> None:
        """Compressed, and without records."""
        records = {"": [2, 0], ".gz": [1], ".zz": []}
        for suffix, counts in records.items():
            compression = {"": "none", ".gz": "gzip", ".zz": "zlib"}[suffix]
            path = tmp_path / f"a.tfrecord{suffix}"
            with rs.ShardWriter(path, compression=compression) as writer:
                for count in counts:
                    steps = {"steps": [[*range(step)] for step in range(count)]}
                    writer.write(rs.encode_sequence_example({"id": count}, steps if count else {}))
        assert connector.read(tmp_path).to_pylist() == [
            {"id": 0, "steps": None},
            {"id": 1, "steps": [[]]},
            {"id": 2, "steps": [[], [0]]},
        ]

    def test_columns_condition_and_part(self, connector: Connector, folder: Path) -> None:
        options = {"columns": ["words", "id"], "filter": "id > 7 and has(name)"}
        found = connector.read(folder, "train[5:-3]", **options)
        assert found.to_pylist() == [
            {"words": expected["words"], "id": expected["id"]}
            for expected in map(row, range(8, COUNT - 3))
            if expected["name"]
        ]
        if self.takes_datasets:
            assert connector.read(rs.open(folder)[7:9], columns=["id"]).to_pydict() == {
                "id": [7, 8]
            }

    def test_invalid_options(self, connector: Connector, folder: Path) -> None:
        for options, option in (
            ({"columns": ["nope"]}, "columns"),
            ({"filter": "id =="}, "where"),
            ({"filter": "nope > 3"}, "where"),
            ({"split": "nope"}, "split"),
        ):
            with connector.raises(rs.OptionError, option=option):
                connector.read(folder, **options)
        shard = min(folder.glob("*.tfrecord"))
        with connector.raises(rs.OptionError, option="restore_types"):
            connector.read(shard, restore_types=True)

    def test_damage_is_named(self, connector: Connector, folder: Path, tmp_path: Path) -> None:
        for shard in folder.glob("*.tfrecord"):
            (tmp_path / shard.name).write_bytes(shard.read_bytes())
        path = sorted(tmp_path.glob("*.tfrecord"))[1]
        flip(path, -5)  # in the last record
        fields = {"path": path, "record": 349, "defect": rs.Defect.PAYLOAD_CRC}
        with connector.raises(rs.CorruptDataError, **fields):
            connector.read(tmp_path)

    def test_a_bucket(
        self, connector: Connector, bucket: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        url, options = bucket
        connector.write(tables(), f"{url}/out", store_options=options)
        place = rs.remote(f"{url}/out", store_options=options)
        assert_whole(place)
        assert connector.read(f"{url}/out", store_options=options)["id"].to_pylist() == [
            *range(COUNT)
        ]
        with connector.raises(rs.OptionError, option="out"):
            connector.write(tables(), f"{url}/out", store_options=options)
        connector.write(tables(2), f"{url}/out", overwrite=True, store_options=options)
        assert_whole(place, 2)
        monkeypatch.setenv("RECORDSMITH_STORE_OPTIONS", json.dumps(options))
        sent = connector.sent(f"{url}/out")
        for name in ("secret_access_key", "session_token"):
            assert options[name].encode() not in sent + (place / "dataset.json").read()

    def test_written_rows(self, connector: Connector, tmp_path: Path) -> None:
        out = tmp_path / "out"
        connector.write(tables(), out)
        assert_whole(out)
        assert "train-00003-of-00004.tfrecord" in visible(out)
        before = contents(out)
        with connector.raises(rs.OptionError, option="out"):
            connector.write(tables(), out)
        assert contents(out) == before
        options = {"split": "test", "compression": "gzip", "overwrite": True}
        connector.write(tables(2), out, **options)
        assert_whole(out, 2)
        assert "test-00001-of-00002.tfrecord.gz" in visible(out)

    def test_what_cannot_be_stored(self, connector: Connector, tmp_path: Path) -> None:
        import pyarrow as pa

        for column in ([{"a": 1}] * 4, [[[1], [2, 3]]] * 4):
            data = pa.table({"id": [*range(4)], "bad": column})
            with connector.raises(rs.OptionError, option="columns", match="bad"):
                connector.write([data], tmp_path / "out")
            assert not (tmp_path / "out").exists() or not visible(tmp_path / "out")

    def test_a_failed_job_changes_nothing(self, connector: Connector, tmp_path: Path) -> None:
        out = tmp_path / "out"
        with pytest.raises(Exception, match="a user's mistake"):
            connector.write(tables(), out, failing())
        assert not out.exists() or not visible(out)
        connector.write(tables(), out)
        before = visible(out)
        with pytest.raises(Exception, match="a user's mistake"):
            connector.write(tables(), out, failing(), overwrite=True)
        assert visible(out) == before

    def test_a_killed_worker_changes_nothing(self, connector: Connector, tmp_path: Path) -> None:
        connector.write(tables(), tmp_path / "out", killing(tmp_path / "killed"))
        assert (tmp_path / "killed").exists()
        assert_whole(tmp_path / "out")
