"""Statistics for normalising are those of NumPy in float64, for records and for steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.raising import raises

import recordsmith as rs
from recordsmith.checking import Normalisation
from recordsmith.checking import normalisation_file as module
from recordsmith.stores import Location

NAMES = ("mean", "std", "min", "max", "q01", "q99")


def reference(values: npt.NDArray[Any]) -> dict[str, Any]:
    wide = values.astype(np.float64)
    return {
        "mean": wide.mean(0), "std": wide.std(0), "min": wide.min(0), "max": wide.max(0),
        "q01": np.quantile(wide, 0.01, axis=0), "q99": np.quantile(wide, 0.99, axis=0),
    }  # fmt: skip


def robot(seed: int = 0) -> list[npt.NDArray[np.float32]]:
    """Actions of episodes of various lengths: offsets, scales, one constant and one of two."""
    random = np.random.default_rng(seed)
    scales, offsets = [1, 1e-3, 100, 0, 1, 1e6], [0, 5, -3, 0.1, 0, 1e6]
    return [
        np.array(
            random.normal(size=(length, 6)) * scales + offsets, np.float32
        ) * np.array([1, 1, 1, 1, 0, 1], np.float32)
        + np.array([0, 0, 0, 0, 1, 0], np.float32) * random.integers(0, 2, (length, 1))
        for length in (40, 3, 1, 77, 12)
    ]  # fmt: skip


def write(path: Path, episodes: list[npt.NDArray[np.float32]], *, is_sequence: bool) -> Path:
    with rs.ShardWriter(path) as writer:
        for number, actions in enumerate(episodes):
            is_first = [int(step == 0) for step in range(len(actions))]
            if is_sequence:
                lists: Any = {
                    "steps/action": list(actions),
                    "steps/is_first": [[n] for n in is_first],
                }
                writer.write(rs.encode_sequence_example({"pose": [number, 2.5]}, lists))
            else:
                row = {"steps/action": actions.ravel(), "steps/is_first": is_first}
                writer.write_example(row | {"pose": [float(number), 2.5]})
    return path


@pytest.mark.parametrize("is_sequence", [False, True])
def test_of_episodes(tmp_path: Path, is_sequence: bool) -> None:
    path = write(tmp_path / "robot.tfrecord", robot(), is_sequence=is_sequence)
    keys = ["steps/action", "steps/is_first"] + ["pose"] * (not is_sequence)
    found = rs.normalisation(path, keys)
    assert (found.split, found.record_count, found.shards) == (None, 5, None)
    action = found.features["steps/action"]
    assert (action.count, action.nan, action.infinite) == (133, 0, 0)
    for name, expected in reference(np.concatenate(robot())).items():
        tolerance = 1e-12 if name in ("mean", "std") else 0
        np.testing.assert_allclose(getattr(action, name), expected, tolerance, 1e-12)
    assert (action.std[3], action.quantile_error) == (0, 0)
    assert found.features["steps/is_first"].mean == (5 / 133,)
    if not is_sequence:
        pose = found.features["pose"]
        assert (pose.count, pose.mean, pose.min, pose.max) == (5, (2, 2.5), (0, 2.5), (4, 2.5))


def test_of_the_training_split(place: Location) -> None:
    rows = [{"n": n, "x": [n / 3, -n]} for n in range(200)]
    for row in rows[::7]:
        row["x"] = None  # type: ignore[assignment]
    rs.pack(rs.Rows(rows), place / "out", splits={"train": 0.6, "test": 0.4}, shards=2)
    train: Any = rs.open(place / "out", split="train")
    values = np.array([row["x"] for row in train if "x" in row])
    for found in (
        rs.normalisation(place / "out", ["x"]),
        rs.normalisation(rs.open(place / "out"), ["x"]),
        rs.normalisation(train, ["x"]),
    ):
        assert found.split == "train"
        assert found.shards is not None
        for name, expected in reference(values).items():
            np.testing.assert_allclose(getattr(found.features["x"], name), expected, 1e-12)
    whole: Any = rs.open(place / "out", split="test")
    of_test = rs.normalisation(place / "out", ["n"], split="test")
    assert of_test.features["n"].max == (max(row["n"][0] for row in whole),)
    assert rs.normalisation(train.take(5), ["n"]).shards is None
    found.save(place / "stats.json")
    assert Normalisation.load(place / "stats.json") == found


def test_a_dataset_without_a_training_split(tmp_path: Path) -> None:
    rs.pack(rs.Rows([{"n": n} for n in range(9)]), tmp_path, splits={"a": 0.5, "b": 0.5})
    with raises(rs.OptionError, option="split"):
        rs.normalisation(tmp_path, ["n"])


@pytest.mark.parametrize("kind", ["normal", "exponents", "integers"])
def test_percentiles_of_many_values(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The error is limited by what is reported, in whatever parts the values come."""
    monkeypatch.setattr(module, "MAX_BINS", 1 << 10)
    random = np.random.default_rng(1)
    values = random.normal(3, 1, 50_000)
    if kind == "exponents":
        values = random.choice([-1, 1], 50_000) * 2.0 ** random.uniform(-120, 120, 50_000)
    if kind == "integers":
        values = random.integers(-(2**40), 2**40, 50_000).astype(np.float64)
    found = []
    for part in (50_000, 7_001):
        dimension = module._Dimension()
        for start in range(0, len(values), part):
            dimension.add(values[start : start + part])
        assert len(dimension._keys) <= 1 << 10
        found.append(dimension.figures())
    *_, low, high, error = found[0]
    assert found[1][4:] == (low, high, error)
    assert 0 < error < {"normal": 0.005, "exponents": 0.3, "integers": 0.02}[kind]
    for own, share in ((low, 0.01), (high, 0.99)):
        exact = np.quantile(values, share)
        assert abs(own - exact) <= 1.0000001 * error * abs(exact)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_percentiles_of_any_values(values: list[float]) -> None:
    dimension = module._Dimension()
    dimension.add(np.array(values))
    *_, low, high, error = dimension.figures()
    expected = np.quantile(np.array(values), [0.01, 0.99])
    np.testing.assert_allclose([low, high, error], [*expected, 0], 1e-12)


def test_values_that_are_not_finite(tmp_path: Path) -> None:
    rows = [{"x": [1.0, np.nan]}, {"x": [np.inf, 2.0]}, {"x": [3.0, 4.0]}, {"x": [-np.inf, np.nan]}]
    with rs.ShardWriter(tmp_path / "rows.tfrecord") as writer:
        for row in rows:
            writer.write_example(row)
    found = rs.normalisation(tmp_path, ["x"]).features["x"]
    assert (found.count, found.nan, found.infinite) == (4, 2, 2)
    assert (found.mean, found.std, found.max) == ((2, 3), (1, 1), (3, 4))


def test_other_dimensions(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "rows.tfrecord") as writer:
        for length in (2, 2, 3):
            writer.write_example({"x": [0.5] * length})
    with raises(rs.CorruptDataError, feature="x", record=2, path=str(tmp_path / "rows.tfrecord")):
        rs.normalisation(tmp_path, ["x"])
    episodes = [np.zeros((4, 2), np.float32), np.zeros((4, 3), np.float32)]
    path = write(tmp_path / "robot.tfrecord", episodes, is_sequence=False)
    with raises(rs.CorruptDataError, feature="steps/action", record=1):
        rs.normalisation(path, ["steps/action"])


def test_bad_features(tmp_path: Path) -> None:
    rs.pack(rs.Rows([{"n": n, "t": "text", "x": float("nan")} for n in range(9)]), tmp_path)
    cases: Any = [(one, one) for one in ("n", [], 5, [3], [["n"]])]
    for features, value in (*cases, (["m"], "m"), (["t"], "t"), (["x"], "x")):
        with raises(rs.OptionError, option="features", value=value):
            rs.normalisation(tmp_path, features)


def test_too_many_dimensions(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "rows.tfrecord") as writer:
        writer.write_example({"x": np.zeros(module.MAX_DIMENSIONS + 1, np.float32)})
    with raises(
        rs.OptionError, option="features", value="x", expected=f"up to {module.MAX_DIMENSIONS}"
    ):
        rs.normalisation(tmp_path, ["x"])


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"}, {"version": 2}, {"features": {"n": {}}}, {"features": [1]},
        {"record_count": -1}, {"more": 1},
    ],
)  # fmt: skip
def test_bad_documents(tmp_path: Path, change: dict[str, Any]) -> None:
    rs.pack(rs.Rows([{"n": n} for n in range(9)]), tmp_path / "out")
    document = rs.normalisation(tmp_path / "out", ["n"]).to_json()
    path = tmp_path / "stats.json"
    path.write_text(json.dumps(document))
    assert Normalisation.load(path).to_json() == json.loads(path.read_text())
    path.write_text(json.dumps(document | change))
    with raises(rs.OptionError, option="statistics", value=str(path)):
        Normalisation.load(path)
