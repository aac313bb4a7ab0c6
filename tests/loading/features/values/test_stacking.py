"""Stacked bands equal NumPy's; bands that do not fit are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.raising import raises
from tests.reading import written

import recordsmith as rs
from recordsmith.support.errors import OptionError

SHAPE = (3, 5)
BANDS = ["B2", "B3", "B4"]
COUNT = 7


def bands(number: int) -> dict[str, Any]:
    """Two bands of floats, and one of integers."""
    random = np.random.default_rng(number)
    floats = {key: random.normal(size=SHAPE).astype(np.float32) for key in BANDS[:2]}
    return {**floats, "B4": random.integers(0, 2000, SHAPE)}


def flat(row: dict[str, Any]) -> dict[str, Any]:
    return {key: np.ravel(value) for key, value in row.items()}


@pytest.fixture
def dataset(tmp_path: Path) -> rs.Dataset:
    return written(tmp_path, [flat(bands(number)) for number in range(COUNT)])


def stacked(dataset: rs.Dataset, feature: Any) -> Any:
    return rs.Examples(dataset, {"x": feature}).batch(range(len(dataset)))["x"]


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("keys", [BANDS, BANDS[:1], BANDS[2:], ["B4", "B2", "B4"]])
@pytest.mark.parametrize("dtype", [None, "float16", "float64"])
def test_equal_to_numpy(dataset: rs.Dataset, keys: Any, layout: Any, dtype: Any) -> None:
    axis = {"HWC": -1, "CHW": 0}[layout]
    x = stacked(dataset, rs.Stack(keys, SHAPE, layout=layout, dtype=dtype))
    expected = [
        np.stack([bands(number)[key] for key in keys], axis) for number in range(COUNT)
    ]  # fmt: skip
    assert x.dtype == (dtype or ("int64" if keys == ["B4"] else "float32"))
    np.testing.assert_array_equal(x, np.array(expected).astype(x.dtype))


def test_normalised_by_band(dataset: rs.Dataset) -> None:
    statistics: dict[str, Any] = {
        key: {"mean": mean, "std": mean / 2, "q01": -mean, "q99": mean}
        for key, mean in zip(BANDS, (0.5, 1, 1000), strict=True)
    }
    stored = stacked(dataset, rs.Stack(BANDS, SHAPE)).astype(np.float64)
    means = np.array([0.5, 1, 1000])
    scaled = (stored - means) / (means / 2)
    for how, expected in (
        (rs.Normalise("mean", statistics), scaled),
        (rs.Normalise("q99", statistics), np.clip(stored / means, -1, 1)),
        (rs.Normalise("mean", statistics, mask=[True, False, True]),
         np.where([True, False, True], scaled, stored)),
    ):  # fmt: skip
        x = stacked(dataset, rs.Stack(BANDS, SHAPE, normalise=how))
        assert x.dtype == np.float32
        np.testing.assert_allclose(x, expected, 1e-5, 1e-6)
        first = stacked(dataset, rs.Stack(BANDS, SHAPE, normalise=how, layout="CHW"))
        np.testing.assert_array_equal(np.moveaxis(first, 1, -1), x)
    with raises(OptionError, option="statistics", match="B4"):
        few = rs.Normalise("mean", {key: statistics[key] for key in BANDS[:2]})
        stacked(dataset, rs.Stack(BANDS, SHAPE, normalise=few))
    with raises(OptionError, option="mask"):
        rs.Stack(BANDS, SHAPE, normalise=rs.Normalise("mean", statistics, mask=[True]))
    x = rs.Stack(BANDS, SHAPE, normalise=rs.Normalise("mean", statistics))
    state = rs.Loader(dataset, {"x": x}, batch_size=2).state_dict()
    assert "mean " in json.dumps(state), "a state knows the statistics"


def test_bands_that_do_not_fit(tmp_path: Path) -> None:
    rows = [{"B2": [1.0, 2.0], "B3": [3.0, 4.0], "raw": b"a"}, {"B2": [5.0, 6.0], "raw": b"b"}]
    dataset = written(tmp_path, rows)
    x = stacked(dataset, rs.Stack(BANDS[:2], (2,), default=-1))
    assert x.tolist() == [[[1, 3], [2, 4]], [[5, -1], [6, -1]]]
    for keys, shape, words in (
        (["B2", "B3"], (2,), "1 of 2 records .*'B3'"),
        (["B2", "B5"], (2,), "'B5'"),
        (["B2", "B3"], (2, 2), "'B2' has 2 values; expected 4 "),
        (["B2", "raw"], (2,), "'raw' is bytes.*rs.Raw"),
    ):
        with raises(OptionError, match=words):
            stacked(dataset, rs.Stack(keys, shape))
