"""Pipelines of Beam's FnApiRunner, in this process or in several."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

_MULTI_PROCESS = """
import json, os, signal, sys
import numpy as np
import pyarrow as pa
import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from recordsmith.beam import *

OPTIONS = PipelineOptions(["--direct_running_mode=multi_processing", "--direct_num_workers=2"])

def pipeline():
    return beam.Pipeline(runner=FnApiRunner(), options=OPTIONS)

ARGUMENTS = json.loads(sys.argv[1])
"""


@pytest.fixture
def collect(tmp_path: Path) -> Callable[..., list[Any]]:
    """Run transforms one after the other in this process; return the elements of the result."""
    beam = pytest.importorskip("apache_beam")
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    path = str(tmp_path / "collected")

    def keep(element: Any) -> None:  # Beam pickles it, so it cannot append to a list of this test
        with open(path, "ab") as file:
            pickle.dump(element, file)

    def collect(*transforms: Any) -> list[Any]:
        open(path, "wb").close()
        with beam.Pipeline(runner=FnApiRunner()) as pipeline:
            found = pipeline
            for number, transform in enumerate(transforms):
                found = found | f"{number}" >> transform
            _ = found | "keep" >> beam.Map(keep)
        elements = []
        with open(path, "rb") as file:
            while file.peek(1):
                elements.append(pickle.load(file))
        return elements

    return collect


@pytest.fixture
def run_workers(tmp_path: Path) -> Callable[..., str]:
    """Run a program whose `pipeline()` has two worker processes; return what it printed."""
    pytest.importorskip("apache_beam")

    def run(
        program: str, variables: Mapping[str, str] | None = None, status: int = 0, **arguments: Any
    ) -> str:
        path = tmp_path / "program.py"
        path.write_text(_MULTI_PROCESS + textwrap.dedent(program), "utf-8")
        done = subprocess.run(
            [sys.executable, str(path), json.dumps(arguments)],
            env={**os.environ, **(variables or {})},
            capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert (done.returncode != 0) == (status != 0), done.stdout + done.stderr[-5000:]
        return done.stdout if status == 0 else done.stderr

    return run
