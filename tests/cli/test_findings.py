"""Commands write files of findings and take them, by position and by sample."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import recordsmith as rs
from recordsmith.dataset import read_findings

from ..images import jpeg
from .conftest import Run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, seed in (("a/1", 1), ("a/2", 2), ("b/3", 1), ("b/4", 4), ("b/5", 5)):
        path = tmp_path / "in" / f"{name}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg(seed, 64, 48))
    shutil.copy(tmp_path / "in" / "a" / "2.jpg", tmp_path / "in" / "b" / "6.jpg")
    return tmp_path / "in"


def test_from_lint_to_pack_and_reshard(folder: Path, tmp_path: Path, run: Run) -> None:
    found, out = tmp_path / "found.jsonl", tmp_path / "out"
    assert run("lint", folder, "--findings", found).code == 1
    assert "already exists" in run("lint", folder, "--findings", found).err
    assert run("lint", folder, "--findings", found, "--overwrite").code == 1
    packed = run("pack", folder, out, "--leave-out", f"@{found}", "--checks", "identical-images")
    assert packed.code == 0
    assert "2 images left out by @found.jsonl: b/3.jpg and b/6.jpg" in packed.out
    refused = run("pack", folder, tmp_path / "x", "--leave-out", f"@{found}", "--checks", "dupes")
    assert "no places of 'dupes'; expected one of identical-images, conflicting" in refused.err
    whole, of_whole = tmp_path / "whole", tmp_path / "whole.jsonl"
    together = run("pack", folder, whole, "--together", f"@{found}", "--splits", "a=0.5,b=0.5")
    assert together.code == 0
    run("lint", whole, "--findings", of_whole)
    places = [*read_findings(of_whole)]
    assert len({place.split for place in places}) <= 2
    shown = run("head", whole, "--at", f"@{of_whole}", "--json")
    positions = sorted({place.position for place in places})
    assert [f'"position": {position}' in shown.out for position in positions] == [True] * 4
    options = ("--checks", "identical-images", "--keep", "none")
    assert run("reshard", whole, tmp_path / "new", "--without", f"@{of_whole}", *options).code == 0
    assert len(rs.open(tmp_path / "new")) == 2
    again = run("reshard", tmp_path / "new", tmp_path / "third", "--without", f"@{of_whole}")
    assert "about another dataset, or about it before it changed" in again.err
    assert run("reshard", whole, tmp_path / "few", "--without", "0-2,5").code == 0
    assert len(rs.open(tmp_path / "few")) == 2
    both = run("reshard", whole, tmp_path / "x", "--without", "0", "--at", "1")
    assert "--at and --without exclude each other" in both.err


@pytest.mark.parametrize("command", ["lint", "stats", "verify", "diff"])
def test_every_report_writes_one(folder: Path, tmp_path: Path, run: Run, command: str) -> None:
    rs.pack(folder, tmp_path / "out")
    paths = [tmp_path / "out"] * (2 if command == "diff" else 1)
    found = tmp_path / "found.jsonl"
    assert f"findings: {found}" in run(command, *paths, "--findings", found).err
    head = read_findings(found).head
    assert head.command == command
    assert head.dataset is not None
    assert (head.source is not None) == (command == "lint")
    if command != "diff":
        assert "needs --html or --findings" in run(command, *paths, "--overwrite").err
