"""The code of docs/how-to/ray.md runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

from ...test_docs import page, run_python

pytest.importorskip("ray.data")
pytest.importorskip("pyarrow")


@pytest.mark.filterwarnings("ignore")  # of Ray itself
@pytest.mark.usefixtures("cluster")
def test_the_page(
    images: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    counts = {"daisy": 20, "rose": 20, "tulip": 20}
    source = rs.ImageFolder(images.make_folder(tmp_path / "flowers", counts))
    splits = {"train": 0.7, "validation": 0.3}
    rs.pack(source, tmp_path / "out", splits=splits, shards=2)
    run_python(page("docs/how-to/ray.md"), "ray.md", lambda: capsys.readouterr().out)
