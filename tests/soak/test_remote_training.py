"""Some rounds of training from S3 that is killed and resumed; `make soak` has more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("moto")
pytest.importorskip("obstore")

PROGRAM = Path(__file__).with_name("remote_training.py")


@pytest.mark.slow
def test_training_that_is_killed_and_resumed() -> None:
    command = [PROGRAM, "--count=2", "--images=1500", "--seed=1"]
    run = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, timeout=280
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert " ranks killed" in run.stdout
