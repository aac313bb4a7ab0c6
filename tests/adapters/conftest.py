"""A small dataset of class folders; programs and pages of the documents that run on their own."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

DOCS = Path(__file__).parent.parent.parent / "docs"
Run = Callable[..., str]


FEATURES: dict[str, Any] = {
    "id": "id",
    "pair": "pair",
    "many": "many",
    "has_rare": rs.Present("rare"),
    "name": rs.Text("name"),
    "names": rs.Text("names", shape="ragged"),
    "raw": "raw",
    "raws": rs.Bytes("raws", shape="ragged"),
}


def example_of_kinds(number: int) -> dict[str, Any]:
    """An example that has each of the `FEATURES`."""
    example = {
        "id": number,
        "pair": [number + 0.5, -number],
        "many": list(range(number % 4)),
        "name": f"name {number}",
        "names": ["é"] * (number % 3),
        "raw": bytes([number, 0]),
        "raws": [b"\0"] * (number % 2),
    }
    return example | ({"rare": 1} if number % 3 else {})


@pytest.fixture(scope="module", autouse=True)
def _collected() -> Iterator[None]:
    """Other tests count open files: none waits for the garbage collector."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory, images: Any) -> Path:
    """60 images of three classes, 42 of them in the split `train`, in two shards each."""
    folder = tmp_path_factory.mktemp("packed")
    counts = {"daisy": 20, "rose": 20, "tulip": 20}
    source = rs.ImageFolder(images.make_folder(folder / "flowers", counts))
    splits = {"train": 0.7, "validation": 0.3}
    return Path(rs.pack(source, folder / "out", splits=splits, shards=2).folder)


@pytest.fixture
def train(packed: Path) -> rs.Dataset:
    return rs.open(packed, split="train")


@pytest.fixture
def run_program(tmp_path: Path) -> Run:
    """Runs Python in a process of its own, in an empty folder, and answers what it printed.

    A file, so that processes which are spawned can import it.
    """

    def run(program: str, *arguments: object, timeout: float = 120, status: int = 0) -> str:
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(program), "utf-8")
        done = subprocess.run(
            [sys.executable, str(path), *map(str, arguments)],
            cwd=tmp_path, capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def run_page(run_program: Run, packed: Path, tmp_path: Path) -> Callable[[str], None]:
    """Run the Python of a page in docs/ as one program, next to the folders `flowers` and `out`.

    It prints what its comments announce (`# shows ...`).
    """

    def run(name: str) -> None:
        page = (DOCS / name).read_text("utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
        assert blocks
        for folder in ("flowers", "out"):
            (tmp_path / folder).symlink_to(packed.parent / folder)
        shown = run_program("\n".join(blocks)).splitlines()
        for block in blocks:
            for line in re.findall(r"^ *print\(.*?\)  # shows (.+)$", block, re.MULTILINE):
                assert line in shown

    return run
