"""CVAT for video: frames of tracks against a plain reading, and what is wrong in tracks."""

from __future__ import annotations

import random
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import recordsmith as rs
from recordsmith.sources import Cvat, Source

from ..raising import raises
from .annotated import boxes_of, image, read, write
from .source_contract import SourceContract, left_out

TRACK = "image/object/track/label"
BOX = '<box frame="{}" outside="{}" keyframe="1" xtl="4" ytl="5" xbr="14" ybr="15"/>'


def track(*frames: int, outside: int | None = None, number: Any = 0, more: str = "") -> str:
    last = "" if outside is None else BOX.format(outside, 1)
    shapes = "\n".join(BOX.format(frame, 0) for frame in frames)
    return f'<track id="{number}" label="cat" {more}>\n{shapes}\n{last}</track>\n'


def video(root: Path, *tracks: str, frames: range = range(4), suffix: str = "PNG") -> Path:
    """An export with the images of all frames."""
    for frame in frames:
        image(root / "images" / f"frame_{frame:06}.{suffix}")
    meta = (
        f"<meta><task><size>{len(frames)}</size><mode>interpolation</mode>"
        f"<start_frame>{frames.start}</start_frame><stop_frame>{frames[-1]}</stop_frame>"
        f"<frame_filter>{f'step={frames.step}' if frames.step > 1 else ''}</frame_filter>"
        "<labels><label><name>cat</name></label></labels><original_size><width>40</width>"
        "<height>20</height></original_size></task></meta>\n"
    )
    text = f"<annotations>\n<version>1.1</version>{meta}{''.join(tracks)}</annotations>"
    write(root / "annotations.xml", text)
    return root


class TestContractOfVideo(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        return Cvat(video(folder, track(0, 1, outside=2), track(2, 3, number=5)))


@pytest.mark.parametrize("seed", range(20))
def test_frames_are_those_of_a_plain_reading(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    start, step = rng.randrange(50), rng.randint(1, 4)
    frames = range(start, start + 8 * step, step)
    tracks = []
    for number in range(3):
        first = rng.randrange(8)
        stop = rng.randrange(first, 8)
        shapes = []
        for frame in frames[first : stop + 1]:
            x, y = rng.uniform(0, 20), rng.uniform(0, 10)
            is_out = frames[first] < frame == frames[stop] and rng.random() < 0.5
            shapes.append(
                f'<box frame="{frame}" outside="{is_out:d}" xtl="{x:.2f}" ytl="{y:.2f}" '
                f'xbr="{x + 9:.2f}" ybr="{y + 8:.2f}"><attribute name="x">1</attribute></box>'
            )
        tracks.append(f'<track id="{number * 7}" label="cat">{"".join(shapes)}</track>')
    root = video(tmp_path, *tracks, frames=frames)
    expected: dict[str, list[Any]] = {f"images/frame_{frame:06}.PNG": [] for frame in frames}
    for element in ET.parse(root / "annotations.xml").iter("track"):
        for box in element:
            sides = [float(box.get(side, "")) for side in ("ytl", "xtl", "ybr", "xbr")]
            shares = [round(s / (40 if n % 2 else 20), 6) for n, s in enumerate(sides)]
            if box.get("outside") == "0":
                path = f"images/frame_{int(box.get('frame', '')):06}.PNG"
                expected[path].append((int(element.get("id", "")), *shares))
    listing = rs.detect(root).source.list_samples()
    found = {}
    for number, sample in enumerate(listing.samples):
        features, _ = read(listing, number)
        ids = features[TRACK] if any(expected.values()) else []
        found[sample.name] = [(id_, *box) for id_, box in zip(ids, boxes_of(features), strict=True)]
        assert features["image/source_id"] == str(int(sample.name[-10:-4])).encode()
    assert found == expected


def test_other_shapes_of_tracks_are_noted(tmp_path: Path) -> None:
    shape = '<polyline frame="1" outside="{}" points="1,1;2,2"/>'
    root = video(
        tmp_path, f'<track id="0" label="cat">{shape.format(0)}</track>', track(2, number=1)
    )
    write(root / "more.txt", "")
    listing = Cvat(root).list_samples()
    features, notes = read(listing, 1)
    assert (boxes_of(features), len(notes), notes[0][1]) == (
        [],
        1,
        "annotations.xml, line 3: polyline",
    )
    text = (root / "annotations.xml").read_text()
    write(root / "annotations.xml", text.replace('outside="0" points', 'outside="1" points'))
    assert read(Cvat(root), 1)[1] == []


def test_frames_of_images_and_tracks_have_the_same_features(tmp_path: Path) -> None:
    box = BOX.format(0, 0).replace("<box", '<box label="cat"')
    inside = f'<image id="0" name="a.jpg" width="40" height="20">{box}</image>'
    root = video(tmp_path, track(0, number="x"), inside, frames=range(1))
    image(root / "images/a.jpg")
    tracks = [read(Cvat(root), number)[0][TRACK] for number in (0, 1)]
    assert tracks == [[-1], [3]]  # without an id, the line
    write(root / "annotations.xml", f"<annotations><version/>{inside}</annotations>")
    assert TRACK not in read(Cvat(root))[0]


def test_images_that_are_no_frames_are_left_out(tmp_path: Path) -> None:
    root = video(tmp_path, track(10, 13), frames=range(10, 17, 3))
    for name in ("images/frame_000011.PNG", "images/frame_000019.PNG", "images/x.PNG"):
        image(root / name)
    image(root / "other/frame_000016.PNG")
    listing = Cvat(root).list_samples()
    assert [sample.name[-8:-4] for sample in listing.samples] == ["0010", "0013", "0016"]
    assert [len(paths) for paths in left_out(listing).values()] == [4]


def test_a_subset_is_a_split(tmp_path: Path) -> None:
    root = video(tmp_path, track(0, 1, outside=2, more='task_id="3" subset="Test"'))
    (root / "images").rename(root / "Test")
    assert rs.detect(root).source.list_samples().only_split == "test"


@pytest.mark.parametrize(
    ("tracks", "line", "text"),
    [
        ([track(0, 3), track(1, 2, number=1)], 5, "track 0 has shapes in frames 0 and 3"),
        ([track(0, 3)], 5, "none in frame 1"),  # whose image is there
        ([track(0, more='task_id="1"'), track(0, more='task_id="2"')], 6, "another task"),
        (['<track id="0" label="cat">\n<box xtl="1"/></track>'], 4, "invalid frame ''"),
        (['<track id="0" label="cat">\n<box frame="1e9"/></track>'], 4, "invalid frame '1e9'"),
        (
            ['<track id="0" label="cat">\n' + BOX.format("9" * 19, 0) + "</track>"],
            4,
            "invalid frame",
        ),
    ],
)
def test_wrong_tracks_are_refused(tmp_path: Path, tracks: list[str], line: int, text: str) -> None:
    with raises(rs.SourceError, path="annotations.xml", line=line, match=text):
        Cvat(video(tmp_path, *tracks)).list_samples()


def test_missing_frames_fail_alone_with_what_to_do(tmp_path: Path) -> None:
    root = video(tmp_path, track(0, 1, 2), frames=range(0, 1_000_000_000, 1)[:3])
    text = (root / "annotations.xml").read_text()
    write(root / "annotations.xml", text.replace("<stop_frame>2", "<stop_frame>999999999999"))
    (root / "images/frame_000001.PNG").unlink()
    listing = Cvat(root).list_samples()
    assert len(listing.samples) == 3
    with raises(
        rs.SourceError, path="annotations.xml", match="frame 1: image 'frame_000001'"
    ) as got:
        read(listing, 0)
    assert "Save images" in got.value.remedy


def test_skeletons_end_with_their_points(tmp_path: Path) -> None:
    points = '<points label="{}" outside="{}" occluded="0" points="{}"/>'
    seen = (
        points.format("a", 0, "2,3") + points.format("b", 1, "1,1") + points.format("c", 0, "9,8")
    )
    gone = (
        points.format("a", 1, "2,3") + points.format("b", 1, "1,1") + points.format("c", 1, "9,8")
    )
    shapes = "".join(
        f'<skeleton frame="{frame}" keyframe="1">{shape}</skeleton>'
        for frame, shape in ((0, seen), (1, gone), (3, seen))
    )
    root = video(tmp_path, f'<track id="2" label="dog">{shapes}</track>')
    listing = Cvat(root).list_samples()
    frames = [read(listing, number)[0] for number in range(4)]
    assert [frame[TRACK] for frame in frames] == [[2], [], [], [2]]
    assert boxes_of(frames[0]) == [(0.15, 0.05, 0.4, 0.225)]
    assert frames[3]["image/object/keypoint/visibility"] == [2, 0, 2]
