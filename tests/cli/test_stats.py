"""`recordsmith stats`."""

from __future__ import annotations

import re
from pathlib import Path

import recordsmith as rs


def test_stats_as_tables(run, packed: Path) -> None:
    outcome = run("stats", packed)
    assert outcome.code == 0
    lines = [line.split() for line in outcome.out.splitlines()]
    assert outcome.out.startswith("9 records in 4 shards")
    assert ["image/encoded", "bytes", "all", "1"] in [line[:4] for line in lines]
    assert ["image/width", "40"] in [line[:2] for line in lines]
    assert re.search(r"5 jpeg, 4 png; 9 .* 3 channels", outcome.out)
    assert ["0", "cat"] in [line[:2] for line in lines]
    assert max(map(len, outcome.out.splitlines())) <= 110


def test_stats_document(run, packed: Path) -> None:
    document = run("stats", packed, "--json", "--split", "train").document
    assert document == rs.stats(packed, "train").to_json()
    assert document["records"] == 6
