"""`recordsmith.beam`: each record is read once, however a runner divides it, and written once."""

from __future__ import annotations

import pickle
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

import recordsmith as rs

from ...places import visible
from ...raising import raises
from ..connector_contract import (
    COUNT,
    Check,
    Connector,
    ConnectorContract,
    assert_whole,
    row,
    table,
    write_dataset,
)

pytest.importorskip("apache_beam")
import apache_beam as beam
import pyarrow as pa
from apache_beam.io.restriction_trackers import OffsetRestrictionTracker
from apache_beam.runners.sdf_utils import RestrictionTrackerView, ThreadsafeRestrictionTracker

from recordsmith.beam.reading import ReadBatches, ReadExamples
from recordsmith.beam.writing import WriteDataset

Collect = Callable[..., list[Any]]


class _Beam(Connector):
    """In this process."""

    def __init__(self, collect: Collect) -> None:
        self._collect = collect

    def read(self, paths: Any, split: str | None = None, **options: Any) -> Any:
        return pa.Table.from_batches(self._collect(ReadBatches(paths, split, **options))).sort_by(
            "id"
        )

    def write(
        self, tables: Sequence[Any], out: Any, check: Check | None = None, **options: Any
    ) -> None:
        def passed(table: Any) -> Any:
            if check is not None:
                check(table["id"].to_pylist())
            return table.to_batches(max_chunksize=10)  # which are assigned to shards at random

        write = WriteDataset(out, shards=len(tables), **options)
        assert self._collect(beam.Create(list(tables)), beam.FlatMap(passed), write) == [str(out)]

    def sent(self, path: str) -> bytes:
        return pickle.dumps(vars(ReadBatches(path)))


@pytest.fixture
def connector(collect: Collect) -> Connector:
    return _Beam(collect)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "packed"
    write_dataset(folder)
    return folder


class TestBeam(ConnectorContract):
    @pytest.mark.parametrize("shards", [None, pytest.param(3, marks=pytest.mark.slow)])
    def test_a_killed_worker_changes_nothing(
        self, run_workers: Any, folder: Path, tmp_path: Path, shards: int | None
    ) -> None:
        """Beam's own runner gives up, and the next run writes the dataset."""
        out, marker = tmp_path / "out", tmp_path / "killed"
        arguments = {"source": str(folder), "out": str(out), "shards": shards}
        assert "Channel closed" in run_workers(_COPY, status=1, marker=str(marker), **arguments)
        assert marker.exists()
        assert not [path for path in out.glob("*") if not path.name.startswith(".")]
        run_workers(_COPY, marker=str(marker), **arguments)
        assert_whole(out, len(rs.open(out).shards))

    def test_processes_and_a_bucket(
        self, bucket: Any, servers: Any, run_workers: Any, folder: Path
    ) -> None:
        """The workers have the credentials in their environment."""
        name = bucket[0].removeprefix("s3://")
        variables = servers["s3"].variables(name)
        for source, out in ((folder, "first"), (f"s3://{name}/first", "out")):
            arguments = {"source": str(source), "out": f"s3://{name}/{out}", "shards": 4}
            run_workers(_COPY, variables, marker="", **arguments)
            assert_whole(rs.remote(f"s3://{name}/{out}", store_options=bucket[1]))


_COPY = """
def killed(number):
    marker = ARGUMENTS["marker"]
    if marker and number == 300 and not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return number

with pipeline() as p:
    (
        p
        | ReadBatches(ARGUMENTS["source"], batch_size=20, restore_types=True)
        | beam.Reshuffle()
        | beam.Map(lambda batch: [batch, *map(killed, batch["id"].to_pylist())][0])
        | WriteDataset(ARGUMENTS["out"], shards=ARGUMENTS["shards"])
    )
"""


def test_a_manifest_has_the_schema(dataset: Path, collect: Collect) -> None:
    assert ReadBatches(min(dataset.glob("*.tfrecord"))).schema is None
    read = ReadBatches(dataset, columns=["words", "id"], restore_types=True, batch_size=64)
    assert read.schema.equals(table().select(["words", "id"]).schema)
    batches = collect(read)
    assert all(batch.schema.equals(read.schema) for batch in batches)
    assert {len(batch) for batch in batches} <= {*range(1, 65)}


def test_examples_are_dicts(dataset: Path, collect: Collect) -> None:
    examples = sorted(collect(ReadExamples(dataset)), key=lambda example: example["id"][0])
    for example, expected in zip(examples, rs.open(dataset), strict=True):
        assert sorted(example) == sorted(expected)
        for key, values in expected.items():
            assert type(example[key]) is type(values)
            assert [*example[key]] == [*values]
    condition = "id > 500 and has(name)"
    for paths in (dataset, min(dataset.glob("*-00002-*"))):
        examples = collect(ReadExamples(paths, columns=["id"], filter=condition))
        assert {*map(tuple, examples)} == {("id",)}
        numbers = sorted(example["id"][0] for example in examples)
        assert numbers == [number for number in range(501, COUNT) if number % 5]


def test_a_slice_of_a_batch_travels_without_the_rest() -> None:
    coder = beam.coders.registry.get_coder(pa.RecordBatch)
    batch = pa.record_batch({"a": [b"x" * 1000] * 1000, "b": [[1], None] * 500})
    data = coder.encode(batch.slice(10, 2))
    assert len(data) < 5000
    assert coder.decode(data).equals(batch.slice(10, 2))


def test_invalid_options(dataset: Path, tmp_path: Path) -> None:
    for make, name in (
        (lambda: ReadExamples(dataset, columns=["missing"]), "columns"),
        (lambda: ReadBatches(dataset, columns="id"), "columns"),
        (lambda: ReadBatches(dataset, batch_size=0), "batch_size"),
        (lambda: WriteDataset(tmp_path / "out", shards=0), "shards"),
        (lambda: WriteDataset(tmp_path / "out", shards=2, shard_size_bytes=9), "shard_size_bytes"),
    ):
        with raises(rs.OptionError, option=name):
            make()


def test_a_record_that_does_not_fit_the_schema_is_named(collect: Collect, tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "0.tfrecord") as writer:
        for number in range(100):
            writer.write_example({"number": number, "x": number if number < 98 else "text"})
    read: Any = ReadBatches(tmp_path / "0.tfrecord", columns=["number"], filter="number > 97")
    assert [batch["number"].to_pylist() for batch in collect(read)] == [[98, 99]]
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
    condition = data.draw(st.sampled_from([None, "id > 300"]))
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
                    values = element["id"]
                    found.update(values.to_pylist() if is_batches else values.tolist())
                tracker.check_done()
    for example in rs.open(dataset, split):
        wanted.update(example["id"].tolist())
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
                found.update(batch["id"].to_pylist())
            has_ended.set()
            dividing.join()
            tracker.check_done()
    assert found == Counter(range(COUNT))
    assert divisions


def test_a_runner_divides_a_large_shard(tmp_path: Path, monkeypatch: Any, collect: Collect) -> None:
    monkeypatch.setattr("recordsmith.beam.reading._BUNDLE_BYTES", 1 << 12)
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_columns({"id": range(COUNT)})
    batches = collect(ReadBatches(tmp_path / "a.tfrecord", batch_size=10))
    assert len(batches) == COUNT // 10
    found = [number for batch in batches for number in batch["id"].to_pylist()]
    assert sorted(found) == [*range(COUNT)]


# -- written ---------------------------------------------------------------------------------------


def example(number: int) -> dict[str, Any]:
    """The features of a row, as a dict."""
    values = {"flag": int(row(number)["flag"])}
    return {key: value for key, value in (row(number) | values).items() if value is not None}


KINDS = {"many": "int64", "words": "bytes"}


def assert_written(out: Any) -> None:
    """Each example is there once."""
    assert rs.verify(out, deep=True).is_good
    found = rs.open(out).to_arrow().read_all().sort_by("id")
    expected = [row(number) | {"flag": int(number % 2 == 0)} for number in range(COUNT)]
    assert found.select([*expected[0]]).to_pylist() == expected


@pytest.mark.parametrize("shards", [None, 3])
def test_dicts_in_windows(tmp_path: Path, collect: Collect, shards: int | None) -> None:
    """They become one dataset, from which examples are written as they were read."""
    out = tmp_path / "out"
    stamped = beam.Map(lambda number: beam.window.TimestampedValue(example(number), number))
    windows = beam.WindowInto(beam.window.FixedWindows(10))
    write = WriteDataset(out, split="all", shards=shards, compression="gzip", kinds=KINDS)
    assert collect(beam.Create(range(COUNT)), stamped, windows, write) == [str(out)]
    assert_written(out)
    dataset = rs.open(out)
    assert {*dataset.splits} == {"all"}
    assert {shard.compression for shard in dataset.shards} == {"gzip"}
    assert shards in (None, len(dataset.shards))
    collect(ReadExamples(out), WriteDataset(tmp_path / "again", shards=2, kinds=KINDS))
    assert rs.diff(out, tmp_path / "again").is_equal


def test_sequence_examples_and_messages(tmp_path: Path, collect: Collect) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for number in range(50):
            steps = {"steps": [[step] for step in range(number % 5)]}
            writer.write(rs.encode_sequence_example({"number": [number]}, steps))
    messages = beam.Create([*rs.open(tmp_path / "a.tfrecord").records()])
    for name, elements in (("b", ReadExamples(tmp_path / "a.tfrecord")), ("c", messages)):
        collect(elements, WriteDataset(tmp_path / name))
        assert rs.diff(tmp_path / "a.tfrecord", tmp_path / name).is_equal


@pytest.mark.parametrize(
    ("elements", "option"),
    [
        ([{"a": 1}, {"a": "text"}], "columns"),
        ([{"a": object()}], None),
        ([3], "element"),
        ([], None),
    ],
)
@pytest.mark.parametrize("shards", [None, 1])
def test_elements_that_cannot_be_stored(
    tmp_path: Path, collect: Collect, elements: list[Any], option: str | None, shards: int | None
) -> None:
    out = tmp_path / "out"
    with pytest.raises(rs.OptionError if elements else rs.SourceError) as caught:
        collect(beam.Create(elements), WriteDataset(out, shards=shards))
    assert option in (None, getattr(caught.value, "option", None))
    assert not [path for path in out.glob("*") if not path.name.startswith(".")]


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
    assert not visible(tmp_path / "out")
    job.finish(None, begun, results)
    job.finish(None, begun, results)  # the last step may be repeated, too
    assert_written(tmp_path / "out")
    assert len(visible(tmp_path / "out")) == 7
