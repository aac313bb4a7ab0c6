"""The fuzzer runs, and the kernels stand a short run of it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def fuzz_kernels() -> Any:
    spec = importlib.util.spec_from_file_location(
        "fuzz_kernels", Path(__file__).with_name("fuzz_kernels.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", [1, 2])
def test_a_short_run_reaches_everything(fuzz_kernels: Any, seed: int) -> None:
    """Results and refusals of every kind, or the mutations would miss what they are for."""
    counts = fuzz_kernels.fuzz(1500, seed)
    assert counts["inputs"] == 1500
    for outcome in (
        "records",
        "examples",
        "sequences",
        "walked",
        "walk defects",
        "defects",
        "columns",
        "column defects",
        "encoded",
        "refused",
    ):
        assert counts[outcome] > 30, outcome
