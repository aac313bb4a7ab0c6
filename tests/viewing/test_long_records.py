"""Records with more values, steps, images or features than one answer has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.viewing.tiles import is_series

from ..images import encode, smooth
from .conftest import write


def series(name: str) -> Any:
    """Sequences by what they are; each is the same in every run."""
    random = np.random.default_rng(0)
    tokens = np.minimum(random.zipf(1.2, 500), 50_256)
    known: dict[str, Any] = {
        "tokens": tokens,
        "uniform tokens": random.integers(0, 30_000, 2048),
        "padded tokens": np.concatenate([random.integers(999, 30_000, 40), np.zeros(600, int)]),
        "labels": random.integers(0, 10, 100),
        "flags": np.eye(1, 100, dtype=int)[0],
        "equal": np.full(100, 7),
        "floats": random.normal(size=100).astype(np.float32),
        "signal": np.round(1000 * np.sin(np.arange(300) / 9)).astype(int),
        "noisy signal": np.round(900 * np.sin(np.arange(300) / 9) + random.normal(0, 99, 300)),
        "walk": np.cumsum(random.integers(-5, 6, 300)),
    }
    values = known[name]
    return values if name == "floats" else values.astype(np.int64)


@pytest.mark.parametrize(
    ("name", "is_curve"),
    [
        *((name, True) for name in ("floats", "signal", "noisy signal", "walk")),
        *((name, False) for name in ("tokens", "uniform tokens", "padded tokens", "labels")),
        *((name, False) for name in ("flags", "equal")),
    ],
)
def test_numbers_whose_neighbours_are_alike_are_curves(
    open_viewer: Any, tmp_path: Path, name: str, is_curve: bool
) -> None:
    values = series(name)
    assert is_series(values) == is_curve
    lists: Any = {
        "x": [values[k : k + 1] for k in range(len(values))],
        "id": [[k] for k in range(9)],
    }
    records = [{"x": values}, rs.encode_sequence_example({"x": values}, lists)]
    client = open_viewer(write(tmp_path / "a.tfrecord", records))
    flat, steps = client.tiles(count=2)
    assert flat["kind"] == ("series" if is_curve else "numbers")
    if not is_curve:  # the values themselves
        assert flat["text"] == f"x: {', '.join(map(str, values[:60].tolist()))} …"
    for position, sections in enumerate([["features"], ["context", "feature_lists"]]):
        curves = client.json(f"/api/record/{position}")["curves"]
        for section in sections:
            found = curves.get(section, {}).get("x")
            assert (found is not None) == is_curve
            if found is not None:
                assert (min(found), max(found)) == (values.min(), values.max())
    assert steps["series"] is not None  # of the counter, at least


def test_steps_and_images_are_read_in_parts(open_viewer: Any, tmp_path: Path) -> None:
    images = [[encode(smooth(8, 6).rotate(step), "PNG")] for step in range(70)]
    lists: Any = {
        "left": images,
        "reward": [np.float32([step / 2]) for step in range(300)],
        "right": images[:66],
    }
    client = open_viewer(write(tmp_path / "a.tfrecord", [rs.encode_sequence_example({}, lists)]))
    record = client.json("/api/record/0")
    assert record["step_count"] == 300
    assert record["image_counts"] == {"left": 70, "right": 66}
    parts = [record["sections"]["feature_lists"]]
    for start in (64, 128, 192, 256, 320):
        part = client.json("/api/steps/0", start=start)
        assert part["step_count"] == 300
        parts.append(part["sections"]["feature_lists"])
    rewards = [step["values"] for part in parts for step in part["reward"]]
    assert rewards == [[step / 2] for step in range(300)]
    assert [len(part["left"]) for part in parts] == [64, 6, 0, 0, 0, 0]
    for key, count in record["image_counts"].items():
        listed = [image["index"] for image in record["images"] if image["key"] == key]
        rest = client.json("/api/images/0", key=key, start=64)
        listed += [image["index"] for image in rest["images"]]
        assert (listed, rest["count"]) == ([*range(count)], count)
    assert client.get("/api/image/0", key="left", index=69).content == images[69][0]


def test_examples_of_a_ranking_list_are_read_in_parts(open_viewer: Any, tmp_path: Path) -> None:
    examples = [rs.encode_example({"rank": number}) for number in range(100)]
    payload = b"".join(b"\x0a" + bytes([len(one)]) + one for one in examples)
    client = open_viewer(write(tmp_path / "a.tfrecord", [payload]))
    record = client.json("/api/record/0")
    assert (record["payload"], record["step_count"]) == ("ELWC", 100)
    rest = client.json("/api/steps/0", start=64)["sections"]["examples"]
    ranks = [one["rank"]["values"] for one in [*record["sections"]["examples"], *rest]]
    assert ranks == [[number] for number in range(100)]


def test_features_that_are_left_out_are_counted(open_viewer: Any, tmp_path: Path) -> None:
    many: Any = {f"feature {number:04}": number for number in range(2500)}
    steps = rs.encode_sequence_example(many, {"x": [[1]]})
    client = open_viewer(write(tmp_path / "a.tfrecord", [many, steps, {"x": 1}]))
    for position, name in enumerate(["features", "context"]):
        record = client.json(f"/api/record/{position}")
        assert [*record["sections"][name]] == [*many][:2000]
        assert record["left_out"] == {name: 500}
    assert client.json("/api/record/2")["left_out"] == {}


def test_boxes_that_are_left_out_are_counted(open_viewer: Any, tmp_path: Path) -> None:
    example: Any = {"image/encoded": encode(smooth(16, 12), "PNG")}
    for number, side in enumerate(("ymin", "xmin", "ymax", "xmax")):
        example[f"image/object/bbox/{side}"] = np.full(2100, 0.2 + 0.3 * (number > 1), np.float32)
    record = open_viewer(write(tmp_path / "a.tfrecord", [example])).json("/api/record/0")
    assert (len(record["boxes"]), record["left_out"]) == (2000, {"boxes": 100})


def test_names_of_properties_are_names_of_features(open_viewer: Any, tmp_path: Path) -> None:
    values = np.arange(20, dtype=np.float32)
    client = open_viewer(write(tmp_path / "a.tfrecord", [{"__proto__": values, "toString": 1}]))
    record = client.json("/api/record/0")
    assert record["curves"]["features"]["__proto__"] == values.tolist()


def test_tiles_of_episodes_have_some_of_their_frames(open_viewer: Any, tmp_path: Path) -> None:
    frames = [encode(smooth(16, 12).rotate(step), "PNG") for step in range(90)]
    steps = rs.encode_sequence_example({}, {"frame": [[frame] for frame in frames]})
    examples = [{"steps/image": frames}, steps, {"steps/image": frames[:1]}]
    flat, sequence, one = open_viewer(write(tmp_path / "a.tfrecord", examples)).tiles(count=3)
    assert (flat["kind"], flat["frame_count"], len(flat["frames"])) == ("image", 90, 6)
    assert flat["frames"] == sequence["frames"]
    assert (one["frames"], one["frame_count"]) == (None, 0)


def test_a_text_is_not_repeated_as_its_caption(open_viewer: Any, tmp_path: Path) -> None:
    examples = [{"text": "To be, or not to be, that is the question."}]
    (tile,) = open_viewer(write(tmp_path / "a.tfrecord", examples)).tiles(count=1)
    assert (tile["text"], tile["caption"]) == ("To be, or not to be, that is the question.", "")
