"""What the viewer answers over HTTP, against the records as they were written."""

from __future__ import annotations

import base64
import gzip
import io
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.dataset import LABELS_NAME, KeypointClass, labels_to_bytes
from recordsmith.image import encode_mask, label_colour
from recordsmith.viewing import batch_preview, reports

from ..images import encode, noise, smooth
from ..keypoints import set_keypoint_classes
from .conftest import flower, write


def _pixels(url: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))))


def test_the_dataset_is_described(open_viewer: Any, flowers: Path) -> None:
    client = open_viewer(flowers, where="image/class/label == 1", at=3)
    while (document := client.json("/api/dataset"))["is_counting"]:
        time.sleep(0.01)
    assert document["title"] == "flowers"
    assert (document["record_count"], document["shard_count"]) == (24, 2)
    assert document["splits"] == [
        {"name": "train", "record_count": 20},
        {"name": "validation", "record_count": 4},
    ]
    assert document["class_names"] == ["daisy", "rose", "tulip"]
    assert document["scene"] == {
        "image_key": "image/encoded",
        "mask_key": "image/segmentation/class/encoded",
        "label_key": "image/class/label",
        "class_keys": ["image/class/label", "image/object/class/label"],
        "has_boxes": True,
        "skeletons": {},
    }
    where = "image/class/label == 1"
    start = {"paths": [str(flowers)], "split": None, "where": where, "at": 3}
    assert document["start"] == start
    shares = {feature["key"]: feature["share"] for feature in document["features"]}
    assert shares == dict.fromkeys(flower(0), 1.0)
    assert document["notices"] == []


def test_tiles_have_the_image_its_boxes_and_its_mask(open_viewer: Any, flowers: Path) -> None:
    client = open_viewer(flowers)
    tiles = client.tiles(start=18, count=4, size=160)
    assert [(tile["place"], tile["position"]) for tile in tiles] == [(n, n) for n in range(18, 22)]
    assert [tile["name"] for tile in tiles] == [f"flower {n}.jpg" for n in (18, 19, 0, 1)]
    tile = tiles[1]
    assert (tile["kind"], tile["label"], tile["caption"]) == ("image", 1, "rose")
    assert (tile["width"], tile["height"]) == (320, 240)
    assert tile["boxes"] == [[0.25, 0.125, 0.75, 0.5, 1, "rose"]]
    shown = _pixels(tile["image"])
    assert shown.shape == (120, 160, 3)
    expected = np.asarray(smooth(320, 240).resize((160, 120)), np.int64)
    assert np.abs(shown - expected).mean() < 4
    mask = _pixels(tile["mask"])
    assert mask.shape == (120, 160)
    assert (np.unique(mask).tolist(), mask[60, 80], mask[0, 0]) == ([0, 2], 2, 0)


def test_keypoints_and_corners_follow_the_boxes(open_viewer: Any, tmp_path: Path) -> None:
    points = {"x": [0.25, 1 / 3, 0, 1], "y": [0.5, 0.5, 0, 1], "visibility": [2, 1, 0, 2]}
    corners = {"x": [0.0, 0.5, 0.5, -0.25] * 2, "y": [0.0, 0, 1.5, 1] * 2}
    boxes = {side: [0.0, 0.5] for side in ("ymin", "xmin")}
    boxes |= {side: [0.5, 1.0] for side in ("ymax", "xmax")}
    parts = {"keypoint": points, "corner": corners, "bbox": boxes, "class": {"label": [1, 2]}}
    objects = {
        f"image/object/{part}/{key}": values
        for part, columns in parts.items()
        for key, values in columns.items()
    }
    write(tmp_path / "a.tfrecord", [flower(0) | objects])
    rs.reshard(tmp_path / "a.tfrecord", tmp_path / "out")
    set_keypoint_classes(tmp_path / "out", {1: KeypointClass(("a", "b"), ((0, 1),))})
    client = open_viewer(tmp_path / "out")
    scene = client.json("/api/dataset")["scene"]
    assert scene["skeletons"] == {"1": {"names": ["a", "b"], "skeleton": [[0, 1]]}}
    (tile,) = client.tiles(start=0, count=1, size=64)
    assert tile["boxes"] == client.json("/api/record/0")["boxes"]
    assert [box[6:] for box in tile["boxes"]] == [
        [[0, 0, 0.5, 0, 0.5, 1.5, -0.25, 1], [0.25, 0.5, 2, 0.33333, 0.5, 1]],
        [[0, 0, 0.5, 0, 0.5, 1.5, -0.25, 1], [0, 0, 0, 1, 1, 2]],
    ]


def test_tiles_are_the_same_when_they_are_cached(open_viewer: Any, flowers: Path) -> None:
    client = open_viewer(flowers)
    first = client.tiles(start=0, count=400, size=64)
    assert len(first) == 24
    assert client.tiles(start=0, count=400, size=64) == first
    assert client.tiles(start=30, count=5) == []


def test_a_view_has_the_records_of_a_condition_in_an_order(open_viewer: Any, flowers: Path) -> None:
    client = open_viewer(flowers)
    query = {"split": "train", "where": "image/class/label == 1", "sort": "-image/width"}
    view = client.poll("/api/view", **query)
    assert view == {"count": 7, "scanned": 20, "total": 20, "is_complete": True, "error": None}
    tiles = client.tiles(count=50, **query)
    assert [tile["position"] for tile in tiles] == [19, 16, 13, 10, 7, 4, 1]
    groups = client.json("/api/groups", split="train", sort="image/class/label")
    assert groups["groups"] in (
        [],
        [  # empty until the view is complete
            {"start": 0, "count": 7, "text": "daisy"},
            {"start": 7, "count": 7, "text": "rose"},
            {"start": 14, "count": 6, "text": "tulip"},
        ],
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"where": "image/class/label = 1"}, "did you mean ==?"),
        ({"where": "no_such == 1"}, "no record has it"),
        ({"where": 'image/width == "wide"'}, "compares it with text"),
        ({"split": "test"}, "train, validation"),
    ],
)
def test_invalid_views_say_why(open_viewer: Any, flowers: Path, query: Any, message: str) -> None:
    client = open_viewer(flowers)
    error = client.poll("/api/view", **query)["error"]
    assert error["error"] == "OptionError"
    assert message in error["message"]


def test_a_record_has_all_that_is_known_of_it(open_viewer: Any, flowers: Path) -> None:
    client = open_viewer(flowers)
    record = client.json("/api/record/21")
    shard = flowers / "validation-00000-of-00001.tfrecord"
    assert record["shard"] == str(shard)
    assert (record["split"], record["record"]) == ("validation", 1)
    assert (record["previous"], record["next"]) == (20, 22)
    payload = rs.open(flowers)[21:22].records().__next__()
    assert record["size_bytes"] == len(payload)
    assert shard.read_bytes()[record["offset"] + 12 :].startswith(payload)
    features = record["sections"]["features"]
    assert features["image/width"] == {"kind": "int64", "values": [301]}
    assert features["image/filename"] == {"kind": "bytes", "values": ["flower 1.jpg"]}
    assert record["boxes"] == [[0.25, 0.125, 0.75, 0.5, 1, "rose"]]
    assert record["has_mask"]
    assert [(image["key"], image["format"]) for image in record["images"]] == [
        ("image/encoded", "jpeg"),
        ("image/segmentation/class/encoded", "png"),
    ]
    image = client.get("/api/image/21", key="image/encoded")
    assert (image.headers["content-type"], image.content) == (
        "image/jpeg",
        flower(1)["image/encoded"],
    )
    mask = np.asarray(Image.open(io.BytesIO(client.get("/api/mask/21").content)))
    assert (mask.shape, np.unique(mask).tolist()) == ((24, 32), [0, 2])
    first = client.get("/api/hex/21").text.splitlines()[0]
    assert first.split("  ")[:2] == ["00000000", payload[:16].hex(" ")]
    assert client.get("/api/record/24").status_code == 404
    assert client.get("/api/image/21", key="nothing").status_code == 400


def test_long_values_are_cut_and_large_integers_keep_their_digits(
    open_viewer: Any, tmp_path: Path
) -> None:
    numbers = np.arange(1000)
    example = {"n": numbers, "big": 2**60 + 1, "text": "x" * 20_000}
    client = open_viewer(write(tmp_path / "a.tfrecord", [example]))
    features = client.json("/api/record/0")["sections"]["features"]
    assert features["n"] == {"kind": "int64", "values": list(range(64)), "count": 1000}
    assert features["big"]["values"] == [str(2**60 + 1)]
    assert features["text"]["values"] == [{"size_bytes": 20_000, "text": "x" * 6400}]
    values = client.json("/api/values/0", key="n", start=990, count=100)
    assert (values["values"], values["count"]) == (list(range(990, 1000)), 1000)


def test_only_some_positions(open_viewer: Any, flowers: Path) -> None:
    client = open_viewer(flowers, at=[21, 3, 5, 3])
    assert [tile["position"] for tile in client.tiles(count=9)] == [3, 5, 21]
    assert [tile["position"] for tile in client.tiles(count=9, split="validation")] == [21]
    view = client.poll("/api/view", where="image/class/label >= 0", sort="-image/width")
    assert (view["count"], view["total"]) == (3, 3)


def test_facets_count_the_records_of_each_value(open_viewer: Any, tmp_path: Path) -> None:
    examples = [
        {"label": n % 3, "kind": "ab"[n % 2], "score": n / 100, "tags": [1, 1, n % 2], "id": f"{n}"}
        for n in range(300)
    ]
    del examples[7]["kind"]
    client = open_viewer(write(tmp_path / "a.tfrecord", examples))
    answer = client.poll("/api/facets")
    assert (answer["scanned"], answer["total"]) == (300, 300)
    facets = {facet["key"]: facet for facet in answer["facets"]}
    assert [*facets] == ["label", "kind", "score", "tags"]  # each id occurs once

    def counts(key: str) -> dict[Any, int]:
        return {json.loads(each["literal"]): each["count"] for each in facets[key]["values"]}

    assert counts("label") == {0: 100, 1: 100, 2: 100}
    assert (counts("kind"), facets["kind"]["missing"]) == ({"a": 150, "b": 149}, 1)
    assert counts("tags") == {1: 300, 0: 150}  # records, not values
    scores = np.array([example["score"] for example in examples], np.float32)
    expected, edges = np.histogram(scores, 20)
    assert facets["score"]["counts"] == expected.tolist()
    assert np.allclose(facets["score"]["edges"], edges)
    some = client.poll("/api/facets", where="label == 2")
    part = {facet["key"]: facet for facet in some["facets"]}
    assert part["score"]["edges"] == facets["score"]["edges"]
    assert part["score"]["counts"] == np.histogram(scores[2::3], edges)[0].tolist()


@pytest.mark.parametrize(
    ("case", "counts"),
    [
        ("lists", {0: 8, 1: 8, 2: 7, 3: 7, 4: 15}),
        ("damaged", {0: 8, 1: 8, 2: 7, 3: 7, 4: 30}),  # one list has too few confidences
        ("kept", {0: 5, 1: 5, 2: 5}),  # only the labels are kept next to the file
    ],
)
def test_facets_of_several_classes(
    open_viewer: Any, tmp_path: Path, case: str, counts: dict[int, int]
) -> None:
    """Those of confidence 0 do not count."""
    examples = []
    for n in range(30):
        labels = {n % 3: n % 2 / 1} if case == "kept" else {n % 4: 1.0, 4: n % 2 / 1}
        texts, shares = [f"c{label}" for label in labels], [*labels.values()]
        values = {"label": [*labels], "text": texts, "confidence": shares}
        examples.append({f"image/class/{name}": of for name, of in values.items()})
    if case == "damaged":
        examples[3]["image/class/confidence"] = [1.0]
    path = tmp_path / "packed"
    rs.pack(rs.Rows(examples), path, numbers_of=["image/class/label"] if case == "kept" else [])
    facets = {facet["key"]: facet for facet in open_viewer(path).poll("/api/facets")["facets"]}
    for key, name in (("label", str), ("text", '"c{}"'.format)):
        found = facets[f"image/class/{key}"]["values"]
        found = {each["literal"]: each["count"] for each in found}
        assert found == {name(label): count for label, count in counts.items()}


def test_completions(open_viewer: Any, tmp_path: Path) -> None:
    examples = [{"label": n % 2, "a b": ["x", "yz"][n % 2]} for n in range(10)]
    client = open_viewer(write(tmp_path / "a.tfrecord", examples))
    client.poll("/api/facets")

    def texts(text: str) -> list[str]:
        answer = client.json("/api/complete", text=text, cursor=len(text))
        start = answer["start"]
        return [text[:start] + each["text"] for each in answer["completions"]]

    assert texts("la") == ["label"]
    assert texts("label == 1 an") == ["label == 1 and"]
    assert texts("a ") == ["a `a b`", "a label"]
    assert texts("`a b` == ") == ['`a b` == "x"', '`a b` == "yz"']
    assert texts('`a b` == "y') == ['`a b` == "yz"']
    assert texts("label in (0, ") == ["label in (0, 0", "label in (0, 1"]


def test_reports_link_to_records(open_viewer: Any, tmp_path: Path) -> None:
    examples = [{"image/encoded": encode(noise(9, 9), "PNG")}] * 3
    examples[1] = {"image/encoded": encode(noise(9, 9), "PNG")[:-30]}
    client = open_viewer(write(tmp_path / "a.tfrecord", examples))
    assert client.get("/report/verify").status_code == 409
    assert client.poll("/api/report/verify")["state"] == "done"
    page = client.get("/report/verify")
    assert '<a href="../#record=1">' in page.text
    assert "script" not in page.headers["content-security-policy"]
    assert client.poll("/api/report/stats")["state"] == "done"
    assert "image/encoded" in client.get("/report/stats").text
    assert client.http.delete("/api/report/stats").json() == {"state": "cancelled"}
    assert client.get("/api/report/other").status_code == 400


def test_a_batch_is_drawn_as_a_loader_gives_it(open_viewer: Any, flowers: Path) -> None:
    client = open_viewer(flowers)
    client.poll("/api/view")  # until both shards are counted
    pages = [
        client.get("/api/preview", seed=seed, size=64, crop="random", flip=1) for seed in (1, 1, 2)
    ]
    assert [page.headers["content-type"] for page in pages] == ["image/jpeg"] * 3
    assert pages[0].content == pages[1].content != pages[2].content
    assert client.get("/api/preview", crop="no").status_code == 400


def test_numbers_of_queries_are_bounded(open_viewer: Any, flowers: Path) -> None:
    client = open_viewer(flowers)
    assert len(client.tiles(count=10**9, size=10**9)) == 24
    for wrong in ("-1", "1e3", "x", "9" * 40):
        assert client.get("/api/tiles", start=wrong).status_code == 400
    for wrong in ("-1", "24", "9" * 5000, "x", "²"):
        for kind in ("record", "values", "hex", "image", "mask"):
            assert client.get(f"/api/{kind}/{wrong}").status_code == 404


def test_a_split_without_records_has_no_batch(open_viewer: Any, flowers: Path) -> None:
    write(flowers / "test-00000-of-00001.tfrecord", [])
    answer = open_viewer(flowers).get("/api/preview", split="test")
    assert (answer.status_code, answer.json()["option"]) == (400, "split")


def test_records_without_a_number_are_one_group(open_viewer: Any, tmp_path: Path) -> None:
    values = [2.0, np.nan, 1.0, np.nan, 2.0]
    examples: list[Any] = [{"x": np.float32([value])} for value in values]
    client = open_viewer(write(tmp_path / "a.tfrecord", [*examples, {"y": 1}]))
    client.poll("/api/view", sort="-x")
    assert client.json("/api/groups", sort="-x")["groups"] == [
        {"start": 0, "count": 2, "text": "2.0"},
        {"start": 2, "count": 1, "text": "1.0"},
        {"start": 3, "count": 3, "text": "missing"},
    ]


@pytest.mark.parametrize("kept", [1 / 3, 0])
def test_a_file_that_is_cut_or_replaced_while_it_is_viewed(
    open_viewer: Any, tmp_path: Path, kept: float
) -> None:
    path = write(tmp_path / "a.tfrecord", [{"id": number} for number in range(100_000)])
    client = open_viewer(path)
    assert client.poll("/api/view")["count"] == 100_000
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)] or np.random.default_rng(1).bytes(len(data)))
    view = client.poll("/api/view", where="id >= 0")
    assert view["count"] == (33_666 if kept else 0)
    assert client.tiles(start=90_000, count=1)[0]["kind"] == "damage"


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_shards(open_viewer: Any, tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.tfrecord.gz"
    with rs.ShardWriter(path, compression=compression) as writer:
        for number in range(2000):
            writer.write(rs.encode_example({"id": number, "pad": bytes(3000)}))
    client = open_viewer(path)
    assert client.poll("/api/view")["count"] == 2000
    for position in (1990, 3, 1500):
        features = client.json(f"/api/record/{position}")["sections"]["features"]
        assert features["id"]["values"] == [position]
    view = client.poll("/api/view", sort="-id", where="id < 30")
    assert view["count"] == 30
    assert [tile["position"] for tile in client.tiles(sort="-id", where="id < 30", count=3)] == [
        29,
        28,
        27,
    ]


def test_a_dataset_object_keeps_its_order(open_viewer: Any, flowers: Path) -> None:
    dataset = rs.open(flowers, "train").shuffle(seed=1)[:6]
    client = open_viewer(dataset)
    names = [tile["name"] for tile in client.tiles(count=10)]
    assert names == [example["image/filename"][0].decode() for example in dataset]
    assert client.poll("/api/view", where="image/class/label >= 0")["count"] == 6
    start = client.json("/api/dataset")["start"]  # whose positions no command has
    assert (start["paths"], start["split"]) == ([], None)
    assert "selection of their records" in client.poll("/api/report/verify")["error"]["message"]


def test_stores_behind_a_network(open_viewer: Any, flowers: Path) -> None:
    from recordsmith.stores import Location

    from ..stores.delayed import DelayedStore

    folder = Location(DelayedStore(0.001), "flowers")
    for path in flowers.iterdir():
        (folder / path.name).put(path.read_bytes())
    client = open_viewer(folder)
    assert [tile["label"] for tile in client.tiles(count=4)] == [0, 1, 2, 0]
    assert client.json("/api/dataset")["record_count"] == 24


def test_many_shards_are_viewed_while_they_are_counted(open_viewer: Any, tmp_path: Path) -> None:
    for number in range(300):
        write(tmp_path / f"part-{number:05}-of-00300.tfrecord", [{"id": number}])
    client = open_viewer(tmp_path)
    assert client.tiles(count=1)[0]["text"] == "id: 0"
    view = client.poll("/api/view")
    assert (view["count"], client.json("/api/dataset")["is_counting"]) == (300, False)
    assert client.poll("/api/view", where="id >= 290")["count"] == 10
    assert client.json("/api/record/299")["sections"]["features"]["id"]["values"] == [299]


def test_tiles_of_all_payloads(open_viewer: Any, tmp_path: Path) -> None:
    import struct

    def steps(count: int) -> bytes:
        images = [[encode(noise(20, 20, seed=n), "JPEG")] for n in range(count)]
        rewards = [np.float32([n]) for n in range(count)]
        lists: Any = {"frame": images, "reward": rewards}
        return rs.encode_sequence_example({"task": [b"push"]}, lists)

    payloads: list[Any] = [
        {"text": "To be, or not to be, that is the question."},
        {"x": np.sin(np.arange(5000, dtype=np.float32))},
        {"id": 3, "name": "short"},
        steps(9),
        b"Hello, plain text",
        b"\x08\x05\x12\x03abc\x1d" + struct.pack("<f", 1.5),
        b"",
        {"image": encode(Image.new("L", (9, 9), 0), "PNG")},
        {"image": encode(Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8) % 9), "PNG")},
        {"image": encode(noise(30, 30), "PNG")[:200]},
    ]
    tiles = open_viewer(write(tmp_path / "a.tfrecord", payloads)).tiles(count=20)
    kinds = [tile["kind"] for tile in tiles]
    assert kinds == [
        *("text", "series", "numbers", "steps", "text", "fields", "numbers"),
        *("text", "image", "damage"),
    ]
    assert tiles[0]["text"] == "To be, or not to be, that is the question."
    curve = np.array(tiles[1]["series"])
    assert (len(curve), curve.min() < -0.99, curve.max() > 0.99) == (240, True, True)
    assert tiles[2]["text"] == 'id: 3\nname: "short"'
    assert (len(tiles[3]["frames"]), tiles[3]["series"]) == (6, [float(n) for n in range(9)])
    assert tiles[3]["caption"] == "9 steps"
    assert tiles[5]["text"] == "1: 5\n2: abc\n3: 1.5"
    assert tiles[7]["text"] == "every pixel is 0"
    brightened = _pixels(tiles[8]["image"])
    assert (brightened.max() > 240, tiles[8]["text"]) == (True, "values 0 to 8, brightened")
    assert tiles[9]["problem"]["defect"] == "unreadable-image"


def test_a_damaged_file_shows_all_that_is_intact(open_viewer: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", [{"id": number} for number in range(30)])
    size = path.stat().st_size // 30
    data = bytearray(path.read_bytes())
    data[5 * size + 14] ^= 1  # the payload of record 5
    data[20 * size] ^= 1  # the length of record 20
    path.write_bytes(data)
    client = open_viewer(path)
    document = client.json("/api/dataset")
    assert document["record_count"] == 20
    assert ["length-crc-mismatch" in notice for notice in document["notices"]] == [True]
    tiles = client.tiles(count=50)
    assert [tile["kind"] == "damage" for tile in tiles] == [number == 5 for number in range(20)]
    assert tiles[5]["problem"]["defect"] == "payload-crc-mismatch"
    assert client.json("/api/record/5")["defect"]["defect"] == "payload-crc-mismatch"
    assert client.poll("/api/view", where="id >= 0")["count"] == 19


def test_missing_and_changed_shards_are_notices(open_viewer: Any, tmp_path: Path) -> None:
    rs.pack(rs.Rows([{"id": number} for number in range(40)]), tmp_path / "d", shards=4)
    shards = sorted((tmp_path / "d").glob("*.tfrecord"))
    shards[1].unlink()
    with shards[2].open("ab") as file:
        file.write(shards[3].read_bytes())
    client = open_viewer(tmp_path / "d")
    client.poll("/api/view")
    notices = client.json("/api/dataset")["notices"]
    assert ["missing-shard" in notices[0], "shard-size-mismatch" in notices[1]] == [True, True]
    assert client.json("/api/dataset")["record_count"] == 40


def test_files_without_records_are_errors(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(gzip.compress(b"not records at all" * 9))
    with pytest.raises(rs.CorruptDataError):
        rs.view(tmp_path / "a.tfrecord")
    with pytest.raises(rs.FileAccessError):
        rs.view(tmp_path / "nothing")


@pytest.mark.parametrize("kind", ["stats", "verify"])
def test_a_report_that_runs_is_stopped(
    open_viewer: Any, flowers: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    reading, goes_on, ended = threading.Event(), threading.Event(), threading.Event()
    stopped: list[BaseException] = []
    compute = getattr(reports, kind)

    def held(*arguments: Any, progress: Any, **options: Any) -> Any:
        def advance(done: int, total: int) -> None:
            reading.set()
            assert goes_on.wait(30)
            progress(done, total)

        try:
            return compute(*arguments, progress=advance, **options)
        except BaseException as error:
            stopped.append(error)
            raise
        finally:
            ended.set()

    monkeypatch.setattr(reports, kind, held)
    client = open_viewer(flowers)
    assert client.json(f"/api/report/{kind}")["state"] == "running"
    assert reading.wait(30)
    assert client.get(f"/report/{kind}").status_code == 409
    assert client.http.delete(f"/api/report/{kind}").json() == {"state": "cancelled"}
    goes_on.set()
    assert ended.wait(30)
    assert len(stopped) == 1
    ended.clear()
    assert client.poll(f"/api/report/{kind}")["state"] == "done"  # asked for again, it runs again
    assert ended.is_set()
    assert "24" in client.get(f"/report/{kind}").text


def _mask_png(values: list[list[int]], dtype: Any = np.uint8) -> bytes:
    return encode_mask(np.array(values, dtype))


@pytest.mark.parametrize(
    ("values", "shown"), [([0, 255], [0, 1]), ([0, 1], [0, 1]), ([0, 2, 255], [0, 2, 255])]
)
def test_masks_of_few_values_are_visible(
    open_viewer: Any, tmp_path: Path, values: list[int], shown: list[int]
) -> None:
    """Over the image, instead of an image, and as the image that is chosen."""
    rows = [values] * 4
    image = encode(noise(len(values), 4), "PNG")
    examples = [
        {"image/encoded": image, "image/segmentation/class/encoded": _mask_png(rows)},
        {"mask": _mask_png(rows)},
    ]
    keys = ("image/segmentation/class/encoded", "mask")
    colours = {0: (0, 0, 0), 255: (224, 224, 224)}
    expected = [colours.get(value, label_colour(value)) for value in shown]
    for example, key in zip(examples, keys, strict=True):
        client = open_viewer(write(tmp_path / f"{len(key)}.tfrecord", [example]))
        (tile,) = client.tiles(size=64)
        assert (tile["kind"], np.unique(_pixels(tile["mask"])).tolist()) == ("image", shown)
        answer = client.get("/api/image/0", key=key)
        pixels = np.asarray(Image.open(io.BytesIO(answer.content)))
        assert [tuple(pixel) for pixel in pixels[0].tolist()] == expected
        if "image/encoded" in example:
            mask = np.asarray(Image.open(io.BytesIO(client.get("/api/mask/0").content)))
            assert mask[0].tolist() == shown


def test_masks_of_objects_have_colours_and_maps_of_depth_do_not(
    open_viewer: Any, tmp_path: Path
) -> None:
    depth = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    example = {
        "image/encoded": encode(noise(2, 2), "PNG"),
        "image/object/mask": [_mask_png([[0, 1]]), _mask_png([[1, 0]])],
        "image/depth": encode_mask(depth),
    }
    client = open_viewer(write(tmp_path / "a.tfrecord", [example]))
    for index in (0, 1):
        answer = client.get("/api/image/0", key="image/object/mask", index=index)
        pixels = np.asarray(Image.open(io.BytesIO(answer.content)))
        assert tuple(pixels[0, 1 - index]) == label_colour(1)
    answer = client.get("/api/image/0", key="image/depth")
    pixels = np.asarray(Image.open(io.BytesIO(answer.content)))
    assert (pixels == pixels[:, :, :1]).all()


@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_records_report_the_orientation_that_is_not_applied(
    open_viewer: Any, tmp_path: Path, orientation: int
) -> None:
    exif = Image.Exif()
    exif[0x112] = orientation
    image = encode(smooth(32, 20), "JPEG", exif=exif)
    client = open_viewer(write(tmp_path / "a.tfrecord", [{"image/encoded": image}]))
    record = client.json("/api/record/0")
    assert record["orientation"] == orientation
    (size,) = [(image["width"], image["height"]) for image in record["images"]]
    assert size == (32, 20)


def test_rows_have_the_first_values_of_the_columns(open_viewer: Any, tmp_path: Path) -> None:
    examples: list[Any] = [
        {"id": number, "name": f"n{number}", "many": np.arange(9)} for number in range(300)
    ]
    examples[3] = rs.encode_sequence_example({"id": [3]}, {"x": [[1]]})
    path = write(tmp_path / "a.tfrecord", examples)
    client = open_viewer(path)

    def rows(**query: Any) -> list[dict[str, Any]]:
        text = client.get("/api/rows", columns='["id","many","no"]', **query).text
        return [json.loads(line) for line in text.splitlines()]

    first = rows(start=2, count=100)
    assert [row["place"] for row in first] == [*range(2, 102)]
    assert [row["cells"][0]["values"] for row in first] == [[n] for n in range(2, 102)]
    assert first[0]["cells"][1:] == [{"kind": "int64", "values": [0, 1, 2, 3], "count": 9}, None]
    assert first[1]["cells"][1:] == [None, None]
    client.poll("/api/view", sort="-id")
    assert [row["position"] for row in rows(count=3, sort="-id")] == [299, 298, 297]
    for wrong in ("", "{}", "[1]", "id"):
        assert client.get("/api/rows", columns=wrong).status_code == 400
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    client = open_viewer(path)
    (row,) = rows(count=1)
    assert (row["cells"], row["problem"]["defect"]) == ([None] * 3, "payload-crc-mismatch")
    problem = client.json("/api/record/0")["defect"]
    assert (problem["path"], problem["record"], problem["offset"]) == (str(path), 0, 0)
    assert problem["problem"]
    assert problem["remedy"]


def test_a_batch_has_the_names_of_the_classes(
    open_viewer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[dict[str, Any]] = []
    draw = batch_preview.draw_batch

    def record(*arguments: Any, **options: Any) -> Any:
        drawn.append(options)
        return draw(*arguments, **options)

    monkeypatch.setattr(batch_preview, "draw_batch", record)
    image = encode(smooth(16, 12), "PNG")
    texts = [{"image/encoded": image, "image/class/text": f"t{n}"} for n in range(3)]
    numbers = [{"image/encoded": image, "image/class/label": n} for n in range(3)]
    for name, part in (("texts", texts), ("numbers", numbers), ("named", numbers)):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "a.tfrecord", part)
        if name == "named":
            labels = labels_to_bytes(("daisy", "rose", "tulip"))
            (tmp_path / name / LABELS_NAME).write_bytes(labels)
        client = open_viewer(tmp_path / name)
        client.poll("/api/view")
        assert client.get("/api/preview", size=32).status_code == 200
    names = [{caption.split()[1] for caption in options["captions"]} for options in drawn]
    assert names == [{"t0", "t1", "t2"}, {"0", "1", "2"}, {"daisy", "rose", "tulip"}]
    assert drawn[2]["class_names"] == ("daisy", "rose", "tulip")
