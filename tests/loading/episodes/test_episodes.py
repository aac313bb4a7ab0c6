"""Windows of episodes are what slicing the decoded episodes gives, in each order, once."""

from __future__ import annotations

import io
import itertools
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.raising import raises
from tests.reading import written
from tests.serialized_tensors import serialized
from tests.stores.rounds import RoundStore

import recordsmith as rs
from recordsmith.dataset.column_file import record_steps
from recordsmith.image import decode_image
from recordsmith.stores import Location

LENGTHS = [10, 3, 17, 1, 0, 8, 40]
FEATURES = {
    "action": rs.Ragged("steps/action"),
    "text": rs.Text("steps/text", "ragged"),
    "count": rs.Ragged("steps/count"),
    "id": "id",
    "episode": "window/episode",
    "start": "window/start",
    "is_step": rs.Ragged("window/is_step"),
}
Episode = dict[str, list[Any]]
Make = Callable[[Path, list[Episode]], rs.Dataset]


def episodes_of(lengths: list[int]) -> list[Episode]:
    """Steps by key: an action of two numbers, a text, and a number."""
    return [
        {
            "steps/action": [[number, step / 8] for step in range(length)],
            "steps/text": [[f"{number}.{step}"] for step in range(length)],
            "steps/count": [[step * 100 + number] for step in range(length)],
        }
        for number, length in enumerate(lengths)
    ]


def as_examples(path: Path, episodes: list[Episode]) -> rs.Dataset:
    records = [
        {key: [value for step in steps for value in step] for key, steps in episode.items()}
        for episode in episodes
    ]
    floats = [
        record | {"steps/action": np.array(record["steps/action"], np.float32), "id": [number]}
        for number, record in enumerate(records)
    ]
    return written(path, floats)


def as_sequences(path: Path, episodes: list[Episode]) -> rs.Dataset:
    return written(
        path,
        [
            rs.encode_sequence_example(
                {"id": [number]},
                episode
                | {"steps/action": [np.array(at, np.float32) for at in episode["steps/action"]]},
            )
            for number, episode in enumerate(episodes)
        ],
    )


MAKERS = pytest.mark.parametrize("make", [as_examples, as_sequences])


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    return as_examples(tmp_path_factory.mktemp("episodes"), episodes_of(LENGTHS))


def expected(episode: Episode, key: str, steps: list[int], pad: str) -> list[Any]:
    """The values of some steps, which may be outside the episode."""
    values: list[Any] = []
    for step in steps:
        known = episode[key]
        if pad == "zero" and not 0 <= step < len(known):
            zero = "" if key == "steps/text" else 0
            values += [zero] * len(known[0])
        else:
            values += known[min(max(step, 0), len(known) - 1)]
    return values


@MAKERS
@pytest.mark.parametrize("cache_bytes", [0, 200, "64MiB"])
def test_random_windows_equal_slices_of_the_decoded_episodes(
    make: Make, cache_bytes: int, tmp_path: Path
) -> None:
    random = np.random.default_rng(0)
    episodes = episodes_of([*LENGTHS, *random.integers(1, 60, 20).tolist()])
    dataset = make(tmp_path, episodes)
    checked = 0
    for pad in ("drop", "repeat", "zero"):
        for _ in range(4):
            window, stride = random.integers(1, 12, 2).tolist()
            begin = int(random.integers(-4, 4))
            ranges = {"steps/count": range(begin, begin + int(random.integers(1, 8)))}
            windows = rs.Episodes(
                dataset, window=window, stride=stride, pad=pad, ranges=ranges,
                cache_bytes=cache_bytes,
            )  # fmt: skip
            examples = rs.Examples(windows, FEATURES)
            chosen = random.integers(0, len(windows), 60)
            batch = examples.batch(chosen)
            for row in range(len(chosen)):
                number, start = int(batch["episode"][row]), int(batch["start"][row])
                episode, steps = episodes[number], [*range(start, start + window)]
                own = [start + step for step in ranges["steps/count"]]
                assert batch["id"][row] == number
                assert batch["text"][row] == expected(episode, "steps/text", steps, pad)
                assert batch["action"][row].tolist() == expected(
                    episode, "steps/action", steps, pad
                )
                assert batch["count"][row].tolist() == expected(episode, "steps/count", own, pad)
                length = len(episode["steps/text"])
                assert batch["is_step"][row].tolist() == [0 <= step < length for step in steps]
                checked += 1
    assert checked >= 700


def test_steps_of_sequences_are_counted_without_decoding_them(tmp_path: Path) -> None:
    dataset = as_sequences(tmp_path, episodes_of(LENGTHS))
    assert record_steps(dataset, "steps/count").tolist() == LENGTHS
    assert record_steps(dataset[::-2], "steps/text").tolist() == LENGTHS[::-2]
    assert record_steps(dataset, "steps/other").tolist() == [0] * len(LENGTHS)


def test_a_state_of_other_windows_is_refused(dataset: rs.Dataset) -> None:
    def loader(**options: Any) -> rs.Loader:
        return rs.Loader(rs.Episodes(dataset, **options), ["id"], batch_size=2)

    state = loader(window=1, stride=2, pad="zero").state_dict()
    loader(window=1, stride=2, pad="zero").load_state_dict(state)
    for other in ({"window": 2, "stride": 2, "pad": "zero"}, {"window": 1}):
        with raises(rs.OptionError, option="state"):
            loader(**other).load_state_dict(state)


def test_loaders_of_windows_can_be_pickled(dataset: rs.Dataset) -> None:
    loader = rs.Loader(rs.Episodes(dataset, window=3), ["id", "window/start"], batch_size=4)
    again = pickle.loads(pickle.dumps(loader))
    for one, other in zip(loader, again, strict=True):
        np.testing.assert_equal(one, other)


@MAKERS
def test_only_features_that_are_loaded_are_in_the_records(make: Make, tmp_path: Path) -> None:
    windows = rs.Episodes(make(tmp_path, episodes_of([5])), window=2)
    payload = windows.reading(["steps/count", "window/start"]).read_records(np.array([3]))[0]
    example = rs.decode_example(payload)
    assert {key: list(values) for key, values in example.items()} == {
        "steps/count": [300, 400],
        "window/start": [3],
    }
    assert not windows.reading([]).read_records(np.array([0]))[0]


def test_an_episode_is_read_once_for_windows_that_are_near(
    dataset: rs.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recordsmith.dataset import SelectedRecords

    read: Counter[int] = Counter()
    whole = SelectedRecords.read_records

    def counting(self: Any, positions: Any, *arguments: Any) -> Any:
        read.update(np.asarray(positions).tolist())
        return whole(self, positions, *arguments)

    windows = rs.Episodes(dataset, window=2)
    loader = rs.Loader(windows, ["id"], batch_size=3, shuffle=rs.BlockShuffle(8, 2), threads=0)
    monkeypatch.setattr(SelectedRecords, "read_records", counting)
    assert sum(len(batch["id"]) for batch in loader) == len(windows)
    assert set(read.values()) == {1}


@pytest.mark.parametrize("skip_errors", [0, 1])
@pytest.mark.parametrize("is_remote", [False, True])
def test_statistics_have_the_bytes_read_and_used(
    dataset: rs.Dataset, skip_errors: int, *, is_remote: bool
) -> None:
    whole = sum(len(record) for record in dataset.records())
    if is_remote:
        store = RoundStore()
        store.set("a.tfrecord", dataset.shards[0].location.read())
        dataset = rs.open(Location(store, "a.tfrecord"))
    windows = rs.Episodes(dataset, window=2, cache_bytes=0)
    loader = rs.Loader(windows, ["id"], batch_size=1, skip_errors=skip_errors)
    read = sum(
        len(record) * max(length - 1, 0)
        for record, length in zip(dataset.records(), LENGTHS, strict=True)
    )
    used = sum(len(batch["id"]) for batch in loader) * len(rs.encode_example({"id": 100}))
    stats = loader.stats()
    assert stats.byte_count == used
    assert whole < stats.read_byte_count < read if is_remote else stats.read_byte_count == read
    assert stats.read_amplification == stats.read_byte_count / stats.byte_count
    assert f"read {stats.read_amplification:.2f} bytes for each byte used" in str(stats)
    plain = rs.Loader(dataset, ["id"], batch_size=4)
    list(plain)
    assert plain.stats().read_byte_count == plain.stats().byte_count == whole
    assert "each byte used" not in str(plain.stats())


def test_a_mix_takes_windows_of_several_datasets(dataset: rs.Dataset, tmp_path: Path) -> None:
    other = as_sequences(tmp_path, episodes_of([6, 9]))
    one, two = rs.Episodes(dataset, window=4), rs.Episodes(other, window=4, stride=2)
    mix = rs.Mix([(one, 0.75), (two, 0.25)], length=4 * len(two))
    assert mix.draw_counts == (3 * len(two), len(two))
    features = {"text": rs.Text("steps/text", (4,)), "id": "id", "at": rs.Position()}
    texts = [rs.Examples(part, features).batch(range(len(part)))["text"] for part in (one, two)]
    expected = np.concatenate(texts)
    read: Counter[int] = Counter()
    state: Any = None
    for world, stop in ((2, 2), (3, None)):
        for rank in range(world):
            loader = rs.Loader(
                mix, features, batch_size=2, shuffle=True, rank=rank, world_size=world, threads=0
            )
            if state is not None:
                loader.load_state_dict(state)
            for batch in itertools.islice(loader, stop):
                assert (batch["text"] == expected[batch["at"]]).all()
                read.update(batch["at"].tolist())
        state = loader.state_dict() if stop else state
    assert sum(read.values()) == len(mix)
    assert [read[at] for at in range(len(one), len(one) + len(two))] == [1] * len(two)
    changed = rs.Mix([(one, 0.75), (rs.Episodes(other, window=4, stride=3), 0.25)])
    with raises(rs.OptionError, option="state"):
        rs.Loader(changed, features, batch_size=2, shuffle=True).load_state_dict(state)


@MAKERS
@pytest.mark.parametrize("shuffle", [True, rs.BlockShuffle(8, 2)])
def test_windows_over_a_network_are_those_of_a_local_copy(
    make: Make, shuffle: Any, tmp_path: Path
) -> None:
    local = make(tmp_path, episodes_of(LENGTHS))
    store = RoundStore()
    store.set("a.tfrecord", local.shards[0].location.read())
    remote = rs.open(Location(store, "a.tfrecord"))
    batches = [
        list(
            rs.Loader(
                rs.Episodes(dataset, window=3, pad="zero"), FEATURES, batch_size=4, shuffle=shuffle
            )
        )
        for dataset in (local, remote)
    ]
    assert len(batches[0]) == len(batches[1]) > 15
    for own, other in zip(*batches, strict=True):
        assert own.keys() == other.keys()
        for name, entry in own.items():
            assert np.asarray(entry.tolist() == other[name].tolist()).all(), name


# -- images ----------------------------------------------------------------------------------------


def png(number: int, side: int = 8) -> bytes:
    file = io.BytesIO()
    row = np.arange(side * side, dtype=np.uint8).reshape(side, side)
    Image.fromarray(np.stack([row, row, np.full_like(row, number)], -1)).save(file, "PNG")
    return file.getvalue()


def mask(number: int, side: int = 8) -> bytes:
    file = io.BytesIO()
    row = np.arange(side * side, dtype=np.uint8).reshape(side, side)
    Image.fromarray(np.where(row % 5 == number % 5, 9, row)).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    """Episodes of 6 and 9 frames, whose blue is 20 times the episode plus the step."""
    records = [
        {
            "steps/image": [png(20 * episode + step) for step in range(length)],
            "steps/mask": [mask(step) for step in range(length)],
            "steps/is_first": [step == 0 for step in range(length)],
        }
        for episode, length in enumerate([6, 9])
    ]
    return written(tmp_path_factory.mktemp("frames"), records)


def test_images_have_an_axis_of_steps(frames: rs.Dataset) -> None:
    windows = rs.Episodes(frames, window=4)
    features = {"image": "steps/image", "at": "window/start", "episode": "window/episode"}
    for batch in rs.Loader(windows, features, batch_size=3, shuffle=True):
        assert batch["image"].shape[1:] == (4, 8, 8, 3)
        blue = 20 * batch["episode"][:, np.newaxis] + batch["at"][:, np.newaxis] + np.arange(4)
        assert (batch["image"][..., 2] == blue[..., np.newaxis, np.newaxis]).all()
        assert (batch["image"][..., 0] == np.arange(64).reshape(8, 8)).all()


def test_images_of_a_window_are_cropped_and_flipped_alike_with_their_masks(
    frames: rs.Dataset,
) -> None:
    windows = rs.Episodes(frames, window=4)
    image = rs.Image("steps/image", 4, "random-crop", flip="both", layout="CHW")
    features = {"image": image, "mask": rs.Mask("steps/mask")}
    shapes = set()
    for batch in rs.Loader(windows, features, batch_size=9, shuffle=True):
        red, masks = batch["image"][:, :, 0], batch["mask"]
        assert red.shape == masks.shape == (len(red), 4, 4, 4)
        assert (red == red[:, :1]).all(), "frames of a window differ"
        shapes |= {row[0].tobytes() for row in red}
    assert len(shapes) > 3, "windows are alike"
    whole = {"image": rs.Image("steps/image", 8, flip="both"), "mask": rs.Mask("steps/mask")}
    for batch in rs.Loader(windows, whole, batch_size=9, shuffle=True):
        red = batch["image"][..., 0]
        step = batch["image"][..., 2] % 20
        marked = np.where(red % 5 == step % 5, 9, red)
        assert (batch["mask"] == marked).all()


@pytest.mark.parametrize("flip", [None, "vertical"])
def test_jpegs_of_the_size_of_the_batch_are_decoded_into_it(flip: Any, tmp_path: Path) -> None:
    frames = []
    for step in range(5):
        file = io.BytesIO()
        rows = np.arange(32, dtype=np.uint8)[:, np.newaxis, np.newaxis] * [5, 3, step + 1]
        Image.fromarray(np.repeat(rows, 24, 1).astype(np.uint8)).save(file, "JPEG")
        frames.append(file.getvalue())
    pixels = np.stack([decode_image(frame) for frame in frames])
    windows = rs.Episodes(written(tmp_path, [{"steps/image": frames}]), window=2)
    image = rs.Image("steps/image", flip=flip)
    loader = rs.Loader(windows, {"image": image, "at": "window/start"}, batch_size=4, shuffle=True)
    flipped = 0
    for _ in range(4):
        for batch in loader:
            for found, at in zip(batch["image"], batch["at"], strict=True):
                expected = pixels[at : at + 2]
                is_flipped = not np.array_equal(found, expected)
                assert np.array_equal(found, expected[:, ::-1] if is_flipped else expected)
                flipped += is_flipped
    assert 0 < flipped < 16 if flip else not flipped


@pytest.mark.parametrize("threads", [0, 3])
def test_frames_that_windows_share_are_decoded_once_in_a_batch(
    frames: rs.Dataset, threads: int
) -> None:
    windows = rs.Episodes(frames, window=4)
    features = {"image": rs.Image("steps/image"), "flipped": rs.Image("steps/image", flip="both")}
    loader = rs.Loader(windows, features, batch_size=9, threads=threads)
    batch = next(iter(loader))
    blue = batch["image"][:, :, 0, 0, 2].tolist()
    starts = [20 * episode + start for episode, count in ((0, 3), (1, 6)) for start in range(count)]
    assert blue == [[start + step for step in range(4)] for start in starts]
    red = np.arange(64, dtype=np.uint8).reshape(8, 8)
    flips = [red, red[::-1], red[:, ::-1], red[::-1, ::-1]]
    placed = set()
    for window, own in zip(batch["flipped"], blue, strict=True):
        assert window[:, 0, 0, 2].tolist() == own
        placed |= {
            (frame[0, 0, 2], number)
            for frame in window
            for number, flip in enumerate(flips)
            if np.array_equal(frame[..., 0], flip)
        }
    if not threads:  # 6 and 9 frames, and each placement of them
        assert loader.stats().image_pixel_count == 64 * (15 + len(placed))


def test_frames_that_differ_in_one_byte_are_not_shared(tmp_path: Path) -> None:
    frames = []
    for step in range(4):
        file, pixels = io.BytesIO(), np.full((8, 8, 3), 7, np.uint8)
        pixels[-1, 0] = step
        Image.fromarray(pixels).save(file, "BMP")
        frames.append(file.getvalue())
    windows = rs.Episodes(written(tmp_path, [{"steps/image": frames}]), window=2)
    batch = rs.Examples(windows, {"image": "steps/image"}).batch([0, 1, 2])
    assert batch["image"][:, :, -1, 0, 1].tolist() == [[0, 1], [1, 2], [2, 3]]


def test_padding_is_black(frames: rs.Dataset) -> None:
    windows = rs.Episodes(frames, window=1, pad="zero", ranges={
        "steps/image": range(-2, 2), "steps/mask": range(-2, 2)
    })  # fmt: skip
    features = {
        "image": rs.Image("steps/image"),
        "ratio": rs.Image("steps/image", dtype="float32", mean=0.5, std=0.5),
        "padded": rs.Image("steps/image", fit="pad"),
        "mask": rs.Mask("steps/mask", "image", fill=255),
        "is_step": rs.Ragged("window/is_step/steps/image"),
    }
    batch = next(iter(rs.Loader(windows, features, batch_size=len(windows))))
    is_step = np.array(batch["is_step"].tolist(), bool)
    assert is_step.shape == (15, 4)
    assert not is_step.all()
    assert (batch["image"][~is_step] == 0).all()
    assert (batch["ratio"][~is_step] == -1).all()
    assert (batch["mask"][~is_step] == 255).all()
    assert (batch["padded_sizes"] == np.where(is_step, 8, 0)[..., np.newaxis]).all()
    assert (batch["image"][is_step][..., 0] == np.arange(64).reshape(8, 8)).all()
    assert (batch["image"] == batch["padded"]).all()


def test_a_damaged_frame_is_named(tmp_path: Path) -> None:
    images = [png(0), png(1), b"no image", png(3), png(4)]
    dataset = written(tmp_path, [{"steps/image": images, "steps/id": [0, 1, 2, 3, 4]}])
    windows = rs.Episodes(dataset, window=2)
    image = rs.Image("steps/image", 8)
    with raises(rs.CorruptDataError, record=0, match="image 1 of 2: "):
        list(rs.Loader(windows, {"image": image}, batch_size=4))
    loader = rs.Loader(windows, {"image": image, "at": rs.Position()}, batch_size=4, skip_errors=2)
    assert [batch["at"].tolist() for batch in loader] == [[0, 3]]


@pytest.mark.parametrize("skip_whole_episodes", [False, True])
@pytest.mark.parametrize("shuffle", [True, rs.BlockShuffle(8, 2)])
@pytest.mark.parametrize("cache_bytes", [0, "64MiB"])
def test_damaged_images_skip_their_windows_or_their_episode(
    shuffle: Any, cache_bytes: Any, tmp_path: Path, *, skip_whole_episodes: bool
) -> None:
    lengths, window = [6, 9, 4, 7, 5, 3], 3
    damaged = {(1, 0): b"no image", (1, 5): png(0)[:45], (3, 6): png(0)[:60], (4, 2): b"\xff\xd8"}
    records = [
        {
            "steps/image": [damaged.get((number, step), png(step)) for step in range(length)],
            "steps/is_first": [step == 0 for step in range(length)],
        }
        for number, length in enumerate(lengths)
    ]
    path = Path(str(written(tmp_path, records).shards[0].location))
    starts = [(number, at) for number, length in enumerate(lengths) for at in range(length - 2)]
    planted = {
        (number, at): {step for episode, step in damaged if episode == number}
        & set(range(at, at + window))
        for number, at in starts
    }
    lost = {place for place in starts if planted[place]}
    if skip_whole_episodes:
        lost = {(number, at) for number, at in starts if number in (1, 3, 4)}
    assert 0 < len(lost) < len(starts)
    windows = rs.Episodes(
        rs.open(path), window=window, cache_bytes=cache_bytes,
        skip_whole_episodes=skip_whole_episodes,
    )  # fmt: skip

    def loader(rank: int, world: int, skip_errors: int = 99) -> rs.Loader:
        return rs.Loader(
            windows,
            {"image": rs.Image("steps/image"), "id": "window/episode", "start": "window/start"},
            batch_size=2, shuffle=shuffle, rank=rank, world_size=world, skip_errors=skip_errors,
        )  # fmt: skip

    for worlds, stop in (((1,), None), ((3,), None), ((2, 3), 2), ((1, 2), 5)):
        read: Counter[tuple[int, int]] = Counter()
        skipped, counted = 0, set()
        state: Any = None
        for world in worlds:
            for rank in range(world):
                own = loader(rank, world)
                if state is not None:
                    own.load_state_dict(state)
                for batch in itertools.islice(own, None if state else stop):
                    read.update(zip(batch["id"].tolist(), batch["start"].tolist(), strict=True))
                skipped += own.stats().skipped_count
                counted |= {error.record for error in own.skipped}
                if skip_whole_episodes:
                    assert len(own.skipped) == len({error.record for error in own.skipped})
            state = own.state_dict()
        assert read == Counter(dict.fromkeys(set(starts) - lost, 1))
        assert skipped == len(lost)
        assert counted == {1, 3, 4}
    allowed = 3 if skip_whole_episodes else len(lost)
    assert sum(len(batch["id"]) for batch in loader(0, 1, allowed)) == len(starts) - len(lost)
    with raises(rs.CorruptDataError, defect="unreadable-image"):
        list(loader(0, 1, allowed - 1))
    if skip_whole_episodes:
        with raises(rs.CorruptDataError, record=1, feature="steps/image", match="image 0 of 9 of"):
            rs.Examples(windows, {"image": rs.Image("steps/image", 8)})[4]


# -- padding ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    """Episodes of 4 and 3 steps, of which step i has the value i + 1 in each feature."""

    def image(value: int, dtype: str) -> bytes:
        file = io.BytesIO()
        Image.fromarray(np.full((4, 4), value, dtype)).save(file, "PNG")
        return file.getvalue()

    records = []
    for length in (4, 3):
        values = range(1, length + 1)
        records.append(
            {
                "steps/is_first": [value == 1 for value in values],
                "steps/image": [image(value, "uint8") for value in values],
                "steps/depth": [image(1000 * value, "uint16") for value in values],
                "steps/raw": [np.full((2, 2), 1000 * value, "<u2").tobytes() for value in values],
                "steps/pixels": [np.full((4, 4, 3), value, "u1").tobytes() for value in values],
                "steps/number": [float(value) for value in values],
                "steps/serialized": [serialized(np.full((2, 3), value, "i4")) for value in values],
                "steps/text": [str(value) for value in values],
            }
        )
    return written(tmp_path_factory.mktemp("kinds"), records)


@pytest.mark.parametrize("pad", ["drop", "repeat", "zero"])
@pytest.mark.parametrize("window", [1, 2])
@pytest.mark.parametrize(
    "steps", [None, range(-1, 0), range(1, 2), range(1), range(-2, 0), range(-1, 3, 2)]
)
def test_each_kind_of_feature_has_an_axis_of_steps(
    kinds: rs.Dataset, pad: Any, window: int, steps: range | None
) -> None:
    """Also of one step, and where all steps of a window are padding."""
    keys = ("image", "depth", "raw", "pixels", "number", "serialized", "text")
    ranges = None if steps is None else {f"steps/{key}": steps for key in keys}
    windows = rs.Episodes(kinds, window=window, pad=pad, ranges=ranges)
    steps = range(window) if steps is None else steps
    count = len(steps)
    features: dict[str, Any] = {
        "image": rs.Image("steps/image"),
        "planes": rs.Image("steps/image", layout="CHW", dtype="float32"),
        "mask": rs.Mask("steps/image", of="image", fill=9),
        "own": rs.Mask("steps/image", size=4, dtype="int32", fill=-1),
        "depth": rs.Image("steps/depth", channels=1, dtype="uint16"),
        "depths": rs.Mask("steps/depth", size=4, dtype="uint16"),
        "raw": rs.Raw("steps/raw", (count, 2, 2), "uint16"),
        "pixels": rs.Image("steps/pixels", raw_shape=(4, 4, 3)),
        "number": "steps/number",
        "serialized": rs.Serialized("steps/serialized", (2, 3), "int32"),
        "tensor": rs.Tensor("steps/number", (count,)),
        "text": rs.Text("steps/text", (count,)),
        "bytes": "steps/text",
        "start": "window/start",
        "episode": "window/episode",
        "is_step": "window/is_step",
    }
    batch = next(iter(rs.Loader(windows, features, batch_size=len(windows))))
    assert batch["image"].shape == (len(windows), count, 4, 4, 3)
    assert batch["is_step"].shape == (len(windows), window)
    for row, (start, episode) in enumerate(zip(batch["start"], batch["episode"], strict=True)):
        length = (4, 3)[episode]
        values = np.array(
            [
                0 if pad == "zero" and not 0 <= start + step < length
                else min(max(start + step, 0), length - 1) + 1
                for step in steps
            ]
        )  # fmt: skip
        texts = [str(value) if value else "" for value in values.tolist()]
        expected = {
            "image": values, "planes": (values / 255).astype("float32"),
            "mask": np.where(values, values, 9), "own": np.where(values, values, -1),
            "depth": 1000 * values, "depths": 1000 * values, "raw": 1000 * values,
            "pixels": values, "number": values, "tensor": values, "serialized": values,
        }  # fmt: skip
        for name, own in expected.items():
            found = batch[name][row].reshape(count, -1)
            assert (found == own[:, np.newaxis]).all(), name
        assert batch["text"][row].tolist() == texts
        assert batch["bytes"][row].tolist() == [text.encode() for text in texts]


def as_nested(path: Path, lists: list[list[int]]) -> tuple[rs.Dataset, str, str]:
    """An episode as TensorFlow Datasets stores it; the keys of its values and their numbers."""
    record = {
        "steps/is_first": [step == 0 for step in range(len(lists))],
        "steps/x/ragged_flat_values": [value for own in lists for value in own],
        "steps/x/ragged_row_lengths_0": [len(own) for own in lists],
    }
    return written(path, [record]), *list(record)[1:]


def as_lists(path: Path, lists: list[list[int]]) -> tuple[rs.Dataset, str, str]:
    lengths = [[0]] * len(lists)
    payload = rs.encode_sequence_example({}, {"x": lists, "is_first": lengths}, {"x": "int64"})
    return written(path, [payload]), "x", "x/ragged_row_lengths_0"


@pytest.mark.parametrize("make", [as_nested, as_lists])
@pytest.mark.parametrize("pad", ["drop", "repeat", "zero"])
def test_values_and_lengths_of_inner_lists_agree(make: Any, pad: Any, tmp_path: Path) -> None:
    lists = [[5, 6], [], [7, 8, 9], [4]]
    dataset, values, lengths = make(tmp_path, lists)
    prefix = "" if make is as_lists else "steps/"
    windows = rs.Episodes(dataset, window=3, pad=pad, count_by=f"{prefix}is_first")
    features = {"x": rs.Ragged(values), "n": rs.Tensor(lengths, (3,)), "start": "window/start"}
    batch = rs.Examples(windows, features).batch(range(len(windows)))
    for row, start in enumerate(batch["start"].tolist()):
        own = [
            [] if pad == "zero" and step >= 4 else lists[min(step, 3)]
            for step in range(start, start + 3)
        ]
        assert batch["n"][row].tolist() == [len(one) for one in own]
        assert batch["x"][row].tolist() == [value for one in own for value in one]
    alone = rs.Examples(windows, {"n": lengths}).batch([0])  # without the values
    assert alone["n"].tolist() == [[2, 0, 3]]


def test_lists_whose_lengths_have_the_name_of_another_list_are_refused(tmp_path: Path) -> None:
    lists = {"x": [[1]], "x/ragged_row_lengths_0": [[1]]}
    dataset = written(tmp_path, [rs.encode_sequence_example({}, lists)])
    with raises(rs.OptionError, option="dataset"):
        rs.Episodes(dataset, window=1)


def test_lists_of_lists_in_the_steps_are_not_taken_for_lists(tmp_path: Path) -> None:
    """The lengths of inner lists are those of the steps of the window; values are an error."""
    record = {
        "steps/is_first": [1, 0],
        "steps/x/ragged_flat_values": [1, 2, 3, 4, 5, 6],
        "steps/x/ragged_row_lengths_0": [1, 3],
        "steps/x/ragged_row_lengths_1": [2, 0, 3, 1],
    }
    windows = rs.Episodes(written(tmp_path, [record]), window=1)
    inner = rs.Examples(windows, {"n": rs.Ragged("steps/x/ragged_row_lengths_1")}).batch([0, 1])
    assert inner["n"].tolist() == [[2], [0, 3, 1]]
    key = "steps/x/ragged_flat_values"
    with raises(rs.CorruptDataError, record=0, feature=key):
        rs.Examples(windows, {"x": rs.Ragged(key)})


# -- what is not of steps --------------------------------------------------------------------------


def test_a_feature_that_is_not_of_steps_is_named(tmp_path: Path) -> None:
    record = {"steps/reward": np.arange(20.0), "steps/is_first": [1] + [0] * 19}
    windows = rs.Episodes(written(tmp_path, [record | {"steps/series": "a"}] * 3), window=4)
    batch = rs.Examples(windows, {"r": "steps/reward"}).batch([5])
    assert batch["r"].tolist() == [[5, 6, 7, 8]]
    for features in (["steps/series"], {"x": rs.Text("steps/series")}, None,
                     {"x": rs.Present("steps/series")}):  # fmt: skip
        with raises(rs.CorruptDataError, record=0, feature="steps/series", found="1 value"):
            rs.Loader(windows, features, batch_size=2)


def test_the_feature_that_counts_steps_has_more_than_one_value(tmp_path: Path) -> None:
    record = {"state": [0.0] * 40, "reward": [0.0] * 20, "series": "a"}
    dataset = written(tmp_path, [record] * 2)
    assert len(rs.Episodes(dataset, window=4, prefix="")) == 2 * 17
    with raises(rs.OptionError, option="window", match="'series'"):
        rs.Episodes(dataset, window=4, prefix="", count_by="series")


@MAKERS
def test_an_episode_without_the_feature_that_counts_its_steps_is_damaged(
    make: Make, tmp_path: Path
) -> None:
    good = episodes_of([2, 0, 3])
    without = {key: steps for key, steps in good[2].items() if key != "steps/text"}
    dataset = make(tmp_path, [*good, without, good[0]])  # keys of the first ones are known
    windows = rs.Episodes(dataset, window=1, count_by="steps/text")
    assert len(windows) == 2 + 0 + 3 + 1 + 2
    features = {"episode": "window/episode"}
    with raises(rs.CorruptDataError, record=3, feature="steps/text", defect="missing-feature"):
        list(rs.Loader(windows, features, batch_size=4))
    loader = rs.Loader(windows, features, batch_size=20, skip_errors=1)
    assert next(iter(loader))["episode"].tolist() == [0, 0, 2, 2, 2, 4, 4]
    assert [error.record for error in loader.skipped] == [3]


@MAKERS
@pytest.mark.parametrize(
    "feature",
    [
        rs.Ragged("steps/acton"), rs.Padded("steps/other"), rs.Present("steps/acton"),
        rs.Text("other", "ragged"), rs.Bytes("steps/other", "ragged"), rs.Tensor("other", (3,)),
        "steps/acton", rs.Present("window/other"),
    ],
)  # fmt: skip
def test_keys_that_no_episode_has_are_refused(make: Make, feature: Any, tmp_path: Path) -> None:
    windows = rs.Episodes(make(tmp_path, episodes_of([3] * 70)), window=2)
    key = feature if isinstance(feature, str) else feature.key
    with raises(rs.OptionError, option="features", value=key):
        rs.Loader(windows, {"x": feature}, batch_size=4)
    with pytest.warns(UserWarning, match="'other'") as caught:
        rs.Loader(windows, {"x": rs.Scalar("other", default=0)}, batch_size=4)
    assert len(caught) == 1


def test_keys_that_only_other_episodes_have(tmp_path: Path) -> None:
    records: list[Any] = [{"steps/a": [1, 2]} for _ in range(50)]
    records[40] |= {"note": "x", "steps/b": [0.5, 1.5], "steps/c": [0.5, 1.5]}
    dataset = written(tmp_path, records)
    for known in (False, True):
        for selected, count in ((dataset, 2), (dataset.take(30), 0)):
            windows = rs.Episodes(selected, window=1)
            features = {
                "note": rs.Present("note"), "c": rs.Ragged("steps/c"),
                "b": rs.Tensor("steps/b", (1,), default=0),
            }  # fmt: skip
            batches = [*rs.Loader(windows, features, batch_size=4)]
            assert sum(batch["note"].sum() for batch in batches) == count
            assert sum(batch["b"].sum() for batch in batches) == count
            assert {batch["c"].values.dtype for batch in batches} == {np.dtype(np.float32)}
        assert known or "note" in dataset.schema.features  # now it is known


def test_images_after_a_window_whose_other_steps_are_before_it(tmp_path: Path) -> None:
    record = {"steps/a": [1, 2, 3], "steps/image": [png(0), png(1), png(2)]}
    windows = rs.Episodes(
        written(tmp_path, [record] * 20),
        window=1,
        pad="zero",
        ranges={"steps/a": range(-2, 0), "steps/image": range(1, 3)},
    )
    batch = next(iter(rs.Loader(windows, {"image": rs.Image("steps/image")}, batch_size=3)))
    assert batch["image"].shape == (3, 2, 8, 8, 3)
    assert batch["image"].any(axis=(2, 3, 4)).tolist() == [[True] * 2, [True, False], [False] * 2]


def test_lists_that_only_other_sequences_have(tmp_path: Path) -> None:
    sequences: list[dict[str, Any]] = [{"a": [[1]]} for _ in range(40)]
    sequences[30]["b"] = [[1]]
    dataset = written(tmp_path, [rs.encode_sequence_example({}, lists) for lists in sequences])
    features = {"b": rs.Ragged("b")}
    with raises(rs.OptionError, value="b"):  # the lists of the first episodes are those of steps
        rs.Loader(rs.Episodes(dataset, window=1), features, batch_size=40)
    assert "b" in dataset.schema.sections["feature_lists"]  # now it is known
    (batch,) = rs.Loader(rs.Episodes(dataset, window=1), features, batch_size=40)
    assert batch["b"].values.tolist() == [1]


# -- bad input -------------------------------------------------------------------------------------


@MAKERS
def test_an_episode_that_is_damaged_is_skipped_once(make: Make, tmp_path: Path) -> None:
    dataset = make(tmp_path, episodes_of([5, 6, 4]))
    path = Path(str(dataset.shards[0].location))
    data = bytearray(path.read_bytes())
    data[data.index(b"1.3")] ^= 1
    path.write_bytes(data)
    windows = rs.Episodes(rs.open(path), window=3)
    features = {"id": "id", "start": "window/start"}
    loader = rs.Loader(windows, features, batch_size=4, skip_errors=1)
    pairs = [pair for batch in loader for pair in zip(batch["id"], batch["start"], strict=True)]
    assert pairs == [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1)]
    assert [(error.path, error.record) for error in loader.skipped] == [(str(path), 1)]
    assert loader.skipped[0].defect == "payload-crc-mismatch"
    with raises(rs.CorruptDataError, record=1):
        list(rs.Loader(windows, features, batch_size=4))


@pytest.mark.parametrize(
    ("changed", "found"), [({"steps/b": [1, 2, 3]}, "3 values"), ({"steps/b": [1] * 7}, "7 values")]
)
def test_features_of_other_lengths_are_errors(
    changed: dict[str, Any], found: str, tmp_path: Path
) -> None:
    good = {"steps/a": [1, 2], "steps/b": [1, 2, 3, 4], "id": [0]}
    dataset = written(tmp_path, [good, good | changed, good])
    windows = rs.Episodes(dataset, window=1, count_by="steps/a")
    with raises(rs.CorruptDataError, record=1, feature="steps/b", found=found):
        rs.Examples(windows, {"b": rs.Ragged("steps/b")}).batch(range(6))
    loader = rs.Loader(windows, {"b": rs.Tensor("steps/b", shape=(2,))}, batch_size=9,
                       skip_errors=2)  # fmt: skip
    assert [batch["b"].tolist() for batch in loader] == [[[1, 2], [3, 4], [1, 2], [3, 4]]]


def test_nested_sequences_of_other_lengths_are_errors(tmp_path: Path) -> None:
    record = {
        "steps/is_first": [1, 0, 0],
        "steps/tokens/ragged_flat_values": [7, 8, 9, 10],
        "steps/tokens/ragged_row_lengths_0": [2, 0, 2],
    }
    features = {"tokens": rs.Ragged("steps/tokens/ragged_flat_values")}
    good = rs.Episodes(written(tmp_path, [record]), window=2)
    assert rs.Examples(good, features).batch([0, 1])["tokens"].tolist() == [[7, 8], [9, 10]]
    for lengths in ([2, 0, 1], [2, 2], [5, -1, 0]):
        changed = record | {"steps/tokens/ragged_row_lengths_0": lengths}
        windows = rs.Episodes(written(tmp_path, [changed]), window=2)
        with raises(rs.CorruptDataError, record=0, feature=next(iter(features.values())).key):
            rs.Examples(windows, features)[0]


def test_feature_lists_of_other_lengths_are_errors(tmp_path: Path) -> None:
    payload = rs.encode_sequence_example({}, {"a": [[1], [2], [3]], "b": [[1], [2]]})
    windows = rs.Episodes(written(tmp_path, [payload]), window=1, count_by="a")
    with raises(rs.CorruptDataError, record=0, feature="b", found="2 values in 2 steps"):
        rs.Examples(windows, {"b": rs.Ragged("b")})[0]


def test_steps_of_sequences_may_have_various_numbers_of_values(tmp_path: Path) -> None:
    payload = rs.encode_sequence_example({}, {"a": [[1], [2, 3], [], [4]], "b": [[0]] * 4})
    windows = rs.Episodes(written(tmp_path, [payload]), window=2, pad="zero", count_by="b")
    batch = rs.Examples(windows, {"a": rs.Ragged("a")}).batch(range(4))
    assert batch["a"].tolist()[:3] == [[1, 2, 3], [2, 3], [4]]


def test_keys_that_are_in_the_context_and_the_lists_are_refused(tmp_path: Path) -> None:
    dataset = written(tmp_path, [rs.encode_sequence_example({"a": [1]}, {"a": [[1]]})])
    with raises(rs.OptionError, option="dataset"):
        rs.Episodes(dataset, window=1)


@pytest.mark.parametrize(
    ("option", "options"),
    [
        ("window", {"window": 0}),
        ("window", {"window": 41}),
        ("window", {"window": 9, "ranges": {"steps/count": range(-32, 0)}}),
        ("stride", {"stride": 0}),
        ("pad", {"pad": "reflect"}),
        ("prefix", {"prefix": "step/"}),
        ("count_by", {"count_by": "id"}),
        ("ranges", {"ranges": {"id": range(1)}}),
        ("ranges", {"ranges": {"steps/count": range(0)}}),
        ("ranges", {"ranges": {"steps/count": range(3, 0, -1)}}),
        ("ranges", {"ranges": {"steps/count": 3}}),
        ("ranges", {"ranges": range(3)}),
        ("cache_bytes", {"cache_bytes": "much"}),
        ("cache_bytes", {"cache_bytes": -1}),
    ],
)
def test_invalid_options_are_refused(
    dataset: rs.Dataset, option: str, options: dict[str, Any]
) -> None:
    with raises(rs.OptionError, option=option):
        rs.Episodes(dataset, **({"window": 2} | options))
    with raises(rs.OptionError, option="dataset"):
        rs.Episodes([], window=2)  # type: ignore[arg-type]


def test_unknown_features_are_refused(dataset: rs.Dataset) -> None:
    with raises(rs.OptionError, option="features", match="steps/count"):
        rs.Loader(rs.Episodes(dataset, window=2), ["steps/counts"], batch_size=2)
    with raises(rs.OptionError, option="shape", match="steps/action"):
        rs.Loader(
            rs.Episodes(dataset, window=2),
            {"action": rs.Tensor("steps/action", shape=(2, 3))},
            batch_size=2,
        )


def test_a_dataset_without_episodes_has_no_windows(tmp_path: Path) -> None:
    windows = rs.Episodes(written(tmp_path, []), window=2)
    assert len(windows) == 0
    assert list(rs.Loader(windows, {"a": rs.Ragged("steps/a")}, batch_size=2)) == []
