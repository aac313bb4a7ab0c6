"""Normalised numbers are those of the formulae of Open X-Embodiment, in float64."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.raising import raises

import recordsmith as rs

GRIPPER = [True, True, True, False]
COUNT = 60


def rows(scale: float = 1) -> list[dict[str, Any]]:
    """Three numbers, of which one is constant, a gripper, and a number of its own."""
    random = np.random.default_rng(3)
    numbers = random.normal(size=(COUNT, 4)) * [scale, 1e-3, 0, 1] + [100, 5, 0.1, 0]
    return [{"n": n, "x": row.astype(np.float32)} for n, row in enumerate(numbers)]


def by_hand(values: npt.NDArray[Any], train: npt.NDArray[Any], method: str) -> npt.NDArray[Any]:
    """As `normalize_action_and_proprio` of Octo and OpenVLA."""
    values, train = values.astype(np.float64), train.astype(np.float64)
    if method == "mean":
        scaled = (values - train.mean(0)) / (train.std(0) + 1e-8)
    else:
        low, high = np.quantile(train, [0.01, 0.99], axis=0)
        scaled = np.clip(2 * (values - low) / (high - low + 1e-8) - 1, -1, 1)
    return np.where(train.min(0) == train.max(0), 0, scaled)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rs.pack(rs.Rows(rows()), tmp_path / "out", splits={"train": 0.7, "test": 0.3}, shards=2)
    rs.normalisation(tmp_path / "out", ["x", "n"]).save(tmp_path / "out" / "normalisation.json")
    return tmp_path / "out"


def values_of(dataset: Any, key: str = "x") -> npt.NDArray[Any]:
    return np.array([row[key] for row in dataset])


@pytest.mark.parametrize("method", ["q99", "mean"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_equal_to_the_formulae(folder: Path, method: Any, split: str) -> None:
    dataset = rs.open(folder, split=split)
    train = rs.open(folder, split="train")
    masked = rs.Normalise(method, mask=GRIPPER)
    features = {
        "x": rs.Tensor("x", shape=(4,), normalise=method),
        "masked": rs.Tensor("x", shape=(4,), normalise=masked, dtype="float64"),
        "n": rs.Scalar("n", normalise=method),
    }
    batch = rs.Examples(dataset, features).batch(range(len(dataset)))
    values = values_of(dataset)
    expected = by_hand(values, values_of(train), method)
    assert batch["x"].dtype == np.float32
    np.testing.assert_allclose(batch["x"], expected, 1e-6, 1e-6)
    assert (batch["x"][:, 2] == 0).all()
    square = {"x": rs.Tensor("x", shape=(1, 4), normalise=method)}
    other = rs.Examples(dataset, square).batch(range(len(dataset)))["x"]
    np.testing.assert_array_equal(other[:, 0], batch["x"])
    np.testing.assert_allclose(batch["masked"][:, :3], expected[:, :3], 1e-6, 1e-6)
    np.testing.assert_array_equal(batch["masked"][:, 3], values[:, 3])
    numbers = by_hand(values_of(dataset, "n")[:, 0], values_of(train, "n")[:, 0], method)
    np.testing.assert_allclose(batch["n"], numbers, 1e-6, 1e-6)


def test_given_statistics(folder: Path, tmp_path: Path) -> None:
    """An object, a file, a dict by key and a dict by name, such as those of other projects."""
    dataset = rs.open(folder)
    found = rs.normalisation(folder, ["x"])
    found.save(tmp_path / "x.json")
    by_name: Any = {name: getattr(found.features["x"], name) for name in ("q01", "q99")}
    of_all = {"x": by_name | {"min": found.features["x"].min, "max": found.features["x"].max}}
    batches = [
        rs.Examples(
            dataset, {"x": rs.Tensor("x", shape=(4,), normalise=rs.Normalise("q99", given))}
        ).batch(range(COUNT))["x"]
        for given in (None, found, tmp_path / "x.json", str(tmp_path / "x.json"), of_all, by_name)
    ]
    for batch in batches[1:]:
        np.testing.assert_array_equal(batch, batches[0])


def test_windows_of_episodes(tmp_path: Path) -> None:
    actions = values_of(rows())
    lengths = [5, 30, 25]
    with rs.ShardWriter(tmp_path / "robot.tfrecord") as writer:
        for episode in np.split(actions, np.cumsum(lengths)[:-1]):
            row = {"steps/action": episode.ravel(), "steps/is_first": [0] * len(episode)}
            writer.write_example(row)
    dataset = rs.open(tmp_path / "robot.tfrecord")
    how = rs.Normalise("q99", rs.normalisation(dataset, ["steps/action"]))
    windows = rs.Episodes(dataset, window=6, pad="repeat")
    feature = rs.Tensor("steps/action", shape=(6, 4), normalise=how)
    batch = rs.Examples(windows, {"action": feature}).batch(range(COUNT))
    expected = by_hand(actions, actions, "q99")
    np.testing.assert_allclose(batch["action"][:, 0], expected, 1e-6, 1e-6)
    np.testing.assert_array_equal(batch["action"][4], batch["action"][4][:1].repeat(6, 0))


def test_a_state_of_other_statistics_is_refused(folder: Path) -> None:
    def loader(*more: Any, **how: Any) -> rs.Loader:
        features = {"x": rs.Tensor("x", shape=(4,), normalise=rs.Normalise(*more, **how))}
        return rs.Loader(rs.open(folder), features, batch_size=8)

    first = loader("q99")
    next(iter(first))
    state = json.loads(json.dumps(first.state_dict()))
    same = loader("q99", rs.normalisation(folder, ["x"]))
    same.load_state_dict(state)
    np.testing.assert_array_equal(next(iter(same))["x"], [*first][1]["x"])
    pickle.loads(pickle.dumps(loader("q99"))).load_state_dict(state)
    own = state["order"]["normalisation"]["x"]
    for other in (
        loader("mean"),
        loader("q99", mask=GRIPPER),
        loader("q99", rs.normalisation(folder, ["x"], split="test")),
        rs.Loader(rs.open(folder), ["x"], batch_size=8),
    ):
        with pytest.raises(rs.OptionError) as caught:
            other.load_state_dict(state)
        assert own in str(caught.value)
        named = other.state_dict()["order"].get("normalisation")
        assert named is None or named["x"] in str(caught.value)


def test_stale_and_missing_statistics(folder: Path, tmp_path: Path) -> None:
    features = {"x": rs.Tensor("x", shape=(4,), normalise="q99")}
    for split in (None, "test"):
        rs.Examples(rs.open(folder, split=split), features)
    rs.pack(rs.Rows(rows(2)), tmp_path / "new")
    path = folder / "normalisation.json"
    rs.append(tmp_path / "new", folder)
    with raises(rs.OptionError, option="normalise", value=str(path)):
        rs.Examples(rs.open(folder), features)
    path.unlink()
    with raises(rs.OptionError, option="normalise"):
        rs.Examples(rs.open(folder), features)
    for dataset in (
        rs.Mix([(rs.open(folder), 0.5), (rs.open(tmp_path / "new"), 0.5)], length=8),
        rs.open(sorted(map(str, folder.glob("*.tfrecord")))),
    ):
        with raises(rs.OptionError, option="normalise"):
            rs.Examples(dataset, features)


@pytest.mark.parametrize(
    ("how", "option"),
    [
        (lambda: "max", "method"),
        (lambda: rs.Normalise("q99", {"y": {"q01": [0] * 4, "q99": [1] * 4}}), "statistics"),
        (lambda: rs.Normalise("q99", {"mean": [0] * 4, "std": [1] * 4}), "statistics"),
        (lambda: rs.Normalise("mean", {"mean": [0] * 4, "std": [1] * 3}), "statistics"),
        (lambda: rs.Normalise("mean", {"mean": [0] * 4, "std": ["a"] * 4}), "statistics"),
        (lambda: rs.Normalise("mean", {"mean": [0] * 3 + [np.nan], "std": [1] * 4}), "statistics"),
        (lambda: rs.Normalise("mean", {"mean": [0] * 4, "std": [1, 1, 1, -1e-8]}), "statistics"),
        (lambda: rs.Normalise("mean", {"mean": [0] * 4, "std": [1, 0, 1, 1]}), "statistics"),
        (lambda: rs.Normalise("mean", {"mean": [0] * 4, "std": [0, 1, 1, 1], "min": [0] * 4,
                                       "max": [1] * 4}), "statistics"),
        (lambda: rs.Normalise("mean", {"mean": [0] * 4, "std": [0, 0, 1, 1]},
                              mask=[False, True, True, True]), "statistics"),
        (lambda: rs.Normalise("q99", {"q01": [0, 0, 0, 2], "q99": [1] * 4}), "statistics"),
        (lambda: rs.Normalise("q99", {"x": [0, 1]}), "statistics"),
        (lambda: rs.Normalise("mean", {"mean": [0] * 3, "std": [1] * 3}), "shape"),
        (lambda: rs.Normalise("q99", mask=[True]), "mask"),
        (lambda: rs.Normalise("q99", mask=[1, 1, 1, 0]), "mask"),
        (lambda: rs.Normalise("q99", mask=[[True], True, True, True]), "mask"),
    ],
)  # fmt: skip
def test_bad_options(folder: Path, how: Any, option: str) -> None:
    with raises(rs.OptionError, option=option):
        rs.Examples(rs.open(folder), {"x": rs.Tensor("x", shape=(4,), normalise=how())})


def test_a_standard_deviation_of_0(folder: Path) -> None:
    """Of a dimension that is constant, or is left as it is."""
    dataset = rs.open(folder)
    values = values_of(dataset, "x")
    figures = {"mean": [0.0] * 4, "std": [0.0, 1, 1, 1]}
    constant = {**figures, "min": [0.0, 0, 0, 0], "max": [0.0, 9, 9, 9]}
    for given, mask, first in (
        (constant, None, np.zeros(COUNT)),
        (figures, [False, True, True, True], values[:, 0]),
    ):
        how = rs.Normalise("mean", given, mask=mask)
        examples = rs.Examples(dataset, {"x": rs.Tensor("x", shape=(4,), normalise=how)})
        found = examples.batch(range(COUNT))["x"]
        np.testing.assert_allclose(found[:, 0], first, 1e-6, 1e-6)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_integers_cannot_hold_what_is_normalised(dtype: str) -> None:
    with raises(rs.OptionError, option="dtype", value=dtype):
        rs.Tensor("x", shape=(4,), normalise="mean", dtype=dtype)
    rs.Scalar("x", normalise="mean", dtype="float16")
