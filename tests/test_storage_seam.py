"""Only `stores/local` calls the operating system for data: a walk over the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import recordsmith

SOURCE = Path(recordsmith.__file__).parent

LOCAL = ("stores.local.", "stores.folders.")
"""What may call the operating system: local stores, and what renames their folders."""

ALLOWED: dict[str, tuple[str, set[str]]] = {
    "__main__": ("silences standard error", {"open", "os.close", "os.dup", "os.open"}),
    "cli": ("replaces closed standard streams", {"open"}),
    "cli.console": ("keeps standard output for JSON", {"open", "os.dup"}),
    "cli.execution": ("replaces closed standard streams", {"open", "os.open"}),
    "dataset.frames": ("names a type", {"mmap.mmap"}),
    "engines.processes": ("keeps standard output for results", {"os.dup", "os.fdopen"}),
    "exporting.formats.array_record": ("the library writes to paths", {"open", "os.remove"}),
    "exporting.readers": ("finds what the generated program finds", {"glob.glob"}),
    "sources.tables.encoded_rows": ("names a type", {"mmap.mmap"}),
    "stores.location": ("recognises mistyped URLs", {"os.path.lexists"}),
    "stores.object_reader": ("names a type", {"mmap.mmap"}),
    "support.threads": ("whether the system has ended a thread", {"os.path.exists"}),
    "loading.worker_iterations": (
        "shares numbers between processes",
        {
            *("fcntl.lockf", "os.close", "os.fstat", "os.pread", "os.pwrite", "os.unlink"),
            "tempfile.mkstemp",
        },
    ),
    "viewing.access": (
        "secrets that only this user of the machine may read",
        {
            *("open", "os.fstat", "os.open", "os.replace", "os.stat", ".read_text"),
            *("tempfile.TemporaryDirectory", "tempfile.mkstemp"),
        },
    ),
}
"""Module -> why it calls the operating system, and what it calls."""

_MODULES = {"mmap", "tempfile"}
_CALLS = {
    *("builtins.open", "io.open", "io.FileIO", "numpy.fromfile", "numpy.memmap", "numpy.load"),
    *("pyarrow.OSFile", "pyarrow.memory_map", "glob.glob", "glob.iglob", "linecache.getlines"),
    *("fcntl.flock", "fcntl.lockf", "fcntl.ioctl"),
    *(f"os.{name}" for name in (
        *("access", "chmod", "close", "copy_file_range", "dup", "fdopen", "fstat", "fsync"),
        *("link", "listdir", "lseek", "lstat", "makedirs", "mkdir", "mkfifo", "open", "pread"),
        *("preadv", "pwrite", "pwritev", "posix_fadvise", "posix_fallocate", "read", "readlink"),
        *("readv", "remove", "removedirs", "rename", "renames", "replace", "rmdir", "scandir"),
        *("sendfile", "stat", "statvfs", "symlink", "truncate", "unlink", "utime", "walk"),
        *("ftruncate", "fwalk", "write", "writev"),
    )),
    *(f"os.path.{name}" for name in (
        *("exists", "getctime", "getmtime", "getsize", "isdir", "isfile", "islink", "ismount"),
        *("lexists", "realpath", "samefile", "sameopenfile"),
    )),
    *(f"shutil.{name}" for name in (
        *("copy", "copy2", "copyfile", "copytree", "disk_usage", "move", "rmtree"),
    )),
}  # fmt: skip
_PATH_METHODS = {
    *("hardlink_to", "is_dir", "is_file", "is_fifo", "is_mount", "is_symlink", "iterdir", "lstat"),
    *("read_bytes", "read_text", "readlink", "rglob", "rmdir", "samefile", "symlink_to", "touch"),
    *("unlink", "write_bytes", "write_text"),
}
"""Methods that only a Path has."""

_METHODS_OF_PATHS = {"exists", "glob", "mkdir", "open", "rename", "replace", "resolve", "stat"}
"""Methods that other objects have as well: they count on what is visibly a Path."""


class _Calls(ast.NodeVisitor):
    """The names of what a module uses to reach the operating system, with their lines."""

    def __init__(self, tree: ast.Module) -> None:
        self.found: list[tuple[int, str]] = []
        self._imported: dict[str, str] = {}
        self._paths: set[str] = set()
        if "open" not in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}:
            self._imported["open"] = "builtins.open"
        for node in ast.walk(tree):
            self._collect(node)
        self.visit(tree)

    def _collect(self, node: ast.AST) -> None:
        """Note imported names, and names of paths."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                self._imported[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                self._imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.arg) and node.annotation is not None:
            if re.fullmatch(r"(pathlib\.)?Path( \| None)?", ast.unparse(node.annotation)):
                self._paths.add(node.arg)
        elif isinstance(node, ast.Assign) and self._is_path(node.value):
            self._paths |= {target.id for target in node.targets if isinstance(target, ast.Name)}

    def _name(self, node: ast.AST) -> str:
        """The name of what an expression refers to: `os.path.exists`; empty if unknown."""
        if isinstance(node, ast.Name):
            return self._imported.get(node.id, "")
        if isinstance(node, ast.Attribute) and (owner := self._name(node.value)):
            return f"{owner}.{node.attr}"
        return ""

    def _is_path(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return self._name(node.func) == "pathlib.Path"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return self._is_path(node.left)
        if isinstance(node, ast.Attribute) and node.attr == "parent":
            return self._is_path(node.value)
        return isinstance(node, ast.Name) and node.id in self._paths

    def _reaches_file(self, node: ast.Attribute, name: str) -> bool:
        if node.attr in _PATH_METHODS:
            return not name
        return node.attr in _METHODS_OF_PATHS and self._is_path(node.value)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            if name in _CALLS or node.module in _MODULES:
                self.found.append((node.lineno, name))

    def visit_Name(self, node: ast.Name) -> None:
        if self._name(node) == "builtins.open":
            self.found.append((node.lineno, "open"))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self._name(node)
        if name in _CALLS or name.partition(".")[0] in _MODULES:
            self.found.append((node.lineno, name))
        elif self._reaches_file(node, name):
            self.found.append((node.lineno, f".{node.attr}"))
        self.generic_visit(node)


def calls(code: str) -> list[tuple[int, str]]:
    """The lines and names of what reaches the operating system for data."""
    return _Calls(ast.parse(code)).found


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), path


def test_only_local_stores_call_the_operating_system() -> None:
    planted = []
    for module, path in modules():
        if f"{module}.".startswith(LOCAL):
            continue
        allowed = ALLOWED[module][1] if module in ALLOWED else set()
        planted += [
            f"{path.relative_to(SOURCE)}:{line}: {name}"
            for line, name in calls(path.read_text("utf-8"))
            if name not in allowed
        ]
    assert not planted, "read and write through a Location, or a method of Store"


def test_other_packages_import_only_caches_and_temporary_files_of_local_stores() -> None:
    imported = {
        (path.relative_to(SOURCE).as_posix(), name)
        for module, path in modules()
        if not module.startswith("stores.")
        for name in re.findall(r"recordsmith\.stores\.local[\w.]*", path.read_text("utf-8"))
        if name not in ("recordsmith.stores.local.caches", "recordsmith.stores.local.scratch")
    }
    assert not imported - {("stores/__init__.py", "recordsmith.stores.local")}


@pytest.mark.parametrize("module", ALLOWED)
def test_what_is_allowed_is_needed(module: str) -> None:
    found = {name for _, name in calls(dict(modules())[module].read_text("utf-8"))}
    assert found == ALLOWED[module][1]


def test_only_kernels_of_local_stores_read_files() -> None:
    if not any(SOURCE.rglob("*.pyx")):
        pytest.skip("an installed package has kernels without their source")
    system = re.compile(r"\b(unistd|fcntl|sys/mman|sys/uio|stdio)\b|\bp?(read|write)v?\(|\bmmap\(")
    found = {
        path.relative_to(SOURCE).as_posix()
        for suffix in ("pyx", "pxd", "h")
        for path in SOURCE.rglob(f"*.{suffix}")
        if system.search(path.read_text("utf-8"))
    }
    assert all(path.startswith("stores/local/") for path in found)
    assert found


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("open('x')", "open"),
        ("import builtins as b; b.open('x')", "builtins.open"),
        ("import os; os.open('x', 0)", "os.open"),
        ("import os as system\nsystem.replace('x', 'y')", "os.replace"),
        ("import os.path; os.path.exists('x')", "os.path.exists"),
        ("from os import scandir", "os.scandir"),
        ("from os.path import isfile as f", "os.path.isfile"),
        ("from tempfile import TemporaryDirectory", "tempfile.TemporaryDirectory"),
        ("import mmap; mmap.mmap(0, 0)", "mmap.mmap"),
        ("import shutil; shutil.rmtree('x')", "shutil.rmtree"),
        ("import weakref, os; weakref.finalize(x, os.close, 3)", "os.close"),
        ("def f():\n    import numpy as np\n    np.memmap('x')", "numpy.memmap"),
        ("anything.iterdir()", ".iterdir"),
        ("[each.read_bytes() for each in x]", ".read_bytes"),
        ("from pathlib import Path; Path('x').exists()", ".exists"),
        ("import pathlib; pathlib.Path('x').stat()", ".stat"),
        ("def f(x: Path): (x / 'y').parent.mkdir()", ".mkdir"),
        ("from pathlib import Path as P; x = P(y); x.rename(z)", ".rename"),
    ],
)
def test_planted_calls_are_found(code: str, name: str) -> None:
    assert [found for _, found in calls(code)] == [name]


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.fspath(x); os.path.join(a, b); os.urandom(8); os.environ['x']",
        "import shutil; shutil.copyfileobj(a, b); shutil.get_terminal_size()",
        "location.exists(); location.open_read(); text.replace('a', 'b'); tar.open('x')",
        "from pathlib import Path; Path('x').name; Path('x').with_suffix('.y')",
        "from recordsmith.stores import Location, as_folder",
        "def open(path): ...\nopen('x')",
        "import recordsmith as rs; rs.open('x')",
        "from recordsmith.dataset import open; open('x')",
    ],
)
def test_other_calls_are_not(code: str) -> None:
    assert calls(code) == []
