"""Datasets as Arrow streams, in pyarrow, Polars, pandas and DuckDB."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import arrow_stream, records_of
from recordsmith.format.example import decode_columns, encode_columns

from ...raising import raises

pa = pytest.importorskip("pyarrow")

COUNT = 2500


def row(number: int) -> dict[str, Any]:
    """A row with all kinds and shapes; some features are missing or empty."""
    found: dict[str, Any] = {
        "id": number,
        "pair": [number * 0.5, 1.0],
        "name": f"näme {number}",
        "raw": [b"\xff" * (number % 3)],
        "many": list(range(number % 4)),
    }
    if number % 5:
        found["label"] = number % 3
    if number % 7:
        found["words"] = ["a", "b"][: number % 3]
    return found


KINDS = {"many": "int64", "words": "bytes"}


@pytest.fixture(scope="module", params=["none", "gzip"])
def dataset(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    folder = tmp_path_factory.mktemp("arrow")
    for shard in range(2):
        suffix = ".tfrecord" if request.param == "none" else ".tfrecord.gz"
        name = f"train-{shard:05d}-of-00002{suffix}"
        with rs.ShardWriter(folder / name, compression=request.param) as writer:
            for number in range(shard, COUNT, 2):
                writer.write_example(row(number), KINDS)
    return rs.open(folder)


def expected(dataset: rs.Dataset) -> list[dict[str, Any]]:
    """The rows of a dataset, as Arrow should return them."""
    names = list(dataset.schema.features)
    rows = []
    for example in dataset:
        given = row(int(example["id"][0]))
        rows.append({name: arrow_value(name, given.get(name)) for name in names})
    return rows


def arrow_value(name: str, value: Any) -> Any:
    return value[0] if name == "raw" else value


def test_table_has_the_values_of_the_examples(dataset: rs.Dataset) -> None:
    table = pa.table(dataset)
    assert table.to_pylist() == expected(dataset)
    types = dict(zip(table.schema.names, table.schema.types, strict=True))
    assert types == {
        "id": pa.int64(),
        "label": pa.int64(),
        "many": pa.large_list(pa.int64()),
        "name": pa.large_string(),
        "pair": pa.list_(pa.float32(), 2),
        "raw": pa.large_binary(),
        "words": pa.large_list(pa.large_string()),
    }
    kinds = [table.schema.field(name).metadata[b"tfrecord.kind"] for name in ("id", "pair", "raw")]
    assert kinds == [b"int64", b"float", b"bytes"]


@pytest.mark.parametrize("batch_size", [1, 7, 1024, COUNT, None])
@pytest.mark.parametrize("threads", [1, 3])
def test_batches_have_their_size(dataset: rs.Dataset, batch_size: int | None, threads: int) -> None:
    chosen = dataset[: 300 if batch_size == 1 else COUNT]
    batches = list(chosen.to_arrow(["id"], batch_size=batch_size, threads=threads))
    if batch_size is not None:
        assert {len(batch) for batch in batches[:-1]} <= {batch_size}
        assert 0 < len(batches[-1]) <= batch_size
    ids = [number for batch in batches for number in batch.column("id").to_pylist()]
    assert ids == [int(example["id"][0]) for example in chosen]


def test_selections_are_streamed_in_their_order(dataset: rs.Dataset) -> None:
    for part in (dataset[10:20], dataset.filter("label == 1"), dataset[[3, 5, 90]]):
        assert pa.table(part)["id"].to_pylist() == [int(example["id"][0]) for example in part]
    if dataset.shards[0].compression == "none":
        part = dataset.shuffle(3).take(50)
        assert pa.table(part)["id"].to_pylist() == [int(example["id"][0]) for example in part]


def test_nothing_is_read_before_the_first_batch(
    dataset: rs.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dataset.schema
    decoded: list[int] = []
    decode = arrow_stream.ArrowDecoder.append

    def counted(self: Any, buffer: Any, starts: Any, lengths: Any) -> None:
        decoded.append(len(starts))
        decode(self, buffer, starts, lengths)

    monkeypatch.setattr(arrow_stream.ArrowDecoder, "append", counted)
    threads = threading.active_count()
    readers = [dataset.to_arrow(batch_size=10, threads=3) for _ in range(4)]
    capsules = [dataset.__arrow_c_stream__() for _ in range(4)]
    assert (decoded, threading.active_count()) == ([], threads)
    first = dataset.to_arrow(batch_size=10)
    assert len(first.read_next_batch()) == 10
    assert sum(decoded) == 10
    del readers, capsules


def test_an_unread_stream_releases_everything(dataset: rs.Dataset) -> None:
    part = dataset[:7]
    alive = weakref.ref(records_of(part))
    capsule = part.__arrow_c_stream__()
    del part
    gc.collect()
    assert alive() is not None
    del capsule
    gc.collect()
    assert alive() is None


def test_a_stopped_stream_ends_its_threads(dataset: rs.Dataset) -> None:
    before = threading.active_count()
    reader = dataset.to_arrow(batch_size=1, threads=2)
    reader.read_next_batch()
    del reader
    gc.collect()
    assert threading.active_count() <= before  # threads of other tests may end


def test_other_libraries_read_a_dataset(dataset: rs.Dataset) -> None:
    wanted = [row(int(example["id"][0]))["name"] for example in dataset]
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(dataset)["name"].to_list() == wanted
    pandas = pytest.importorskip("pandas")
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert pandas.DataFrame.from_arrow(dataset)["name"].tolist() == wanted


def test_polars_reads_only_what_a_query_needs(
    dataset: rs.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    pl = pytest.importorskip("polars")
    from recordsmith.polars import scan

    read: list[Any] = []
    to_arrow = rs.Dataset.to_arrow

    def recorded(self: Any, columns: Any = None, **options: Any) -> Any:
        read.append(columns)
        return to_arrow(self, columns, **options)

    frame = scan(dataset)
    monkeypatch.setattr(rs.Dataset, "to_arrow", recorded)
    found = frame.filter(pl.col("label") == 2).select("id").collect()
    assert found["id"].to_list() == [e["id"] for e in expected(dataset) if e["label"] == 2]
    assert [sorted(columns) for columns in read] == [["id", "label"]]
    assert frame.select("id").head(12).collect()["id"].to_list() == [
        e["id"] for e in expected(dataset[:12])
    ]


def test_text_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_example({"t": "fine"})
        writer.write_example({"t": b"\xff"})
    schema = rs.open(tmp_path / "a.tfrecord")[:1].schema
    dataset = rs.open(tmp_path / "a.tfrecord")
    stream = arrow_stream.open_stream(records_of(dataset), schema, None, None, None, 1)
    with raises(rs.CorruptDataError, defect="feature-value-mismatch", feature="t"):
        stream.read_all()


def test_damaged_records_are_located(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with rs.ShardWriter(path) as writer:
        writer.write_columns({"x": np.arange(100)})
    offset = records_of(rs.open(path)).locate_record(60).offset
    dataset = rs.open(path)
    assert dataset.schema.record_count == 100
    data = bytearray(path.read_bytes())
    data[offset + 13] ^= 1
    path.write_bytes(data)
    with raises(rs.CorruptDataError, defect="payload-crc-mismatch", record=60):
        dataset.to_arrow(["x"], batch_size=10).read_all()


def test_sequences_are_nested_lists(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with rs.ShardWriter(path) as writer:
        writer.write(rs.encode_sequence_example({"id": 1}, {"tokens": [[1, 2], []], "t": [["a"]]}))
        writer.write(rs.encode_sequence_example({"id": 2, "x": 0.5}, {"tokens": []}))
    table = pa.table(rs.open(path))
    assert table.to_pylist() == [
        {"id": 1, "x": None, "t": [["a"]], "tokens": [[1, 2], []]},
        {"id": 2, "x": 0.5, "t": None, "tokens": []},
    ]
    table.validate(full=True)


# -- validity --------------------------------------------------------------------------------------


def test_missing_features_of_fixed_shape_are_zeros() -> None:
    valid = np.array([True, False, True])
    payloads, offsets = encode_columns({"x": np.array([[1, 2], [0, 0], [3, 4]])}, {"x": valid})
    starts, lengths = offsets[:-1], np.diff(offsets)
    assert lengths.tolist()[1] == 0 or lengths[1] < lengths[0]
    with raises(rs.CorruptDataError, defect="missing-feature", feature="x", record=1):
        decode_columns(payloads, starts, lengths, {"x": rs.FeatureSpec("int64", (2,))})
