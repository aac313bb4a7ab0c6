from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from ..places import flip

QUICK = ("--size", 8, "--batch-size", 4)


def test_prints_the_stages_and_advice(run, packed: Path) -> None:
    outcome = run("bench", packed, "--split", "train", *QUICK, "--seconds", 0.5)
    assert outcome.code == 0
    head = outcome.out.splitlines()[0]
    assert re.match(r"[\d,]+ images/s, .*/s: ", head)
    for loaded in ("image/encoded", "8x8", "fit=resize"):
        assert loaded in head
    for stage in ("reading", "decoding", "idle"):
        assert re.search(rf"^{stage} +\d+% +[\d,]+", outcome.out, re.MULTILINE)
    assert "A training step" in outcome.out
    assert outcome.err == ""


def test_json_document(run, packed: Path) -> None:
    options = ("--threads", 1, "--no-shuffle", "--seconds", 0.3, "--json")
    document = run("bench", packed, *QUICK, *options).document
    assert (document["records"], document["image_key"]) == (9, "image/encoded")
    assert document["is_complete"]
    assert (document["threads"], document["order"]) == (1, "in order")
    measured = document["measured"]
    assert measured["records"] > 0
    assert measured["records_per_second"] == pytest.approx(
        measured["records"] / measured["elapsed_seconds"]
    )
    assert document["advice"]


def test_a_damaged_record_is_named(run, packed: Path) -> None:
    shard = min(packed.glob("*.tfrecord"))
    flip(shard, 40)
    outcome = run("bench", packed, *QUICK, "--seconds", 0.3)
    assert outcome.code == 1
    assert f"{shard}, record 0, byte 0: payload-crc-mismatch" in outcome.err
    outcome = run("bench", packed, *QUICK, "--seconds", 0.3, "--skip-errors", 1)
    assert outcome.code == 0
    assert f"skipped (1): records that cannot be read.\n  {shard}, record 0" in outcome.out


def test_on_a_terminal_and_interrupted(packed: Path, terminal: Any) -> None:
    """It shows its progress, and prints the results so far on Ctrl-C."""
    code, shown, printed = terminal.run(
        [sys.executable, "-m", "recordsmith", "bench", packed, "--size", "8", "--seconds", "60"],
        pipe=True,
        interrupt_at="2/60",
    )
    assert code == 130
    assert "measuring, seconds" in shown
    assert re.match(r"[\d,]+ images/s, ", printed)
    assert "\x1b" not in printed
