from __future__ import annotations

from pathlib import Path

from PIL import Image

import recordsmith as rs


def test_draws_a_sheet(run, packed: Path, tmp_path: Path) -> None:
    outcome = run("sheet", packed, tmp_path / "s.png")
    assert outcome.code == 0
    with Image.open(tmp_path / "s.png") as image:
        width, height = image.size
    assert outcome.out.startswith("drew 9 records ")
    assert outcome.out.endswith(f" {tmp_path / 's.png'}, {width}x{height} pixels\n")


def test_existing_files_are_kept(run, packed: Path, tmp_path: Path) -> None:
    (tmp_path / "s.png").write_bytes(b"mine")
    refused = run("sheet", packed, tmp_path / "s.png")
    assert refused.code == 2
    assert "s.png" in refused.err
    assert (tmp_path / "s.png").read_bytes() == b"mine"
    assert run("sheet", packed, tmp_path / "s.png", "--overwrite").code == 0
    with Image.open(tmp_path / "s.png") as image:
        assert image.format == "PNG"


def test_invalid_images_are_listed(run, tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        writer.write_example({"image/encoded": b"\x1b[31mwords"})
    outcome = run("sheet", tmp_path / "x.tfrecord", tmp_path / "s.png")
    assert outcome.code == 0
    head, line = outcome.out.splitlines()[-2:]
    assert head.startswith("1 could not ")
    assert line.startswith("  position 0: unreadable-image: ")
    assert "\x1b" not in outcome.out
    with rs.ShardWriter(tmp_path / "y.tfrecord") as writer:
        writer.write_example({"age": 7})
    outcome = run("sheet", tmp_path / "y.tfrecord", tmp_path / "t.png")
    assert outcome.code == 2
    assert "image" in outcome.err
