from __future__ import annotations

from pathlib import Path

from PIL import Image


def test_draws_a_sheet(run, packed: Path, tmp_path: Path) -> None:
    outcome = run("sheet", packed, tmp_path / "s.png")
    assert outcome.code == 0
    with Image.open(tmp_path / "s.png") as image:
        width, height = image.size
    assert outcome.out.startswith("drew 9 records ")
    assert outcome.out.endswith(f" {tmp_path / 's.png'}, {width}x{height} pixels\n")
