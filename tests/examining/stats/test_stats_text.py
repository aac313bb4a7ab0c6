"""Texts about statistics: equal findings are grouped, and omissions are reported."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.cli import stats_tables as terminal
from recordsmith.examining.stats.findings import Finding
from recordsmith.examining.stats.stats_text import distinct_text, groups_of
from recordsmith.example.keys import BOX, HEIGHT, MASK, WIDTH


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


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([1.0, 2.0, 2.0], "2"), ([1.0, float("nan")], "1 finite"), ([float("inf")], "0 finite")],
)
def test_distinct_numbers_are_finite(tmp_path: Path, numbers: list[float], text: str) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_columns({"x": np.array(numbers, np.float32)})
    values = rs.stats(tmp_path / "a.tfrecord").features["x"].values["float"]
    assert distinct_text(values) == text


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
    page = rs.save_html(rs.stats(path), tmp_path / "page.html").read().decode()
    for text in ("Features of the context", "in 1 Example;", "only sizes are shown"):
        assert text in page


@pytest.mark.parametrize(("text", "is_shown"), [("bee", False), ("wasp", True)])
def test_texts_that_repeat_the_names_of_labels_are_not_listed(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, is_shown: bool
) -> None:
    label, text_key = "image/class/label", "image/class/text"
    pairs = [(0, "ant"), (0, "ant"), (1, text)]
    write(tmp_path / "a.tfrecord", [{label: number, text_key: name} for number, name in pairs])
    (tmp_path / "labels.txt").write_text("0:ant\n1:bee\n")
    found = rs.stats(tmp_path)
    assert found.classes.keys() == {label, text_key}
    page = rs.save_html(found, tmp_path / "page.html").read().decode()
    for shown in ("\n".join(_shown(tmp_path, capsys)), page):
        assert f"classes in {label}" in shown
        assert (f"classes in {text_key}" in shown) == is_shown


def test_masks_and_boxes_are_shown(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], images: ModuleType
) -> None:
    sides = zip(BOX, (0.25, 0.0, 0.75, 0.25), strict=True)
    mask = images.encode(Image.new("L", (64, 64), 1), "PNG")
    record = {key: [value, value] for key, value in sides} | {MASK: mask, HEIGHT: 64, WIDTH: 64}
    path = write(tmp_path / "a.tfrecord", [record, {"x": 1}])
    lines = [line.split() for line in _shown(path, capsys)]
    assert ["1", "100.00%", "1"] in [line[:3] for line in lines]
    assert ["boxes", "per", "record", "0", "0", "2"] in lines
    assert ["height", "50.0%", "50.0%", "50.0%"] in lines
    assert ["area", "12.50%", "12.50%", "12.50%"] in lines
    page = rs.save_html(rs.stats(path), tmp_path / "page.html").read().decode()
    for text in (f"1 class of pixels in {MASK}", "1, in 1 mask", "100.00%", "<h2>2 boxes</h2>"):
        assert text in page
    assert "0 to 2 per record" in page
    assert "2 small (below 32 x 32 pixels)" in page


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
    page = rs.save_html(rs.stats(path), tmp_path / "page.html").read().decode()
    assert "and 5 more features" in page
    assert "<h3>f3</h3>" not in page
