from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.raising import raises

import recordsmith as rs

KINDS = {
    "number": rs.Scalar("number"),
    "three": rs.Tensor("three", (3,)),
    "some": rs.Ragged("some"),
    "padded": rs.Padded("some", fill=-1),
    "bytes": rs.Bytes("bytes"),
    "text": rs.Text("text"),
    "some_bytes": rs.Bytes("texts", shape="ragged"),
    "texts": rs.Text("texts", shape="ragged"),
    "images": rs.Image("images", size=(2, 3), count="ragged"),
    "at": rs.Position(),
    "has_rare": rs.Present("rare"),
}


@pytest.fixture(scope="module")
def adapter(tf: Any) -> Any:
    import recordsmith.tensorflow

    return recordsmith.tensorflow


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, images: Any) -> Path:
    path = tmp_path_factory.mktemp("kinds") / "kinds.tfrecord"
    with rs.ShardWriter(path) as writer:
        for number in range(20):
            writer.write_example(
                {
                    "number": number,
                    "three": [number + 0.5, 1.0, -2.0],
                    "some": list(range(number % 4)),
                    "bytes": b"\x00\xff" * number,
                    "text": f"ä {number}",
                    "texts": [f"é{each}" for each in range(number % 3)],
                    "images": [images.jpeg(number, 4, 5)] * (number % 3),
                }
                | ({"rare": [number, number]} if number % 2 else {})
            )
    return path


@pytest.fixture(scope="module")
def dataset(path: Path) -> rs.Dataset:
    return rs.open(path)


def numbers(dataset: rs.Dataset, **options: Any) -> rs.Loader:
    return rs.Loader(dataset, {"number": "number"}, **{"batch_size": 4, "threads": 2, **options})


def read(stream: Any) -> list[list[int]]:
    return [batch["number"].numpy().tolist() for batch in stream]


def plain(tensor: Any) -> Any:
    """As a NumPy batch says it with `tolist`, text as bytes."""
    return tensor.to_list() if hasattr(tensor, "to_list") else tensor.numpy().tolist()


def expected(entry: Any) -> Any:
    def as_bytes(value: Any) -> Any:
        if isinstance(value, list):
            return [as_bytes(each) for each in value]
        return value.encode() if isinstance(value, str) else value

    return as_bytes(entry.tolist())


def threads_of_loaders() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("recordsmith")}


@pytest.mark.parametrize("last_batch", ["keep", "drop", "pad"])
def test_batches_are_those_of_the_loader(
    adapter: Any, dataset: rs.Dataset, last_batch: Any
) -> None:
    options: Any = {"batch_size": 8, "shuffle": True, "last_batch": last_batch}
    wanted = list(rs.Loader(dataset, KINDS, **options))
    stream = adapter.batches(rs.Loader(dataset, KINDS, **options))
    assert stream.element_spec == adapter.element_spec(rs.Loader(dataset, KINDS, **options))
    assert stream.element_spec["three"].shape.as_list() == [None if last_batch == "keep" else 8, 3]
    assert stream.cardinality().numpy() == len(wanted) == (2 if last_batch == "drop" else 3)
    given = list(stream)
    for batch, tensors in zip(wanted, given, strict=True):
        assert list(batch) == list(tensors)
        converted = adapter.convert(batch)
        for name, entry in batch.items():
            assert plain(tensors[name]) == expected(entry), name
            assert plain(converted[name]) == expected(entry), name
            assert converted[name].dtype == tensors[name].dtype
            assert stream.element_spec[name].is_compatible_with(converted[name])


def test_pixels_are_not_copied(adapter: Any, train: rs.Dataset) -> None:
    places: list[int] = []

    def note(batch: dict[str, Any], _: Any) -> dict[str, Any]:
        places.append(batch["image"].ctypes.data)
        return batch

    features = {"image": rs.Image(size=(32, 48)), "label": "image/class/label"}
    loader = rs.Loader(train, features, batch_size=8, map_batches=note, threads=0)
    stream = adapter.batches(loader)
    places.clear()
    found = [np.from_dlpack(batch["image"]).ctypes.data for batch in stream]
    assert found == places
    batch = next(iter(loader))
    tensor = adapter.convert(batch)["image"]
    assert np.from_dlpack(tensor).ctypes.data == batch["image"].ctypes.data


@pytest.mark.parametrize("prefetch", [0, 3])
def test_threads_end_when_an_iterator_is_dropped(
    adapter: Any, dataset: rs.Dataset, prefetch: int
) -> None:
    before = threads_of_loaders()
    iterator = iter(adapter.batches(numbers(dataset, epochs=None)).prefetch(prefetch))
    next(iterator)
    assert len(threads_of_loaders() - before) == 2
    del iterator
    assert threads_of_loaders() <= before
    for _ in adapter.batches(numbers(dataset)):
        break
    assert threads_of_loaders() <= before


def test_a_loader_without_end(adapter: Any, tf: Any, dataset: rs.Dataset) -> None:
    stream = adapter.batches(numbers(dataset, epochs=None, shuffle=True))
    assert stream.cardinality() == tf.data.INFINITE_CARDINALITY
    wanted = numbers(dataset, epochs=3, shuffle=True)
    assert read(stream.take(15)) == [batch["number"].tolist() for batch in wanted]
    nothing = rs.Loader(dataset[:0], {"number": rs.Scalar("number")}, batch_size=2, epochs=None)
    with pytest.raises(tf.errors.FailedPreconditionError, match="contained only 0 elements"):
        read(adapter.batches(nothing))


def test_resumes_at_every_step(adapter: Any, dataset: rs.Dataset) -> None:
    loader = numbers(dataset, shuffle=True)
    stream = adapter.batches(loader).prefetch(4)  # reads ahead of the loop
    undisturbed = read(stream) + read(stream)
    for done in range(10):
        resumed = numbers(dataset, shuffle=True)
        resumed.load_state_dict(json.loads(json.dumps(loader.state_after(done))))
        again = adapter.batches(resumed)
        assert again.cardinality() == (-2 if done % 5 else 5)
        rest = read(again)
        assert rest == undisturbed[done : done - done % 5 + 5]
        if done < 5:
            assert read(again) == undisturbed[5:]


def test_a_state_that_comes_too_late_is_refused(adapter: Any, tf: Any, dataset: Any) -> None:
    loader = numbers(dataset)
    stream = adapter.batches(loader)
    loader.load_state_dict(loader.state_after(2))
    with pytest.raises(tf.errors.InvalidArgumentError, match="3 batches, but had 5"):
        read(stream)
    loader = numbers(dataset)
    iterator = iter(adapter.batches(loader))
    next(iterator)
    loader.close()
    with pytest.raises(tf.errors.InvalidArgumentError, match="was closed"):
        list(iterator)


def _raise_at_7(example: dict[str, Any], _: Any) -> dict[str, Any]:
    if example["number"] == 7:
        raise KeyError("what the user wrote")
    return example


def test_errors_say_where(adapter: Any, tf: Any, dataset: rs.Dataset, tmp_path: Path) -> None:
    before = threads_of_loaders()
    stream = adapter.batches(numbers(dataset, map_examples=_raise_at_7))
    for each in (stream, stream.prefetch(2), stream.map(lambda batch: batch["number"])):
        with pytest.raises(tf.errors.OpError, match=r"kinds\.tfrecord, record 7, .*user"):
            list(each)
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for number in range(9):
            writer.write_example({"number": number})
    data = bytearray((tmp_path / "a.tfrecord").read_bytes())
    size = len(data) // 9
    data[5 * size + 14] ^= 1
    (tmp_path / "a.tfrecord").write_bytes(data)
    where = rf"a.tfrecord, record 5, byte {5 * size}: payload-crc-mismatch"
    with pytest.raises(tf.errors.InvalidArgumentError, match=where):
        read(adapter.batches(numbers(rs.open(tmp_path / "a.tfrecord"))))
    assert threads_of_loaders() <= before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda n: {"number": n[:, None]}, r"int64 of shape \(4, 1\).* \(None,\)"),
        (lambda n: {"number": n.astype("int32")}, r"'number' is int32"),
        (lambda n: {"number": n, "more": n}, r"number, more;.* number"),
        (lambda n: {"number": n.astype(str).astype(object)}, r"'number' is strings"),
    ],
)
def test_batches_that_contradict_the_spec(
    adapter: Any, tf: Any, dataset: rs.Dataset, change: Any, message: str
) -> None:
    def later(batch: dict[str, Any], _: Any) -> dict[str, Any]:
        return change(batch["number"]) if batch["number"][0] >= 8 else batch

    stream = adapter.batches(numbers(dataset, map_batches=later))
    with pytest.raises(tf.errors.OpError, match=message):
        read(stream)


def test_a_batch_of_which_nothing_is_left(adapter: Any, tf: Any, dataset: rs.Dataset) -> None:
    """Maps are not called for it, so their entries are not there."""
    options = {"filter": lambda example: example["number"] < 4 or example["number"] > 8}
    assert [len(batch) for batch in read(adapter.batches(numbers(dataset, **options)))][1] == 0
    named = numbers(
        dataset, map_batches=lambda batch, _: {**batch, "more": batch["number"]}, **options
    )
    with pytest.raises(tf.errors.OpError, match="filtered or skipped"):
        list(adapter.batches(named))


def test_an_element_spec_that_was_said(adapter: Any, tf: Any, dataset: rs.Dataset) -> None:
    def wider(batch: dict[str, Any], _: Any) -> dict[str, Any]:
        return {"number": np.zeros((4, 1 + batch["number"][0]))}

    spec = {"number": tf.TensorSpec((4, None), tf.float64)}
    stream = adapter.batches(numbers(dataset, map_batches=wider), element_spec=spec)
    assert stream.element_spec == spec
    assert [batch["number"].shape[1] for batch in stream] == [1, 5, 9, 13, 17]
    for wrong in ("int64", tf.RaggedTensorSpec((None, None), tf.int64, 1, tf.int32)):
        with raises(rs.OptionError, option="element_spec"):
            adapter.batches(numbers(dataset), element_spec={"number": wrong})


def test_what_is_refused(adapter: Any, train: rs.Dataset) -> None:
    with raises(rs.OptionError, option="loader"):
        adapter.batches(train)
    odd = rs.Loader(
        train, {"at": rs.Position()}, batch_size=4, map_batches=lambda batch, _: _as_dates(batch)
    )
    with pytest.raises(rs.OptionError, match=r"datetime64.* 'at'"):
        adapter.batches(odd)


def _as_dates(batch: dict[str, Any]) -> dict[str, Any]:
    return {"at": batch["at"].astype("datetime64[s]")}


CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"], "evaluator": ["e:1"]}


@pytest.mark.parametrize(
    ("task", "rank"),
    [(("chief", 0), (0, 3)), (("worker", 1), (2, 3)), (("evaluator", 0), (0, 1)), (None, (0, 1))],
)
def test_this_rank(
    adapter: Any, monkeypatch: pytest.MonkeyPatch, task: Any, rank: tuple[int, int]
) -> None:
    if task is not None:
        document = {"cluster": CLUSTER, "task": {"type": task[0], "index": task[1]}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(document))
    assert adapter.this_rank() == {"rank": rank[0], "world_size": rank[1]}


def test_ranks_must_agree(
    adapter: Any, dataset: rs.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    with raises(rs.OptionError, option="rank"):
        adapter.batches(numbers(dataset, rank=1, world_size=3))
    assert len(read(adapter.batches(numbers(dataset, rank=1, world_size=3), any_rank=True))) == 2
    config = {"cluster": CLUSTER, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    with raises(rs.OptionError, option="rank"):
        adapter.batches(numbers(dataset))
    assert len(read(adapter.batches(numbers(dataset), any_rank=True))) == 5
    assert len(read(adapter.batches(numbers(dataset, **adapter.this_rank())))) == 2
    config["task"] = {"type": "ps", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    with raises(rs.OptionError, option="rank"):
        adapter.this_rank()
    monkeypatch.setenv("TF_CONFIG", "{")
    with raises(rs.OptionError, option="rank"):
        adapter.this_rank()


# -- specs for tf.io -------------------------------------------------------------------------------


def parsed(tf: Any, dataset: rs.Dataset, spec: Any) -> dict[str, list[Any]]:
    """What TensorFlow reads, as lists of values for each record."""
    payloads = tf.constant(list(dataset.records()), tf.string)
    values = {key: plain(read) for key, read in tf.io.parse_example(payloads, spec).items()}
    return {key: [_listed(value) for value in rows] for key, rows in values.items()}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def told(dataset: rs.Dataset, key: str) -> list[Any]:
    """What recordsmith reads."""
    return [list(example.get(key, ())) for example in dataset]


def test_feature_spec(adapter: Any, tf: Any, dataset: rs.Dataset) -> None:
    spec = adapter.feature_spec(dataset.schema)
    fixed = {key for key, each in spec.items() if isinstance(each, tf.io.FixedLenFeature)}
    assert fixed == {"number", "three", "bytes", "text"}
    assert spec["three"].shape == (3,)
    found = parsed(tf, dataset, spec)
    assert found.keys() == dataset.schema.features.keys()
    for key, values in found.items():
        assert values == told(dataset, key), key
    one = tf.io.parse_single_example(next(dataset.records()), spec)
    assert one["text"].numpy() == "ä 0".encode()


def test_feature_spec_of_some_with_defaults(adapter: Any, tf: Any, dataset: rs.Dataset) -> None:
    spec = adapter.feature_spec(dataset.schema, ["rare", "text"], defaults={"rare": [-1, -2]})
    assert list(spec) == ["rare", "text"]
    wanted = [values or [-1, -2] for values in told(dataset, "rare")]
    assert parsed(tf, dataset, spec)["rare"] == wanted
    for features, defaults, message in (
        (["rre"], None, "no feature 'rre'; did you mean 'rare'"),
        ("rare", None, "must be a list of keys"),
        (["text"], {"rare": 1}, "defaults has 'rare'"),
        (None, {"some": 0}, "'some' has 0 to 3 values"),
    ):
        with pytest.raises(rs.OptionError, match=message):
            adapter.feature_spec(dataset.schema, features, defaults=defaults)


def test_sequence_feature_spec(adapter: Any, tf: Any, tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "sequences.tfrecord") as writer:
        for number in range(1, 5):
            lists = {
                "frame": [b"f%d" % step for step in range(number)],
                "pose": [[step, 0.5] for step in range(number)],
                "words": [[f"w{each}" for each in range(step)] for step in range(1, number + 1)],
            }
            if number == 2:
                del lists["frame"]
            writer.write(rs.encode_sequence_example({"id": number}, lists))
    dataset = rs.open(tmp_path / "sequences.tfrecord")
    with raises(rs.OptionError, option="schema"):
        adapter.feature_spec(dataset.schema)
    payloads = list(dataset.records())
    spec = adapter.sequence_feature_spec(dataset.schema)
    context, lists, lengths = tf.io.parse_sequence_example(payloads, **spec)
    assert context["id"].numpy().tolist() == [1, 2, 3, 4]
    assert lists["pose"].shape == (4, 4, 2)
    assert lists["pose"][2].numpy().tolist() == [[0, 0.5], [1, 0.5], [2, 0.5], [0, 0]]
    assert lengths["frame"].numpy().tolist() == [1, 0, 3, 4]
    assert lists["words"].to_list()[2] == [[b"w0"], [b"w0", b"w1"], [b"w0", b"w1", b"w2"]]
    some = adapter.sequence_feature_spec(dataset.schema, ["id", "words"])
    assert [list(section) for section in some.values()] == [["id"], ["words"]]
    with raises(rs.OptionError, option="features"):
        adapter.sequence_feature_spec(dataset.schema, ["wrds"])


# -- processes of their own ------------------------------------------------------------------------

DISTRIBUTED = """
    import sys
    import tensorflow as tf
    import recordsmith as rs
    from recordsmith.tensorflow import batches, this_rank

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        assert this_rank() == {"rank": 0, "world_size": 1}
    dataset = rs.open(sys.argv[1])

    def read(stream):
        steps = []
        for batch in stream:
            replicas = strategy.experimental_local_results(batch["number"])
            steps.append([replica.numpy().tolist() for replica in replicas])
        return steps

    loader = rs.Loader(dataset, {"number": "number"}, batch_size=8)
    steps = read(strategy.experimental_distribute_dataset(batches(loader)))
    assert steps[:2] == [[[0, 1, 2, 3], [4, 5, 6, 7]], [[8, 9, 10, 11], [12, 13, 14, 15]]]
    assert sorted(sum(steps[2], [])) == [16, 17, 18, 19]

    loader = rs.Loader(dataset, {"number": "number"}, batch_size=4)
    steps = read(strategy.distribute_datasets_from_function(lambda context: batches(loader)))
    assert steps == [[[0, 1, 2, 3], [4, 5, 6, 7]], [[8, 9, 10, 11], [12, 13, 14, 15]],
                     [[16, 17, 18, 19], []]]

    features = {"number": "number", "three": "three"}
    loader = rs.Loader(dataset, features, batch_size=8, last_batch="drop")

    @tf.function(jit_compile=True)
    def compiled(batch):
        assert batch["three"].shape == (8, 3)
        return tf.reduce_sum(batch["three"])

    assert [float(compiled(batch)) for batch in batches(loader)] == [24.0, 88.0]

    endless = rs.Loader(dataset, {"number": "number"}, batch_size=4, epochs=None)
    iterator = iter(batches(endless).prefetch(4))  # the program ends while it reads ahead
    next(iterator)
    print("done")
"""


@pytest.mark.slow
def test_distribution_xla_and_the_end_of_the_program(tf: Any, path: Path, run_program: Any) -> None:
    assert run_program(DISTRIBUTED, path).split() == ["done"]


@pytest.mark.slow
def test_the_page(tf: Any, run_page: Any) -> None:
    run_page("tensorflow.md")
