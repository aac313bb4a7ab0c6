"""The public names, and the cost of `import recordsmith`."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import recordsmith

FRAMEWORKS = ("grain", "jax", "keras", "tensorflow", "torch")
HEAVY = ("cv2", "PIL", "jinja2", "typer", "rich", "google.protobuf", *FRAMEWORKS)


def _typed_imports() -> dict[str, str]:
    """name -> module, of the imports for type checkers."""
    stub = Path(recordsmith.__file__).with_suffix(".pyi")
    return {
        alias.asname or "": node.module or ""
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_all_equals_the_imports_for_type_checkers() -> None:
    assert len(set(recordsmith.__all__)) == len(recordsmith.__all__)
    assert set(recordsmith.__all__) == {*_typed_imports(), "__version__"}
    assert len(recordsmith.__all__) <= 124


def test_each_name_is_on_one_page_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "docs" / "site")
    names = " ".join(importlib.import_module("pages").PYTHON.values()).split()
    assert sorted(names) == sorted({*recordsmith.__all__} - {"__version__"})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "module"), _typed_imports().items())
def test_each_name_comes_from_its_module(name: str, module: str) -> None:
    home = importlib.import_module(module)
    assert getattr(recordsmith, name) is getattr(home, name)
    assert name in home.__all__ if hasattr(home, "__all__") else True


@pytest.mark.parametrize("name", _typed_imports())
def test_each_name_has_a_docstring(name: str) -> None:
    text = getattr(recordsmith, name).__doc__ or ""
    assert len(text.split()) > 3
    assert not text.startswith(f"{name}(")  # the default of a dataclass


def test_dir_lists_the_public_names() -> None:
    assert set(recordsmith.__all__) <= set(dir(recordsmith))


def test_unknown_names_are_attribute_errors() -> None:
    assert not hasattr(recordsmith, "no_such_name")
    with pytest.raises(ImportError):
        exec("from recordsmith import no_such_name")


def _loaded_by(statement: str) -> set[str]:
    """Return the names of the modules that a program has loaded after this statement."""
    script = f"{statement}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    return set(json.loads(done.stdout))


def _ours(*names: str) -> list[str]:
    """Return names of modules, which exist: a test that one is not loaded fails once it moves."""
    modules = [f"recordsmith.{name}" for name in names]
    for module in modules:
        assert importlib.util.find_spec(module), module
    return modules


def test_import_loads_no_heavy_package() -> None:
    assert not _loaded_by("import recordsmith") & {*HEAVY, "numpy"}


def test_no_name_loads_a_framework() -> None:
    loaded = _loaded_by("import recordsmith as rs; [getattr(rs, name) for name in rs.__all__]")
    assert "recordsmith.exporting.readers" in loaded
    assert not loaded & set(FRAMEWORKS)


def test_reading_needs_neither_images_nor_the_command_line() -> None:
    loaded = _loaded_by("import recordsmith as rs; rs.open, rs.verify, rs.inspect, rs.ShardWriter")
    assert "numpy" in loaded  # the names were really loaded
    assert not loaded & {*HEAVY, *_ours("writing", "cli")}


def test_packing_loads_image_libraries_on_demand() -> None:
    assert not _loaded_by("import recordsmith as rs; rs.pack, rs.ImageFolder") & set(HEAVY)


def test_exporting_loads_format_libraries_on_demand() -> None:
    assert not _loaded_by("import recordsmith as rs; rs.export") & {*HEAVY, "pyarrow"}


@pytest.mark.parametrize("name", recordsmith._OPTIONAL.split())
def test_modules_that_remedies_name_exist(name: str) -> None:
    assert importlib.util.find_spec(f"recordsmith.{name}")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("torch_", ""),
        ("spark", "Import it: import recordsmith.spark"),
        ("DataLoader", "Use rs.Loader."),
        ("load_dataset", "Use rs.open."),
        ("loader", "Did you mean 'Loader'?"),
        ("_hidden", ""),
    ],
)
def test_unknown_names_have_a_remedy(name: str, remedy: str) -> None:
    code = f"import recordsmith; recordsmith.{name}"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.stderr.strip().splitlines()[-1].endswith(remedy or f"no attribute {name!r}")
