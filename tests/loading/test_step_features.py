"""Feature lists of SequenceExamples in batches: equal to lists in Python and to TensorFlow."""

from __future__ import annotations

import json
import pickle
import random
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.loading import ColumnRequest, ValueFeature
from recordsmith.support.errors import Defect

from ..raising import raises

KINDS: Any = {"point": "float", "number": "int64", "many": "int64"}
KINDS |= dict.fromkeys(("rgb", "word", "words"), "bytes")
COUNT = 23


def pixels(step: bytes) -> list[Any]:
    """One pixel of 2 x 2 pixels that are stored as bytes."""
    return np.frombuffer(step * 3, np.uint8).reshape(2, 2, 3).tolist()  # type: ignore[no-any-return]


# name: feature, its key, what it makes of a step, what pads, whether it is always ragged
FEATURES: dict[str, tuple[Any, str, Any, Any, bool]] = {
    "array": (rs.Raw("rgb", (2, 2), "uint8"), "rgb",
              lambda step: [list(step[:2]), list(step[2:])], [[0, 0]] * 2, False),
    "flag": (rs.Raw("rgb", (4,), "bool"), "rgb", lambda step: [byte > 0 for byte in step],
             [False] * 4, False),
    "big": (rs.Raw("rgb", (2,), ">u2"), "rgb",
            lambda step: [256 * step[0] + step[1], 256 * step[2] + step[3]], [0, 0], False),
    "point": (rs.Tensor("point", (2,)), "point", list, [0.0, 0.0], False),
    "number": (rs.Scalar("number", dtype="int32"), "number", lambda step: step, 0, False),
    "bytes": (rs.Bytes("rgb"), "rgb", lambda step: step, b"", False),
    "word": (rs.Text("word"), "word", bytes.decode, "", False),
    "texts": (rs.Text("words", "ragged"), "words", lambda step: [w.decode() for w in step], None,
              True),
    "strings": (rs.Bytes("words", "ragged"), "words", list, None, True),
    "many": (rs.Ragged("many"), "many", list, None, True),
    "padded": (rs.Padded("many", 4, fill=-1), "many",
               lambda step: step + [-1] * (4 - len(step)), [-1] * 4, False),
    "hot": (rs.MultiHot("many", 5), "many", lambda step: [n in step for n in range(5)], [0] * 5,
            False),
}  # fmt: skip


def drawn(seed: int, count: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Contexts and feature lists of 0 to 9 steps; some records lack some lists."""
    dice = random.Random(seed)
    records = []
    for number in range(count):
        lists = {
            "rgb": dice.randbytes,
            "point": lambda _: [dice.randrange(9) / 4, dice.randrange(9) / 4],
            "number": lambda _: dice.randrange(1000),
            "word": lambda _: f"wört {dice.randrange(99)}".encode(),
            "words": lambda _: [b"a" * size for size in range(dice.randrange(4))],
            "many": lambda _: [*range(dice.randrange(5))],
        }
        steps = {key: [make(4) for _ in range(dice.randrange(10))] for key, make in lists.items()}
        kept = {key: value for key, value in steps.items() if dice.random() < 0.9 or not number}
        records.append(({"id": number, "label": number % 3}, kept))
    return records


def write(path: Path, records: Any, kinds_of: Any = KINDS) -> rs.Dataset:
    with rs.ShardWriter(path) as writer:
        for context, lists in records:
            kinds = {key: kinds_of[key] for key in lists if key in kinds_of}
            writer.write(rs.encode_sequence_example(context, lists, kinds))
    return rs.open(path)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    return write(tmp_path_factory.mktemp("steps") / "a.tfrecord", drawn(0, COUNT))


def used(steps: list[Any], options: Any) -> list[Any]:
    """The steps that the options choose."""
    frames, length = options.get("frames"), options.get("length")
    if frames is not None and len(steps) > frames:
        return [steps[int((2 * i + 1) * len(steps) / (2 * frames))] for i in range(frames)]
    return steps[:length] if isinstance(length, int) else steps


OPTIONS: list[dict[str, Any]] = [
    {}, {"length": 12}, {"length": 4, "too_long": "cut"}, {"length": 0, "too_long": "cut"},
    {"frames": 1}, {"frames": 4}, {"frames": 30}, {"length": "ragged"},
    {"length": "ragged", "frames": 3},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_entries_equal_lists(dataset: rs.Dataset, options: dict[str, Any]) -> None:
    chosen = {
        name: known for name, known in FEATURES.items()
        if not (known[4] and isinstance(options.get("length"), int))
    }  # fmt: skip
    features = {name: rs.Steps(known[0], **options) for name, known in chosen.items()}
    loader = rs.Loader(dataset, {**features, "id": "id"}, batch_size=7, threads=0)
    records = drawn(0, COUNT)
    for batch in loader:
        rows = [records[number][1] for number in batch["id"].tolist()]
        for name, (_, key, of_step, padding, is_ragged) in chosen.items():
            expected = [[of_step(step) for step in used(row.get(key, []), options)] for row in rows]
            counts = [*map(len, expected)]
            if options.get("length") == "ragged" or is_ragged:
                assert batch[name].tolist() == expected
                assert f"{name}_lengths" not in batch
                continue
            width = options.get("frames", options.get("length", max(counts)))
            expected = [steps + [padding] * (width - len(steps)) for steps in expected]
            assert batch[name].tolist() == expected
            assert batch[f"{name}_lengths"].tolist() == counts
            if name == "flag":
                assert batch[name].view(np.uint8).max(initial=0) <= 1, "no other bytes as bool"
            if name == "padded":
                inner = [[sum(n >= 0 for n in step) for step in steps] for steps in expected]
                assert batch["padded_step_lengths"].tolist() == inner
    for name, spec in loader.spec().items():
        if not spec.is_ragged:
            assert len(batch[name].shape) == len(spec.shape)


@pytest.mark.parametrize("options", [{}, OPTIONS[2], {"frames": 4}, {"length": "ragged"}])
def test_records_without_steps(dataset: rs.Dataset, tmp_path: Path, options: Any) -> None:
    path = tmp_path / "a.tfrecord"
    empty = write(path, [({"id": 0}, {key: [] for key in KINDS}), ({"id": 1}, {})])
    for name, (feature, *_, is_ragged) in FEATURES.items():
        if is_ragged and isinstance(options.get("length"), int):
            continue
        features = {name: rs.Steps(feature, **options), "id": "id"}
        (batch,) = rs.Loader(empty, features, batch_size=2, threads=0)
        loader = rs.Loader(dataset, features, batch_size=COUNT, filter=lambda _: False, threads=0)
        (nothing,) = loader
        assert [*batch] == [*nothing] == [*loader.spec()]
        assert (len(batch[name]), len(nothing[name])) == (2, 0)
        if is_ragged or options.get("length") == "ragged":
            assert batch[name].tolist() == [[], []]
        else:
            assert batch[f"{name}_lengths"].tolist() == [0, 0]
            assert batch[name].shape[1] == (4 if options else 0)


@pytest.mark.parametrize(
    ("file_count", "count"), [(8, 9), pytest.param(20, 1000, marks=pytest.mark.slow)]
)
def test_entries_equal_tensorflow(tmp_path: Path, file_count: int, count: int) -> None:
    import tensorflow as tf

    lists = {
        "rgb": tf.io.FixedLenSequenceFeature((), tf.string, allow_missing=True),
        "point": tf.io.FixedLenSequenceFeature((2,), tf.float32, allow_missing=True),
        "many": tf.io.RaggedFeature(tf.int64),
        "words": tf.io.RaggedFeature(tf.string),
    }
    context = {"id": tf.io.FixedLenFeature((), tf.int64)}
    features = {
        "id": rs.Scalar("id"),
        "rgb": rs.Steps(rs.Bytes("rgb")),
        "point": rs.Steps(rs.Tensor("point", (2,))),
        "many": rs.Steps(rs.Ragged("many")),
        "words": rs.Steps(rs.Bytes("words", "ragged")),
    }
    for seed in range(file_count):
        data = write(tmp_path / f"{seed}.tfrecord", drawn(seed, count))
        (batch,) = rs.Loader(data, features, batch_size=count, threads=0)
        payloads = [*data.records()]
        of_context, steps, lengths = tf.io.parse_sequence_example(payloads, context, lists)
        np.testing.assert_array_equal(batch["id"], of_context["id"])
        for key in ("rgb", "point"):
            np.testing.assert_array_equal(np.asarray(batch[key]), steps[key])
            np.testing.assert_array_equal(batch[f"{key}_lengths"], lengths[key])
        for key in ("many", "words"):
            rows, of_steps = batch[key], batch[key].values
            splits, step_splits = steps[key].nested_row_splits
            np.testing.assert_array_equal(rows.row_splits, splits)
            np.testing.assert_array_equal(of_steps.row_splits, step_splits)
            np.testing.assert_array_equal(np.asarray(of_steps.values), steps[key].flat_values)
    for key, steps in (("many", [[b"x"]]), ("words", [[3]]), ("rgb", [[b"a", b"b"]])):
        data = write(tmp_path / f"{key}.tfrecord", [({"id": 1}, {}), ({"id": 2}, {key: steps})], {})
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.io.parse_sequence_example([*data.records()], context, lists)
        with pytest.raises(rs.RecordsmithError):
            list(rs.Loader(data, {"x": features[key]}, batch_size=2, threads=0))


def test_steps_are_normalised(dataset: rs.Dataset) -> None:
    how = rs.Normalise("mean", {"point": {"mean": [1.0, 0.5], "std": [0.5, 2.0]}})
    features = {
        "x": rs.Steps(rs.Tensor("point", (2,), normalise=how), "ragged"),
        "stored": rs.Steps(rs.Tensor("point", (2,)), "ragged"),
    }
    loader = rs.Loader(dataset, features, batch_size=COUNT)
    (batch,) = loader
    expected = (batch["stored"].values - np.float32([1, 0.5])) / np.float32([0.5, 2])
    np.testing.assert_allclose(batch["x"].values, expected, rtol=1e-5)
    assert "mean " in json.dumps(loader.state_dict()), "a state knows the statistics"


# -- frames ----------------------------------------------------------------------------------------


def test_random_frames_are_uniform_and_the_same_for_all_features(tmp_path: Path) -> None:
    """Each of the 10 pairs of 5 steps 2 of 10 times as often as another: four deviations are 80."""
    steps = {"number": [*range(5)], "rgb": [bytes([n] * 4) for n in range(5)]}
    data = write(tmp_path / "a.tfrecord", [({}, steps)] * 4000)
    options: Any = {"frames": 2, "choose": "random"}
    features = {
        "number": rs.Steps(rs.Scalar("number"), **options),
        "array": rs.Steps(rs.Raw("rgb", (4,), "uint8"), **options),
        "bytes": rs.Steps(rs.Bytes("rgb"), length="ragged", **options),
    }
    counts: Counter[tuple[int, ...]] = Counter()
    for batch in rs.Loader(data, features, batch_size=1000, shuffle=True):
        counts.update(map(tuple, batch["number"].tolist()))
        np.testing.assert_array_equal(batch["array"][:, :, 0], batch["number"])
        assert [[step[0] for step in row] for row in batch["bytes"].tolist()] == batch[
            "number"
        ].tolist()
    assert counts.keys() == set(combinations(range(5), 2))
    assert all(abs(count - 400) < 80 for count in counts.values())


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory, images: Any) -> rs.Dataset:
    """Frames of 12 x 10 pixels in 12 records with 0 to 5 steps."""
    frames = [images.jpeg(number, 12, 10) for number in range(5)]
    path = tmp_path_factory.mktemp("videos") / "a.tfrecord"
    records = [({"id": number}, {"frames": frames[: number % 6]}) for number in range(12)]
    with rs.ShardWriter(path) as writer:
        for context, lists in records:
            writer.write(rs.encode_sequence_example(context, lists, {"frames": "bytes"}))
    return rs.open(path)


def test_images_of_steps(videos: rs.Dataset, tmp_path: Path) -> None:
    def loaded(options: Any = None, **image: Any) -> Any:
        feature = rs.Steps(rs.Image("frames", **image), **options or {})
        (batch,) = rs.Loader(videos, {"x": feature}, batch_size=12)
        return batch

    single: Any = rs.decode_sequence_example(next(iter(videos[5:6].records())))
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for frame in single.feature_lists["frames"]:
            writer.write_example({"frames": frame})
    (plain,) = rs.Loader(rs.open(tmp_path), {"x": rs.Image("frames")}, batch_size=9)
    batch, expected = loaded(), plain["x"]
    assert batch["x"].shape == (12, 5, *expected.shape[1:])
    counts = [number % 6 for number in range(12)]
    assert batch["x_lengths"].tolist() == counts
    for row, count in enumerate(counts):
        np.testing.assert_array_equal(batch["x"][row, :count], expected[:count])
        assert not batch["x"][row, count:].any()
    ragged = loaded({"length": "ragged"})["x"]
    assert ragged.lengths.tolist() == counts
    np.testing.assert_array_equal(ragged[5], expected)
    three = loaded({"frames": 3})["x"]
    np.testing.assert_array_equal(three[5], expected[[0, 2, 4]])
    np.testing.assert_array_equal(three[2, :2], expected[:2])
    np.testing.assert_array_equal(loaded({"length": 4, "too_long": "cut"})["x"][5], expected[:4])
    assert loaded(fit="pad")["x_sizes"].shape == (12, 5, 2)
    assert [*loaded({"length": 6}, fit="pad")] == ["x", "x_sizes", "x_lengths"]
    (bare,) = rs.Loader(videos, ["frames"], batch_size=12)
    np.testing.assert_array_equal(bare["frames"], batch["x"])
    flipped = loaded(flip="horizontal")["x"]
    for row, count in enumerate(counts):
        ways = (expected[:count], expected[:count, :, ::-1])
        assert any((flipped[row, :count] == way).all() for way in ways), "all of a row alike"
    with raises(rs.OptionError, match="boxes.*follow"):
        rs.Loader(videos, {"x": rs.Steps(rs.Image("frames")), "boxes": rs.Boxes()}, batch_size=2)


RANDOM: dict[str, Any] = {
    "image": rs.Steps(
        rs.Image("frames", 6, "random-crop", flip="horizontal"), frames=2, choose="random"
    ),
    "drawn": rs.Steps(rs.Bytes("frames"), frames=2, choose="random"),
    "all": rs.Steps(rs.Bytes("frames"), "ragged"),
    "id": "id",
}


def rows(batches: Any) -> dict[int, list[bytes]]:
    """What each record became, by its number."""
    return {
        number: [batch["image"][row].tobytes(), *batch["drawn"][row].tolist(), *batch["all"][row]]
        for batch in batches
        for row, number in enumerate(batch["id"].tolist())
    }


def test_ranks_and_resuming(videos: rs.Dataset) -> None:
    """Each record is the same whatever the ranks, threads and steps of resuming."""

    def loader(**options: Any) -> rs.Loader:
        return rs.Loader(videos, RANDOM, shuffle=True, seed=5, **options)

    expected = rows(loader(batch_size=12))
    for world_size in range(1, 6):
        ranks = [
            loader(batch_size=2, rank=rank, world_size=world_size, threads=rank % 2)
            for rank in range(world_size)
        ]
        assert {k: v for rank in ranks for k, v in rows(rank).items()} == expected
    whole = [*loader(batch_size=2)]
    for step in range(len(whole)):
        resumed = loader(batch_size=2)
        resumed.load_state_dict(loader(batch_size=2).state_after(step))
        resumed = pickle.loads(pickle.dumps(resumed))
        assert rows(resumed) == rows(whole[step:])


# -- records and schemas that do not fit -----------------------------------------------------------


@dataclass(frozen=True)
class Both(ValueFeature):
    """The sum of two numbers of a step."""

    def requests(self) -> dict[str, ColumnRequest]:
        return dict.fromkeys(("number", "other"), ColumnRequest(("int64",)))

    def values(self, rows: Any) -> Any:
        return (rows.columns["number"] + rows.columns["other"],)


GOOD: dict[str, Any] = {
    "number": [1, 2], "other": [3, 4], "rgb": [bytes(4)] * 3, "word": [b"a"], "frames": []
}  # fmt: skip
BAD: list[tuple[rs.Feature | Any, dict[str, Any], Defect, str]] = [
    (rs.Scalar("number", dtype="int8"), {"number": [1, 2, 300]}, Defect.FEATURE_VALUE, "step 2"),
    (rs.Scalar("number"), {"number": [1, 2, [3, 4]]}, Defect.FEATURE_SHAPE, "step 2"),
    (rs.Scalar("number"), {"number": [0.5]}, Defect.FEATURE_KIND, "step 0"),
    (rs.Raw("rgb", (4,), "uint8"), {"rgb": [bytes(4), b"a"]}, Defect.FEATURE_SHAPE, "step 1"),
    (rs.Text("word"), {"word": [b"a", b"\xff"]}, Defect.FEATURE_VALUE, "step 1"),
    (rs.Image("frames", 8), {"frames": [b"", b"?"]}, Defect.UNREADABLE_IMAGE, "image 1 of 2"),
    (Both(), {"other": [1]}, Defect.FEATURE_SHAPE, "'number' 2, 'other' 1"),
    (rs.Steps(rs.Scalar("number"), 3), {"number": [1] * 4}, Defect.FEATURE_SHAPE, "4 steps"),
    (rs.Steps(rs.Image("frames", 8), 2), {"frames": [b""] * 3}, Defect.FEATURE_SHAPE, "3 steps"),
    (rs.Steps(rs.Raw("rgb", (4,), "uint8"), frames=2),
     {"rgb": [bytes(4)] * 4 + [b"a"] + [bytes(4)]}, Defect.FEATURE_SHAPE, "step 4"),
]  # fmt: skip


@pytest.mark.parametrize(("feature", "changes", "defect", "words"), BAD)
def test_errors_have_record_and_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, feature: Any, changes: Any, defect: Any,
    words: str,
) -> None:  # fmt: skip
    from recordsmith.loading.order import inputs

    monkeypatch.setattr(inputs, "PREVIEW_COUNT", 2)
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for number in range(9):
            lists = {**GOOD, **(changes if number == 5 else {})}
            kinds: Any = {"frames": "bytes"}
            writer.write(rs.encode_sequence_example({"id": number}, lists, kinds))
    feature = feature if isinstance(feature, rs.Steps) else rs.Steps(feature)
    loader: Any = rs.Loader(rs.open(tmp_path), {"x": feature}, batch_size=4)
    with raises(rs.CorruptDataError, match=words, defect=defect, record=5) as caught:
        list(loader)
    assert caught.value.feature in changes
    features = {"x": feature, "id": "id"}
    loader = rs.Loader(rs.open(tmp_path), features, batch_size=4, skip_errors=1)
    ids = [number for batch in loader for number in batch["id"].tolist()]
    assert ids == [0, 1, 2, 3, 4, 6, 7, 8]


WRONG: list[tuple[Any, str, str]] = [
    (rs.Scalar("number"), "features", "a feature list.*Steps"),
    (rs.Steps(rs.Scalar("id")), "features", "not a feature list"),
    (rs.Steps(rs.Scalar("nmber")), "features", "did you mean 'number'"),
    (rs.Steps(rs.Scalar("rgb")), "features", "bytes; expected int64 or float"),
    (rs.Steps(rs.Tensor("number", (2,))), "shape", "1 value; expected 2 values"),
    (rs.Steps(rs.Scalar("number"), 1), "length", "up to 2 steps"),
    (rs.Steps(rs.Raw("rgb", (4,), "uint8"), 2), "length", "up to 3 steps"),
    (rs.Steps(rs.Scalar("both")), "features", "both the context and"),
    ("both", "features", "both the context and"),
]


def test_what_the_schema_shows(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with rs.ShardWriter(path) as writer:
        lists = {**GOOD, "both": [1], "frames": [b""]}
        writer.write(rs.encode_sequence_example({"id": 1, "both": 2}, lists))
    data = rs.open(path)
    for feature, option, words in WRONG:
        with raises(rs.OptionError, option=option, match=words):
            rs.Loader(data, {"x": feature}, batch_size=1)
    pair = {"a": rs.Steps(rs.Scalar("number")), "b": rs.Steps(rs.Ragged("number"))}
    with raises(rs.OptionError, option="features", match="in steps"):
        rs.Loader(data, pair, batch_size=1)
    with rs.ShardWriter(tmp_path / "b.tfrecord") as writer:
        writer.write_example({"number": 1})
    with raises(rs.OptionError, option="features", match="not a feature list"):
        rs.Loader(rs.open(tmp_path / "b.tfrecord"), {"x": pair["a"]}, batch_size=1)


def test_presence_of_feature_lists(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for lists in ({"x": [[1], [2]]}, {"x": []}, {}):
            writer.write(rs.encode_sequence_example({}, lists))
    features = {"has": rs.Present("x"), "x": rs.Steps(rs.Scalar("x"))}
    batch = next(iter(rs.Loader(rs.open(tmp_path), features, batch_size=3)))
    assert (batch["has"].tolist(), batch["x_lengths"].tolist()) == ([True, True, False], [2, 0, 0])


# -- with other orders, and in frameworks ----------------------------------------------------------


def test_orders_and_inputs(dataset: rs.Dataset, tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "b.tfrecord") as writer:
        for number in range(COUNT, 2 * COUNT):
            writer.write_example({"id": number})
    features = {"x": rs.Steps(rs.Raw("rgb", (4,), "uint8")), "id": rs.Scalar("id")}
    records = [lists.get("rgb", []) for _, lists in drawn(0, COUNT)] + [[]] * COUNT

    def check(source: Any, **options: Any) -> set[int]:
        seen = set()
        for batch in rs.Loader(source, features, batch_size=5, shuffle=True, **options):
            for number, steps, count in zip(
                *(batch[name] for name in ("id", "x", "x_lengths")), strict=True
            ):
                assert steps[:count].tobytes() == b"".join(records[number])
                seen.add(int(number))
        return seen

    with pytest.warns(UserWarning, match="dataset 1 of the mix has 'rgb'"):
        assert len(check(rs.Mix([(dataset, 1), (rs.open(tmp_path), 1)]))) > COUNT
    assert check(dataset, buckets=rs.BucketBySize(window=8)) == {*range(COUNT)}
    assert check(rs.Weighted(dataset, by="label")) <= {*range(COUNT)}
    for make in (lambda: rs.Packed(dataset, "number", length=4),
                 lambda: rs.Mix([(dataset, 1)], rename=[{"id": "key"}])):  # fmt: skip
        with raises(rs.NotAnExampleError, payload="SequenceExample"):
            make()
    assert set(next(iter(rs.Loader(dataset, batch_size=2)))) >= {"many", "rgb_lengths", "id"}


def test_frameworks(dataset: rs.Dataset) -> None:
    import tensorflow as tf
    import torch

    from recordsmith.tensorflow import batches, convert, element_spec
    from recordsmith.torch import convert as torch_convert

    features: Any = {
        "flat": rs.Steps(rs.Tensor("point", (2,)), "ragged"),
        "nested": rs.Steps(rs.Ragged("many")),
    }
    loader = rs.Loader(dataset, features, batch_size=5, threads=0, map_examples=dict)
    batch = next(iter(loader))
    tensors, parts = convert(batch), torch_convert(batch)
    for name, spec in element_spec(loader).items():
        assert spec.is_compatible_with(tensors[name])
        assert tensors[name].to_list() == batch[name].tolist()
    assert parts["flat"].values.shape[1:] == (2,)
    assert torch.equal(parts["nested"].values.values, torch.tensor(batch["nested"].values.values))
    flat = rs.Loader(dataset, {"flat": features["flat"]}, batch_size=5)
    first = next(iter(batches(flat)))
    assert tf.reduce_all(first["flat"].values == tensors["flat"].values)


def test_orders_by_features_of_the_context(videos: rs.Dataset) -> None:
    for source in (
        rs.Weighted(videos, by="id"),
        rs.ByClass(videos, by="id", classes=12, examples=1),
    ):
        loader = rs.Loader(source, {"id": "id"}, batch_size=12, shuffle=True)
        assert sorted(next(iter(loader))["id"].tolist()) == list(range(12))
    with raises(rs.OptionError, option="key", value="frames", match="feature list"):
        rs.Weighted(videos, by="frames")


_GOOD = rs.encode_sequence_example({"id": 1}, {"x": [[1.5], [2.5]]})


@pytest.mark.parametrize(
    ("odd", "at"),
    [
        *((_GOOD[:-3], at) for at in (0, 3, 63, 70)),
        (rs.encode_sequence_example({"id": 1}, {"x": [[1.5], [2]]}), 3),
        (rs.encode_sequence_example({"id": 1}, {"x": [[1]]}), 0),
        (b"plain text", 1),
    ],
)
def test_one_odd_record_decides_nothing_about_others(tmp_path: Path, odd: bytes, at: int) -> None:
    path = tmp_path / "a.tfrecord"
    with rs.ShardWriter(path) as writer:
        for number in range(100):
            writer.write(odd if number == at else _GOOD)
    features = {"x": rs.Steps(rs.Scalar("x")), "id": "id"}
    loader = rs.Loader(rs.open(path), features, batch_size=100, skip_errors=1)
    (batch,) = loader
    assert batch["x"].tolist() == [[1.5, 2.5]] * 99
    assert [fault.record for fault in loader.skipped] == [at]
    with pytest.raises((rs.OptionError, rs.CorruptDataError, rs.NotAnExampleError), match=str(at)):
        next(iter(rs.Loader(rs.open(path), features, batch_size=100)))


def test_kinds_that_no_first_record_shows(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with rs.ShardWriter(path) as writer:
        for _ in range(64):
            writer.write(rs.encode_sequence_example({"id": 1}, {"x": []}))
        writer.write(_GOOD)
    dataset = rs.open(path)
    features = {"x": rs.Steps(rs.Scalar("x", dtype="float32"))}
    (batch,) = rs.Loader(dataset, features, batch_size=65)
    assert batch["x"][64].tolist() == [1.5, 2.5]
    assert rs.open(path).read_columns(["x"])["x"].lengths.tolist() == [0] * 64 + [2]  # type: ignore[union-attr]
    assert len(dataset.filter("len(x) == 0")) == 64


def test_padding_is_in_proportion_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with rs.ShardWriter(path) as writer:
        writer.write(_GOOD)
        writer.write(rs.encode_sequence_example({}, {"x": [[]] * 20_000 + [[1.5] * 20_000]}))
    features = {"x": rs.Steps(rs.Padded("x"))}
    loader = rs.Loader(rs.open(path), features, batch_size=2, skip_errors=1)
    (batch,) = loader
    assert batch["x"].tolist() == [[[1.5], [2.5]]]
    assert [fault.record for fault in loader.skipped] == [1]
