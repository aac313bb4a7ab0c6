"""`reshard` leaves out the records that a file of findings chooses, of every report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import chosen, read_findings

from ...images import jpeg
from ...reading import write_records


def places_in(path: Path) -> list[tuple[str, int]]:
    """The check and the position of each place."""
    return [(place.check, place.position) for place in read_findings(path)]


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
    records = [*rs.open(packed)]
    splits = [name for name, part in rs.open(packed).splits.items() for _ in part]
    for place in read_findings(found):
        assert place.split == splits[place.position or 0]
    gone = {place.position for _, place in chosen(read_findings(found), keep=keep)}
    images = {record["image/encoded"][0] for record in records}
    assert len(gone) == len(records) - len(images) or keep == "none"
    kept = [k for k in range(40) if k not in gone and split in (None, splits[k])]
    rs.reshard(packed, tmp_path / "new", without=f"@{found}", keep=keep, split=split)
    assert ids(tmp_path / "new") == [records[k]["id"][0] for k in kept]
    more = write_records(tmp_path / "more.tfrecord", [{"id": 9}])
    rs.append(more, packed, split="train", allow_missing=True)
    for again in (tmp_path / "new", packed):
        with pytest.raises(rs.OptionError, match=r"another dataset, or .* before it changed.*lint"):
            rs.reshard(again, tmp_path / "third", without=f"@{found}")


@pytest.mark.parametrize("threads", [1, 3])
def test_places_of_statistics(packed: Path, tmp_path: Path, threads: int) -> None:
    records, found = [*rs.open(packed)], tmp_path / "found.jsonl"
    expected = {
        ("label-negative", k) for k, r in enumerate(records) if r["image/class/label"][0] < 0
    } | {("not-finite", k) for k, r in enumerate(records) if np.isnan(r["value"][0])}
    test = rs.open(packed, "test")
    start = len(records) - len(test)
    for dataset, places in (
        (packed, range(40)),
        (rs.open(packed)[5:39], range(5, 39)),
        (test, range(start, 40)),
    ):
        report = rs.stats(dataset, findings=found, overwrite=True, threads=threads)
        assert {*places_in(found)} == {(check, k) for check, k in expected if k in places}
        assert {check for check, _ in places_in(found)} <= {one.kind for one in report.findings}
    rs.reshard(packed, tmp_path / "new", without=f"@{found}", checks="not-finite")
    gone = {k for check, k in expected if check == "not-finite" and k >= start}
    assert ids(tmp_path / "new") == [r["id"][0] for k, r in enumerate(records) if k not in gone]


def test_places_of_invalid_boxes_and_images(tmp_path: Path) -> None:
    key = "image/object/bbox/{}".format
    good: dict[str, Any] = {key(side): [0.1] for side in ("ymin", "xmin")}
    good |= {key(side): [0.5] for side in ("ymax", "xmax")} | {"image/encoded": jpeg(0)}
    broken = {"image/encoded": b"\xff\xd8\xff\xe0broken"}
    changes = [{}, {key("ymax"): [0.05]}, {key("xmax"): [7.0]}, {}, {key("xmin"): []}, broken]
    write_records(tmp_path / "a.tfrecord", [{**good, **change} for change in changes])
    rs.stats(tmp_path / "a.tfrecord", findings=tmp_path / "f.jsonl")
    boxes = [("invalid-boxes", row) for row in (1, 2, 4)]
    assert places_in(tmp_path / "f.jsonl") == [("unreadable-images", 5), *boxes]


def test_places_of_all_defects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "recordsmith.checking.verification.verify_report.MAX_DEFECTS_PER_SHARD"
    monkeypatch.setattr(module, 5)
    file, found = tmp_path / "a.tfrecord", tmp_path / "f.jsonl"
    write_records(file, [{"a": 1 if number % 3 else "text"} for number in range(90)])
    report = rs.verify(file, deep=True, findings=found)
    assert places_in(found) == [("feature-kind-mismatch", number) for number in range(0, 90, 3)]
    assert (len(report.defects), report.defect_count, report.unchecked) == (5, 30, [])
    data = bytearray(file.read_bytes())
    data[20] ^= 1
    file.write_bytes(data)
    for engine in (None, rs.engines.Processes(1)):
        rs.verify(file, engine=engine, findings=found, overwrite=True)
        assert [check for check, _ in places_in(found)] == ["payload-crc-mismatch"]


def test_places_of_differences(packed: Path, tmp_path: Path) -> None:
    rows, other, found = ids(packed), tmp_path / "other", tmp_path / "f.jsonl"
    table = {"image/class/label": {-4: 4, "*": "*"}}
    rs.edit(packed, other, recode=table, where="id != 5 and id != 6")
    rs.diff(packed, other, by="id", findings=found)
    only = sorted(("only-in-a", rows.index(k)) for k in (5, 6))
    assert places_in(found) == [("changed", rows.index(0)), *only]
    rs.reshard(packed, tmp_path / "new", without=f"@{found}", checks=["only-in-a"])
    assert ids(tmp_path / "new") == ids(other)
    rs.reshard(packed, tmp_path / "moved", splits={"train": 0.5, "test": 0.5}, seed=3)
    report = rs.diff(packed, tmp_path / "moved", findings=found, overwrite=True)
    checks = [check for check, _ in places_in(found)]
    assert checks == ["in-another-split"] * report.moved_count != []


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
