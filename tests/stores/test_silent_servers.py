"""Jobs end at once on Ctrl-C and on an error, also while a server does not respond.

The deadlines of requests are minutes: without this, each of these tests would take as long.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path

import pytest

import recordsmith as rs
from recordsmith.sources import Sample, SamplesAhead
from recordsmith.stores import Location
from recordsmith.stores.network import object_store
from recordsmith.support.threads import Stopped, stoppable_pool, wait_for
from recordsmith.support.work import WorkerPool

from ..images import jpeg
from ..raising import raises
from ..servers.fault_proxy import Fault, FaultProxy
from ..servers.s3 import S3
from .delayed import DelayedStore

SECONDS = 20  # to end in, on a busy machine


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    for number in range(30):
        path = tmp_path / "flowers" / "abc"[number % 3] / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg(number))
    return tmp_path / "flowers"


JOBS: dict[str, tuple[list[str], tuple[int, ...]]] = {
    "pack": (["pack", "{root}/flowers", "s3://bucket/out", "--shards", "4"], (1, 40)),
    "pack from a bucket": (["pack", "s3://bucket/flowers", "{root}/out", "--shards", "4"], (20,)),
    "reshard": (["reshard", "s3://bucket/dataset", "s3://bucket/out", "--shards", "2"], (20,)),
    "verify": (["verify", "s3://bucket/dataset"], (3,)),
    "export": (["export", "s3://bucket/dataset", "{root}/out.csv"], (5,)),
    "export to a bucket": (
        [
            "export",
            "s3://bucket/dataset",
            "s3://bucket/folder",
            "--format",
            "folder",
            "--overwrite",
        ],
        (25,),
    ),
}
"""The commands, and after how many requests the server responds no more."""


@pytest.mark.posix
@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "number"), [(job, number) for job, (_, numbers) in JOBS.items() for number in numbers]
)
def test_ctrl_c_ends_a_command(
    s3: S3, flowers: Path, tmp_path: Path, job: str, number: int
) -> None:
    environment = {**os.environ, **s3.variables("bucket"), "XDG_CACHE_HOME": str(tmp_path / "x")}
    expected = _packed(flowers, tmp_path / "local")
    for name, data in expected.items():
        s3.put(f"dataset/{name}", data)
    for path in flowers.rglob("*.jpg"):
        s3.put(path.relative_to(tmp_path).as_posix(), path.read_bytes())
    arguments = [each.replace("{root}", str(tmp_path)) for each in JOBS[job][0]]
    command = [sys.executable, "-m", "recordsmith", *arguments]
    with FaultProxy(s3.address) as proxy:
        through = {**environment, "AWS_ENDPOINT_URL": s3.url(proxy.address)}
        with subprocess.Popen(
            command, env=through, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            while proxy.counters.request_count < number and process.poll() is None:
                time.sleep(0.001)
            proxy.fault = Fault("silent")
            while not proxy.counters.fault_count and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(signal.SIGINT)
            try:
                _, errors = process.communicate(timeout=SECONDS)
            finally:
                process.kill()
    assert (process.returncode, errors.count("interrupted")) == (130, 1), errors
    assert not (tmp_path / "out" / "dataset.json").exists()
    assert "out/dataset.json" not in s3.objects()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    if job == "pack":
        found = s3.objects(prefix="out/")
        assert {name: data for name, data in found.items() if "/" not in name} == expected


def _packed(source: Path, folder: Path) -> dict[str, bytes]:
    rs.pack(rs.ImageFolder(source), folder, shards=4)
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# -- threads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["read", "put"])
def test_an_error_ends_the_tasks_that_wait_for_a_server(s3: S3, method: str) -> None:
    with FaultProxy(s3.address) as proxy:
        store = s3.new_store(proxy.address)
        store.put("x", b"data")
        proxy.fault = Fault("silent")

        def request_or_fail(number: int) -> None:
            if number < 3:
                getattr(store, method)(*("x", b"new")[: 1 + (method == "put")])
            while proxy.counters.fault_count < 3:
                time.sleep(0.001)
            raise ValueError("this one")

        with pytest.raises(ValueError, match="this one"):
            WorkerPool(4, None).each(request_or_fail, range(4))
        assert proxy.counters.fault_count == 3


@pytest.mark.parametrize(("seconds", "attempts"), [(0.0, 1), (60.0, 4)])
def test_a_read_is_not_repeated_after_a_long_attempt(
    s3: S3, monkeypatch: pytest.MonkeyPatch, seconds: float, attempts: int
) -> None:
    monkeypatch.setattr(object_store, "_REPEATED_SECONDS", seconds)
    store = s3.new_store(retry_config={"max_retries": 0})
    store.put("x", b"data" * 1000)
    s3.requests()
    s3.fail(["truncated"], method="GET", path="/x")
    with raises(rs.FileAccessError):
        store.read("x")
    assert len(s3.requests()) == attempts


class WaitingReader:
    """A reader of samples from a store, each of which waits for its server."""

    def __init__(self) -> None:
        self.root = Location(DelayedStore(0.0), "x")
        self.root.store.concurrency = 2
        self.begun = threading.Semaphore(0)

    def read(self, *_: object) -> bytes:
        self.begun.release()
        return wait_for(Future())


def test_samples_that_are_read_ahead_are_not_awaited() -> None:
    reader = WaitingReader()
    with (
        SamplesAhead(reader, 1) as ahead,  # type: ignore[arg-type]
        closing(ahead.each([Sample("x", size_bytes=1)] * 40)) as reads,
    ):
        next(reads)
        assert all(reader.begun.acquire(timeout=SECONDS) for _ in range(2))


def test_a_pool_stops_only_what_waits() -> None:
    stopping, begun, done = threading.Event(), threading.Semaphore(0), threading.Event()

    def work_on() -> int:
        begun.release()
        assert stopping.wait(SECONDS)
        done.set()
        return 1

    def wait() -> None:
        begun.release()
        wait_for(Future())

    with stoppable_pool(2, stopping) as pool:
        works, waits = pool.submit(work_on), pool.submit(wait)
        assert all(begun.acquire(timeout=SECONDS) for _ in range(2))
        stopping.set()
    assert done.is_set()
    assert works.result() == 1
    assert isinstance(waits.exception(), Stopped)


def test_the_error_of_a_future_is_raised_also_if_it_is_a_timeout() -> None:
    def fail() -> None:
        future: Future[None] = Future()
        future.set_exception(TimeoutError("its own"))
        wait_for(future)

    with stoppable_pool(1, threading.Event()) as pool:
        error = pool.submit(fail).exception(SECONDS)
    assert isinstance(error, TimeoutError)
    assert str(error) == "its own"
