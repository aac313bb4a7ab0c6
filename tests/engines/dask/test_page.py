"""The code of docs/how-to/dask.md runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

from ...test_docs import page, run_python

pytest.importorskip("dask.dataframe")
pytest.importorskip("pyarrow")


def test_the_page(
    client: Any, images: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    counts = {"daisy": 20, "rose": 20, "tulip": 20}
    source = rs.ImageFolder(images.make_folder(tmp_path / "flowers", counts))
    splits = {"train": 0.7, "validation": 0.3}
    rs.pack(source, tmp_path / "out", splits=splits, shards=2)
    run_python(page("docs/how-to/dask.md"), "dask.md", lambda: capsys.readouterr().out)
