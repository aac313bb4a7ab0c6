"""What commands write goes to any store that users name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from recordsmith.stores import as_folder

QUICK = ("--qualities", "90", "--shorter-sides", "24")
_SHOWN = {"forecast.html": "shorter side 24", "lint.html": "<html", "schema.json": "image/encoded"}


@pytest.fixture(params=["files", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder as users type it."""
    return f"memory://{uuid4()}" if request.param == "memory" else str(tmp_path)


def test_pages_and_documents(run: Any, packed: Path, images: Path, place: str) -> None:
    commands = {
        "sheet.png": ("sheet", packed, f"{place}/sheet.png"),
        "stats.html": ("stats", packed, "--html", f"{place}/stats.html"),
        "verify.html": ("verify", packed, "--html", f"{place}/verify.html"),
        "schema.json": ("schema", packed, "--out", f"{place}/schema.json"),
        "lint.html": ("lint", images, "--html", f"{place}/lint.html"),
        "forecast.html": ("forecast", images, "--html", f"{place}/forecast.html", *QUICK),
    }
    for name, command in commands.items():
        assert run(*command).code == 0
        written = as_folder(place) / name
        data = written.read()
        assert len(data) > 100
        if name in _SHOWN:
            assert _SHOWN[name].encode() in data
        again = run(*command)
        assert (again.code, f"{place}/{name} already exists" in again.err) == (2, True)
        written.put(b"old")
        assert run(*command, "--overwrite").code == 0
        assert written.read() == data
    assert run("verify", packed, "--schema", f"{place}/schema.json").code == 0
    outcome = run("verify", packed, "--overwrite")
    assert (outcome.code, outcome.out, "--overwrite needs --html" in outcome.err) == (2, "", True)
    outcome = run("verify", f"{place}/no data", "--html", "no folder/x.html")
    assert (outcome.code, "cannot write" in outcome.err) == (2, True)  # before anything is read


def test_exports(run: Any, packed: Path, place: str) -> None:
    outcome = run("export", packed, f"{place}/exported", "--json")
    assert (outcome.code, outcome.document["folder"]) == (0, f"{place}/exported")
    out = as_folder(f"{place}/exported")
    found = [location for location in out.list() if location.name != ".export.json"]
    assert len(found) == outcome.document["files"] == 9
    assert sum(location.size() for location in found) == outcome.document["size_bytes"]
    assert "entries" in json.loads((out / ".export.json").read())
    again = run("export", packed, f"{place}/exported")
    assert (again.code, f"{place}/exported is not empty" in again.err) == (2, True)


@pytest.mark.parametrize("command", ["sheet", "export"])
def test_unsupported_stores(run: Any, packed: Path, command: str) -> None:
    pytest.importorskip("fsspec")
    outcome = run(command, packed, "nowhere://host/out.png")
    assert (outcome.code, "nowhere://host/out.png" in outcome.err) == (2, True)
