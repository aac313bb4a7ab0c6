"""`pack(lint=...)` checks before packing, and changes nothing in the dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

import recordsmith as rs
from recordsmith.linting import LintReport

from ..linting.planted import fruit_folders, photo, save
from ..places import contents
from ..raising import raises


@pytest.fixture
def spoiled(tmp_path: Path) -> rs.ImageFolder:
    """Class folders with a class in the plural, which one split lacks."""
    source = fruit_folders(tmp_path / "fruit")
    save(tmp_path / "fruit/train/bananas/0.jpg", photo(1))
    return source


def test_findings_are_in_the_report(spoiled: rs.ImageFolder, tmp_path: Path) -> None:
    report = rs.pack(spoiled, tmp_path / "out", lint="warn")
    assert report.lint is not None
    assert {found.check for found in report.lint.findings if found.severity == "warning"} == {
        "similar-class-names",
        "missing-class",
    }
    assert report.to_json()["lint"]["warning_count"] == 2


def test_without_checks_there_is_no_report(spoiled: rs.ImageFolder, tmp_path: Path) -> None:
    assert rs.pack(spoiled, tmp_path / "out").lint is None


def test_strict_packs_nothing(spoiled: rs.ImageFolder, tmp_path: Path) -> None:
    with raises(rs.SourceError, problem_count=2) as caught:
        rs.pack(spoiled, tmp_path / "out", lint="strict")
    assert "bananas" in caught.value.problems[0]
    assert not (tmp_path / "out").exists()


def test_strict_packs_what_is_clean(tmp_path: Path) -> None:
    source = fruit_folders(tmp_path / "fruit")
    assert rs.pack(source, tmp_path / "out", lint="strict").sample_count == 72


def test_a_function_receives_the_report_before_packing(
    spoiled: rs.ImageFolder, tmp_path: Path
) -> None:
    seen: list[tuple[int, bool]] = []

    def look(report: LintReport) -> None:
        seen.append((report.warning_count, (tmp_path / "out").exists()))

    rs.pack(spoiled, tmp_path / "out", lint=look)
    assert seen == [(2, False)]


def test_the_dataset_is_the_same_and_resumed(spoiled: rs.ImageFolder, tmp_path: Path) -> None:
    rs.pack(spoiled, tmp_path / "out", lint="off")
    before = contents(tmp_path / "out")
    assert not rs.pack(spoiled, tmp_path / "out", lint="warn").is_new
    rs.pack(spoiled, tmp_path / "other", lint="warn")
    assert contents(tmp_path / "other") == before == contents(tmp_path / "out")


def test_other_policies_are_refused(spoiled: rs.ImageFolder, tmp_path: Path) -> None:
    with raises(rs.OptionError, option="lint", value="always"):
        rs.pack(spoiled, tmp_path / "out", lint="always")  # type: ignore[arg-type]
