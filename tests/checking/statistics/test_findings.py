"""Each finding is made for its problem, with the numbers, and never for good data."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.checking.statistics import findings

LABEL = "image/class/label"
TEXT = "image/class/text"
Records = Iterable[Mapping[str, Any]]


def labelled(*labels: int, start: int = 0) -> Records:
    return [{"id": start + number, LABEL: label} for number, label in enumerate(labels)]


def named(*pairs: tuple[int, str], start: int = 0) -> Records:
    return [{"id": start + n, LABEL: label, TEXT: text} for n, (label, text) in enumerate(pairs)]


def objects(*labels: Sequence[int]) -> Records:
    return [
        {
            "id": n,
            "image/object/class/label": [*of_image],
            "image/object/is_crowd": [0] * len(of_image),
        }
        for n, of_image in enumerate(labels)
    ]


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
    "names from 1, the background unnamed": ({"train": labelled(1, 2)}, "1:a\n2:b\n"),
    "objects from 1": ({"train": objects([1, 2], [2], [1, 1])}, ""),
    "objects of one class": ({"train": objects([1], [1], [1])}, "1:person\n"),
    "one-hot": (
        {"train": [{"id": n, "label": [int(n % 30 == k) for k in range(30)]} for n in range(18)]},
        "",
    ),
    "one-hot floats": (
        {"train": [{"id": n, LABEL: [float(n % 30 == k) for k in range(30)]} for n in range(18)]},
        "",
    ),
    "measurements": (
        {"train": [{"id": n, "target": 0.5 if n < 40 else n / 7} for n in range(45)]},
        "",
    ),
    "evaluation of few records": (
        {
            "train": labelled(*[0, 1, 2] * 10),
            "validation": labelled(*[0] * 25, 1, 2, start=90),
            "test": labelled(*[0] * 40, 1, 2, start=190),
        },
        "",
    ),
    "a split without labels": (
        {"train": labelled(0, 1), "test": [{"id": 9, LABEL: []}, {"id": 8}]},
        "",
    ),
    "lists of other lengths": ({"train": [{"id": n, "seq": [1] * (n % 3)} for n in range(9)]}, ""),
    "texts of other numbers": (
        {"train": [{"id": n, "seq": ["a"] * (n % 3)} for n in range(9)]},
        "",
    ),
    "constant descriptions": (
        {
            "train": [
                {"id": n, "height": 8, "image_width": 8, "left/channels": 3, "npy/shape": [2, 3]}
                | {"image/object/difficult": [0, 0], "image/object/view": ["left", "left"]}
                for n in range(9)
            ]
        },
        "",
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
        {"imbalance": "class 0 is 27 times", "class-missing": "'c' lacks 1 class"},
    ),
    "imbalance": (
        {"train": labelled(*[0] * 40, 1, 1, *[2] * 18)},
        "",
        {"imbalance": "20 times as frequent as 1 (40 to 2); a majority-class baseline reaches 67%"},
    ),
    "only evaluation": (
        {"test": labelled(*[0] * 40, 1, 1)},
        "",
        {"imbalance": "class 0 is 20 times"},
    ),
    "constant lists": (
        {"train": [{"id": n, "same": [5, 5]} for n in range(9)]},
        "",
        {"constant": "equal"},
    ),
    "one image class": (
        {"train": [{"id": n, LABEL: 4} for n in range(9)]},
        "4:x\n",
        {"constant": "equal"},
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
