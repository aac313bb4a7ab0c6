"""Images and groups in two splits, counted by `stats`, against sets in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.checking.statistics import leakage

from ...images import jpeg
from ...raising import raises
from ...repeating_engine import RepeatingEngine

SPLITS = ("train", "val", "test")


def _write(out: Path, records: dict[str, list[dict[str, Any]]]) -> None:
    for split, rows in records.items():
        for shard in range(2):
            path = out / f"{split}-{shard:05d}-of-00002.tfrecord"
            with rs.ShardWriter(path, overwrite=True) as writer:
                for row in rows[shard::2]:
                    writer.write(rs.encode_example(row))


def _expected(records: dict[str, list[dict[str, Any]]], key: str) -> Counter[tuple[str, str]]:
    """For each value the first split that has it, with each other."""
    held = {split: {row[key] for row in rows} for split, rows in records.items()}
    pairs: Counter[tuple[str, str]] = Counter()
    for value in set.union(*held.values()):
        first, *others = [split for split in sorted(records) if value in held[split]]
        pairs.update((first, other) for other in others)
    return pairs


@pytest.mark.parametrize("seed", range(3))
def test_leaks_are_those_of_sets(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    images = [jpeg(n) for n in range(30)]
    records = {
        split: [
            {
                "image/encoded": rng.choice(images[first : first + 18]),
                "who": f"p{rng.randrange(first, first + 9)}",
                "number": rng.randrange(-first, 20),
                "image": [1, 2, 3],  # numbers, which are no image
            }
            for _ in range(25)
        ]
        for split, first in zip(SPLITS, (0, 6, 12), strict=True)
    }
    _write(tmp_path, records)
    for group in (None, "who", "number"):
        report = rs.stats(tmp_path, group_column=group, threads=2)
        found: dict[str, Counter[tuple[str, str]]] = {}
        for leak in report.leakage:
            assert leak.compared == 1
            found.setdefault(leak.feature, Counter())[leak.splits] = leak.count
        keys = ["image/encoded", *([group] if group else [])]
        assert found == {key: _expected(records, key) for key in keys}
        kinds = Counter(f.kind for f in report.findings if f.kind.endswith("across-splits"))
        assert kinds["identical-across-splits"] == len(found["image/encoded"])
        assert rs.stats(tmp_path, group_column=group, engine=RepeatingEngine()) == report
    assert rs.stats(tmp_path, split="val").leakage == ()
    with raises(rs.OptionError, option="group_column", value="nobody"):
        rs.stats(tmp_path, group_column="nobody")


def test_of_very_many_values_a_sample_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leakage, "MAX_HASHES", 200)
    for count, overlap in ((4000, 1000), (150, 150)):
        records = {
            "test": [{"who": n} for n in range(count)],
            "train": [{"who": n} for n in range(count - overlap, count - overlap + 4000)],
        }
        _write(tmp_path, records)
        (leak,) = rs.stats(tmp_path, group_column="who").leakage
        assert 0.04 < leak.compared < 0.06  # 200 of 4,000
        assert 0.4 < leak.count / leak.compared / overlap < 1.6
        assert rs.stats(tmp_path, group_column="who", threads=1).leakage == (leak,)
