"""recordsmith.grain, in a process of its own: grain imports JAX where that is installed, and JAX
warns of forks.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
needs_grain = pytest.mark.skipif(
    importlib.util.find_spec("grain") is None, reason="grain is not installed"
)


@pytest.mark.slow
@needs_grain
def test_in_a_process_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", HERE / "grain_checks.py"],
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 20


@pytest.mark.slow
@needs_grain
def test_the_page(run_page: Any) -> None:
    run_page("grain.md")
