"""`recordsmith forecast`: its table, documents and files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import recordsmith as rs
from recordsmith.image import ImageOptions

QUICK = ("--qualities", "90", "--shorter-sides", "24")


def test_prints_a_table_of_what_pack_writes(run, images: Path, tmp_path: Path) -> None:
    outcome = run("forecast", images, *QUICK)
    assert outcome.code == 0
    head, _, headings, *lines = outcome.out.splitlines()
    assert re.match(r"9 samples, .*: all 9 samples stored: sizes are exact", head)
    assert re.split(r"  +", headings)[:4] == ["stored as", "size", "error", "of original"]
    (jpeg,) = (line for line in lines if line.startswith("JPEG 90 (all)"))
    packed = tmp_path / "out"
    commands = jpeg[jpeg.index("--") :].split()
    assert run("pack", images, packed, *commands).code == 0
    size = sum(path.stat().st_size for path in packed.glob("*.tfrecord"))
    assert f" {size / 1000:.1f} kB " in jpeg


def test_json_document(run, images: Path) -> None:
    document = run("forecast", images, *QUICK, "--json").document
    assert (document["format"], document["samples"], document["sampled_count"]) == ("folder", 9, 9)
    options = {each["name"]: each["options"] for each in document["variants"]}
    assert options["original"] == {}
    assert ImageOptions.from_json(options["side-24"]) == ImageOptions(shorter_side=24)


def test_options_of_the_source_are_those_of_pack(run, images: Path, tmp_path: Path) -> None:
    rows = "".join(f"cat/{number}.jpg,{number % 2}\n" for number in range(5))
    (images / "rows.csv").write_text(f"file,class\n{rows}")
    options = ("--image-column", "file", "--label-column", "class")
    document = run("forecast", images / "rows.csv", *options, *QUICK, "--json").document
    assert (document["format"], document["image_count"]) == ("table", 5)
    outcome = run("forecast", images, "--format", "files", "--masks", "x")
    assert (outcome.code, "--masks" in outcome.err) == (2, True)


def test_unreadable_images_are_listed(run, images: Path) -> None:
    (images / "cat" / "bad.jpg").write_text("words")
    outcome = run("forecast", images, *QUICK)
    assert outcome.code == 0
    assert "unreadable (1)" in outcome.out
    assert "cat/bad.jpg" in outcome.out


def test_without_images_the_size_is_printed(run, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n' * 20)
    outcome = run("forecast", tmp_path / "rows.jsonl")
    assert outcome.code == 0
    assert "image/encoded" in outcome.out
    rs.pack(rs.Table(tmp_path / "rows.jsonl"), tmp_path / "out")


def test_an_empty_list_leaves_variants_out(run, images: Path) -> None:
    pytest.importorskip("oxipng")
    pytest.importorskip("mozjpeg_lossless_optimization")
    options = ("--qualities", "", "--shorter-sides", "", "--json")
    document = run("forecast", images, *options).document
    assert [each["name"] for each in document["variants"]] == [
        *("original", "raw", "png", "shrunk", "tiles")
    ]
