"""`recordsmith.beam` reads what was written, each record once, however a runner divides it."""

from __future__ import annotations

import json
import pickle
import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

import recordsmith as rs

from ...raising import raises
from ..zoo_tables import check_file

pytest.importorskip("apache_beam")
import apache_beam as beam
import pyarrow as pa
from apache_beam.io.restriction_trackers import OffsetRestrictionTracker
from apache_beam.runners.sdf_utils import RestrictionTrackerView, ThreadsafeRestrictionTracker

from recordsmith.beam import ReadBatches, ReadExamples

Collect = Callable[..., list[Any]]
COUNT = 1000


def row(number: int) -> dict[str, Any]:
    """A record with a ragged, a missing, a binary and two plain features."""
    features: dict[str, Any] = {
        "number": number,
        "half": number / 2,
        "tags": [f"{number}-{tag}".encode() for tag in range(number % 4)],
        "data": bytes([number % 256, 255, 0]),
    }
    if number % 3:
        features["rare"] = number
    return features


def arrow_row(number: int) -> dict[str, Any]:
    """The same in the columns of a record batch."""
    return {
        "data": bytes([number % 256, 255, 0]),
        "half": number / 2,
        "number": number,
        "rare": number if number % 3 else None,
        "tags": [f"{number}-{tag}" for tag in range(number % 4)],  # UTF-8, so it is text
    }


def write(path: Any, numbers: range, compression: str | None = None) -> None:
    with rs.ShardWriter(path, compression=compression) as writer:
        for number in numbers:
            writer.write_example(row(number), kinds={"tags": "bytes"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """COUNT records in two plain shards and a compressed one, without a manifest."""
    folder = tmp_path_factory.mktemp("records")
    write(folder / "train-00000-of-00002.tfrecord", range(600))
    write(folder / "train-00001-of-00002.tfrecord", range(600, 700))
    write(folder / "validation.tfrecord.gz", range(700, COUNT), "gzip")
    return folder


@pytest.fixture(scope="module")
def dataset(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a manifest, in three plain shards."""
    out = tmp_path_factory.mktemp("dataset") / "out"
    rs.reshard(folder, out, shards=3, splits={"train": 0.7, "validation": 0.3})
    return out


def rows_of(batches: list[Any]) -> list[dict[str, Any]]:
    rows = pa.Table.from_batches(batches).to_pylist()
    return sorted(rows, key=lambda row: row["number"])


def test_batches_have_all_records_in_arrow_types(folder: Path, collect: Collect) -> None:
    batches = collect(ReadBatches(folder, batch_size=64))
    assert {len(batch) for batch in batches} <= {*range(1, 65)}
    assert rows_of(batches) == [arrow_row(number) for number in range(COUNT)]


def test_a_manifest_has_the_schema(folder: Path, dataset: Path, collect: Collect) -> None:
    assert ReadBatches(folder).schema is None
    read = ReadBatches(dataset, columns=["number", "tags"])
    assert read.schema.equals(rs.open(dataset).to_arrow(["number", "tags"]).schema)
    batches = collect(read)
    assert all(batch.schema.equals(read.schema) for batch in batches)
    assert sorted(batches[0].schema.names) == ["number", "tags"]
    assert [row["number"] for row in rows_of(batches)] == [*range(COUNT)]


def test_examples_are_dicts(folder: Path, collect: Collect) -> None:
    examples = sorted(collect(ReadExamples(folder)), key=lambda example: example["number"][0])
    assert len(examples) == COUNT
    for number, example in enumerate(examples):
        expected = rs.decode_example(rs.encode_example(row(number), kinds={"tags": "bytes"}))
        assert sorted(example) == sorted(expected)
        for key, values in expected.items():
            assert type(example[key]) is type(values)
            assert [*example[key]] == [*values]


def test_columns_and_filter(folder: Path, dataset: Path, collect: Collect) -> None:
    wanted = [number for number in range(COUNT) if number % 3 and number > 500]
    condition = "number > 500 and has(rare)"
    for paths in (folder, dataset):
        batches = collect(ReadBatches(paths, columns=["number"], filter=condition, batch_size=50))
        assert all(batch.schema.names == ["number"] and len(batch) for batch in batches)
        assert [row["number"] for row in rows_of(batches)] == wanted
        examples = collect(ReadExamples(paths, columns=["number"], filter=condition))
        assert {*map(tuple, examples)} == {("number",)}
        assert sorted(example["number"][0] for example in examples) == wanted


def test_a_slice_of_a_batch_travels_without_the_rest() -> None:
    coder = beam.coders.registry.get_coder(pa.RecordBatch)
    batch = pa.record_batch({"a": [b"x" * 1000] * 1000, "b": [[1], None] * 500})
    data = coder.encode(batch.slice(10, 2))
    assert len(data) < 5000
    assert coder.decode(data).equals(batch.slice(10, 2))


def test_invalid_options_are_refused_when_the_pipeline_is_made(dataset: Path) -> None:
    for make, name in (
        (lambda: ReadBatches(dataset, columns=["missing"]), "columns"),
        (lambda: ReadExamples(dataset, columns=["missing"]), "columns"),
        (lambda: ReadBatches(dataset, columns="number"), "columns"),
        (lambda: ReadBatches(dataset, batch_size=0), "batch_size"),
        (lambda: ReadBatches(dataset, filter="missing > 3"), "where"),
        (lambda: ReadBatches(dataset, split="missing"), "split"),
    ):
        with raises(rs.OptionError, option=name):
            make()
    with raises(FileNotFoundError):
        ReadBatches(dataset / "missing")


def test_damage_is_named(tmp_path: Path, collect: Collect) -> None:
    path = tmp_path / "a.tfrecord"
    write(path, range(100))
    data = bytearray(path.read_bytes())
    data[data.index(b"69-0")] ^= 1
    path.write_bytes(data)
    for read in (
        ReadBatches(path, batch_size=16),
        ReadBatches(path, filter="number > 50"),
        ReadExamples(path),
    ):
        with raises(rs.CorruptDataError, path=path, record=69, defect=rs.Defect.PAYLOAD_CRC):
            collect(read)


def test_a_record_that_does_not_fit_the_schema_is_named(
    dataset: Path, collect: Collect, tmp_path: Path
) -> None:
    for at in range(2):
        path = tmp_path / f"{at}.tfrecord"
        with rs.ShardWriter(path) as writer:
            for number in range(100):
                writer.write_example({"number": number, "x": number if number < 98 else "text"})
        rs.reshard(path, tmp_path / "out", shards=1, overwrite=True)
    read: Any = ReadBatches(tmp_path / "0.tfrecord", columns=["number"], filter="number > 97")
    assert [row["number"] for row in rows_of(collect(read))] == [98, 99]
    schema = rs.open(tmp_path / "0.tfrecord")[:90].schema
    from recordsmith.beam.reading import _count, _ReadBatches

    (counted,) = _count(read._parts[0], 7)
    tracker = OffsetRestrictionTracker(beam.io.restriction_trackers.OffsetRange(0, 15))
    for request in (
        read._request,
        ReadBatches(tmp_path / "0.tfrecord", filter="number > 3")._request,
    ):
        object.__setattr__(request, "columns", None)
        with raises(rs.CorruptDataError, record=98, defect=rs.Defect.FEATURE_KIND):
            [*_ReadBatches(request).process(counted, schema, tracker)]
        tracker = OffsetRestrictionTracker(beam.io.restriction_trackers.OffsetRange(0, 15))


# -- divided while it is read ----------------------------------------------------------------------


fractions = st.sampled_from([0.0, 0.5]) | st.floats(0, 0.99)


@hypothesis.given(st.data())
@hypothesis.settings(max_examples=60, suppress_health_check=[*hypothesis.HealthCheck])
def test_divided_ranges_have_each_record_once(dataset: Path, data: st.DataObject) -> None:
    from recordsmith.beam.reading import _count, _ReadBatches, _ReadExamples, _Steps

    is_batches = data.draw(st.booleans())
    condition = data.draw(st.sampled_from([None, "number > 300"]))
    split = data.draw(st.sampled_from([None, "train[5:-3]"]))
    size = data.draw(st.integers(1, 200))
    read: Any = ReadBatches(dataset, split, filter=condition, batch_size=size)
    wanted: Counter[int] = Counter()
    found: Counter[int] = Counter()
    provider = _Steps()
    for part in pickle.loads(pickle.dumps(read._parts)):
        for counted in _count(part, read._request.batch_size):
            whole = provider.initial_restriction(counted)
            waiting = [*provider.split(counted, whole)]
            assert sum(one.size() for one in waiting) == whole.size()
            while waiting:
                tracker = ThreadsafeRestrictionTracker(provider.create_tracker(waiting.pop()))
                view = RestrictionTrackerView(tracker)
                each: Any = (
                    _ReadBatches(read._request).process(counted, read._stored, view)
                    if is_batches
                    else _ReadExamples(read._request).process(counted, view)
                )
                # how many elements are read before each split; 0: before the first claim
                splits = data.draw(st.lists(st.tuples(st.integers(0, 6), fractions), max_size=5))
                count = 0
                while True:
                    for at, fraction in splits:
                        if at == count and (divided := tracker.try_split(fraction)) is not None:
                            waiting.append(divided[1])
                    element = next(each, None)
                    if element is None:
                        break
                    count += 1
                    values = element["number"]
                    found.update(values.to_pylist() if is_batches else values.tolist())
                tracker.check_done()
    for example in rs.open(dataset, split):
        wanted.update(example["number"].tolist())
    if condition:
        wanted = Counter({number: 1 for number in wanted if number > 300})
    assert found == wanted


@pytest.mark.parametrize("seed", range(4))
def test_divided_by_another_thread(dataset: Path, seed: int) -> None:
    """As runners do: a step is claimed by one thread while the other divides the rest."""
    from recordsmith.beam.reading import _count, _ReadBatches, _Steps

    read: Any = ReadBatches(dataset, batch_size=3)
    chosen = random.Random(seed)
    found: Counter[int] = Counter()
    divisions: list[Any] = []
    waiting: list[Any] = []
    for part in read._parts:
        (counted,) = _count(part, read._request.batch_size)
        waiting.append(_Steps().initial_restriction(counted))
        while waiting:
            tracker = ThreadsafeRestrictionTracker(OffsetRestrictionTracker(waiting.pop()))
            has_ended = threading.Event()

            def divide(tracker: Any = tracker, has_ended: threading.Event = has_ended) -> None:
                while not has_ended.wait(chosen.random() / 500):
                    divided = tracker.try_split(chosen.random())
                    if divided is not None:
                        waiting.append(divided[1])
                        divisions.append(divided)

            dividing = threading.Thread(target=divide)
            dividing.start()
            each = _ReadBatches(read._request).process(
                counted, read._stored, RestrictionTrackerView(tracker)
            )
            for batch in each:
                found.update(batch["number"].to_pylist())
            has_ended.set()
            dividing.join()
            tracker.check_done()
    assert found == Counter(range(COUNT))
    assert divisions


def test_a_runner_divides_a_large_shard(tmp_path: Path, monkeypatch: Any, collect: Collect) -> None:
    monkeypatch.setattr("recordsmith.beam.reading._BUNDLE_BYTES", 1 << 12)
    write(tmp_path / "a.tfrecord", range(COUNT))
    batches = collect(ReadBatches(tmp_path / "a.tfrecord", batch_size=10))
    assert len(batches) == COUNT // 10
    assert [row["number"] for row in rows_of(batches)] == [*range(COUNT)]


def test_elements_have_no_credentials_of_the_environment(
    bucket: Any, servers: Any, monkeypatch: Any
) -> None:
    url, options = bucket
    write(rs.remote(f"{url}/a.tfrecord", store_options=options), range(10))
    monkeypatch.setenv("RECORDSMITH_STORE_OPTIONS", json.dumps(options))
    read = ReadBatches(f"{url}/a.tfrecord")
    for secret in (options["secret_access_key"], options["session_token"]):
        assert secret.encode() not in pickle.dumps(vars(read))


# -- in several processes --------------------------------------------------------------------------


def test_processes_read_from_a_bucket(
    bucket: Any, servers: Any, dataset: Path, run_workers: Any, tmp_path: Path
) -> None:
    variables = servers["s3"].variables(name := bucket[0].removeprefix("s3://"))
    place = rs.remote(f"s3://{name}/data", store_options=bucket[1])
    rs.reshard(dataset, place, shards=4, splits={"train": 1.0})
    run_workers(
        """
        with pipeline() as p:
            (
                p
                | ReadBatches(ARGUMENTS["url"], batch_size=50)
                | beam.Reshuffle()
                | beam.FlatMap(lambda batch: batch["number"].to_pylist())
                | beam.Map(lambda number: (number, os.getpid()))
                | beam.Map(json.dumps)
                | beam.io.WriteToText(ARGUMENTS["out"])
            )
        """,
        variables,
        url=f"s3://{name}/data",
        out=str(tmp_path / "found"),
    )
    lines = [
        json.loads(line)
        for path in tmp_path.glob("found*")
        for line in path.read_text().split("\n")
        if line
    ]
    assert sorted(number for number, _ in lines) == [*range(COUNT)]
    assert len({pid for _, pid in lines}) == 2


# -- files of others -------------------------------------------------------------------------------


def test_file_of_the_zoo(zoo_row: dict[str, Any], zoo: Path, collect: Collect) -> None:
    path = zoo / zoo_row["file"]

    def read() -> Any:
        batches = collect(ReadBatches(path))
        return pa.Table.from_batches(batches) if batches else rs.open(path).to_arrow().read_all()

    check_file(zoo_row, read)
    if zoo_row["tf_error"] is None and zoo_row["payload"] in ("Example", "SequenceExample"):
        assert len(collect(ReadExamples(path))) == zoo_row["records"]
