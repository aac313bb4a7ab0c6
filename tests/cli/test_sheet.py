from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

import recordsmith as rs

from ..images import encode


def test_draws_a_sheet(run, packed: Path, tmp_path: Path) -> None:
    outcome = run("sheet", packed, tmp_path / "s.png")
    assert outcome.code == 0
    with Image.open(tmp_path / "s.png") as image:
        width, height = image.size
    assert outcome.out.startswith("drew 9 records ")
    assert outcome.out.endswith(f" {tmp_path / 's.png'}, {width}x{height} pixels\n")


def test_draws_in_the_terminal(run, tmp_path: Path, monkeypatch) -> None:
    """Upper half blocks: the colour of a character is a pixel, its background the one below it."""
    monkeypatch.setenv("COLUMNS", "70")
    pixels = np.zeros((60, 60, 3), np.uint8)
    pixels[:30], pixels[30:] = (250, 10, 20), (10, 20, 250)
    encoded = encode(Image.fromarray(pixels), "PNG")
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for name in ("a.png", "b\u202e.png"):
            writer.write_example({"image/encoded": encoded, "image/filename": name})
    outcome = run("sheet", tmp_path / "a.tfrecord", "--terminal")
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert len(lines) == 15 + 2  # 30 pixels high, a caption, and a gap
    assert lines[0].count("\u2580") == 2 * 30
    assert lines[0].startswith("\x1b[38;2;250;10;20;48;2;250;10;20m\u2580")
    assert "\x1b[38;2;10;20;250;48;2;10;20;250m" in lines[14]
    assert lines[15].startswith("a.png")
    assert "\u202e" not in outcome.out


def test_a_dataset_without_records_is_not_drawn(run, tmp_path: Path) -> None:
    rs.ShardWriter(tmp_path / "a.tfrecord").close()
    for out in ("--terminal", tmp_path / "a.html"):
        outcome = run("sheet", tmp_path / "a.tfrecord", out)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err == "error: the dataset has no records to draw\n"


def test_a_sheet_is_a_file_or_in_the_terminal(run, packed: Path, tmp_path: Path) -> None:
    for words in ([], [tmp_path / "s.png", "--terminal"], ["--terminal", "--columns", "2"]):
        outcome = run("sheet", packed, *words)
        assert (outcome.code, "--terminal" in outcome.err) == (2, True)
