"""Stacked bands equal NumPy's and TensorFlow's; bands that do not fit are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.raising import raises
from tests.reading import written

import recordsmith as rs
from recordsmith.support.errors import CorruptDataError, Defect, OptionError

SHAPE = (3, 5)
BANDS = ["B2", "B3", "B4"]
COUNT = 7


def bands(number: int) -> dict[str, Any]:
    """Two bands of floats, one of integers, and one of bytes."""
    random = np.random.default_rng(number)
    floats = {key: random.normal(size=SHAPE).astype(np.float32) for key in BANDS[:2]}
    return {**floats, "B4": random.integers(0, 2000, SHAPE), "raw": bytes(15)}


def flat(row: dict[str, Any]) -> dict[str, Any]:
    return {key: np.ravel(value) if key in BANDS else value for key, value in row.items()}


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


def test_equal_to_tensorflow(tmp_path: Path, tf: Any) -> None:
    random = np.random.default_rng(0)
    rows = [{key: random.random((257, 257), np.float32) for key in BANDS} for _ in range(3)]
    dataset = written(tmp_path, map(flat, rows))
    specs = {key: tf.io.FixedLenFeature([257, 257], tf.float32) for key in BANDS}

    def parsed(payload: Any) -> Any:
        return tf.stack([tf.io.parse_single_example(payload, specs)[key] for key in BANDS], -1)

    x = stacked(dataset, rs.Stack(BANDS, (257, 257)))
    files = tf.data.TFRecordDataset([str(shard.location) for shard in dataset.shards]).map(parsed)
    np.testing.assert_array_equal(x, np.array(list(files.as_numpy_iterator())))


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


def test_other_statistics_are_another_loader(dataset: rs.Dataset) -> None:
    def loader(mean: float) -> rs.Loader:
        statistics = {key: {"mean": mean, "std": 1} for key in BANDS}
        x = rs.Stack(BANDS, SHAPE, normalise=rs.Normalise("mean", statistics))
        return rs.Loader(dataset, {"x": x}, batch_size=2, threads=0)

    state = loader(0).state_dict()
    loader(0).load_state_dict(state)
    with raises(OptionError, match="normalis"):
        loader(1).load_state_dict(state)


def test_resume_and_ranks(dataset: rs.Dataset) -> None:
    """Batches after a state, and of ranks and workers, are those of one loader."""
    features = {
        "x": rs.Stack(BANDS, SHAPE),
        "image": rs.Image(
            "B2", 2, "random-crop", channels=1, raw_shape=SHAPE, raw_dtype="float32", flip="both"
        ),
        "at": rs.Position(),
    }

    def loader(**options: Any) -> rs.Loader:
        return rs.Loader(dataset, features, shuffle=True, **{"batch_size": 2, **options})

    (expected,) = loader(batch_size=COUNT)
    batches = list(loader())
    for step in range(1, len(batches)):
        first, again = loader(), loader(threads=0)
        iterator = iter(first)
        for _ in range(step):
            next(iterator)
        again.load_state_dict(first.state_dict())
        first.close()
        for found, batch in zip(again, batches[step:], strict=True):
            for name in features:
                np.testing.assert_array_equal(found[name], batch[name])
    for world_size in range(1, 6):
        seen = []
        for rank in range(world_size):
            for batch in loader(rank=rank, world_size=world_size, threads=0):
                seen += batch["at"].tolist()
                rows = [expected["at"].tolist().index(at) for at in batch["at"]]
                for name in features:
                    np.testing.assert_array_equal(batch[name], expected[name][rows])
        assert sorted(seen) == list(range(COUNT))


def test_bands_that_are_missing(tmp_path: Path) -> None:
    rows = [{"B2": [1.0, 2.0], "B3": [3.0, 4.0]}, {"B2": [5.0, 6.0]}]
    dataset = written(tmp_path, rows)
    with raises(OptionError, option="default", match="1 of 2 records .*'B3'"):
        stacked(dataset, rs.Stack(BANDS[:2], (2,)))
    x = stacked(dataset, rs.Stack(BANDS[:2], (2,), default=-1))
    assert x.tolist() == [[[1, 3], [2, 4]], [[5, -1], [6, -1]]]
    with raises(OptionError, match="'B5'"):
        stacked(dataset, rs.Stack(["B2", "B5"], (2,)))
    with raises(OptionError, match="'B2' has 2 values; expected 4 "):
        stacked(dataset, rs.Stack(BANDS[:2], (2, 2)))


@pytest.mark.parametrize(
    ("changes", "defect"),
    [
        ({"B3": [0.0] * 14}, Defect.FEATURE_SHAPE),
        ({"B3": None}, Defect.MISSING_FEATURE),
        ({"B3": [1] * 15}, Defect.FEATURE_KIND),
        ({"B3": [1e9] * 15}, Defect.FEATURE_VALUE),
    ],
)
def test_a_record_that_differs_is_named_or_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], defect: Defect
) -> None:
    from recordsmith.loading.order import inputs

    monkeypatch.setattr(inputs, "PREVIEW_COUNT", 4)
    rows = [flat(bands(number)) for number in range(COUNT)]
    bad = {**rows[5], **changes}
    rows[5] = {key: value for key, value in bad.items() if value is not None}
    dataset = written(tmp_path, rows)
    features = {"x": rs.Stack(BANDS, SHAPE, dtype="float16")}
    with raises(CorruptDataError, defect=defect, record=5, feature="B3"):
        list(rs.Loader(dataset, features, batch_size=3))
    with rs.Loader(dataset, features, batch_size=3, skip_errors=1) as loader:
        assert sum(len(batch["x"]) for batch in loader) == COUNT - 1
        assert [error.feature for error in loader.skipped] == ["B3"]


def test_bytes_are_read_otherwise(dataset: rs.Dataset) -> None:
    with pytest.raises(OptionError) as caught:
        stacked(dataset, rs.Stack(["B2", "raw"], SHAPE))
    assert "rs.Raw('raw', " in caught.value.remedy
