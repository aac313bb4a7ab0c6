"""Augmentations do what is published, as often as published, the same each time for a seed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.image.kernel import augmenting
from recordsmith.support.errors import FunctionError, OptionError

from ...raising import raises
from ...reading import written
from .references import Array, InNumPy, InTorchvision, kolmogorov_smirnov

STEPS = ("brightness", "contrast", "saturation", "hue")
COUNT = 3000
SAME: list[Any] = [
    rs.Mixup(classes=5),
    rs.Mixup(classes=5, dtype="float32"),
    rs.Cutmix(classes=5),
    rs.RandomErasing(),
    rs.RandomErasing(value="random"),
    rs.ColorJitter(brightness=0.5, contrast=0.5, saturation=0.5, hue=0.5),
]
"""Augmentations that nearly always change something."""


@pytest.fixture(params=["numpy", "torchvision"])
def reference(request: pytest.FixtureRequest) -> InNumPy | InTorchvision:
    if request.param == "numpy":
        return InNumPy()
    if find_spec("torchvision") is None:
        pytest.skip("needs torchvision")
    return InTorchvision()


def images(count: int, height: int = 9, width: int = 31, channels: int = 3) -> Array:
    """Noise and flat images of all levels, also grey ones, whose hue is not defined."""
    drawn = np.random.default_rng(5).integers(0, 256, (count, height, width, channels), np.uint8)
    drawn[1::4] = drawn[1::4, :1, :1]
    drawn[2::4] = drawn[2::4, :, :, :1]
    drawn[3::4] //= 32
    return drawn


def batch(count: int, dtype: str = "uint8") -> dict[str, Any]:
    return {
        "image": images(count).astype(dtype),
        "label": np.arange(count) % 5,
        "name": np.arange(count),
    }


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# -- what is done ----------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_a_change_of_colours_equals_the_reference(
    step: str, reference: InNumPy | InTorchvision
) -> None:
    """To a level, where a float is next to an integer; nearly all levels are the same."""
    given = images(8)
    factors = [-0.5, -0.31, -0.02, 0.0, 0.1, 0.333, 0.4, 0.5] if step == "hue" else [
        0.0, 0.3, 0.77, 1.0, 1.001, 1.4, 2.0, 9.0
    ]  # fmt: skip
    for factor in factors:
        function = rs.ColorJitter(**{step: (factor, factor)})
        got = function({"image": given}, rng())["image"]
        expected = np.stack([reference.change(step, image, factor) for image in given])
        difference = abs(got.astype(int) - expected)
        assert difference.max() <= 1, factor
        assert (difference > 0).mean() < 0.003, factor


def test_changes_are_made_in_the_order_that_was_drawn(reference: InNumPy | InTorchvision) -> None:
    given = np.repeat(images(1), 40, axis=0)
    steps = rng().permuted(np.tile(np.arange(4, dtype=np.int8), (40, 1)), axis=1)
    factors = rng(1).uniform(0.6, 1.4, (40, 4))
    factors[:, 3] -= 1
    got = np.empty_like(given)
    augmenting.jitter(given.reshape(40, -1, 3), steps, factors, got.reshape(40, -1, 3))
    for row in range(40):
        expected = given[row]
        for step in steps[row]:
            expected = reference.change(STEPS[step], expected, factors[row, step])
        difference = abs(got[row].astype(int) - expected)
        assert difference.max() <= 4, row  # a level in one step is more after the next ones
        assert (difference > 1).mean() < 0.01, row


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize(
    ("dtype", "result"), [("uint8", None), ("uint8", "float32"), ("float32", None)]
)
def test_mixup_mixes_with_the_image_before(count: int, dtype: str, result: Any) -> None:
    given = batch(count, dtype)
    mixed = rs.Mixup(classes=5, alpha=0.8, dtype=result)(given, rng(3))
    share = _share(0.8, rng(3))
    soft = np.eye(5)[given["label"]]
    expected = share * given["image"] + (1 - share) * np.roll(given["image"], 1, 0).astype(float)
    assert mixed["image"].dtype == (result or dtype)
    bound = 0.5001 if mixed["image"].dtype == np.uint8 else 1e-4
    assert abs(mixed["image"] - expected).max() <= bound
    assert mixed["label"].dtype == np.float32
    np.testing.assert_allclose(
        mixed["label"], share * soft + (1 - share) * np.roll(soft, 1, 0), atol=1e-6
    )
    again = rs.Mixup(classes=5, alpha=0.8)({**given, "label": soft}, rng(3))  # probabilities
    np.testing.assert_array_equal(again["label"], mixed["label"])
    assert mixed["name"] is given["name"]


def _share(alpha: float, generator: np.random.Generator) -> float:
    generator.random()  # whether to mix
    return generator.beta(alpha, alpha)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_cutmix_replaces_a_box(count: int) -> None:
    given = {"image": np.repeat(np.arange(count, dtype="uint8"), 9 * 31 * 3).reshape(-1, 9, 31, 3),
             "label": np.arange(count)}  # fmt: skip
    for seed in range(20):
        mixed = rs.Cutmix(classes=7)(given, rng(seed))
        own = np.arange(count).reshape(-1, 1, 1, 1)
        assert ((mixed["image"] == own) | (mixed["image"] == (own - 1) % count)).all()
        is_cut = (mixed["image"] != own).all(axis=3)
        rows, columns = is_cut.any(axis=2), is_cut.any(axis=1)
        assert (is_cut == rows[:, :, np.newaxis] & columns[:, np.newaxis]).all()  # a box
        share = 1 - is_cut.mean(axis=(1, 2))
        np.testing.assert_allclose(
            mixed["label"][np.arange(count), np.arange(count)], share, rtol=1e-6
        )


@pytest.mark.parametrize("value", [7, (1, 2, 250), "random"])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_erasing_changes_only_a_box(value: Any, dtype: str) -> None:
    given = np.full((50, 20, 30, 3), 9, dtype)
    erased = rs.RandomErasing(probability=0.8, value=value)({"image": given}, rng())["image"]
    is_erased = (erased != 9).any(axis=3)
    rows, columns = is_erased.any(axis=2), is_erased.any(axis=1)
    if value != "random":
        assert (is_erased == rows[:, :, np.newaxis] & columns[:, np.newaxis]).all()
        assert (erased[is_erased] == value).all()
    assert 30 <= is_erased.any(axis=(1, 2)).sum() <= 48
    assert (given == 9).all()  # the caller's


def test_erasing_leaves_images_in_which_nothing_fits() -> None:
    given = {"image": images(5, 1, 1)}
    erased = rs.RandomErasing(probability=1, scale=(1, 1))(given, rng())
    np.testing.assert_array_equal(erased["image"], given["image"])


# -- how it is drawn -------------------------------------------------------------------------------


def test_shares_boxes_and_factors_are_drawn_as_published(
    reference: InNumPy | InTorchvision,
) -> None:
    for alpha in (0.2, 1.0, 3.0):
        labels = {"image": np.zeros((2, 1, 1, 3), "uint8"), "label": np.array([0, 1])}
        mixup, generator = rs.Mixup(classes=2, alpha=alpha), rng(1)
        ours = [mixup(labels, generator)["label"][0, 0] for _ in range(COUNT)]
        theirs = [reference.mixup_share(alpha) for _ in range(COUNT)]
        assert kolmogorov_smirnov(np.array(ours), np.array(theirs, np.float32)) < 1, alpha
    given = {"image": np.array([0, 1], "uint8").repeat(20 * 30 * 3).reshape(2, 20, 30, 3),
             "label": np.array([0, 1])}  # fmt: skip
    cutmix, generator = rs.Cutmix(classes=2), rng(2)
    _compare_boxes(
        [_box(cutmix(given, generator)["image"][0] != 0) for _ in range(COUNT)],
        [reference.cutmix_box(1.0, 20, 30) for _ in range(COUNT)],
    )
    scale, ratio = (0.02, 0.5), (0.3, 3.3)
    erasing = rs.RandomErasing(probability=1, scale=scale, ratio=ratio, value=1)
    erased = erasing({"image": np.zeros((COUNT, 20, 30, 1), "uint8")}, rng(3))["image"]
    _compare_boxes(
        [_box(image != 0) for image in erased],
        [reference.erased_box(scale, ratio, 20, 30) for _ in range(COUNT)],
    )


def _box(changed: Array) -> tuple[int, ...]:
    rows, columns = (np.flatnonzero(changed.any(axis=axes)) for axes in ((1, 2), (0, 2)))
    if not len(rows):
        return 0, 0, 0, 0
    return int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1


def _compare_boxes(ours: list[tuple[int, ...]], theirs: list[tuple[int, ...]]) -> None:
    def measures(boxes: list[tuple[int, ...]]) -> list[Array]:
        array = np.array(boxes)
        array[(array[:, 2] <= array[:, 0]) | (array[:, 3] <= array[:, 1])] = 0  # empty boxes
        sides = array[:, 2:] - array[:, :2]
        return [*array.T, *sides.T, sides.prod(axis=1)]

    for one, other in zip(measures(ours), measures(theirs), strict=True):
        assert kolmogorov_smirnov(one, other) < 1


def test_factors_and_orders_are_drawn_as_published(
    reference: InNumPy | InTorchvision, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Array] = []
    monkeypatch.setattr(
        "recordsmith.loading.augment.colour_jitter.jitter", lambda *given: drawn.extend(given[1:3])
    )
    options = {"brightness": 1.4, "contrast": 0.3, "saturation": 0.5, "hue": 0.2}
    rs.ColorJitter(**options)({"image": np.zeros((COUNT, 1, 1, 3), "uint8")}, rng(4))  # type: ignore[arg-type]
    orders, factors = map(
        np.array, zip(*(reference.jitter_factors(**options) for _ in range(COUNT)), strict=True)
    )
    for step in range(4):
        assert kolmogorov_smirnov(drawn[1][:, step], factors[:, step]) < 1
    numbers = [
        np.unique(each @ [64, 16, 4, 1], return_counts=True)[1]
        for each in (drawn[0].astype(int), orders)
    ]
    for counts in numbers:  # 24 orders, equally often: chi square
        assert len(counts) == 24
        assert ((counts - COUNT / 24) ** 2 / (COUNT / 24)).sum() < 23 + 5 * 46**0.5
    assert abs(np.corrcoef(drawn[1].T) - np.eye(4)).max() < 5 / COUNT**0.5


# -- repetition, and loaders -----------------------------------------------------------------------


@pytest.mark.parametrize("function", SAME, ids=repr)
def test_the_same_seed_gives_the_same_and_pickles(function: Any) -> None:
    given = batch(9)
    before = pickle.dumps(given)
    first = function(given, rng(7))
    assert pickle.dumps(given) == before  # nothing is changed in place
    assert not np.array_equal(first["image"], given["image"])
    again = pickle.loads(pickle.dumps(function))(given, rng(7))
    for name, entry in first.items():
        np.testing.assert_array_equal(again[name], entry)
    assert not np.array_equal(function(given, rng(8))["image"], first["image"])


@pytest.mark.parametrize("function", SAME, ids=repr)
def test_an_empty_batch_stays_empty(function: Any) -> None:
    got = function(batch(0), rng())
    assert got["image"].shape == (0, 9, 31, 3)
    assert "classes" not in vars(function) or got["label"].shape == (0, 5)


@pytest.mark.parametrize("function", SAME[3:], ids=repr)
def test_an_image_alone_is_a_batch_of_one(function: Any) -> None:
    alone = function({"image": images(1)[0]}, rng())["image"]
    np.testing.assert_array_equal(alone, function({"image": images(1)}, rng())["image"][0])


@pytest.mark.parametrize("function", SAME[3:], ids=repr)
def test_steps_of_a_window_are_changed_alike(function: Any) -> None:
    """As if they were one image; of an example, and of a batch of windows."""
    frames = images(5)
    windows = np.stack([np.repeat(frames[row : row + 1], 4, axis=0) for row in range(5)])
    changed = function({"image": windows}, rng())["image"]
    expected = function({"image": frames}, rng())["image"]
    assert not np.array_equal(expected, frames)
    np.testing.assert_array_equal(changed, np.repeat(expected[:, np.newaxis], 4, axis=1))
    example = function.map_example({"image": windows[0]}, rng(4))["image"]
    alone = function.map_example({"image": frames[0]}, rng(4))["image"]
    np.testing.assert_array_equal(example, np.repeat(alone[np.newaxis], 4, axis=0))
    assert function({"image": np.zeros((0, 4, 9, 31, 3), "uint8")}, rng())["image"].shape[0] == 0


@pytest.mark.parametrize("map_name", ["map_examples", "map_batches"])
@pytest.mark.parametrize("function", SAME[3:], ids=repr)
@pytest.mark.parametrize("is_list", [False, True])
def test_windows_of_a_loader(
    function: Any, map_name: str, tmp_path: Path, *, is_list: bool
) -> None:
    frame = images(1)[0].tobytes()
    record = {"steps/cam": [frame] * 12, "steps/is_first": [1] + [0] * 11}
    windows = rs.Episodes(written(tmp_path, [record]), window=3)
    image = rs.Image("steps/cam", (9, 31), raw_shape=(9, 31, 3))
    options: Any = {map_name: [function] if is_list else function}
    (batch,) = rs.Loader(windows, {"image": image}, batch_size=10, threads=0, **options)
    assert batch["image"].shape == (10, 3, 9, 31, 3)
    assert (batch["image"] == batch["image"][:, :1]).all()
    assert len({row.tobytes() for row in batch["image"]}) > 2


def _with_id(batch: dict[str, Any]) -> dict[str, Any]:
    assert len(batch["image"])  # users' functions are not called without rows
    return {**batch, "label": batch["label"] + 0}


@pytest.mark.parametrize(
    ("maps", "dtypes"),
    [
        (rs.Mixup(classes=5, dtype="float32"), ("float32", "float32")),
        (rs.Cutmix(classes=5), ("uint8", "float32")),
        ([rs.RandomErasing(), rs.Mixup(classes=5)], ("uint8", "float32")),
        ([rs.Mixup(classes=5), _with_id], ("uint8", "float32")),
        (_with_id, ("uint8", "int64")),
        ([_with_id, rs.Mixup(classes=5)], ("uint8", "int64")),
    ],
)
def test_batches_without_rows_have_the_entries_of_others(
    make: Any, maps: Any, dtypes: tuple[str, str]
) -> None:
    """As far as no user's function comes before."""
    count = 0
    for batch in make(map_batches=maps, filter=lambda example: example["label"] == 9):
        assert (batch["image"].dtype, batch["label"].dtype) == dtypes
        assert batch["image"].shape == (0, 9, 31, 3)
        assert batch["label"].shape == ((0, 5) if dtypes[1] == "float32" else (0,))
        count += 1
    assert count == 6
    spec = make(map_batches=maps, filter=lambda example: example["label"] == 9).spec()
    assert spec["label"].dtype == dtypes[1]


def test_padded_images_of_batches_without_rows(dataset: rs.Dataset) -> None:
    """Which have no pixels."""
    image = rs.Image("pixels", fit="pad", raw_shape=(9, 31, 3))
    for function in (rs.Mixup(classes=5), rs.Cutmix(classes=5), SAME[3], SAME[5]):
        loader = rs.Loader(
            dataset, {"image": image, "label": "label"}, batch_size=23,
            filter=lambda example: example["label"] == 9, map_batches=function,
        )  # fmt: skip
        assert [batch["image"].shape for batch in loader] == [(0, 0, 0, 3)]


def test_images_need_not_be_contiguous() -> None:
    given = batch(6)
    turned = {**given, "image": given["image"][::-1, :, ::2]}
    for function in SAME:
        expected = function({**turned, "image": turned["image"].copy()}, rng())
        np.testing.assert_array_equal(function(turned, rng())["image"], expected["image"])


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    path = tmp_path_factory.mktemp("augment") / "a.tfrecord"
    with rs.ShardWriter(path) as writer:
        for number in range(23):
            writer.write_example({"label": number % 5, "pixels": images(24)[number].tobytes()})
    return rs.open(path)


@pytest.fixture
def make(dataset: rs.Dataset) -> Callable[..., rs.Loader]:
    pixels = rs.Image("pixels", size=(9, 31), raw_shape=(9, 31, 3))
    return lambda **options: rs.Loader(
        dataset, {"image": pixels, "label": rs.Scalar("label")}, batch_size=4, **options
    )


def test_lists_of_maps_are_called_in_order_and_repeat(make: Any) -> None:
    options = {"map_examples": [SAME[3], SAME[5]], "map_batches": SAME[:1], "shuffle": True}
    batches = [*make(threads=0, **options)]
    assert [value["label"].shape for value in batches] == [(4, 5)] * 5 + [(3, 5)]
    loader = make(threads=3, epochs=2, **options)
    repeated = iter(loader)
    for value in batches[:3]:
        np.testing.assert_array_equal(next(repeated)["image"], value["image"])
    resumed = make(threads=2, epochs=2, **options)
    resumed.load_state_dict(loader.state_dict())
    rest = [*resumed]
    for value, one in zip(batches[3:], rest, strict=False):
        np.testing.assert_array_equal(one["image"], value["image"])
    assert not np.array_equal(rest[3]["image"], batches[0]["image"])  # the next epoch

    one_by_one = make(
        threads=0,
        map_batches=lambda batch, generator: SAME[3](SAME[5](batch, generator), generator),
    )
    listed = make(threads=0, map_batches=[SAME[5], None, SAME[3], lambda batch: batch])
    for value, other in zip(one_by_one, listed, strict=True):
        np.testing.assert_array_equal(value["image"], other["image"])
    assert len([*make(map_batches=[])]) == 6
    with raises(OptionError, option="map_batches", value=3):
        make(map_batches=[SAME[3], 3])


def test_errors_reach_the_user_of_the_loader(make: Any) -> None:
    with raises(FunctionError, match="class 2", function="map_batches"):
        [*make(map_batches=rs.Mixup(classes=2), threads=0)]


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "option", "value"),
    [
        *((kind, "alpha", value) for kind in (rs.Mixup, rs.Cutmix)
          for value in (0, -1.0, float("nan"), float("inf"), "1", True)),
        *((kind, "probability", value) for kind in (rs.Mixup, rs.Cutmix, rs.RandomErasing)
          for value in (-0.1, 1.1, float("nan"), None)),
        (rs.Mixup, "classes", 0), (rs.Cutmix, "classes", 2.0), (rs.Mixup, "dtype", "float64"),
        (rs.RandomErasing, "scale", (0.5, 0.2)), (rs.RandomErasing, "scale", (0, 1.5)),
        (rs.RandomErasing, "ratio", (0, 1)), (rs.RandomErasing, "ratio", 3),
        (rs.RandomErasing, "value", "noise"), (rs.RandomErasing, "value", ()),
        (rs.RandomErasing, "value", (1, float("nan"), 2)),
        (rs.ColorJitter, "brightness", -1), (rs.ColorJitter, "contrast", (0.5, 0.1)),
        (rs.ColorJitter, "saturation", float("inf")), (rs.ColorJitter, "hue", 0.6),
        (rs.ColorJitter, "hue", (-0.6, 0)), (rs.ColorJitter, "hue", (0, 0.1, 0.2)),
    ],
)  # fmt: skip
def test_bad_options(kind: Any, option: str, value: Any) -> None:
    needed = {"classes": 5} if kind in (rs.Mixup, rs.Cutmix) else {}
    with raises(OptionError, option=option, value=value):
        kind(**{**needed, option: value})


BAD_IMAGES = {
    "dtype": np.zeros((2, 4, 4, 3)),
    "levels": np.zeros((2, 4, 4, 3), "uint16"),
    "planes": np.zeros((2, 3, 4, 5), "uint8"),
    "channels": np.zeros((2, 3, 4, 8), "uint8"),
    "no pixels": np.zeros((2, 0, 4, 3), "uint8"),
    "ragged": rs.RaggedArray(np.zeros(4, "float32"), np.array([0, 1, 4])),
    "objects": np.array([np.zeros((1, 1, 3)), None], object),
    "list": [np.zeros((4, 4, 3), "uint8"), np.zeros((5, 4, 3), "uint8")],
}


@pytest.mark.parametrize("function", SAME, ids=repr)
@pytest.mark.parametrize("bad", BAD_IMAGES)
def test_bad_images(function: Any, bad: str) -> None:
    with raises(OptionError, option="image", match="image"):
        function({"image": BAD_IMAGES[bad], "label": np.array([0, 1])}, rng())


@pytest.mark.parametrize(
    ("label", "option"),
    [
        (np.array([0, 5]), "classes"), (np.array([-1, 0]), "classes"),
        (np.array([0, 1, 2]), "label"), (np.array([0.0, 1.0]), "label"),
        (np.zeros((2, 4), "float32"), "label"), (np.array([True, False]), "label"),
        (np.array(["a", "b"]), "label"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [rs.Mixup, rs.Cutmix])
def test_bad_labels(kind: Any, label: Array, option: str) -> None:
    with raises(OptionError, option=option):
        kind(classes=5)({"image": images(2), "label": label}, rng())


def test_other_bad_input() -> None:
    with raises(OptionError, option="label", value="label", match="'image'"):
        SAME[0]({"image": images(2)}, rng())
    with raises(OptionError, option="image", value="image"):
        SAME[5]({}, rng())
    with raises(OptionError, option="dtype", value="uint8"):
        rs.Mixup(classes=5, dtype="uint8")(batch(2, "float32"), rng())
    with raises(OptionError, option="image"):
        SAME[5]({"image": images(2, channels=4)}, rng())
    for value in ((1, 2), 256, -1):
        with raises(OptionError, option="value", value=value):
            rs.RandomErasing(value=value)({"image": images(2)}, rng())


def test_the_kernel_checks_what_it_gets() -> None:
    given = np.zeros((2, 4, 3), "uint8")
    steps, factors = np.zeros((2, 1), np.int8), np.ones((2, 4))
    for bad in (
        (given, steps[:1], factors, given), (given, steps, factors[:, :3].copy(), given),
        (given, steps + np.int8(4), factors, given), (given, steps - np.int8(1), factors, given),
        (given, steps, factors, given[:1]), (given[..., :2].copy(), steps, factors, given),
    ):  # fmt: skip
        with pytest.raises(IndexError):
            augmenting.jitter(*bad)
    flat = given.reshape(2, -1)
    with pytest.raises(IndexError):
        augmenting.mix(flat, 0.5, flat[:1].copy())
    with pytest.raises(TypeError):
        augmenting.mix(flat.astype(np.float32), 0.5, flat)
