"""`recordsmith lint`, and what `pack` prints of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from recordsmith.cli import app, load_command
from recordsmith.sources.formats import SourceOptions

from ..checking.linting.planted import (
    FRUIT_FAULTS,
    fruit_folders,
    pair_folders,
    photo,
    save,
    voc_pets,
    write_xml,
)


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_clean_source_exits_with_0(tmp_path: Path) -> None:
    fruit_folders(tmp_path)
    done = run("lint", tmp_path)
    assert done.exit_code == 0
    assert done.stdout.startswith("clean")


def test_notes_exit_with_0(tmp_path: Path) -> None:
    fruit_folders(tmp_path)
    (tmp_path / "train/apple/.hidden").write_text("")
    done = run("lint", tmp_path, "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert [(f["check"], f["severity"]) for f in found["findings"]] == [("skipped", "note")]


def test_errors_and_warnings_exit_with_1(tmp_path: Path) -> None:
    fruit_folders(tmp_path)
    FRUIT_FAULTS[0].plant(tmp_path)
    done = run("lint", tmp_path)
    assert done.exit_code == 1
    assert "train/apple/00.jpg" in done.stdout
    assert run("lint", tmp_path, "--quick").exit_code == 0  # the image is not decoded
    save(tmp_path / "train/apples/0.jpg", photo(1))
    quick = run("lint", tmp_path, "--quick", "--json")
    assert quick.exit_code == 1
    assert json.loads(quick.stdout)["deep"] is False


def test_the_cure_names_options_of_the_command_line(tmp_path: Path) -> None:
    voc_pets(tmp_path)
    write_xml(tmp_path, "00", [("cat", 10, 12, 97, 50)])
    (found,) = (
        f for f in json.loads(run("lint", tmp_path, "--json").stdout)["findings"]
        if f["check"] == "box-outside"
    )  # fmt: skip
    assert "--boxes clip" in found["cure"]
    assert found["examples"][0]["box"] == [12 / 64, 10 / 96, 50 / 64, 97 / 96]
    assert run("lint", tmp_path, "--boxes", "clip").exit_code == 0


def test_checks_are_selected(tmp_path: Path) -> None:
    fruit_folders(tmp_path)
    for fault in FRUIT_FAULTS:
        fault.plant(tmp_path)
    two = ("--only", "cmyk", "--only", "alpha")
    found = json.loads(run("lint", tmp_path, *two, "--json").stdout)["findings"]
    assert [f["check"] for f in found] == ["cmyk", "alpha"]
    assert run("lint", tmp_path, *two, "--ignore", "cmyk", "--ignore", "alpha").exit_code == 0


def test_all_options_of_sources_are_accepted(tmp_path: Path) -> None:
    parameters = {param.name for param in load_command("lint").params}
    assert SourceOptions.__annotations__.keys() <= parameters
    pair_folders(tmp_path)
    images, masks = tmp_path / "images", tmp_path / "masks"
    assert run("lint", tmp_path, "--images", images, "--masks", masks).exit_code == 0


@pytest.fixture
def plural(tmp_path: Path) -> Path:
    fruit_folders(tmp_path / "fruit")
    save(tmp_path / "fruit/train/bananas/0.jpg", photo(1))
    save(tmp_path / "fruit/val/bananas/0.jpg", photo(2))
    return tmp_path / "fruit"


def test_pack_prints_findings_first(plural: Path, tmp_path: Path) -> None:
    done = run("pack", plural, tmp_path / "out")
    assert done.exit_code == 0
    assert "bananas" in done.stderr
    assert "similar-class-names" in done.stderr
