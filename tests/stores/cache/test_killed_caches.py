"""A short run of the soak test with kills."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.posix

PROGRAM = Path(__file__).parents[2] / "soak" / "killed_caches.py"


@pytest.mark.slow
def test_kills_leave_a_cache_that_is_right() -> None:
    done = subprocess.run(
        [sys.executable, PROGRAM, "--seed", "1", "--count", "12"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
