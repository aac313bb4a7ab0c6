"""The code of docs/how-to/spark.md runs, in a process and a session of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ...test_docs import blocks, page

pytest.importorskip("pyspark")


def test_the_page(dataset_of_all_pages: Path) -> None:
    program = "".join(blocks("python", page("docs/how-to/spark.md")))
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=dataset_of_all_pages,
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
