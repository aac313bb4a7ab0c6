"""Images with several classes, in all that reads records: those of confidence 0 do not count."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.exporting.readers import READERS

from ..raising import raises
from ..reading import only_batch, write_records

LABEL, TEXT, CONFIDENCE = (f"image/class/{name}" for name in ("label", "text", "confidence"))
NAMES = ("cat", "dog", "fish", "newt", "owl")
Truth = list[dict[int, float] | None]
"""For each record its classes with their confidences; None for a record without the features."""


def _truth(count: int = 120, seed: int = 0) -> Truth:
    """Class 1 is in most records, class 4 in few, and class 3 is verified to be in none."""
    rng = random.Random(seed)
    shares = (0.4, 0.8, 0.3, 0.0, 0.1)
    truth: Truth = [{}, None]
    for _ in range(count - 2):
        known = {n: float(rng.random() < share) for n, share in enumerate(shares)}
        truth.append(dict(rng.sample([*known.items()], rng.randint(0, 5))) or None)
    return truth


def _write(path: Path, truth: Truth, *, has_confidence: bool = True) -> rs.Dataset:
    path.mkdir()
    records: list[dict[str, Any]] = [{"id": number} for number in range(len(truth))]
    for record, of in zip(records, truth, strict=True):
        known = of if has_confidence else {n: 1 for n, share in (of or {}).items() if share}
        if of is not None and known is not None:
            record[LABEL] = np.array([*known], np.int64)
            record[TEXT] = [NAMES[label] for label in known]
            if has_confidence:
                record[CONFIDENCE] = np.array([*known.values()], np.float32)
    write_records(path / "a.tfrecord", records)
    (path / "labels.txt").write_text("".join(f"{n}:{name}\n" for n, name in enumerate(NAMES)))
    return rs.open(path)


def _positive(truth: Truth) -> list[list[int]]:
    return [[label for label, share in (of or {}).items() if share] for of in truth]


def _rarest(truth: Truth) -> list[int]:
    counts = Counter(label for labels in _positive(truth) for label in labels)
    return [min(labels, key=lambda n: (counts[n], n), default=-1) for labels in _positive(truth)]


@pytest.mark.parametrize("has_confidence", [True, False])
def test_rows_of_zeros_and_ones(tmp_path: Path, has_confidence: bool) -> None:
    """Absent and empty lists are zeros, and `Present` tells them apart."""
    truth = _truth()
    dataset = _write(tmp_path / "in", truth, has_confidence=has_confidence)
    hot = np.zeros((len(truth), 5), np.float32)
    for number, labels in enumerate(_positive(truth)):
        hot[number, labels] = 1
    features = {key: rs.MultiHot(key) for key in (LABEL, TEXT)}
    batch = only_batch(dataset, {**features, "is_known": rs.Present(LABEL)})
    assert np.array_equal(batch[LABEL], hot)
    assert np.array_equal(batch[TEXT], hot)
    assert batch["is_known"].tolist() == [of is not None for of in truth]
    assert batch["is_known"].tolist()[:2] == [True, False]
    with raises(rs.OptionError, match="MultiHot"):
        rs.Loader(dataset, {"x": rs.Label(LABEL, default=0)}, batch_size=2)
    with raises(rs.OptionError, match="MultiHot"):
        rs.Loader(dataset, {"x": rs.Scalar(LABEL, default=0)}, batch_size=2)


def test_confidences_that_are_not_parallel(tmp_path: Path) -> None:
    record = {LABEL: [0, 1], CONFIDENCE: [1.0, 0.0]}
    bad = {**record, CONFIDENCE: [1.0]}
    dataset = rs.open(write_records(tmp_path / "a.tfrecord", [record, bad, record]))
    loader = rs.Loader(dataset, {"x": rs.MultiHot(LABEL, 2)}, batch_size=3)
    with raises(rs.CorruptDataError, feature=CONFIDENCE, record=1):
        next(iter(loader))
    loader = rs.Loader(dataset, {"x": rs.MultiHot(LABEL, 2)}, batch_size=3, skip_errors=1)
    assert next(iter(loader))["x"].tolist() == [[1, 0], [1, 0]]


@pytest.mark.parametrize("has_confidence", [True, False])
def test_orders_by_the_rarest_class(tmp_path: Path, has_confidence: bool) -> None:
    truth = _truth()
    dataset = _write(tmp_path / "in", truth, has_confidence=has_confidence)
    rarest = _rarest(truth)
    counts = Counter(rarest)
    assert [*sorted(counts)] == [-1, 0, 1, 2, 4]
    source = rs.Weighted(dataset, LABEL, several="rarest", length=100)
    assert dict(zip(source.classes, source.record_counts, strict=True)) == counts
    batch = only_batch(source, ["id"], batch_size=100, shuffle=True)
    assert Counter(rarest[number] for number in batch["id"]) == dict.fromkeys(counts, 20)
    pairs = rs.ByClass(dataset, LABEL, classes=3, examples=4, several="rarest")
    assert dict(zip(pairs.class_values, pairs.record_counts, strict=True)) == counts
    for batch in rs.Loader(pairs, ["id"], batch_size=12, shuffle=True):
        of_batch = Counter(rarest[number] for number in batch["id"].tolist())
        assert [*of_batch.values()] == [4, 4, 4]
    for key in (LABEL, TEXT):
        with raises(rs.OptionError, option="by", value=key, match=f"'{LABEL}' .*several='rarest'"):
            rs.Weighted(dataset, key)
        with raises(rs.OptionError, option="by", value=key, match="several='rarest'"):
            rs.ByClass(dataset, key, classes=2, examples=1)
    with raises(rs.OptionError, option="several", value="all"):
        rs.Weighted(dataset, LABEL, several="all")  # type: ignore[arg-type]


@pytest.mark.parametrize("has_confidence", [True, False])
def test_statistics_count_each_class(tmp_path: Path, has_confidence: bool) -> None:
    truth = _truth()
    _write(tmp_path / "in", truth, has_confidence=has_confidence)
    report = rs.stats(tmp_path / "in")
    counts = Counter(label for labels in _positive(truth) for label in labels)
    for key in (LABEL, TEXT):
        (found,) = report.classes[key].by_split().values()
        assert found == {NAMES[label]: count for label, count in counts.items()}


@pytest.mark.parametrize("reader", READERS)
def test_printed_programs_name_the_way(tmp_path: Path, reader: str) -> None:
    _write(tmp_path / "in", _truth())
    code = rs.reader_code(tmp_path / "in", reader)
    for key in (LABEL, TEXT, CONFIDENCE):
        assert f"{key!r} is left out: images have several classes; rs.MultiHot" in code
