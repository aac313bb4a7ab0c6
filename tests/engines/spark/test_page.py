"""The code of docs/how-to/spark.md and of docstrings runs in a process and session of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import recordsmith as rs

from ...test_docs import blocks, page
from ...test_docstring_examples import example_of

pytest.importorskip("pyspark")


@pytest.mark.slow
def test_the_page(dataset_of_all_pages: Path) -> None:
    program = "".join(blocks("python", page("docs/how-to/spark.md")))
    expected = re.findall(r"^ *print\(.*?\)  # shows (.+)$", program, re.MULTILINE)
    assert len(expected) == 3
    assert _run(program, dataset_of_all_pages).splitlines() == expected


@pytest.mark.slow
def test_examples_of_docstrings(dataset_of_all_pages: Path) -> None:
    from recordsmith.spark.source import RecordsmithSource

    engine = example_of(rs.engines.Spark)
    assert engine is not None
    program = f"""
from pyspark.sql import SparkSession
import recordsmith as rs
spark = SparkSession.builder.master("local[1]").getOrCreate()
{example_of(RecordsmithSource)}
print(frame.count())
{engine.replace('"out"', '"packed"')}
print(len(rs.open("packed")))
"""
    assert _run(program, dataset_of_all_pages).split() == ["42", "60"]


def _run(program: str, folder: Path) -> str:
    """Return what a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
