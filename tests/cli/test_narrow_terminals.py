"""What commands print fits the terminal; only commands and paths to copy may be longer."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

COPIED = re.compile(r"^ *(`[^`]+`[,;.]?|[^ ]*/[^ ]*)$")


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_lines_fit(packed: Path, terminal: Any, columns: int) -> None:
    far = packed.parent / "a folder with a rather long name" / "and another long name inside it"
    far.mkdir(parents=True)
    data = packed.rename(far / "dataset")
    rs.edit(data, far / "edited", drop=["image/width"])
    for command in (
        ("pack", far.parent.parent / "images", far / "new"),
        ("inspect", data),
        ("stats", data),
        ("head", data, "--at", "3"),
        ("verify", data, "--deep"),
        ("diff", data, far / "edited"),
        ("export", data, far / "exported"),
        ("index", data, "--format", "dali"),
    ):
        code, shown, _ = terminal.run(
            [sys.executable, "-m", "recordsmith", *command], columns=columns
        )
        assert code in (0, 1), shown
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.rpartition("\x1b[2K")[2])
        lines = [line.rstrip("\r") for line in text.splitlines()]
        wide = [line for line in lines if len(line) > columns and not COPIED.match(line)]
        assert any(lines)
        assert not wide, command
