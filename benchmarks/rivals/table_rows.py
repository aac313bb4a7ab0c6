"""Rows of numbers and text: how rivals that document such tables write and read them.

`WAYS` has for each of them a function that writes columns to a folder, and one that returns what
begins an epoch of shuffled batches: dicts with an array of each column.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rival import Rival, UnsupportedError, written_once

from clock import cpu_seconds

BATCH, THREADS, SHUFFLE_BUFFER, SHARDS = 256, 2, 10_000, 8
FLOATS = tuple(f"x{number}" for number in range(8))

Epochs = Callable[[], Iterator[dict[str, Any]]]


def columns(count: int) -> dict[str, Any]:
    """Three int64 columns, eight of float32, and strings of 8 to 16 letters."""
    import numpy as np

    rng = np.random.default_rng(0)
    letters = rng.integers(97, 123, (count, 16), np.uint8)
    lengths = rng.integers(8, 17, count).tolist()
    return {
        "id": np.arange(count),
        "user": rng.integers(0, 1 << 31, count),
        "time": 1_700_000_000 + rng.integers(0, 1 << 24, count),
        **{name: rng.random(count, np.float32) for name in FLOATS},
        "name": [bytes(row[:size]).decode() for row, size in zip(letters, lengths, strict=True)],
    }


def measure(_rival: Rival, way: str, folder: str, count: int) -> dict[str, Any]:
    """The second epoch of the module `way`; its rows are compared with those written."""
    if way not in WAYS:
        raise UnsupportedError(CANNOT.get(way, "not measured"))
    write, read, _ = WAYS[way]
    given = columns(count)
    place = Path(folder) / f"{way}-{count}"
    written_once(place, lambda folder: write(given, folder))
    epochs = read(place)
    for _ in range(2):
        cpu, wall = cpu_seconds(), time.perf_counter()
        batches = list(epochs())
        cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    _compare(given, batches)
    return {"cpu": cpu, "wall": wall, "count": count}


def _compare(given: dict[str, Any], batches: list[dict[str, Any]]) -> None:
    """Every row once, with its values, in another order than it was written."""
    import numpy as np

    found = {name: np.concatenate([np.asarray(batch[name]) for batch in batches]) for name in given}
    order = found["id"]
    assert sorted(order.tolist()) == given["id"].tolist(), "not every row once"
    assert order.tolist() != given["id"].tolist(), "not shuffled"
    for name, values in found.items():
        expected = np.asarray(given[name])[order]
        if name == "name":
            text = [one.decode() if isinstance(one, bytes) else str(one) for one in values.tolist()]
            assert text == expected.tolist(), name
        else:
            assert np.array_equal(values, expected), name


def _parts(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of each shard."""
    count = len(given["id"])
    for shard in range(SHARDS):
        part = slice(shard * count // SHARDS, (shard + 1) * count // SHARDS)
        yield {name: values[part] for name, values in given.items()}


def _write_records(given: dict[str, Any], folder: Path) -> None:
    import recordsmith as rs

    for number, part in enumerate(_parts(given)):
        name = f"train-{number:05}-of-{SHARDS:05}.tfrecord"
        with rs.ShardWriter(folder / name) as writer:
            writer.write_columns(part)


def _read_records(folder: Path) -> Epochs:
    import recordsmith as rs

    dataset = rs.open(folder)
    numbers = ("id", "user", "time", *FLOATS)
    features: dict[str, Any] = {name: rs.Scalar(name) for name in numbers}
    features["name"] = rs.Text("name")
    loader = rs.Loader(dataset, features, batch_size=BATCH, shuffle=True, threads=THREADS)
    return lambda: iter(loader)


def _read_tf_data(folder: Path) -> Epochs:
    """The same files; batches are parsed, not rows, as its guide about performance advises."""
    import tensorflow as tf

    paths = sorted(str(path) for path in folder.glob("*.tfrecord"))
    features = {
        **{name: tf.io.FixedLenFeature([], tf.int64) for name in ("id", "user", "time")},
        **{name: tf.io.FixedLenFeature([], tf.float32) for name in FLOATS},
        "name": tf.io.FixedLenFeature([], tf.string),
    }
    options = tf.data.Options()
    options.threading.private_threadpool_size = THREADS
    options.threading.max_intra_op_parallelism = 1
    dataset = (
        tf.data.Dataset.from_tensor_slices(paths)
        .shuffle(len(paths))
        .interleave(tf.data.TFRecordDataset, cycle_length=SHARDS, num_parallel_calls=THREADS)
        .shuffle(SHUFFLE_BUFFER)
        .batch(BATCH)
        .map(lambda payloads: tf.io.parse_example(payloads, features), num_parallel_calls=THREADS)
        .prefetch(2)
        .with_options(options)
    )
    return dataset.as_numpy_iterator  # type: ignore[no-any-return]


def _arrow(given: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.table(given)


def _write_parquet(given: dict[str, Any], folder: Path) -> None:
    import pyarrow.parquet

    for number, part in enumerate(_parts(given)):
        name = f"train-{number:05}-of-{SHARDS:05}.parquet"
        pyarrow.parquet.write_table(_arrow(part), folder / name)


def _read_grain(folder: Path) -> Epochs:
    import grain
    from grain import experimental

    files = experimental.ParquetIterDataset(sorted(map(str, folder.glob("*.parquet"))))
    epoch = 0

    def begin() -> Iterator[dict[str, Any]]:
        nonlocal epoch
        epoch += 1
        rows = experimental.WindowShuffleIterDataset(files, window_size=SHUFFLE_BUFFER, seed=epoch)
        return iter(rows.batch(BATCH))

    assert grain.__name__
    return begin


def _read_hugging_face(folder: Path) -> Epochs:
    import datasets

    files = f"{folder}/*.parquet"
    rows = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
    # with the default of 10, each epoch ends with a sleep of 5 s
    rows = rows.shuffle(0, buffer_size=SHUFFLE_BUFFER, max_buffer_input_shards=1)
    rows = rows.with_format("numpy")
    epoch = 0

    def begin() -> Iterator[dict[str, Any]]:
        nonlocal epoch
        epoch += 1
        rows.set_epoch(epoch)
        yield from rows.iter(BATCH)

    return begin


def _write_lance(given: dict[str, Any], folder: Path) -> None:
    import lance

    lance.write_dataset(_arrow(given), str(folder / "rows.lance"))


def _read_lance(folder: Path) -> Epochs:
    """Its rows at random positions, a batch with each call."""
    import lance
    import numpy as np

    rows = lance.dataset(str(folder / "rows.lance"))
    rng = np.random.default_rng(0)

    def begin() -> Iterator[dict[str, Any]]:
        order = rng.permutation(rows.count_rows())
        for start in range(0, len(order), BATCH):
            table = rows.take(order[start : start + BATCH])
            yield {name: table.column(name).to_numpy() for name in table.column_names}

    return begin


def _write_mds(given: dict[str, Any], folder: Path) -> None:
    from streaming import MDSWriter

    kinds = dict.fromkeys(("id", "user", "time"), "int64")
    kinds |= dict.fromkeys(FLOATS, "float32") | {"name": "str"}
    with MDSWriter(out=str(folder), columns=kinds) as writer:
        for row in zip(*given.values(), strict=True):
            writer.write(dict(zip(given, row, strict=True)))


def _read_mds(folder: Path) -> Epochs:
    from streaming import StreamingDataLoader, StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    clean_stale_shared_memory()
    rows = StreamingDataset(local=str(folder), batch_size=BATCH, shuffle=True)
    loader = StreamingDataLoader(
        rows, batch_size=BATCH, num_workers=THREADS, persistent_workers=True
    )
    return lambda: iter(loader)


def _read_litdata(folder: Path) -> Epochs:
    import litdata
    from litdata.streaming.item_loader import ParquetLoader

    litdata.index_parquet_dataset(str(folder))
    rows = litdata.StreamingDataset(str(folder), item_loader=ParquetLoader(), shuffle=True)
    loader = litdata.StreamingDataLoader(
        rows,
        batch_size=BATCH,
        num_workers=THREADS,
        persistent_workers=True,
        multiprocessing_context="spawn",  # its error says so
    )
    return lambda: iter(loader)


Write = Callable[[dict[str, Any], Path], None]

WAYS: dict[str, tuple[Write, Callable[[Path], Epochs], str]] = {
    "recordsmith_shards": (_write_records, _read_records, "recordsmith"),
    "tf_data": (_write_records, _read_tf_data, "tf.data"),
    "grain_array_record": (_write_parquet, _read_grain, "grain, `ParquetIterDataset`"),
    "hf_parquet": (_write_parquet, _read_hugging_face, "Hugging Face datasets, Parquet streamed"),
    "lance_table": (_write_lance, _read_lance, "Lance, `take`"),
    "mds": (_write_mds, _read_mds, "MosaicML streaming"),
    "litdata_chunks": (_write_parquet, _read_litdata, "LitData, `ParquetLoader`"),
}
"""With what the table calls it."""

CANNOT = {
    "webdataset_tars": (
        "a sample is files of a tar: https://webdataset.github.io/webdataset/creating/"
    ),
    "energon_tars": (
        "a sample is files of a tar: https://nvidia.github.io/Megatron-Energon/basic/data_prep.html"
    ),
    "spdl_files": "no format of its own: https://facebookresearch.github.io/spdl/latest/",
    "torch_files": "no format of its own: https://docs.pytorch.org/docs/stable/data.html",
}
"""Modules without a table, and the page that says what they read."""
