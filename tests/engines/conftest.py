"""What the tests of every engine read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

from .jobs import checksums, reshard, write_records


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset to rewrite."""
    return write_records(tmp_path_factory.mktemp("records") / "in")


@pytest.fixture(scope="session")
def wanted(source: Path) -> dict[str, int]:
    """The checksums of its shards that threads have written."""
    reshard(source, source.parent / "threads")
    return checksums(source.parent / "threads")


@pytest.fixture
def dataset_of_all_pages(images: Any, tmp_path: Path) -> Path:
    """The dataset `out` of the pages, in a folder that is returned."""
    counts = {"daisy": 20, "rose": 20, "tulip": 20}
    flowers = rs.ImageFolder(images.make_folder(tmp_path / "flowers", counts))
    rs.pack(flowers, tmp_path / "out", splits={"train": 0.7, "validation": 0.3}, shards=2)
    return tmp_path


@pytest.fixture
def run_page(
    dataset_of_all_pages: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> Callable[[str], None]:
    """Runs the code of a page, and compares what it prints with what the page shows."""
    from ..test_docs import page, run_python

    monkeypatch.chdir(dataset_of_all_pages)

    def run(name: str) -> None:
        run_python(page(f"docs/how-to/{name}"), name, lambda: capsys.readouterr().out)

    return run


@pytest.fixture
def run_examples(
    dataset_of_all_pages: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Runs the examples in the docstrings of functions and classes; they may use `known`."""
    from ..test_docstring_examples import run

    def run_all(*values: Any, **known: Any) -> None:
        for value in values:
            run(value.__name__, value, dataset_of_all_pages, monkeypatch, **known)

    return run_all
