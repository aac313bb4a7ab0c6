from __future__ import annotations

import re
from pathlib import Path

import recordsmith as rs


def write(path: Path, rows: list[dict[str, object]], compression: str = "none") -> Path:
    with rs.ShardWriter(path, compression=compression) as writer:
        for row in rows:
            writer.write_example(row)
    return path


def test_equal_datasets(run, packed: Path, tmp_path: Path) -> None:
    outcome = run("diff", packed, packed)
    assert outcome.code == 0
    assert outcome.out.startswith("equal: ")
    assert "9 records" in outcome.out.splitlines()[0]
    document = run("diff", packed, packed, "--split", "validation", "--json").document
    assert document["is_equal"]
    assert document["same_count"] == document["same_bytes_count"] == document["a"]["records"] == 3
    rows: list[dict[str, object]] = [{"id": number} for number in range(5)]
    a = write(tmp_path / "a.tfrecord", rows)
    b = write(tmp_path / "b.tfrecord", rows[::-1], "gzip")
    outcome = run("diff", a, b)
    assert outcome.code == 0
    assert "in another order" in outcome.out
    assert "gzip" in outcome.out


def test_differences_are_printed(run, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": number, "label": 3, "bad\x1b[2J": "x"} for number in range(20)
    ]
    a = write(tmp_path / "a.tfrecord", rows)
    b = write(
        tmp_path / "b.tfrecord",
        [{**rows[0], "label": 4}, *rows[2:], {"id": 77, "label": 3, "new": "\x1b[31mred"}],
    )
    outcome = run("diff", a, b)
    assert outcome.code == 1
    head = outcome.out.splitlines()[0]
    assert head.startswith("different: ")
    assert re.findall(r"\d+ \w+", head) == ["18 records", "1 changed", "1 only", "1 only"]
    assert "label: 3 -> 4" in outcome.out
    assert "new: missing -> bytes" in outcome.out
    assert f"{a}, record 1: 1" in outcome.out
    assert f"{b}, record 19: 77" in outcome.out
    assert "\x1b" not in outcome.out
    outcome = run("diff", a, b, "--json")
    assert outcome.code == 1
    document = outcome.document
    assert {
        key: document[key]
        for key in ("same_count", "changed_count", "left_only_count", "right_only_count", "by")
    } == {
        "same_count": 18,
        "changed_count": 1,
        "left_only_count": 1,
        "right_only_count": 1,
        "by": "id",
    }
    assert document["changes"] == [
        {
            "key": "0",
            "a": {"path": str(a), "record": 0, "split": "a"},
            "b": {"path": str(b), "record": 0, "split": "b"},
            "features": [{"section": "features", "feature": "label", "a": "3", "b": "4"}],
        }
    ]
    assert document["changed_features"] == [{"feature": "label", "records": 1}]
    assert document["left_only"] == [{"key": "1", "path": str(a), "record": 1, "split": "a"}]
    assert {change["feature"]: change["what"] for change in document["schema"]} == {
        "new": "feature",
        "bad\x1b[2J": "present",
    }
