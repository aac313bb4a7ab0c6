"""Small records from a file into columns in memory.

A table of small records costs time to parse, not to read: this is where readers
differ most. All of them end with every value of every row in memory.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from case import OURS, Case, Peer, Task
from inputs import Columns, Inputs

KEYS = ("user", "label", "time", "dense", "items", "country")
"""In the order that the file has them."""

Digest = list[int]


def digest(rows: int, users: Any, items: Any, dense: Any, country_bytes: int) -> Digest:
    """What the columns hold, in five numbers: rows, sums, bytes."""
    import numpy as np

    return [
        int(rows),
        int(np.sum(users)),
        int(np.sum(items)),
        round(float(np.sum(dense, dtype=np.float64))),
        int(country_bytes),
    ]


def _recordsmith(inputs: Inputs) -> Task:
    import recordsmith as rs

    path, open_dataset = inputs.path("small.tfrecord"), rs.open  # names load when first used

    def summary(columns: Any) -> Digest:
        return digest(
            len(columns["user"]),
            columns["user"],
            columns["items"].values,
            columns["dense"],
            int(columns["country"].lengths.sum()),
        )

    return Task(
        lambda: open_dataset(path).read_columns(KEYS), records=inputs.small_count, digest=summary
    )


def tensorflow_features() -> dict[str, Any]:
    """The features that `parse_example` expects."""
    import tensorflow as tf

    features: dict[str, Any] = {
        key: tf.io.FixedLenFeature([], tf.int64) for key in ("user", "label", "time")
    }
    features["dense"] = tf.io.FixedLenFeature([13], tf.float32)
    features["country"] = tf.io.FixedLenFeature([], tf.string)
    features["items"] = tf.io.VarLenFeature(tf.int64)  # leaner than RaggedFeature
    return features


def tensorflow_batches(inputs: Inputs, size: int) -> Any:
    """The small records parsed by the leanest of what was tried: parallel calls and autotuning cost
    more.
    """
    import tensorflow as tf

    features = tensorflow_features()
    options = tf.data.Options()
    options.autotune.enabled = False
    return (
        tf.data.TFRecordDataset(str(inputs.path("small.tfrecord")))
        .batch(size)
        .map(lambda payloads: tf.io.parse_example(payloads, features))
        .with_options(options)
    )


def _tensorflow_lean(inputs: Inputs) -> Task:
    dataset = tensorflow_batches(inputs, 1024)
    return Task(lambda: list(dataset), records=inputs.small_count, digest=_tensorflow_digest)


def _tensorflow_guide(inputs: Inputs) -> Task:
    """As the guides and tutorials have it: each record parsed, then batched, on all processors."""
    import tensorflow as tf

    features = tensorflow_features()
    dataset = (
        tf.data.TFRecordDataset(str(inputs.path("small.tfrecord")))
        .map(
            lambda payload: tf.io.parse_single_example(payload, features),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
        .batch(1024)
        .prefetch(tf.data.AUTOTUNE)
    )
    return Task(lambda: list(dataset), records=inputs.small_count, digest=_tensorflow_digest)


def _tensorflow_digest(batches: Any) -> Digest:
    import numpy as np

    def joined(key: str) -> Any:
        return np.concatenate([batch[key].numpy() for batch in batches])

    items = np.concatenate([batch["items"].values.numpy() for batch in batches])
    country_bytes = sum(map(len, joined("country").tolist()))
    return digest(len(joined("user")), joined("user"), items, joined("dense"), country_bytes)


def arrow_table(columns: Columns) -> Any:
    """The rows as an Arrow table, over the same memory where Arrow can."""
    import pyarrow as pa

    dense = pa.array(columns.dense.ravel())
    return pa.table(
        {
            "user": columns.user,
            "label": columns.label,
            "time": columns.time,
            "dense": pa.FixedSizeListArray.from_arrays(dense, columns.dense.shape[1]),
            "items": pa.ListArray.from_arrays(
                pa.array(columns.item_splits, pa.int32()), pa.array(columns.items)
            ),
            "country": pa.array(columns.country, pa.binary()),
        }
    )


def _parquet(inputs: Inputs) -> Task:
    import pyarrow.parquet as pq

    path = inputs.path("small.parquet")

    def summary(table: Any) -> Digest:
        import pyarrow.compute as pc

        return digest(
            table.num_rows,
            table["user"].to_numpy(),
            pc.list_flatten(table["items"]).to_numpy(),
            pc.list_flatten(table["dense"]).to_numpy(),
            pc.sum(pc.binary_length(table["country"])).as_py(),
        )

    return Task(lambda: pq.read_table(path), records=inputs.small_count, digest=summary)


class _CColumn(ctypes.Structure):
    """`struct column` of columns_peer.c."""

    _fields_ = (
        ("key", ctypes.c_char_p),
        ("key_size", ctypes.c_int64),
        ("kind", ctypes.c_int64),
        ("with_ends", ctypes.c_int64),
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("capacity", ctypes.c_int64),
        ("ends", ctypes.c_void_p),
        ("row_count", ctypes.c_int64),
        ("row_capacity", ctypes.c_int64),
    )


def _c_loop(inputs: Inputs) -> Task:
    source = Path(__file__).resolve().parent.parent / "columns_peer.c"
    library = inputs.out("columns_peer.so")
    command = ["cc", "-O3", "-march=native", "-shared", "-fPIC", "-o", str(library), str(source)]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ImportError(f"no C compiler: {error}") from None
    loaded = ctypes.CDLL(str(library))
    loaded.read_columns.restype = ctypes.c_int64
    path = str(inputs.path("small.tfrecord")).encode()
    kinds = {"dense": 2, "country": 1}
    columns = (_CColumn * len(KEYS))()

    def before() -> None:
        loaded.free_columns(columns, ctypes.c_int64(len(KEYS)))
        for place, key in enumerate(KEYS):
            with_ends = int(key in ("items", "country"))
            columns[place] = _CColumn(key.encode(), len(key), kinds.get(key, 3), with_ends)

    def run() -> Any:
        answer = loaded.read_columns(path, columns, ctypes.c_int64(len(KEYS)))
        if answer != inputs.small_count:
            raise RuntimeError(f"the C loop returned {answer}")
        return columns

    def summary(filled: Sequence[_CColumn]) -> Digest:
        import numpy as np

        def array(key: str, dtype: Any) -> Any:
            column = filled[KEYS.index(key)]
            return np.frombuffer(ctypes.string_at(column.data, column.size), dtype)

        return digest(
            filled[0].row_count,
            array("user", np.int64),
            array("items", np.int64),
            array("dense", np.float32),
            filled[KEYS.index("country")].size,
        )

    return Task(run, records=inputs.small_count, before=before, digest=summary)


def example_class() -> Any:
    """tf.train.Example as a protobuf class, made in a descriptor pool of its own."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="example.proto", package="benchmark", syntax="proto3"
    )

    def add(
        owner: Any, name: str, number: int, kind: int, of: str = "", repeated: bool = False
    ) -> Any:
        label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
        type_name = f".benchmark.{of}" if of else None
        return owner.field.add(
            name=name, number=number, type=kind, type_name=type_name, label=label
        )

    for name, kind in (
        ("BytesList", field.TYPE_BYTES),
        ("FloatList", field.TYPE_FLOAT),
        ("Int64List", field.TYPE_INT64),
    ):
        add(file.message_type.add(name=name), "value", 1, kind, repeated=True)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, name in enumerate(("bytes", "float", "int64"), 1):
        list_type = f"{name.capitalize()}List"
        add(feature, f"{name}_list", number, field.TYPE_MESSAGE, list_type).oneof_index = 0
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    add(entry, "key", 1, field.TYPE_STRING)
    add(entry, "value", 2, field.TYPE_MESSAGE, "Feature")
    add(features, "feature", 1, field.TYPE_MESSAGE, "Features.FeatureEntry", repeated=True)
    add(file.message_type.add(name="Example"), "features", 1, field.TYPE_MESSAGE, "Features")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("benchmark.Example"))


def _protobuf(inputs: Inputs) -> Task:
    from by_hand import find_checksum, read_payloads

    example, checksum = example_class(), find_checksum()
    path = inputs.path("small.tfrecord")

    def run() -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {key: [] for key in KEYS}
        for payload in read_payloads(path.read_bytes(), checksum):
            feature = example.FromString(payload).features.feature
            for key in ("user", "label", "time"):
                columns[key].append(feature[key].int64_list.value[0])
            columns["dense"].append(list(feature["dense"].float_list.value))
            columns["items"].append(list(feature["items"].int64_list.value))
            columns["country"].append(feature["country"].bytes_list.value[0])
        return columns

    return Task(run, records=inputs.small_count, digest=_list_digest)


def _list_digest(columns: dict[str, list[Any]]) -> Digest:
    return digest(
        len(columns["user"]),
        columns["user"],
        [sum(items) for items in columns["items"]],
        columns["dense"],
        sum(map(len, columns["country"])),
    )


def _tfrecord_package(inputs: Inputs) -> Task:
    from tfrecord.reader import tfrecord_loader

    path = str(inputs.path("small.tfrecord"))
    kinds = dict.fromkeys(KEYS, "int") | {"dense": "float", "country": "byte"}

    def run() -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {key: [] for key in KEYS}
        for row in tfrecord_loader(path, None, kinds):
            for key, values in row.items():
                columns[key].append(values)
        return columns

    return Task(run, records=inputs.small_count, digest=_list_digest)


CASES = (
    Case(
        name="columns",
        title="Read columns",
        what=(
            "A file of small Examples (3 int64 scalars, 13 floats, 1 to 19 int64s, 2 bytes) into "
            "columns in memory, both checksums of every record checked; but not by the `tfrecord` "
            "package, which has none, nor by Parquet, whose pages have them on request only."
        ),
        unit="record",
        peers=(
            Peer(OURS, _recordsmith),
            Peer("tf.data, batch(1024), parse_example", _tensorflow_lean, at_most=1 / 15),
            Peer("tf.data, parse_single_example, then batch(1024)", _tensorflow_guide),
            Peer("pyarrow, the same rows in Parquet", _parquet, at_most=1 / 4),
            Peer("C, written for this schema", _c_loop, at_most=1.5),
            Peer("protobuf, in Python", _protobuf),
            Peer("`tfrecord` package", _tfrecord_package, python_setting="tfrecord_python"),
        ),
        inputs=("small.tfrecord", "small.parquet"),
    ),
)
