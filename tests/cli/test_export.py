from __future__ import annotations

from pathlib import Path

import recordsmith as rs


def test_summary(run, packed: Path, images: Path, tmp_path: Path) -> None:
    outcome = run("export", packed, tmp_path / "new", "--format", "folder")
    assert outcome.code == 0
    head = outcome.out.splitlines()[0]
    assert head.startswith(f"exported 9 records to {tmp_path}/new ")
    assert "9 files" in head
    assert "  train: 6 records\n" in outcome.out
    for path in images.rglob("*.*"):
        (again,) = (tmp_path / "new").glob(f"*/{path.relative_to(images)}")
        assert again.read_bytes() == path.read_bytes()


def test_changes_and_problems_are_printed(run, tmp_path: Path, images: Path) -> None:
    data = (images / "cat" / "0.jpg").read_bytes()
    path = tmp_path / "odd.tfrecord"
    with rs.ShardWriter(path) as writer:
        writer.write_example({"image/encoded": data, "image/filename": "../a.jpg", "more": 1})
        writer.write_example({"image/encoded": data, "image/height": 5})
        writer.write_example({"x": 1})
    outcome = run("export", path, tmp_path / "new")
    assert outcome.code == 1
    assert "record 2" in outcome.err
    outcome = run("export", path, tmp_path / "new", "--skip-errors")
    assert outcome.code == 0
    assert "record 0: ../a.jpg -> images/a.jpg" in outcome.out
    assert "more of 1 record" in outcome.out
    assert "skipped 1:" in outcome.out
    assert "record 1: " in outcome.out
