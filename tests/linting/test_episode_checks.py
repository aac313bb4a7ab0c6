"""Faults planted in one of the drawn episodes are found there; clean sets have no findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from . import episodes as drawn

LINT_CASES = [
    (check, number) for check, plants in drawn.LINT_FAULTS.items() for number in range(len(plants))
]
VERIFY_CASES = [
    (defect, number)
    for defect, plants in drawn.VERIFY_FAULTS.items()
    for number in range(len(plants))
]


def _found(report: Any) -> set[tuple[str, int, int | None]]:
    """(check, record, step) of each place."""
    return {
        (
            str(finding.check),
            int(example.file.rpartition("/")[2]),
            int(example.place.removeprefix("step ")) if example.place else None,
        )
        for finding in report.findings
        for example in finding.examples
    }


def _assert_clean(seed: int, folder: Path) -> None:
    path = drawn.draw(seed).write(folder / f"{seed}.tfrecord")
    assert rs.lint(rs.Shards(path)).findings == [], seed
    report = rs.verify(path, deep=True)
    assert report.is_good, (seed, report.defects)


@pytest.mark.parametrize("seed", range(6))
def test_clean_sets_have_no_findings(seed: int, tmp_path: Path) -> None:
    _assert_clean(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 400, 25))
def test_many_clean_sets_have_no_findings(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 25):
        _assert_clean(seed, tmp_path)


@pytest.mark.parametrize(("check", "number"), LINT_CASES)
def test_planted_faults_are_found(check: str, number: int, tmp_path: Path) -> None:
    _assert_planted(check, number, range(2), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("check", "number"), LINT_CASES)
def test_planted_faults_are_found_in_many_sets(check: str, number: int, tmp_path: Path) -> None:
    _assert_planted(check, number, range(2, 25), tmp_path)


def _assert_planted(check: str, number: int, seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        random = np.random.default_rng(seed)
        robot = drawn.draw(seed, lengths=(40, 60), is_tinted=check == "swapped-channels")
        record = int(random.integers(1, len(robot.episodes)))
        planted = drawn.LINT_FAULTS[check][number](robot, record, random)
        path = robot.write(tmp_path / f"{seed}.tfrecord")
        report = rs.lint(rs.Shards(path))
        assert _found(report) == {(check, *planted)}, seed


@pytest.mark.parametrize(("defect", "number"), VERIFY_CASES)
def test_planted_defects_are_found(defect: str, number: int, tmp_path: Path) -> None:
    tried = 0
    for seed in range(8):
        random = np.random.default_rng(seed)
        robot = drawn.draw(seed, lengths=(5, 20))
        record = int(random.integers(len(robot.episodes)))
        if defect == "episode-flags-mismatch" and "is_first" not in robot.episodes[0]:
            continue
        about = drawn.VERIFY_FAULTS[defect][number](robot, record, random)
        path = robot.write(tmp_path / f"{seed}.tfrecord")
        (error,) = rs.verify(path, deep=True).defects
        assert (str(error.defect), error.record, error.path) == (defect, record, str(path)), seed
        key, _, step = about.partition(", ")
        assert error.feature == (robot.key(key) if key else None)
        assert not step or f"step {step}" in error.problem
        tried += 1
    assert tried >= 4
