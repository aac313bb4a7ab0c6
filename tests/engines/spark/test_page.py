"""The code of docs/how-to/spark.md runs, in a process and a session of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

from ...test_docs import blocks, page

pytest.importorskip("pyspark")


def test_the_page(images: Any, tmp_path: Path) -> None:
    counts = {"daisy": 20, "rose": 20, "tulip": 20}
    source = rs.ImageFolder(images.make_folder(tmp_path / "flowers", counts))
    splits = {"train": 0.7, "validation": 0.3}
    rs.pack(source, tmp_path / "out", splits=splits, shards=2)
    program = "".join(blocks("python", page("docs/how-to/spark.md")))
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = re.findall(r"^ *print\(.*?\)  # shows (.+)$", program, re.MULTILINE)
    assert len(expected) == 3
    assert done.stdout.splitlines() == expected
