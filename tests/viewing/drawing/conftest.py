"""Where pages are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from recordsmith.stores import Location, MemoryStore, as_folder


@pytest.fixture(params=["files", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """A folder in each kind of store."""
    if request.param == "memory":
        return Location(MemoryStore(), "pages")
    return as_folder(tmp_path)
