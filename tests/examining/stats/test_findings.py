"""Each finding is made for its problem, with the numbers, and never for good data."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.examining.stats import class_counts, findings

LABEL = "image/class/label"
TEXT = "image/class/text"
Records = Iterable[Mapping[str, Any]]


def findings_of(folder: Path, splits: Mapping[str, Records], labels: str = "") -> dict[str, str]:
    """The findings about a dataset, by kind."""
    for split, records in splits.items():
        with rs.ShardWriter(folder / f"{split}-00000-of-00001.tfrecord") as writer:
            for record in records:
                writer.write_example(dict(record))
    if labels:
        (folder / "labels.txt").write_text(labels)
    found = rs.stats(folder).findings
    assert len({finding.kind for finding in found}) == len(found)
    return {finding.kind: f"{finding.text} {finding.cure}" for finding in found}


def labelled(*labels: int, start: int = 0) -> Records:
    return [{"id": start + number, LABEL: label} for number, label in enumerate(labels)]


def test_good_data_gets_no_findings(tmp_path: Path) -> None:
    splits = {"train": labelled(0, 1, 2, 0), "validation": labelled(0, 1, 2, start=9)}
    assert findings_of(tmp_path, splits, "0:a\n1:b\n2:c\n") == {}


def test_labels_from_1(tmp_path: Path) -> None:
    (text,) = findings_of(tmp_path, {"train": labelled(1, 3, 2)}).values()
    assert "4 model outputs" in text


def test_labels_from_1_are_fine_if_names_start_at_1(tmp_path: Path) -> None:
    found = findings_of(tmp_path, {"train": labelled(1, 2)}, "0:background\n1:a\n2:b\n")
    assert found == {}


def test_labels_without_names(tmp_path: Path) -> None:
    found = findings_of(tmp_path, {"train": labelled(0, 1, 7, -2)}, "0:a\n1:b\n")
    assert found.keys() == {"label-unnamed", "label-negative"}
    assert re.match(r"1 label .*: 7; labels\.txt names 2", found["label-unnamed"])
    assert "-2" in found["label-negative"]


def test_labels_with_gaps(tmp_path: Path) -> None:
    (text,) = findings_of(tmp_path, {"train": labelled(*[0, 58583] * 4)}).values()
    assert "0, 58583." in text
    assert "58,584 outputs" in text
    assert "recordsmith edit --recode" in text


@pytest.mark.parametrize("labels", [[0, 58583], [0, 3, 98] * 3, [*range(0, 200, 9)] * 3])
def test_small_gaps_in_labels_are_fine(tmp_path: Path, labels: list[int]) -> None:
    assert findings_of(tmp_path, {"train": labelled(*labels)}) == {}


def test_named_classes_may_have_no_records(tmp_path: Path) -> None:
    names = "".join(f"{n}:class {n}\n" for n in range(150))
    assert findings_of(tmp_path, {"train": labelled(*[0, 149] * 5)}, names) == {}


def named(*pairs: tuple[int, str]) -> Records:
    return [{"id": n, LABEL: label, TEXT: text} for n, (label, text) in enumerate(pairs)]


NAMES = "0:ant\n1:bee\n2:cat\n"
RIGHT = [(0, "ant"), (1, "bee"), (2, "cat")]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        (
            [(1, "ant"), (1, "bee"), (2, "cat"), (0, "dog")],
            ["label 1 has the texts 'ant' (1) and 'bee' (1)"],
        ),
        (
            [(0, "ant"), (1, "bee"), (2, "ant")],
            ["text 'ant' has the labels 0 (1) and 2 (1)"],
        ),
        ([(1, "ant"), (2, "bee"), (0, "cat")], ["'ant' for label 0, but records say 'cat'"]),
        (
            [*RIGHT, (0, "Ant")],
            ["label 0 has the texts", "'ant' for label 0, but records say 'Ant'"],
        ),
    ],
)
def test_texts_that_contradict_labels(
    tmp_path: Path, pairs: list[tuple[int, str]], expected: list[str]
) -> None:
    found = findings_of(tmp_path, {"train": named(*pairs)}, NAMES)
    assert found.keys() == {"label-text"}
    assert all(part in found["label-text"] for part in expected)


@pytest.mark.parametrize(
    ("pairs", "labels"),
    [
        (RIGHT * 2, NAMES),
        ([(0, "Ameise"), (1, "Biene"), (2, "Katze")], NAMES),
        ([(0, "Ameise"), (1, "Biene")], ""),
    ],
)
def test_texts_that_agree_with_labels(
    tmp_path: Path, pairs: list[tuple[int, str]], labels: str
) -> None:
    assert findings_of(tmp_path, {"train": named(*pairs)}, labels) == {}


def test_texts_of_objects_are_compared_with_their_labels(tmp_path: Path) -> None:
    label, text = "image/object/class/label", "image/object/class/text"
    records: list[dict[str, Any]] = [
        {"id": 0, label: [0, 1, 2], text: ["ant", "bee", "cat"]},
        {"id": 1, label: [1, 2], text: ["cat"]},  # ambiguous
        {"id": 2},
        {"id": 3, label: [2, 0], text: ["cat", "bee"]},
    ]
    found = findings_of(tmp_path, {"train": records})
    assert found.keys() == {"label-text"}
    assert re.search(r"label 0 .*'ant' \(1\) and 'bee' \(1\)", found["label-text"])
    assert re.search(r"text 'bee' .* 0 \(1\) and 1 \(1\)", found["label-text"])


def test_texts_are_compared_over_all_shards(tmp_path: Path, monkeypatch: Any) -> None:
    train = named((0, "ant"), (1, "bee"), (1, "ant"))
    splits = {"train": train, "validation": named((0, "bee"), (1, "ant"))}
    splits["validation"] = [
        {**record, "id": 9 + n} for n, record in enumerate(splits["validation"])
    ]
    found = findings_of(tmp_path, splits)
    assert "label 1 has the texts 'ant' (2) and 'bee' (1)" in found["label-text"]
    monkeypatch.setattr(class_counts, "MAX_CLASSES", 3)  # too many: these are captions, not names
    assert not any(finding.kind == "label-text" for finding in rs.stats(tmp_path).findings)


def test_class_missing(tmp_path: Path) -> None:
    splits = {"train": labelled(0, 1, 2, 3), "validation": labelled(0, 3, start=9)}
    (text,) = findings_of(tmp_path, splits, "0:ant\n1:bee\n2:cat\n3:dog\n").values()
    assert "'validation' lacks 2 classes" in text
    assert "1 bee, 2 cat." in text


def test_a_label_and_its_text_have_one_finding(tmp_path: Path) -> None:
    """Of all splits together, too."""
    pairs = [(0, "ant")] * 30 + [(1, "bee")]
    splits: dict[str, Records] = {
        "a": named(*pairs),
        "b": [{**record, "id": 100 + n} for n, record in enumerate(named(*pairs, *pairs[:20]))],
        "c": [{"id": 999, LABEL: 1, TEXT: "bee"}],
        "d": [{"id": 1000, LABEL: 0, TEXT: "ant"}],
    }
    found = findings_of(tmp_path, splits)  # which checks that no kind is there twice
    assert found.keys() == {"imbalance", "class-missing"}
    assert "in split 'b' class 0 is 50 times" in found["imbalance"]
    assert "30 times in 'a'" in found["imbalance"]
    assert "'c' lacks 1 class" in found["class-missing"]
    assert "'d' lacks 1 class" in found["class-missing"]


def test_imbalance(tmp_path: Path) -> None:
    found = findings_of(tmp_path, {"train": labelled(*[0] * 30, 1, 1, *[2] * 18)})
    assert found.keys() == {"imbalance"}
    assert "15 times" in found["imbalance"]
    assert "60% accuracy" in found["imbalance"]


def test_nan_and_infinite(tmp_path: Path) -> None:
    records = [{"id": 1, "x": [1.0, math.nan]}, {"id": 2, "x": [math.inf, math.nan, -math.inf]}]
    found = findings_of(tmp_path, {"train": records})
    assert found.keys() == {"not-finite"}
    assert found["not-finite"].startswith("of 5 values, 2 are NaN and 2 are infinite: ")


def test_constant_and_sparse(tmp_path: Path) -> None:
    records = [{"id": n, "same": 5, "image/format": "jpeg"} | ({} if n else {"rare": 1})
               for n in range(101)]  # fmt: skip
    found = findings_of(tmp_path, {"train": records})
    assert found.keys() == {"constant", "sparse"}
    assert found["sparse"].startswith("only 1 record of 101 ")


def test_large_images(tmp_path: Path, images: ModuleType) -> None:
    drawn = [images.jpeg(seed) for seed in range(9)]
    from PIL import Image

    drawn.append(images.encode(Image.new("L", (3000, 2000)), "PNG"))
    found = findings_of(tmp_path, {"train": [{"image/encoded": data} for data in drawn]})
    assert found.keys() == {"large-images"}
    assert "6,000,000 pixels, 62,500 times" in found["large-images"]


def test_uneven_and_empty_shards(tmp_path: Path) -> None:
    sizes = {0: 3_000_000, 1: 9, 2: 0}
    for number, size in sizes.items():
        path = tmp_path / f"train-{number:05}-of-00003.tfrecord"
        with rs.ShardWriter(path) as writer:
            if size:
                writer.write_example({"x": np.random.default_rng(0).bytes(size)})
    found = {finding.kind: finding.text for finding in rs.stats(tmp_path).findings}
    assert found.keys() == {"uneven-shards", "empty-shards"}
    assert "train-00000-of-00003.tfrecord is 3.0 times" in found["uneven-shards"]
    assert "train-00002-of-00003.tfrecord" in found["empty-shards"]


def test_class_names_apply_only_to_label_features(tmp_path: Path) -> None:
    records = [{"id": n, "category": n % 5, LABEL: n % 2} for n in range(20)]
    assert findings_of(tmp_path, {"train": records}, "0:a\n1:b\n") == {}


def test_every_finding_is_documented() -> None:
    page = Path(__file__).parents[3] / "docs" / "stats.md"
    source = Path(findings.__file__).read_text("utf-8")
    kinds = set(re.findall(r'Finding\(\s*"([\w-]+)"', source))
    documented = set(re.findall(r"^\| `([\w-]+)` \|", page.read_text("utf-8"), re.MULTILINE))
    assert len(kinds) > 12
    assert kinds == documented
