"""The commands and the code of docs/editing.md and docs/reshaping.md run, in their order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

import recordsmith as rs
from recordsmith.cli import app
from recordsmith.dataset import parse_where
from recordsmith.writing import AppendReport

DOCS = Path(__file__).parents[3] / "docs"
EDITING = (DOCS / "editing.md").read_text("utf-8")


def run_blocks(page: str) -> list[str]:
    """Run the blocks of a page; return the languages of those that are commands or code."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    for language, block in blocks:
        if language == "csv":
            Path("labels.csv").write_text(block)
        elif language == "python":
            exec(block, {"rs": rs})
        else:
            for line in block.splitlines():
                command = shlex.split(line.removeprefix("$ recordsmith "), comments=True)
                result = CliRunner().invoke(app, command)
                assert result.exit_code == 0, (line, result.output)
    return [language for language, _ in blocks]


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
    names = [example["image/filename"][0].decode() for example in rs.open("out")]
    rows = [f"{name},{row}" for row, name in enumerate(names)]
    (tmp_path / "scores.csv").write_text("\n".join(["file,score", *rows]))
    assert run_blocks(EDITING).count("console") == 7
    assert rs.open("scored").read_columns(["score"])["score"].tolist() == [*range(12)]
    assert len(rs.open("some")) == 8
    assert len(rs.open("large")) == 4
    assert "image/width" not in rs.open("smaller").schema.features
    assert rs.open("renamed")[0]["year"] == [2024]
    assert len(rs.open("small")) == 8
    assert rs.open("merged").class_names == ("rose", "other flower")
    assert {split: len(rs.open("out", split=split)) for split in ("train", "validation")} == {
        "train": 22,
        "validation": 12,
    }
    assert all(rs.verify(path).is_good for path in ("out", "merged", "small"))


def test_conditions_of_the_table_are_conditions() -> None:
    conditions = re.findall(r"^\| `([^`]+)` \| ", EDITING.partition("## Edit")[0], re.MULTILINE)
    assert len(conditions) == 8
    for condition in conditions:
        assert parse_where(condition)


def test_the_json_report_is_documented() -> None:
    section = (
        (DOCS / "reference" / "json.md")
        .read_text("utf-8")
        .partition("`recordsmith append")[2]
        .partition("\n## ")[0]
    )
    for key in AppendReport(Path("out")).to_json():
        assert f"`{key}`" in section


def test_the_page_about_resharding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("out", "more"):
        rows = [{"image/class/text": ("daisy", "rose")[number % 2]} for number in range(40)]
        rs.pack(rs.Rows(rows), name, splits={"train": 0.75, "validation": 0.25})
    page = (DOCS / "reshaping.md").read_text("utf-8")
    assert sorted(run_blocks(page)) == ["console", "python"]
    assert page.count("$ recordsmith ") == 12
    assert capsys.readouterr().out == "40 {'train': 30, 'validation': 10}\n"
    assert rs.inspect("tenth").record_count == 4
    assert rs.inspect("few").record_count == 10
    assert len(rs.open("eight").shards) == 16
