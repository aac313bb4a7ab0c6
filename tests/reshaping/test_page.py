"""The commands and the code of docs/reshaping.md run."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import recordsmith as rs
from recordsmith.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "reshaping.md").read_text("utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two datasets in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("out", "more"):
        rows = [{"image/class/text": ("daisy", "rose")[number % 2]} for number in range(40)]
        rs.pack(rs.Rows(rows), name, splits={"train": 0.75, "validation": 0.25})


def test_the_commands_run() -> None:
    (block,) = _blocks("console")
    commands = [shlex.split(line[2:], comments=True) for line in block.splitlines()]
    assert len(commands) == 11
    for program, *arguments in commands:
        assert program == "recordsmith"
        if "--where" in arguments and not importlib.util.find_spec("recordsmith.where.expression"):
            continue
        outcome = CliRunner().invoke(app, arguments)
        assert outcome.exit_code == 0, (arguments, outcome.output)
    assert rs.inspect("tenth").record_count == 4
    assert rs.inspect("few").record_count == 10
    assert len(rs.open("eight").shards) == 16


def test_the_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = _blocks("python")
    exec(compile(block, "reshaping.md", "exec"), {})
    assert capsys.readouterr().out == "40 {'train': 30, 'validation': 10}\n"
