"""`reshard` leaves out the records that a file of findings chooses, of every report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from ...images import jpeg
from ...reading import write_records


def places_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()][1:]


def ids(path: Path) -> list[int]:
    return [record["id"][0] for record in rs.open(path)]


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """Records with copies of images, not-finite numbers and labels without names, in two splits."""
    values = [float(number) for number in range(40)]
    values[3::7] = [float("nan")] * 6
    rows = [
        {
            "id": number,
            "value": values[number],
            "image/encoded": jpeg(number % 30, 32, 24),
            "image/class/label": 1 if number else -4,
        }
        for number in range(40)
    ]
    out = tmp_path / "packed"
    rs.pack(rs.Rows(rows), out, splits={"train": 0.6, "test": 0.4}, shards=2)
    return out


@pytest.mark.parametrize("split", [None, "test"])
@pytest.mark.parametrize("keep", ["first", "train", "none"])
def test_duplicates_are_left_out_once(
    packed: Path, tmp_path: Path, keep: str, split: str | None
) -> None:
    found = tmp_path / "found.jsonl"
    rs.lint(packed, only=["identical-images", "identical-across-splits"], findings=found)
    every = [(record["id"][0], record["image/encoded"][0]) for record in rs.open(packed)]
    splits = [name for name, part in rs.open(packed).splits.items() for _ in part]
    assert [(line["position"], line["split"]) for line in places_in(found)] == [
        (line["position"], splits[line["position"]]) for line in places_in(found)
    ]
    gone = set()
    for image in {image for _, image in every}:
        members = [k for k, (_, other) in enumerate(every) if other == image]
        if len(members) > 1:
            first = next((k for k in members if splits[k] == "train"), members[0])
            keeps = {"first": [members[0]], "train": [first], "none": []}[keep]
            gone |= set(members) - set(keeps)
    kept = [every[k][0] for k in range(40) if k not in gone and split in (None, splits[k])]
    rs.reshard(packed, tmp_path / "new", without=f"@{found}", keep=keep, split=split)
    assert ids(tmp_path / "new") == kept
    for again in (tmp_path / "new", packed):
        if again == packed:
            more = write_records(tmp_path / "more.tfrecord", [{"id": 9}])
            rs.append(more, again, split="train", allow_missing=True)
        with pytest.raises(rs.OptionError, match=r"another dataset, or .* before it changed.*lint"):
            rs.reshard(again, tmp_path / "third", without=f"@{found}")


@pytest.mark.parametrize("threads", [1, 3])
def test_places_of_statistics(packed: Path, tmp_path: Path, threads: int) -> None:
    records = [*rs.open(packed)]
    found = tmp_path / "found.jsonl"
    report = rs.stats(packed, findings=found, threads=threads)
    lines = places_in(found)
    expected = {
        ("label-negative", k) for k, r in enumerate(records) if r["image/class/label"][0] < 0
    } | {("not-finite", k) for k, r in enumerate(records) if np.isnan(r["value"][0])}
    assert {(line["check"], line["position"]) for line in lines} == expected
    assert {line["check"] for line in lines} <= {finding.kind for finding in report.findings}
    rs.stats(rs.open(packed)[5:39], findings=found, overwrite=True)
    within = {(check, k) for check, k in expected if 5 <= k < 39}
    assert {(line["check"], line["position"]) for line in places_in(found)} == within
    test = rs.open(packed, "test")
    rs.stats(test, findings=found, overwrite=True)
    start = len(records) - len(test)
    of_split = {("label-negative", k) for k in range(start)} | {
        ("not-finite", k) for k in range(start)
    }
    assert {(line["check"], line["position"]) for line in places_in(found)} == expected - of_split
    rs.reshard(packed, tmp_path / "new", without=f"@{found}", checks="not-finite")
    gone = {k for check, k in expected - of_split if check == "not-finite"}
    assert ids(tmp_path / "new") == [r["id"][0] for k, r in enumerate(records) if k not in gone]


def test_places_of_invalid_boxes_and_images(tmp_path: Path) -> None:
    key = "image/object/bbox/{}".format
    good: dict[str, Any] = {key(side): [0.1] for side in ("ymin", "xmin")}
    good |= {key(side): [0.5] for side in ("ymax", "xmax")} | {"image/encoded": jpeg(0)}
    broken = {"image/encoded": b"\xff\xd8\xff\xe0broken"}
    changes = [{}, {key("ymax"): [0.05]}, {key("xmax"): [7.0]}, {}, {key("xmin"): []}, broken]
    write_records(tmp_path / "a.tfrecord", [{**good, **change} for change in changes])
    rs.stats(tmp_path / "a.tfrecord", findings=tmp_path / "f.jsonl")
    assert [(line["check"], line["position"]) for line in places_in(tmp_path / "f.jsonl")] == [
        ("unreadable-images", 5),
        *(("invalid-boxes", row) for row in (1, 2, 4)),
    ]


def test_places_of_all_defects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "recordsmith.checking.verification.verify_report.MAX_DEFECTS_PER_SHARD"
    monkeypatch.setattr(module, 5)
    records = [{"a": 1 if number % 3 else "text"} for number in range(90)]
    write_records(tmp_path / "a.tfrecord", records)
    report = rs.verify(tmp_path / "a.tfrecord", deep=True, findings=tmp_path / "f.jsonl")
    lines = places_in(tmp_path / "f.jsonl")
    assert [(line["check"], line["position"]) for line in lines] == [
        ("feature-kind-mismatch", number) for number in range(0, 90, 3)
    ]
    assert (len(report.defects), report.defect_count, report.unchecked) == (5, 30, [])
    data = bytearray((tmp_path / "a.tfrecord").read_bytes())
    data[20] ^= 1
    (tmp_path / "a.tfrecord").write_bytes(data)
    rs.verify(tmp_path / "a.tfrecord", findings=tmp_path / "f.jsonl", overwrite=True)
    assert [line["check"] for line in places_in(tmp_path / "f.jsonl")] == ["payload-crc-mismatch"]
    engine: Any = rs.engines.Processes(1)
    by_threads = (tmp_path / "f.jsonl").read_bytes()
    rs.verify(tmp_path, engine=engine, findings=tmp_path / "g.jsonl")
    assert places_in(tmp_path / "g.jsonl") == [
        json.loads(line) for line in by_threads.splitlines()[1:]
    ]


def test_places_of_differences(packed: Path, tmp_path: Path) -> None:
    rows, other, found = ids(packed), tmp_path / "other", tmp_path / "f.jsonl"
    table = {"image/class/label": {-4: 4, "*": "*"}}
    rs.edit(packed, other, recode=table, where="id != 5 and id != 6")
    rs.diff(packed, other, by="id", findings=found)
    expected = [("changed", rows.index(0)), *sorted(("only-in-a", rows.index(k)) for k in (5, 6))]
    assert [(line["check"], line["position"]) for line in places_in(found)] == expected
    rs.reshard(packed, tmp_path / "new", without=f"@{found}", checks=["only-in-a"])
    assert ids(tmp_path / "new") == ids(other)
    rs.reshard(packed, tmp_path / "moved", splits={"train": 0.5, "test": 0.5}, seed=3)
    report = rs.diff(packed, tmp_path / "moved", findings=found, overwrite=True)
    lines = places_in(found)
    assert {line["check"] for line in lines} == {"in-another-split"}
    assert len(lines) == report.moved_count > 0


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda d, _: rs.reshard(d, "x", without=[0, 41]), "position 41 is out of range"),
        (lambda d, _: rs.reshard(d, "x", without="3"), "positions, or a file"),
        (lambda d, _: rs.reshard(d, "x", without=[1], checks="a"), "checks.* needs a file"),
        (lambda d, _: rs.reshard(d, "x", without=range(40)), "without leaves no record"),
        (
            lambda d, f: rs.reshard(d, "x", without=f"@{f}"),
            "line 3: position 40; expected below 40",
        ),
        (lambda d, f: rs.reshard(d, "x", without=f"@{f}", checks="a"), "no places of 'a'"),
    ],
)
def test_what_does_not_fit_is_refused(
    packed: Path, tmp_path: Path, act: Callable[[Path, Path], object], message: str
) -> None:
    found = tmp_path / "f.jsonl"
    rs.stats(packed, findings=found)
    head, first, *_ = found.read_text().splitlines()
    wrong = {**json.loads(first), "position": 40}
    found.write_text("\n".join([head, first, json.dumps(wrong), ""]))
    with pytest.raises(rs.OptionError, match=message):
        act(packed, found)


def test_positions_are_left_out(packed: Path, tmp_path: Path) -> None:
    rows = ids(packed)
    rs.reshard(packed, tmp_path / "new", without=[0, 39, 7, 7])
    assert ids(tmp_path / "new") == [row for k, row in enumerate(rows) if k not in (0, 7, 39)]
