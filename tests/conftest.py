"""What all tests share: where optional data and optional references are."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis
import pytest

# a change is judged by the same inputs every time; new ones are tried by whoever works on it
hypothesis.settings.register_profile(
    "default", deadline=None, derandomize="CI" in os.environ, print_blob=True
)
hypothesis.settings.load_profile("default")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

REPOSITORY = Path(__file__).parent.parent
ZOO_COUNT = 35


def pytest_make_parametrize_id(val: Any) -> str | None:
    """Names bytes that are no text by their number, so that all processes collect the same names.

    A compressed value may hold the time of day, and the processes that share the tests refuse
    to run them where their names differ.
    """
    if isinstance(val, bytes) and not val.isascii():
        return f"{len(val)} bytes"
    return None


@pytest.fixture(autouse=True)
def _private_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> None:
    """No test reads or writes the cache of the person who runs it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def _load(name: str) -> ModuleType:
    """A module of this folder that is no test."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def pictures() -> ModuleType:
    """tests/pictures.py: small pictures in every format."""
    return _load("pictures")


@pytest.fixture(scope="session")
def reference() -> Any:
    """tests/reference.py: the formats, written without recordsmith."""
    return _load("reference")


@pytest.fixture(scope="session")
def wire(reference: Any) -> Any:
    """tests/payloads.py: strategies of payloads as any writer may put them."""
    return _load("payloads").strategies(reference)


@pytest.fixture(scope="session")
def editing() -> ModuleType:
    """tests/editing.py: edits of a payload in plain Python."""
    return _load("editing")


@pytest.fixture(scope="session")
def made() -> ModuleType:
    """tests/made.py: small datasets of numbered Examples, foreign ones and packed ones."""
    return _load("made")


@pytest.fixture(scope="session")
def killing() -> ModuleType:
    """tests/killing.py: jobs that are killed at random moments and run again."""
    return _load("killing")


@pytest.fixture(scope="session")
def small() -> ModuleType:
    """tests/loading/small.py: small datasets, and what loaders read of them."""
    return _load("loading/small")


@pytest.fixture(scope="session")
def tf() -> Any:
    """TensorFlow, the reference; tests that need it are skipped where it is not installed."""
    return pytest.importorskip("tensorflow", exc_type=ImportError)


@pytest.fixture(scope="session")
def shared_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of real TFRecord files and picture datasets, where a checkout has them beside it."""
    path = Path(os.environ.get("RECORDSMITH_SHARED_DATA", REPOSITORY.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"{path} is not there")
    copy = tmp_path_factory.mktemp("shared") / "data"
    shutil.copytree(path, copy, ignore=shutil.ignore_patterns(".recordsmith"))
    for folder in (copy, *copy.rglob("*/")):
        folder.chmod(0o755)
    return copy


@pytest.fixture(scope="session")
def zoo(shared_data: Path) -> Path:
    """Files that others wrote, from public repositories."""
    return shared_data / "zoo"


@pytest.fixture(scope="session")
def zoo_rows(zoo: Path) -> list[dict[str, Any]]:
    """What TensorFlow said of each of them."""
    lines = (zoo / "expected.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == ZOO_COUNT
    return [json.loads(line) for line in lines]


@pytest.fixture(params=range(ZOO_COUNT))
def zoo_row(request: pytest.FixtureRequest, zoo_rows: list[dict[str, Any]]) -> dict[str, Any]:
    """One of them after the other."""
    return zoo_rows[request.param]
