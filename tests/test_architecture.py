"""ARCHITECTURE.md names what exists, and the examples of its contracts work."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.exporting import EXPORTERS
from recordsmith.sources.samples import READERS

REPOSITORY = Path(__file__).parent.parent
PACKAGE = Path(rs.__file__).parent
TEXT = (REPOSITORY / "ARCHITECTURE.md").read_text("utf-8")
LINKS = re.findall(r"\[([^\]]+)\]\(([^)#]+)[^)]*\)", TEXT)
CONTRACTS = ("source", "store", "exporter", "engine", "feature")


def names_in(nodes: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """The names that a module defines, those in its classes with the name of the class."""
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield prefix + node.name
            if isinstance(node, ast.ClassDef):
                yield from names_in(node.body, f"{prefix}{node.name}.")


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 150


@pytest.mark.skipif(not (REPOSITORY / "src").exists(), reason="an installed package has no sources")
def test_links_lead_to_what_they_name() -> None:
    for text, path in LINKS:
        assert (REPOSITORY / path).exists(), path
        if path.endswith(".py"):
            defined = {*names_in(ast.parse((REPOSITORY / path).read_text("utf-8")).body)}
            assert defined >= {*re.findall(r"`([\w.]+)`", text)}, f"{text} in {path}"


def test_the_drawing_has_all_rooms() -> None:
    drawing = TEXT.partition("```mermaid\n")[2].partition("```")[0]
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    adapters = {"beam", "ray", "spark", "torch", "jax", "tensorflow"}
    assert set(re.findall(r"<b>(\w+)</b>", drawing)) == rooms - adapters
    assert set(re.findall(r"\w+", drawing)) >= adapters


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_example_of_a_contract_works(
    contract: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class of one's own: its records are packed, read and verified."""
    assert f"(examples/contracts/{contract}.py)" in TEXT
    registered: Any = {"exporter": (EXPORTERS, "jsonl"), "source": (READERS, "NoteReader")}
    if contract in registered:
        monkeypatch.setitem(*registered[contract], None)  # removed after the test
    path = REPOSITORY / "examples" / "contracts" / f"{contract}.py"
    runpy.run_path(str(path), run_name="contract")["main"](tmp_path)
