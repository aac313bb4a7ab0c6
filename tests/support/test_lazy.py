"""Names that are imported on first use: tables, and the names of packages."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import recordsmith
from recordsmith.stores import MemoryStore
from recordsmith.support.lazy import LazyTable

SOURCE = Path(recordsmith.__file__).parent
STUBS = sorted(path for path in SOURCE.rglob("__init__.pyi") if path.parent != SOURCE)


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.parent.name)
def test_type_checkers_see_the_names_of_a_package(stub: Path) -> None:
    name = ".".join(("recordsmith", *stub.parent.relative_to(SOURCE).parts))
    package = import_module(name)
    imports = ast.parse(stub.read_text()).body
    names = {alias.asname for node in imports for alias in node.names}  # type: ignore[attr-defined]
    assert names == {*package.__all__} == {*dir(package)}
    for node in imports:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            value = getattr(import_module(str(node.module)), alias.name)
            assert getattr(package, str(alias.asname)) is value
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = package.nothing


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.parent.name)
def test_modules_of_a_room_import_modules_and_not_its_names(stub: Path) -> None:
    name = ".".join(("recordsmith", *stub.parent.relative_to(SOURCE).parts))
    for path in stub.parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == name:
                for alias in node.names:
                    modules = (stub.parent / alias.name, stub.parent / f"{alias.name}.py")
                    kernels = stub.parent.glob(f"{alias.name}.*.so")
                    assert any(map(Path.exists, modules)) or any(kernels), (path, alias.name)


def test_a_package_imports_none_of_its_names_before_their_use() -> None:
    code = "import sys, recordsmith.stores; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "recordsmith.stores" in run.stdout.split()
    assert "recordsmith.stores.store" not in run.stdout.split()


def test_a_table_imports_a_value_on_use_and_takes_others() -> None:
    table = LazyTable[object]("recordsmith", {"memory": "stores.memory.MemoryStore", "one": 1})
    assert table["memory"] is MemoryStore
    table["two"] = 2
    del table["one"]
    assert ("one" in table, [*table], len(table)) == (False, ["memory", "two"], 2)
