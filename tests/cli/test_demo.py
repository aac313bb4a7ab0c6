from __future__ import annotations

import importlib
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs


def test_the_whole_tour(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    demo = importlib.import_module("recordsmith.cli.demo")
    monkeypatch.setattr(demo, "_IMAGES_PER_CLASS", 4)
    monkeypatch.setattr(demo, "_BATCH_SIZE", 12)
    loaded = []
    made = rs.Loader

    def loader(dataset: rs.Dataset, features: Any, **options: Any) -> rs.Loader:
        loaded.append((len(dataset), features, options["shuffle"]))
        return made(dataset, features, **options)

    monkeypatch.setattr(rs, "Loader", loader)
    outcome = run("demo", tmp_path / "tour")
    assert outcome.code == 0
    shown = [line.removeprefix("  >>> ") for line in outcome.out.splitlines() if ">>>" in line]
    exec("\n".join(shown), {"rs": rs})
    assert loaded[0] == loaded[1]  # the shown code is the code that ran
    assert "good: 20 intact records" in outcome.out
    assert len(re.findall(r"^  took \d+\.\d s$", outcome.out, re.MULTILINE)) == 6
    for split, count in (("train", 3), ("validation", 1)):  # of each class
        labels = rs.open(tmp_path / "tour" / "dataset", split).read_columns(["image/class/label"])
        assert np.bincount(labels["image/class/label"]).tolist() == [count] * 5
    assert "`recordsmith pack FOLDER OUT`" in outcome.out
    assert rs.verify(tmp_path / "tour" / "dataset").is_good
    kinds = {file.suffix for file in (tmp_path / "tour" / "images").rglob("*.*")}
    assert kinds == {".jpg", ".png"}
    with Image.open(tmp_path / "tour" / "contact-sheet.png") as sheet:
        colours = sheet.convert("RGB").resize((100, 60)).getcolors(6000)
    assert colours is not None
    assert len(colours) > 500  # not an empty page
    (tmp_path / "other" / "photos").mkdir(parents=True)
    refused = run("demo", tmp_path / "other")
    assert refused.code == 2
    assert "photos" in refused.err
    again = run("demo", tmp_path / "tour")
    assert again.code == 0
    assert "nothing to do" in again.out


@pytest.mark.posix
@pytest.mark.parametrize(("command", "code"), [("true", 0), ("false", 2)])
def test_the_makefile_shows_each_step_and_its_time(tmp_path: Path, command: str, code: int) -> None:
    if shutil.which("make") is None:
        pytest.skip("needs make")
    makefile = Path(__file__).parents[2] / "Makefile"
    (tmp_path / "Makefile").write_text(f"include {makefile}\nwork:\n\t$(STEP) 'Do it' {command}\n")
    done = subprocess.run(
        ["make", "--no-print-directory", "work"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    title, *times = done.stdout.splitlines()
    assert title == "Do it"
    assert [re.sub(r"\d+", "N", line) for line in times] == ["  done in N s"] * (code == 0)
