"""The harnesses run, stand a short run, and reach what they are for."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parent


def _harness() -> ModuleType:
    """harness.py, under the name that the harnesses import it by."""
    spec = importlib.util.spec_from_file_location("harness", FOLDER / "harness.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["harness"] = module
    spec.loader.exec_module(module)
    return module


HARNESS: Any = _harness()
FOUND = HARNESS.harnesses()


@pytest.mark.parametrize("name", FOUND)
def test_a_short_run_reaches_everything(name: str) -> None:
    """Results and refusals of every kind, or the mutations would miss what they are for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's, on images that are too large
        counts = HARNESS.survive(FOUND[name], seed=1, inputs=500)
    assert counts["inputs"] == 500
    assert FOUND[name].reached
    for outcome in FOUND[name].reached:
        assert counts[outcome] >= 5, outcome


@pytest.mark.parametrize("name", FOUND)
def test_the_invariant_stands_above(name: str) -> None:
    text = sys.modules[FOUND[name].__module__].__doc__ or ""
    assert "\nThe invariant: " in text
    assert len(text) > 200


def test_an_input_that_breaks_an_invariant_is_shown() -> None:
    class Breaking:
        def __init__(self, _: Path) -> None:
            self.last = b"\x01\x02"

        def one(self, dice: Any, _: Any) -> None:
            assert dice.random() < 0.9

    with pytest.raises(HARNESS.BrokenError, match=r"seed 3, input \d+: AssertionError(.|\n)*0102"):
        HARNESS.survive(Breaking, seed=3, inputs=1000)


def test_one_command_runs_all() -> None:
    run = subprocess.run(
        [sys.executable, FOLDER / "run.py", "--inputs", "3"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert [line.split(":")[0] for line in run.stdout.splitlines()] == list(FOUND)
    assert run.stdout.count("survived 3 inputs") == len(FOUND)
