"""Each finding is made for its problem, with the numbers, and never for good data."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.examining.stats import findings

LABEL = "image/class/label"
TEXT = "image/class/text"
Records = Iterable[Mapping[str, Any]]


def labelled(*labels: int, start: int = 0) -> Records:
    return [{"id": start + number, LABEL: label} for number, label in enumerate(labels)]


def named(*pairs: tuple[int, str], start: int = 0) -> Records:
    return [{"id": start + n, LABEL: label, TEXT: text} for n, (label, text) in enumerate(pairs)]


RARE = [(0, "ant")] * 30 + [(1, "bee")]
GOOD: dict[str, tuple[dict[str, Records], str]] = {
    "all named": (
        {"train": labelled(0, 1, 2, 0), "validation": labelled(0, 1, 2, start=9)},
        "0:a\n1:b\n2:c\n",
    ),
    "names from 1": ({"train": labelled(1, 2)}, "0:background\n1:a\n2:b\n"),
    "texts": ({"train": named((0, "Ameise"), (1, "Biene"))}, "0:ant\n1:bee\n"),
    "names only for labels": (
        {"train": [{"id": n, "category": n % 5, LABEL: n % 2} for n in range(20)]},
        "0:a\n1:b\n",
    ),
    "rare and usual": (
        {"train": [{"id": n, "image/format": "jpeg"} | {"x": 1} for n in range(1)]},
        "",
    ),
}
BAD: dict[str, tuple[dict[str, Records], str, dict[str, str]]] = {
    "from 1": ({"train": labelled(1, 3, 2)}, "", {"labels-from-1": "4 model outputs"}),
    "unnamed": (
        {"train": labelled(0, 1, 7, -2)},
        "0:a\n1:b\n",
        {"label-unnamed": "class name: 7; labels.txt names 2", "label-negative": "-2"},
    ),
    "missing": (
        {"train": labelled(0, 1, 2, 3), "validation": labelled(0, 3, start=9)},
        "0:ant\n1:bee\n2:cat\n3:dog\n",
        {"class-missing": "'validation' lacks 2 classes of the other splits: 1 bee, 2 cat."},
    ),
    "label and its text": (
        {
            "a": named(*RARE),
            "b": named(*RARE, *RARE[:20], start=100),
            "c": named((1, "b"), start=9),
        },
        "",
        {"imbalance": "in split 'b' class 0 is 50 times", "class-missing": "'c' lacks 1 class"},
    ),
    "imbalance": (
        {"train": labelled(*[0] * 30, 1, 1, *[2] * 18)},
        "",
        {"imbalance": "15 times as frequent as 1 (30 to 2); a majority-class baseline reaches 60%"},
    ),
    "not finite": (
        {"train": [{"id": 1, "x": [1.0, math.nan]}, {"id": 2, "x": [math.inf, math.nan, 1]}]},
        "",
        {"not-finite": "of 5 values, 2 NaN and 1 infinite: "},
    ),
    "constant": ({"train": [{"id": n, "same": 5} for n in range(9)]}, "", {"constant": "equal"}),
    "mixed": ({"train": [{"x": 1}, {"x": 0.5}]}, "", {"mixed-kinds": "float in 1, int64 in 1"}),
}


def _findings(folder: Path, splits: Mapping[str, Records], labels: str) -> dict[str, str]:
    for split, records in splits.items():
        with rs.ShardWriter(folder / f"{split}-00000-of-00001.tfrecord") as writer:
            for record in records:
                writer.write_example(dict(record))
    if labels:
        (folder / "labels.txt").write_text(labels)
    found = rs.stats(folder).findings
    assert len({finding.kind for finding in found}) == len(found)
    return {finding.kind: f"{finding.text} {finding.cure}" for finding in found}


@pytest.mark.parametrize("name", GOOD)
def test_good_data_gets_no_findings(tmp_path: Path, name: str) -> None:
    assert _findings(tmp_path, *GOOD[name]) == {}


@pytest.mark.parametrize("name", BAD)
def test_findings(tmp_path: Path, name: str) -> None:
    splits, labels, expected = BAD[name]
    found = _findings(tmp_path, splits, labels)
    assert found.keys() == expected.keys()
    for kind, text in expected.items():
        assert text in found[kind]


def test_every_finding_is_documented() -> None:
    page = Path(__file__).parents[3] / "docs" / "stats.md"
    source = Path(findings.__file__).read_text("utf-8")
    kinds = set(re.findall(r'Finding\(\s*"([\w-]+)"', source))
    kinds |= {f"unreadable-{what}" for what in re.findall(r'_unreadable\("(\w+)"', source)}
    documented = set(re.findall(r"^\| `([\w-]+)` \|", page.read_text("utf-8"), re.MULTILINE))
    assert len(kinds) > 10
    assert kinds == documented
