"""Runs commands: in this process, which is quick, or as a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image
from typer.testing import CliRunner

from recordsmith.cli import app


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Outcome]


@pytest.fixture(scope="session")
def run() -> Run:
    """Runs a command in this process."""

    def run_command(*arguments: object) -> Outcome:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run_command


@pytest.fixture(scope="session")
def run_process() -> Run:
    """Runs a command as a user does, its output piped."""

    def run_command(*arguments: object, cwd: Path | None = None) -> Outcome:
        result = subprocess.run(
            [sys.executable, "-m", "recordsmith", *map(os.fspath, arguments)],  # type: ignore[call-overload]
            capture_output=True,
            text=True,
            cwd=cwd,
            check=False,
        )
        return Outcome(result.returncode, result.stdout, result.stderr)

    return run_command


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Two classes: five JPEGs and four PNGs, with other sizes for the same names."""
    root = tmp_path / "images"
    for label, (name, suffix, count) in enumerate((("cat", "jpg", 5), ("dog", "png", 4))):
        (root / name).mkdir(parents=True)
        for number in range(count):
            width = 40 + (number if name == "cat" else 3 - number)
            image = Image.new("RGB", (width, 30), (80 * label, 20 * number, 90))
            image.save(root / name / f"{number}.{suffix}")
    return root


@pytest.fixture
def packed(images: Path, tmp_path: Path, run: Run) -> Path:
    """The images, packed."""
    out = tmp_path / "out"
    outcome = run("pack", images, out, "--splits", "train=0.7,validation=0.3", "--shards", "2")
    assert outcome.code == 0
    return out
