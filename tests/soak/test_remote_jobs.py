"""Some kills and failing requests of jobs that write to S3; `make soak` has more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("moto")
pytest.importorskip("obstore")

PROGRAM = Path(__file__).with_name("remote_jobs.py")


@pytest.mark.slow
def test_jobs_that_are_killed_or_whose_requests_fail() -> None:
    command = [PROGRAM, "--kills=6", "--faults=40", "--seed=5", "--processes=1"]
    run = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, timeout=250
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert " kills" in run.stdout
    assert " faults" in run.stdout
