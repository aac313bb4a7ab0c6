"""What consoles and notebooks show of datasets and reports: short, escaped, without reading."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.support.summaries import Report

HOSTILE = "<script>alert(1)</script>\x1b[31m\n& name"


@dataclass(repr=False)
class Example(Report):
    folder: Path
    names: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    share: float = 0.0
    parts: tuple[Any, ...] = ()
    nothing: str | None = None


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (Example(Path("a")), "Example(folder='a')"),
        (Example(Path("a"), ["x", "y"]), "Example(folder='a', names=['x', 'y'])"),
        (Example(Path("a"), ["x"] * 1000), "Example(folder='a', names=<1,000 items>)"),
        (Example(Path("a"), ["x" * 1000]), "Example(folder='a', names=<1 item>)"),
        (Example(Path("a"), counts={"b": 2}), "Example(folder='a', counts={'b': 2})"),
        (Example(Path("a"), share=1 / 3), "Example(folder='a', share=0.3333)"),
        (Example(Path("a"), parts=(object(),)), "Example(folder='a', parts=<1 item>)"),
        (Example(Path("a\x1b\n")), "Example(folder='a\\x1b\\n')"),
    ],
)
def test_reports_show_their_fields(report: Example, expected: str) -> None:
    assert repr(report) == expected


@pytest.mark.slow
def test_reports_of_many_shards_are_short_and_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "in<b>"
    folder.mkdir()
    for shard in range(60):
        with rs.ShardWriter(folder / f"train-{shard:05d}-of-00060.tfrecord") as writer:
            for number in range(3):
                writer.write_example({HOSTILE: number, **{f"key {at}": at for at in range(40)}})
    (folder / "labels.txt").write_text("0:<i>\n1:b\n")
    dataset = rs.open(folder)
    loader = rs.Loader(dataset, {"x": HOSTILE}, batch_size=7)
    list(loader)
    found = [
        dataset, dataset[5:], dataset.filter("missing(`key 1`)"), rs.verify(folder, deep=True),
        rs.stats(dataset), rs.inspect(dataset), rs.diff(dataset, dataset[3:]),
        rs.reshard(dataset, tmp_path / "a"), rs.export(dataset, tmp_path / "c", "csv"),
        rs.append(folder, tmp_path / "a"), rs.salvage(folder, tmp_path / "s"), rs.index(folder),
        loader.stats(), rs.bench(dataset, seconds=0.5),
    ]  # fmt: skip
    schema_known = rs.open(tmp_path / "a")
    assert "script" in repr(schema_known)
    for shown in (*found, schema_known):
        assert len(repr(shown)) < 900
        assert len(repr(shown).splitlines()) <= 7
        assert type(shown).__name__ in repr(shown)
        assert repr(shown).replace("\n", "").isprintable()
        html = shown._repr_html_()
        assert "<script" not in html
        assert "<b>/" not in html
        assert "<i>" not in html
        assert "\x1b" not in html
        assert len(html) < 4000
