"""recordsmith reads what TensorFlow writes, and the other way around."""

from __future__ import annotations

import gzip
import tempfile
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.format.example.serialized_tensor import describe_tensor
from recordsmith.format.wire import encode_record

COMPRESSIONS = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}


def _tf_records(tf: Any, path: Path, compression: str = "none") -> list[bytes]:
    records = tf.data.TFRecordDataset(str(path), compression_type=COMPRESSIONS[compression])
    return [record.numpy() for record in records]


def _tf_feature(tf: Any, kind: str | None, values: Any) -> Any:
    if kind is None:
        return tf.train.Feature()
    message = {"bytes": "BytesList", "float": "FloatList", "int64": "Int64List"}[kind]
    return tf.train.Feature(**{f"{kind}_list": getattr(tf.train, message)(value=values)})


def _tf_example(tf: Any, features: dict[str, tuple[str | None, Any]]) -> bytes:
    feature = {key: _tf_feature(tf, *value) for key, value in features.items()}
    example = tf.train.Example(features=tf.train.Features(feature=feature))
    return example.SerializeToString()  # type: ignore[no-any-return]


def _tf_write(tf: Any, path: Path, payloads: list[bytes], compression: str = "none") -> Path:
    with tf.io.TFRecordWriter(str(path), COMPRESSIONS[compression]) as writer:
        for payload in payloads:
            writer.write(payload)
    return path


def test_serialised_tensors_are_recognised(tf: Any) -> None:
    for value, expected in (
        (np.arange(12, dtype=np.float32).reshape(3, 4), "float32 [3, 4]"),
        (np.zeros((200, 300), np.uint8), "uint8 [200, 300]"),
        (np.float64(3), "float64 []"),
    ):
        data = tf.io.serialize_tensor(value).numpy()
        assert describe_tensor(data) == f"serialised tensor {expected}"


# -- written here, read by TensorFlow ------------------------------------------------------------


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_packed_images_are_read_by_tensorflow(
    tf: Any, tmp_path: Path, images: ModuleType, compression: str
) -> None:
    root = images.make_folder(tmp_path / "in", {"daisy": 5, "müsli": 4})
    splits = {"train": 0.5, "test": 0.5}
    out = tmp_path / "out"
    rs.pack(rs.ImageFolder(root), out, splits=splits, shards=2, compression=compression)
    parsed: dict[bytes, Any] = {}
    for path in sorted(out.glob("*.tfrecord*")):
        for record in _tf_records(tf, path, compression):
            example = tf.io.parse_single_example(
                record,
                {
                    "image/encoded": tf.io.FixedLenFeature([], tf.string),
                    "image/filename": tf.io.FixedLenFeature([], tf.string),
                    "image/format": tf.io.FixedLenFeature([], tf.string),
                    "image/class/text": tf.io.FixedLenFeature([], tf.string),
                    "image/class/label": tf.io.FixedLenFeature([], tf.int64),
                    "image/height": tf.io.FixedLenFeature([], tf.int64),
                    "image/width": tf.io.FixedLenFeature([], tf.int64),
                },
            )
            parsed[example["image/filename"].numpy()] = example
    paths = sorted(root.rglob("*.*"))
    assert len(parsed) == len(paths) == 9
    for path in paths:
        example = parsed[path.relative_to(root).as_posix().encode()]
        assert example["image/encoded"].numpy() == path.read_bytes()
        assert example["image/class/text"].numpy() == path.parent.name.encode()
        label = ["daisy", "müsli"].index(path.parent.name)
        assert example["image/class/label"].numpy() == label
        pixels = tf.io.decode_image(example["image/encoded"], 3)
        assert pixels.shape[:2] == (example["image/height"], example["image/width"])
        assert example["image/format"].numpy() in (b"jpeg", b"png")


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_shard_is_read_by_tensorflow(tf: Any, tmp_path: Path, compression: str) -> None:
    payloads = [b"", b"x", bytes(100_000), b"last"]
    with rs.ShardWriter(tmp_path / "a", compression=compression) as writer:
        for payload in payloads:
            writer.write(payload)
    assert _tf_records(tf, tmp_path / "a", compression) == payloads


def test_an_uncompressed_shard_has_the_same_bytes_as_tensorflows(tf: Any, tmp_path: Path) -> None:
    payloads = [b"", b"x", bytes(1000)]
    _tf_write(tf, tmp_path / "theirs", payloads)
    with rs.ShardWriter(tmp_path / "ours") as writer:
        for payload in payloads:
            writer.write(payload)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


KEYS = st.text(st.characters(codec="utf-8"), max_size=5)
INTS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(width=32, allow_nan=False)
SCALARS = st.sampled_from([("int64", INTS), ("float", FLOATS), ("bytes", st.binary(max_size=9))])


@st.composite
def columns(draw: st.DrawFn) -> tuple[int, dict[str, tuple[str, int | None, Any]]]:
    """(row count, key -> (kind, values in a row or None if ragged, rows))."""
    row_count = draw(st.integers(1, 6))
    drawn = {}
    for key in draw(st.lists(KEYS, min_size=1, max_size=4, unique=True)):
        kind, values = draw(SCALARS)
        width = draw(st.none() | st.integers(1, 3))
        low, high = (0, 4) if width is None else (width, width)
        row = st.lists(values, min_size=low, max_size=high)
        drawn[key] = kind, width, draw(st.lists(row, min_size=row_count, max_size=row_count))
    return row_count, drawn


def _as_column(kind: str, width: int | None, rows: list[list[Any]]) -> Any:
    flat = [value for row in rows for value in row]
    values: Any
    if kind == "bytes":
        values = rs.BytesArray.from_values(flat)
    else:
        values = np.array(flat, np.int64 if kind == "int64" else np.float32)
    if width is None:
        return rs.RaggedArray(values, np.cumsum([0, *map(len, rows)]))
    return values.reshape(len(rows), width)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(drawn=columns())
def test_random_columns_are_parsed_by_tensorflow(
    tf: Any, drawn: tuple[int, dict[str, tuple[str, int | None, Any]]]
) -> None:
    row_count, content = drawn
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tfrecord"
        with rs.ShardWriter(path) as writer:
            writer.write_columns({key: _as_column(*column) for key, column in content.items()})
        records = _tf_records(tf, path)
        ours: Any = rs.open(path).read_columns(
            {
                key: rs.FeatureSpec(kind, "ragged" if width is None else (width,))  # type: ignore[arg-type]
                for key, (kind, width, _) in content.items()
            }
        )
    assert len(records) == row_count
    dtypes = {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}
    spec = {
        key: tf.io.RaggedFeature(dtypes[kind])
        if width is None
        else tf.io.FixedLenFeature([width], dtypes[kind])
        for key, (kind, width, _) in content.items()
        if key  # TensorFlow takes no empty key
    }
    theirs = tf.io.parse_example(records, spec) if spec else {}
    for key, (_, width, rows) in content.items():
        if key:
            value = theirs[key].to_list() if width is None else theirs[key].numpy().tolist()
            assert value == rows
        assert ours[key].tolist() == rows


# -- written by TensorFlow, read here ------------------------------------------------------------


@pytest.fixture(scope="module")
def payloads(tf: Any) -> list[bytes]:
    """Examples with features that are missing, empty, without a kind, and of unequal length."""
    rows: list[dict[str, tuple[str | None, Any]]] = [
        {
            "int": ("int64", [number - 3]),
            "float": ("float", [number / 3]),
            "text": ("bytes", [f"näm {number}".encode()]),
            "box": ("float", [number, 0.5, -0.0, float("inf")]),
            "words": ("bytes", [b"x" * n for n in range(number % 4)]),
            "steps": ("int64", list(range(-number, number, 3))),
        }
        for number in range(7)
    ]
    for number in (0, 3):  # a feature that is missing, one without a kind, an empty list
        rows[number]["sometimes"] = ("int64", [number])
    rows[1]["sometimes"] = (None, [])
    rows[2]["maybe"] = ("float", [])
    rows[5]["maybe"] = ("float", [1.5, 2.5])
    return [_tf_example(tf, row) for row in rows]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_columns_match_parse_example(
    tf: Any, tmp_path: Path, payloads: list[bytes], compression: str
) -> None:
    dataset: Any = rs.open(_tf_write(tf, tmp_path / "a", payloads, compression))
    assert list(dataset.records()) == payloads
    spec = rs.FeatureSpec
    ours = dataset.read_columns(
        {
            "int": spec("int64", ()),
            "float": spec("float", ()),
            "text": spec("bytes", ()),
            "box": spec("float", (2, 2)),
            "words": spec("bytes", "ragged"),
            "steps": spec("int64", "ragged"),
            "sometimes": spec("int64", (), -7),
            "maybe": spec("float", "ragged"),
            "never": spec("bytes", (2,), [b"a", b"b"]),
        }
    )
    fixed, ragged = tf.io.FixedLenFeature, tf.io.RaggedFeature
    theirs = tf.io.parse_example(
        payloads,
        {
            "int": fixed([], tf.int64),
            "float": fixed([], tf.float32),
            "text": fixed([], tf.string),
            "box": fixed([2, 2], tf.float32),
            "words": ragged(tf.string),
            "steps": ragged(tf.int64),
            "sometimes": fixed([], tf.int64, -7),
            "maybe": ragged(tf.float32),
            "never": fixed([2], tf.string, [b"a", b"b"]),
        },
    )
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        if isinstance(value, tf.RaggedTensor):
            assert ours[key].tolist() == value.to_list()
            np.testing.assert_array_equal(ours[key].row_splits, value.row_splits.numpy())
        elif value.dtype == tf.string:
            assert ours[key].tolist() == value.numpy().tolist()
        else:
            assert ours[key].dtype == value.numpy().dtype
            assert ours[key].tobytes() == value.numpy().tobytes()  # -0.0 is not 0.0


def test_ragged_columns_are_the_values_of_sparse_ones(
    tf: Any, tmp_path: Path, payloads: list[bytes]
) -> None:
    dataset: Any = rs.open(_tf_write(tf, tmp_path / "a", payloads))
    kind: Any
    for key, kind, dtype in [
        ("steps", "int64", tf.int64),
        ("words", "bytes", tf.string),
        ("sometimes", "int64", tf.int64),
        ("maybe", "float", tf.float32),
    ]:
        sparse = tf.io.parse_example(payloads, {key: tf.io.VarLenFeature(dtype)})[key]
        column = dataset.read_columns({key: rs.FeatureSpec(kind, "ragged")})[key]
        assert column.values.tolist() == sparse.values.numpy().tolist()
        rows = np.repeat(np.arange(len(column)), column.lengths)
        np.testing.assert_array_equal(rows, sparse.indices.numpy()[:, 0])


def test_missing_features_are_refused_as_tensorflow_does(
    tf: Any, tmp_path: Path, payloads: list[bytes]
) -> None:
    dataset = rs.open(_tf_write(tf, tmp_path / "a", payloads))
    for key, kind, dtype in [("sometimes", "int64", tf.int64), ("int", "float", tf.float32)]:
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.io.parse_example(payloads, {key: tf.io.FixedLenFeature([], dtype)})
        with pytest.raises(rs.CorruptDataError):
            dataset.read_columns({key: rs.FeatureSpec(kind, ())})  # type: ignore[arg-type]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_examples_one_by_one(
    tf: Any, tmp_path: Path, payloads: list[bytes], compression: str
) -> None:
    dataset: Any = rs.open(_tf_write(tf, tmp_path / "a", payloads, compression))
    for payload, ours in zip(payloads, dataset, strict=True):
        theirs = tf.train.Example.FromString(payload).features.feature
        assert set(ours) == set(theirs)
        for key, feature in theirs.items():
            kind = feature.WhichOneof("kind")
            values = list(getattr(feature, kind).value) if kind else []
            assert list(ours[key]) == values


def test_edited_examples_match_tensorflow(tf: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    payloads, expected = [], []
    for number in range(50):
        labels = rng.integers(0, 3, number % 4).tolist()
        features = {
            "id": ("int64", [number]),
            "label": ("int64", labels),
            "score": ("float", rng.random(5).tolist()),
            "text": ("bytes", [b"t" * (number * 7)]),
        }
        payloads.append(_tf_example(tf, features))
        example = tf.train.Example.FromString(payloads[-1])
        feature = example.features.feature
        del feature["score"]
        feature["number"].CopyFrom(feature["id"])
        del feature["id"]
        feature["label"].int64_list.value[:] = [[10, 300, 2][old] for old in labels]
        feature["year"].int64_list.value.append(2024)
        expected.append(example)
    rs.edit(
        _tf_write(tf, tmp_path / "in.tfrecord", payloads),
        tmp_path / "out",
        drop=["sc*"],
        rename={"id": "number"},
        add={"year": 2024},
        recode={"label": {0: 10, 1: 300, "*": "*"}},
    )
    (path,) = (tmp_path / "out").glob("*.tfrecord")
    assert list(map(tf.train.Example.FromString, _tf_records(tf, path))) == expected


def test_sequence_examples(tf: Any, tmp_path: Path) -> None:
    def payload(number: int) -> bytes:
        def steps(kind: str, values: list[Any]) -> Any:
            return tf.train.FeatureList(feature=[_tf_feature(tf, kind, step) for step in values])

        message = tf.train.SequenceExample(
            context=tf.train.Features(
                feature={
                    "id": _tf_feature(tf, "int64", [number]),
                    "name": _tf_feature(tf, "bytes", [b"a", b"b"]),
                }
            ),
            feature_lists=tf.train.FeatureLists(
                feature_list={
                    "tokens": steps("bytes", [[b"w" * n] for n in range(number + 1)]),
                    "frames": steps("float", [[n, 0.5] for n in range(number)]),
                    "ragged": steps("int64", [list(range(n)) for n in range(number)]),
                }
            ),
        )
        return message.SerializeToString()  # type: ignore[no-any-return]

    payloads = [payload(number) for number in range(5)]
    dataset: Any = rs.open(_tf_write(tf, tmp_path / "a", payloads, "gzip"))
    assert dataset.schema.payload == "SequenceExample"
    for data, ours in zip(payloads, dataset, strict=True):
        context, lists = tf.io.parse_single_sequence_example(
            data,
            {
                "id": tf.io.FixedLenFeature([], tf.int64),
                "name": tf.io.FixedLenFeature([2], tf.string),
            },
            {
                "tokens": tf.io.FixedLenSequenceFeature([], tf.string),
                "frames": tf.io.FixedLenSequenceFeature([2], tf.float32),
                "ragged": tf.io.RaggedFeature(tf.int64),
            },
        )
        assert ours.context["id"].tolist() == [context["id"].numpy()]
        assert ours.context["name"] == context["name"].numpy().tolist()
        found = {key: [list(step) for step in steps] for key, steps in ours.feature_lists.items()}
        assert found["tokens"] == [[value] for value in lists["tokens"].numpy().tolist()]
        assert found["frames"] == lists["frames"].numpy().tolist()
        assert found["ragged"] == lists["ragged"].to_list()


# -- odd compressed files ------------------------------------------------------------------------

FRAMES = [encode_record(payload) for payload in (b"first", b"", b"x" * 5000, b"last")]
WHOLE = b"".join(FRAMES)


def _small_window() -> bytes:
    engine = zlib.compressobj(9, zlib.DEFLATED, 9)
    return engine.compress(WHOLE) + engine.flush()


def _flushed(bits: int) -> bytes:
    engine = zlib.compressobj(wbits=bits)
    modes = (zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH, zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH)
    flushed = [engine.compress(frame) + engine.flush(mode)
               for frame, mode in zip(FRAMES, modes, strict=True)]  # fmt: skip
    return b"".join(flushed) + engine.flush()


ODD = {
    "gzip": {
        "members": b"".join(map(gzip.compress, FRAMES)),
        "members that cut records": gzip.compress(WHOLE[:9]) + gzip.compress(WHOLE[9:]),
        "empty member last": gzip.compress(WHOLE) + gzip.compress(b""),
        "flushed": _flushed(31),
        "stored": gzip.compress(WHOLE, 0),
        "no end mark": gzip.compress(WHOLE)[:-8],
    },
    "zlib": {
        "flushed": _flushed(15),
        "stored": zlib.compress(WHOLE, 0),
        "small window": _small_window(),
        "no end mark": zlib.compress(WHOLE)[:-4],
    },
}


@pytest.mark.parametrize(
    ("compression", "name"),
    [(compression, name) for compression, cases in ODD.items() for name in cases],
)
def test_odd_compressed_files_give_the_same_records(
    tf: Any, tmp_path: Path, compression: str, name: str
) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(ODD[compression][name])
    theirs = _tf_records(tf, path, compression)
    dataset = rs.open(path)
    assert dataset.shards[0].compression == compression
    assert list(dataset.records()) == theirs
    assert len(rs.open(path)) == len(theirs)


def test_an_empty_member_does_not_hide_the_records_after_it(tmp_path: Path) -> None:
    """TensorFlow 2.21 stops there and returns no record."""
    path = tmp_path / "a.tfrecord"
    path.write_bytes(gzip.compress(b"") + gzip.compress(WHOLE))
    assert b"".join(map(encode_record, rs.open(path).records())) == WHOLE
