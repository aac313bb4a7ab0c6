"""`recordsmith.beam.WriteDataset` publishes each element once, or nothing."""

from __future__ import annotations

import os
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import recordsmith as rs
from recordsmith.stores import as_folder

from ...raising import raises

pytest.importorskip("apache_beam")
import apache_beam as beam
import pyarrow as pa

from recordsmith.beam import ReadBatches, ReadExamples, WriteDataset

Collect = Callable[..., list[Any]]
COUNT = 500


def example(number: int) -> dict[str, Any]:
    """A ragged, a missing, a binary and two plain features."""
    tags = [bytes([tag, 255]) for tag in range(number % 4)]
    return {
        "number": number,
        "half": number / 2,
        "tags": tags,
        "data": bytes([number % 256, 255, 0]),
        "rare": number if number % 3 else None,
    }


def table(start: int, stop: int) -> pa.Table:
    rows = [example(number) for number in range(start, stop)]
    types = {
        "number": pa.int64(),
        "half": pa.float32(),
        "tags": pa.list_(pa.binary()),
        "data": pa.binary(),
        "rare": pa.int64(),
    }
    return pa.Table.from_pylist(rows, schema=pa.schema(types))


def check(out: Any, count: int = COUNT) -> None:
    """Each number is there once, with its features, and the dataset is intact."""
    assert rs.verify(out, deep=True).is_good
    found = {int(record["number"][0]): record for record in rs.open(out)}
    assert len(rs.open(out)) == len(found) == count
    for number in range(count):
        record, wanted = found[number], example(number)
        assert [*record.get("tags", [])] == wanted["tags"]
        assert record["data"] == [wanted["data"]]
        assert record["half"].tolist() == [wanted["half"]]
        assert [*record.get("rare", [])] == ([number] if number % 3 else [])


def names(folder: Path) -> set[str]:
    """The names of visible files."""
    return {path.name for path in folder.glob("*") if not path.name.startswith(".")}


def hidden(folder: Path) -> set[str]:
    """What jobs left that did not end."""
    files = (path.name for path in folder.glob(".recordsmith/*") if path.is_file())
    return {name for name in files if not name.endswith(".index") and "lock" not in name}


@pytest.mark.parametrize("shards", [None, 3])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_dicts(tmp_path: Path, collect: Collect, shards: int | None, compression: Any) -> None:
    out = tmp_path / "out"
    write = WriteDataset(
        out, split="all", shards=shards, compression=compression, kinds={"tags": "bytes"}
    )
    shown = collect(beam.Create(range(COUNT)), beam.Map(example), write)
    assert shown == [str(out)]
    check(out)
    dataset = rs.open(out)
    assert {*dataset.splits} == {"all"}
    assert {shard.compression for shard in dataset.shards} == {compression or "none"}
    if shards is not None:
        assert len(dataset.shards) == shards
    assert len(names(out)) == len(dataset.shards) + 1
    assert not hidden(out)


def test_tables_and_batches_keep_their_types(tmp_path: Path, collect: Collect) -> None:
    parts = [table(0, 200), *table(200, COUNT).to_batches(max_chunksize=70)]
    collect(beam.Create(parts), WriteDataset(tmp_path / "out"))
    check(tmp_path / "out")
    batches = collect(ReadBatches(tmp_path / "out", restore_types=True))
    found = pa.Table.from_batches(batches)
    assert found.schema.equals(table(0, 1).schema)
    expected = table(0, COUNT)
    assert found.sort_by("number").equals(expected)
    assert ReadBatches(tmp_path / "out", restore_types=True).schema.equals(expected.schema)


def test_examples_are_written_as_they_were_read(tmp_path: Path, collect: Collect) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    collect(beam.Create(range(COUNT)), beam.Map(example), WriteDataset(first))
    collect(ReadExamples(first), WriteDataset(second, shards=2))
    assert rs.diff(first, second).is_equal


def test_sequence_examples_and_messages(tmp_path: Path, collect: Collect) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for number in range(50):
            steps = {"steps": [[step] for step in range(number % 5)]}
            writer.write(rs.encode_sequence_example({"number": [number]}, steps))
    collect(ReadExamples(tmp_path / "a.tfrecord"), WriteDataset(tmp_path / "b"))
    collect(
        beam.Create([*rs.open(tmp_path / "a.tfrecord").records()]), WriteDataset(tmp_path / "c")
    )
    for name in "bc":
        assert rs.diff(tmp_path / "a.tfrecord", tmp_path / name).is_equal


@pytest.mark.parametrize("shards", [None, 2])
def test_windows_are_one_dataset(tmp_path: Path, collect: Collect, shards: int | None) -> None:
    stamped = beam.Map(lambda number: beam.window.TimestampedValue(example(number), number))
    windows = beam.WindowInto(beam.window.FixedWindows(10))
    write = WriteDataset(tmp_path / "out", shards=shards, kinds={"tags": "bytes"})
    assert collect(beam.Create(range(COUNT)), stamped, windows, write) == [str(tmp_path / "out")]
    check(tmp_path / "out")


def test_an_existing_dataset_is_replaced_only_if_told(tmp_path: Path, collect: Collect) -> None:
    out = tmp_path / "out"
    collect(beam.Create([{"number": 1}]), WriteDataset(out))
    with raises(rs.OptionError, option="out"):
        WriteDataset(out)
    collect(beam.Create([{"number": 2}]), WriteDataset(out, overwrite=True))
    assert [int(record["number"][0]) for record in rs.open(out)] == [2]


def test_invalid_options_are_refused_when_the_pipeline_is_made(tmp_path: Path) -> None:
    for options, name in (
        ({"shards": 0}, "shards"),
        ({"shards": 2, "shard_size_bytes": 1000}, "shard_size_bytes"),
    ):
        with raises(rs.OptionError, option=name):
            WriteDataset(tmp_path / "out", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("elements", "option"),
    [
        ([pa.table({"a": [{"b": 1}]})], "columns"),
        ([{"a": 1}, {"a": "text"}], "columns"),
        ([{"a": object()}], None),
        ([3], "element"),
    ],
)
@pytest.mark.parametrize("shards", [None, 1])
def test_what_cannot_be_stored_leaves_nothing(
    tmp_path: Path, collect: Collect, elements: list[Any], option: str | None, shards: int | None
) -> None:
    out = tmp_path / "out"
    with pytest.raises(rs.OptionError) as caught:
        collect(beam.Create(elements), WriteDataset(out, shards=shards))
    assert option is None or caught.value.option == option
    assert not names(out)


def test_no_elements_are_no_dataset(tmp_path: Path, collect: Collect) -> None:
    with raises(rs.SourceError):
        collect(beam.Create([]), WriteDataset(tmp_path / "out"))
    assert not names(tmp_path / "out")


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("kind", ["files", "memory"])
def test_a_repeated_begin_joins_its_job(
    tmp_path: Path, collect: Collect, monkeypatch: pytest.MonkeyPatch, kind: str, overwrite: bool
) -> None:
    from recordsmith.building import table_writing

    place = as_folder(tmp_path / "out" if kind == "files" else f"memory://{uuid4()}")
    begin, jobs = table_writing.begin, []

    def repeated(*arguments: Any, **options: Any) -> Any:
        jobs.extend(begin(*arguments, **options) for _ in range(2))
        return jobs[-1]

    monkeypatch.setattr(table_writing, "begin", repeated)
    for _ in range(1 + overwrite):
        write = WriteDataset(place, kinds={"tags": "bytes"}, overwrite=overwrite)
        collect(beam.Create(range(COUNT)), beam.Map(example), write)
        check(place)
    assert len({job.token for job in jobs}) == len(jobs) // 2


def test_repeated_and_failed_bundles_count_once(tmp_path: Path) -> None:
    from recordsmith.beam.writing import _WriteBundle

    job = WriteDataset(tmp_path / "out")._job
    begun = job.begin("0" * 32)

    def run(worker: Any, first: int, stop: int) -> Any:
        worker.start_bundle()
        for number in range(first, stop):
            worker.process(example(number), begun)
        return [value.value for value in worker.finish_bundle()]

    results, lost, failed = [], _WriteBundle(job), _WriteBundle(job)
    for first in range(0, COUNT, 100):
        run(lost, first, first + 100)  # its worker is lost before the runner has the result
        failed.start_bundle()
        for number in range(first, first + 50):
            failed.process(example(number), begun)
        results += run(failed, first, first + 100)  # the same instance, after an error
    failed.teardown()
    assert not names(tmp_path / "out")
    job.finish(None, begun, results)
    job.finish(None, begun, results)  # the last step may be repeated, too
    check(tmp_path / "out")
    assert len(names(tmp_path / "out")) == 6
    assert not hidden(tmp_path / "out")


# -- in several processes --------------------------------------------------------------------------

PROGRAM = """
def example(number):
    return {
        "number": number,
        "half": number / 2,
        "tags": [bytes([tag, 255]) for tag in range(number % 4)],
        "data": bytes([number % 256, 255, 0]),
        "rare": number if number % 3 else None,
    }

def killed(number):
    marker = ARGUMENTS.get("marker")
    if marker and number == 300 and not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return number

with pipeline() as p:
    (
        p
        | beam.Create(range(500))
        | beam.Reshuffle()
        | beam.Map(example)
        | WriteDataset(ARGUMENTS["first"], kinds={"tags": "bytes"})
    )
with pipeline() as p:
    (
        p
        | ReadBatches(ARGUMENTS["first"], batch_size=20)
        | beam.Reshuffle()
        | beam.Map(lambda batch: [batch, *map(killed, batch["number"].to_pylist())][0])
        | WriteDataset(ARGUMENTS["out"], shards=ARGUMENTS["shards"])
    )
"""


@pytest.mark.parametrize("shards", [None, 3])
def test_a_killed_worker_leaves_no_dataset_and_a_rerun_makes_it(
    run_workers: Any, tmp_path: Path, shards: int | None
) -> None:
    out = tmp_path / "out"
    arguments = {"out": str(out), "shards": shards, "marker": str(tmp_path / "marker")}
    shown = run_workers(PROGRAM, status=1, first=str(tmp_path / "first"), **arguments)
    assert "Channel closed" in shown
    check(tmp_path / "first")
    assert len(rs.open(tmp_path / "first").shards) == 2
    assert (tmp_path / "marker").exists()
    assert not names(out)
    run_workers(PROGRAM, first=str(tmp_path / "again"), **arguments)
    check(out)
    assert rs.diff(tmp_path / "first", out).is_equal
    assert not hidden(out)


def test_processes_write_to_a_bucket(bucket: Any, servers: Any, run_workers: Any) -> None:
    name = bucket[0].removeprefix("s3://")
    variables = servers["s3"].variables(name)
    url = f"s3://{name}"
    run_workers(PROGRAM, variables, first=f"{url}/first", out=f"{url}/out", shards=4)
    options = bucket[1]
    for folder in ("first", "out"):
        place = rs.remote(f"{url}/{folder}", store_options=options)
        check(place)
        shards = {shard.location.name for shard in rs.open(place).shards}
        listed = servers["s3"].objects(name, f"{folder}/")
        assert {key for key in listed if key.endswith(".tfrecord")} == shards


def test_tensorflow_reads_it(tmp_path: Path, collect: Collect) -> None:
    python = os.environ.get("RECORDSMITH_TENSORFLOW_PYTHON")
    if python is None:
        pytest.skip("RECORDSMITH_TENSORFLOW_PYTHON is not set")
    out = tmp_path / "out"
    elements = [table(0, 100), *map(example, range(100, COUNT))]
    collect(beam.Create(elements), WriteDataset(out, shards=2))
    program = """
        import sys, tensorflow as tf
        features = {
            "number": tf.io.FixedLenFeature([], tf.int64),
            "half": tf.io.FixedLenFeature([], tf.float32),
            "data": tf.io.FixedLenFeature([], tf.string),
            "tags": tf.io.RaggedFeature(tf.string),
            "rare": tf.io.FixedLenFeature([], tf.int64, -1),
        }
        found = {}
        for record in tf.data.TFRecordDataset(sys.argv[1:]):
            row = tf.io.parse_single_example(record, features)
            found[int(row["number"])] = {key: value.numpy() for key, value in row.items()}
        assert sorted(found) == [*range(500)]
        for number, row in found.items():
            assert row["half"] == number / 2
            assert row["data"] == bytes([number % 256, 255, 0])
            assert [*row["tags"]] == [bytes([tag, 255]) for tag in range(number % 4)]
            assert row["rare"] == (number if number % 3 else -1)
    """
    done = subprocess.run(
        [python, "-c", textwrap.dedent(program), *map(str, out.glob("*.tfrecord"))],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
