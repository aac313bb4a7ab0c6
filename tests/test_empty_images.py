"""Records whose images are empty, as of a writer that wrote names without pixels."""

from __future__ import annotations

from pathlib import Path

import pytest

import recordsmith as rs


@pytest.fixture
def empty(tmp_path: Path) -> str:
    path = str(tmp_path / "e.tfrecord")
    with rs.ShardWriter(path) as writer:
        for number in range(3):
            size = {"image/height": 5, "image/width": 10}
            writer.write_example({"image/encoded": b"", "image/filename": f"{number}.jpg", **size})
    return path


def test_statistics_do_not_advise_to_drop_them(empty: str) -> None:
    (finding,) = [f for f in rs.stats(empty).findings if f.feature == "image/encoded"]
    assert (finding.kind, "empty" in finding.text) == ("constant", True)


def test_sheets_and_exports_name_what_is_wrong(empty: str, tmp_path: Path) -> None:
    report = rs.sheet(empty, str(tmp_path / "sheet.png"))
    assert all("the image is empty" in str(problem) for problem in report.problems)
    assert (len(report.problems), report.problem_count) == (1, 3)
    with pytest.raises(rs.SourceError, match="it is empty"):
        rs.export(empty, str(tmp_path / "out"), format="tfds")
