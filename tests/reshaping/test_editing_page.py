"""The commands and the code of docs/editing.md run, in their order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

import recordsmith as rs
from recordsmith.cli import app
from recordsmith.reshaping import AppendReport
from recordsmith.where import parse_where

PAGE = (Path(__file__).parent.parent.parent / "docs" / "editing.md").read_text("utf-8")


def test_commands_and_code_run(
    tmp_path: Path, images: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("daisy", "rose", "tulip")):
        (tmp_path / "flowers" / name).mkdir(parents=True)
        for copy in range(4):
            image = images.noise(64, 32 + 8 * copy, seed=number)
            (tmp_path / "flowers" / name / f"{copy}.png").write_bytes(images.encode(image, "PNG"))
    rs.pack(rs.ImageFolder("flowers"), "out", shards=2)
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert [language for language, _ in blocks].count("console") == 4
    for language, block in blocks:
        if language == "csv":
            (tmp_path / "labels.csv").write_text(block)
        elif language == "python":
            exec(block, {"rs": rs})
        else:
            for line in block.splitlines():
                result = CliRunner().invoke(app, shlex.split(line.removeprefix("$ recordsmith ")))
                assert result.exit_code == 0, (line, result.output)
    assert len(rs.open("some")) == 8
    assert len(rs.open("large")) == 4
    assert "image/width" not in rs.open("smaller").schema.features
    assert rs.open("renamed")[0]["year"] == [2024]
    assert len(rs.open("small")) == 8
    assert rs.open("merged").class_names == ("rose", "other flower")
    assert {split: len(rs.open("out", split=split)) for split in ("train", "validation")} == {
        "train": 24,
        "validation": 12,
    }
    assert all(rs.verify(path).is_good for path in ("out", "merged", "small"))


def test_conditions_of_the_table_are_conditions() -> None:
    conditions = re.findall(r"^\| `([^`]+)` \| ", PAGE.partition("## Edit")[0], re.MULTILINE)
    assert len(conditions) == 8
    for condition in conditions:
        assert parse_where(condition)


def test_the_json_report_is_documented() -> None:
    documented = (Path(__file__).parent.parent.parent / "docs" / "json.md").read_text("utf-8")
    section = documented.partition("`recordsmith append")[2].partition("\n## ")[0]
    for key in AppendReport(Path("out")).to_json():
        assert f"`{key}`" in section
