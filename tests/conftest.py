"""What all tests share: where optional data and optional references are."""

from __future__ import annotations

import functools
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis
import pytest
import typer.testing

from recordsmith.dataset import Dataset
from recordsmith.stores import Location

from .places import KINDS, new_place
from .servers.s3 import QUICK, S3
from .servers.servers import Servers, shared_servers

sys.path.append(str(Path(__file__).parent / "soak"))  # tests import its programs, too

# the inputs are the same every time; `make soak` tries new ones, more of them, by its seeds
hypothesis.settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    max_examples=50,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],  # the machine may be
)
hypothesis.settings.register_profile(
    "soak",
    hypothesis.settings.get_profile("default"),
    derandomize=False,
    database=None,  # the seed alone decides
    max_examples=500,
)
hypothesis.settings.load_profile("default")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# commands print the same on every terminal and CI
for _name in (
    "COLUMNS",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "LINES",
    "NO_COLOR",
    "PY_COLORS",
    "TERMINAL_WIDTH",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
):
    os.environ.pop(_name, None)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as for jobs in the background of a script
    signal.signal(signal.SIGINT, signal.default_int_handler)
# typer builds all commands again whenever one is run: four fifths of the time, in thousands of runs
typer.testing._get_command = functools.cache(typer.testing._get_command)

REPOSITORY = Path(__file__).parent.parent
POSIX_FIXTURES = {"killed_jobs", "open_files", "small_disk", "terminal"}
ZOO_COUNT = 35


@pytest.hookimpl(tryfirst=True)  # before the options of pytest select by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests marked `posix`, and those whose fixtures need it, on other systems."""
    for item in items:
        if not POSIX_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("posix")
        if os.name != "posix" and item.get_closest_marker("posix"):
            item.add_marker(pytest.mark.skip(reason="needs POSIX"))


def pytest_make_parametrize_id(val: Any) -> str | None:
    """Name binary values by their length, so that all processes collect the same names.

    A compressed value may hold the time of day, and the processes that share the tests refuse
    to run them where their names differ.
    """
    if isinstance(val, bytes) and not val.isascii():
        return f"{len(val)} bytes"
    return None


@pytest.fixture(autouse=True)
def _private_cache(tmp_path_factory: Any) -> Iterator[None]:
    """No test uses the cache of the user who runs it.

    Without the fixture `monkeypatch`, with which pytest-run-parallel runs tests in one thread.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    """An empty folder: in files, in memory, and in a store like those in a network."""
    with new_place(request.param, tmp_path) as folder:
        yield folder


@pytest.fixture
def columns_read(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The columns of each call of `Dataset.to_arrow`, in order."""
    read: list[Any] = []
    to_arrow = Dataset.to_arrow

    def recorded(self: Dataset, columns: Any = None, **options: Any) -> Any:
        read.append(columns)
        return to_arrow(self, columns, **options)

    monkeypatch.setattr(Dataset, "to_arrow", recorded)
    return read


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """tests/servers: real servers, each started when it is first needed."""
    with shared_servers() as running:
        yield running


@pytest.fixture
def bucket(servers: Servers) -> tuple[str, dict[str, Any]]:
    """The URL of an empty bucket in S3, and the options of its store, which are JSON."""
    return servers.new_bucket()


@pytest.fixture
def s3(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """S3 with an empty bucket, small parts, short pauses, and no faults yet."""
    pytest.importorskip("obstore")
    server = servers["s3"]
    assert isinstance(server, S3)
    for name, value in QUICK.items():
        monkeypatch.setattr(name, value)
    server.make_bucket()
    server.delete("")  # also what a process has requested that an earlier test ended
    server.requests()
    yield server
    server.fail(rate=0)


@pytest.fixture(scope="session")
def images() -> ModuleType:
    """tests/images.py: small images in every format."""
    return importlib.import_module("tests.images")


@pytest.fixture
def pillow_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow decodes JPEG, as where simplejpeg is not installed."""
    monkeypatch.setattr("recordsmith.image.decoding.jpeg_pixels._find_simplejpeg", lambda: None)


@pytest.fixture(params=["simplejpeg", "Pillow"])
def each_jpeg_decoder(request: pytest.FixtureRequest) -> str:
    """Each library that decodes JPEG, one after the other."""
    if request.param == "Pillow":
        request.getfixturevalue("pillow_decodes")
    else:
        pytest.importorskip("simplejpeg")
    return str(request.param)


@pytest.fixture(scope="session")
def reference() -> Any:
    """tests/reference.py: the formats, written without recordsmith."""
    return importlib.import_module("tests.reference")


@pytest.fixture(scope="session")
def wire(reference: Any) -> Any:
    """tests/payloads.py: strategies of payloads as any writer may put them."""
    return importlib.import_module("tests.payloads").strategies(reference)


@pytest.fixture(scope="session")
def numbered() -> ModuleType:
    """tests/numbered_examples.py: small datasets of numbered Examples, packed or not."""
    return importlib.import_module("tests.numbered_examples")


@pytest.fixture(scope="session")
def killed_jobs() -> ModuleType:
    """tests/killed_jobs.py: jobs that are killed before a change and run again."""
    return importlib.import_module("tests.killed_jobs")


@pytest.fixture(scope="session")
def terminal() -> ModuleType:
    """tests/terminal.py: programs on a terminal."""
    return importlib.import_module("tests.terminal")


@pytest.fixture(scope="session")
def small() -> ModuleType:
    """tests/loading/small.py: small datasets, and what loaders read of them."""
    return importlib.import_module("tests.loading.small")


@pytest.fixture(scope="session")
def open_files() -> Callable[[Path], list[str]]:
    """The files below a folder that this process has open, each as often as it has.

    Files elsewhere do not count: other tests may have left some, and these close at any moment.
    """
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("open files cannot be counted here")

    def below(folder: Path) -> list[str]:
        names = []
        for number in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):  # closed meanwhile
                names.append(os.readlink(f"/proc/self/fd/{number}"))
        return [name for name in names if name.startswith(f"{os.path.realpath(folder)}/")]

    return below


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB; only root can make one."""
    if shutil.which("mount") is None:
        pytest.skip("there is no mount")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("a small disk cannot be made here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="session")
def tf() -> Any:
    """TensorFlow, the reference; tests that need it are skipped where it is not installed."""
    return pytest.importorskip("tensorflow", exc_type=ImportError)


@pytest.fixture(scope="session")
def shared_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of real TFRecord files and image datasets, where a checkout has them next to it."""
    path = Path(os.environ.get("RECORDSMITH_SHARED_DATA", REPOSITORY.parent / "shared" / "data"))
    for part in (path / "sources", path / "zoo" / "expected.jsonl"):
        if not part.exists():
            pytest.skip(f"{part} is not there")
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
    """The results of TensorFlow for each of them."""
    lines = (zoo / "expected.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == ZOO_COUNT
    return [json.loads(line) for line in lines]


@pytest.fixture(params=range(ZOO_COUNT))
def zoo_row(request: pytest.FixtureRequest, zoo_rows: list[dict[str, Any]]) -> dict[str, Any]:
    """One of them after the other."""
    return zoo_rows[request.param]
