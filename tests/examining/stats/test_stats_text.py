"""Texts about statistics: equal findings are grouped, and omissions are reported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.cli import stats_tables as terminal
from recordsmith.examining.stats.findings import Finding
from recordsmith.examining.stats.stats_text import groups_of


def test_equal_findings_are_grouped() -> None:
    findings = [Finding("constant", f"f{n}", "same") for n in range(7)]
    findings[3:3] = [Finding("nan", "x", "one"), Finding("constant", "g", "other")]
    findings.append(Finding("empty-shards", None, "none"))
    assert [group[:-1] for group in groups_of(findings, 3, 5)] == [
        ("constant", ("f0", "f1", "f2"), 4, "same"),
        ("nan", ("x",), 0, "one"),
        ("constant", ("g",), 0, "other"),
        ("empty-shards", (), 0, "none"),
    ]


def test_only_the_first_findings_of_a_kind_are_listed() -> None:
    findings = [Finding("sparse", f"f{n}", f"in {n}") for n in range(9)]
    groups = list(groups_of([*findings, Finding("nan", "x", "one")], 3, 2))
    *shown, rest = ((group.kind, group.text) for group in groups)
    assert shown == [("sparse", "in 0"), ("sparse", "in 1"), ("nan", "one")]
    assert rest[0] == "sparse"
    assert "7 more" in rest[1]


def _shown(path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    terminal.print_stats(rs.stats(path))
    return capsys.readouterr().out.splitlines()


def test_shard_columns_of_the_split_table(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The size column is not repeated if each split has one shard."""
    write(tmp_path / "a.tfrecord", [{"x": 1}])
    heads = [line.split() for line in _shown(tmp_path, capsys)]
    assert ["split", "records", "shards", "size"] in heads
    (tmp_path / "a.tfrecord").rename(tmp_path / "train-00000-of-00002.tfrecord")
    write(tmp_path / "train-00001-of-00002.tfrecord", [{"x": number} for number in range(9)])
    (head,) = (line for line in _shown(tmp_path, capsys) if line.startswith("split"))
    assert head.split("  ")[-2:] == ["smallest shard", "largest shard"]


def test_headings_of_sections_and_payloads(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], reference: Any
) -> None:
    message = reference.messages().ExampleListWithContext()
    for target in (message.context, message.examples.add()):
        target.features.feature["x"].int64_list.value.append(1)
    path = write(tmp_path / "a.tfrecord", [message.SerializeToString(), b"\x01?"])
    lines = _shown(path, capsys)
    assert re.search(r": 1 record .* Example, 1 .*ELWC", lines[0])
    heads = [line.split("  ")[0] for line in lines if line.startswith("feature")]
    assert [head.split()[-1] for head in heads] == ["context", "Examples"]
    assert any("only sizes" in line for line in lines)
    page = rs.save_html(rs.stats(path), tmp_path / "page.html").read_text("utf-8")
    for text in ("Features of the context", "in 1 Example;", "only sizes are shown"):
        assert text in page


def test_long_feature_tables_are_shortened(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from recordsmith.drawing import stats_page

    monkeypatch.setattr(terminal, "_MOST_FEATURES", 3)
    monkeypatch.setattr(stats_page, "_MOST_FEATURES", 3)
    path = write(tmp_path / "a.tfrecord", [{f"f{number}": number for number in range(8)}])
    lines = _shown(path, capsys)
    assert [line.split()[0] for line in lines if line.startswith("f")].count("f2") == 2
    assert not any(line.startswith("f3") for line in lines)
    assert any(line.startswith("  … and 5 more ") for line in lines)
    page = rs.save_html(rs.stats(path), tmp_path / "page.html").read_text("utf-8")
    assert "and 5 more features" in page
    assert "<h3>f3</h3>" not in page
