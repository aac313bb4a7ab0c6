from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

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
