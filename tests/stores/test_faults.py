"""Through a bad network, stores give the right data or raise a named error, in time."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pytest

from recordsmith import open as open_dataset
from recordsmith.stores import Location, Store
from recordsmith.support.errors import CorruptDataError, FileAccessError

from ..servers.fault_proxy import Fault, FaultProxy
from ..servers.servers import HTTP_KINDS, Servers

DEADLINE_SECONDS = 60
SHARD = "some/train.tfrecord"
KEYS = [f"list/{number:02d}/x" for number in range(30)]

Outcome: TypeAlias = Literal["right", "error", "either"]
"""The right result, a named error, or either of them."""


class Case(NamedTuple):
    """A fault, and what comes of it when a store reads."""

    fault: Fault
    outcome: Outcome


OF_CONNECTIONS = {
    "latency": Case(Fault("latency", seconds=0.05), "right"),
    "limited bandwidth": Case(Fault("slow", bytes_per_second=1 << 20), "right"),
    "refused twice": Case(Fault("refused", most=2), "right"),
    "lost twice": Case(Fault("lost", most=2), "right"),
    "reset twice": Case(Fault("reset", most=2), "right"),
    "truncated twice": Case(Fault("truncated", most=2), "right"),
    "some resets": Case(Fault("reset", share=0.2), "either"),
    "some truncated": Case(Fault("truncated", share=0.2), "either"),
    "always reset": Case(Fault("reset"), "error"),
    "always truncated": Case(Fault("truncated"), "error"),
    "429 twice": Case(Fault("status", most=2, status=429), "right"),
    "500 twice": Case(Fault("status", most=2, status=500), "right"),
    "503 twice, with Retry-After": Case(Fault("status", most=2, seconds=1), "right"),
    "some 503": Case(Fault("status", share=0.3), "either"),
    "always 429": Case(Fault("status", status=429), "error"),
    "always 503": Case(Fault("status"), "error"),
    "drip": Case(Fault("drip"), "error"),
    "silent": Case(Fault("silent"), "error"),
}
OF_DATA = {
    "an older version": Case(Fault("stale"), "either"),
    "sometimes an older version": Case(Fault("stale", share=0.5), "either"),
    "an older version with the newest ETag": Case(Fault("stale-lie"), "either"),
    "sometimes an older version with the newest ETag": Case(
        Fault("stale-lie", share=0.5), "either"
    ),
    "another range": Case(Fault("other-range"), "error"),
    "sometimes another range": Case(Fault("other-range", share=0.5), "either"),
    "another range under a false name": Case(Fault("other-range-lie"), "error"),
    "sometimes another range under a false name": Case(
        Fault("other-range-lie", share=0.5), "either"
    ),
    "the whole object": Case(Fault("whole"), "either"),
}


WRITABLE_KINDS = [kind for kind in HTTP_KINDS if kind != "web"]
OF_EACH_KIND = {
    "lost twice",
    "truncated twice",
    "503 twice, with Retry-After",
    "always reset",
    "an older version",
    "an older version with the newest ETag",
    "another range under a false name",
}
"""The faults whose handling depends on how a server names versions, ranges and statuses."""


def faults_of(kinds: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """All faults of S3, and some of the other kinds, which share its client."""
    return [
        (kind, name) for kind in kinds for name in names if kind == "s3" or name in OF_EACH_KIND
    ]


def payloads(seed: int) -> list[bytes]:
    """Records of different sizes, about 200 kB in all."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 2000, 200).tolist()
    return [generator.bytes(size) for size in sizes]


OLD, NEW = payloads(1), payloads(2)
PLACES = [199, 3, 100, 101, 0, 42]
OF_RANGES = ("other-range", "other-range-lie", "whole")


@contextmanager
def through_proxy(servers: Servers, kind: str, fault: Fault) -> Iterator[tuple[Store, FaultProxy]]:
    """An empty store behind a proxy that has no faults yet."""
    timeout = "300ms" if fault.kind in ("silent", "drip") else "5s"
    client = {"timeout": timeout, "connect_timeout": "2s"}
    pause = {"init_backoff": timedelta(milliseconds=5), "max_backoff": timedelta(milliseconds=50)}
    retries = {"max_retries": 1, "retry_timeout": timedelta(seconds=5), "backoff": pause}
    with FaultProxy(servers[kind].address, seed=len(kind)) as proxy:
        yield (
            servers.new_store(kind, proxy.address, client_options=client, retry_config=retries),
            proxy,
        )


def attempt(function: Callable[[], Any], expected: Sequence[Any], outcome: Outcome) -> None:
    """Call a function, in time, and check what it returns or raises."""
    ended: list[Any] = []

    def run() -> None:
        try:
            ended.append(function())
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(DEADLINE_SECONDS)
    assert ended, "it hangs"
    if isinstance(ended[0], Exception):
        if not isinstance(ended[0], (FileAccessError, CorruptDataError)) or outcome == "right":
            raise ended[0]
    else:
        assert outcome != "error", "no error was raised"
        assert ended[0] in expected


def rounds(proxy: FaultProxy, outcome: Outcome) -> Iterator[int]:
    """Yield three times, or more often until there was a fault; once if each time fails."""
    for number in range(1 if outcome == "error" else 100):
        yield number
        if number >= 2 and proxy.counters.fault_count:
            break


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), faults_of(HTTP_KINDS, [*OF_CONNECTIONS, *OF_DATA]))
def test_records(servers: Servers, reference: Any, kind: str, name: str) -> None:
    fault, outcome = {**OF_CONNECTIONS, **OF_DATA}[name]

    def read_in_order() -> list[bytes]:
        return [bytes(record) for record in open_dataset(location).records()]

    def read_anywhere() -> list[bytes]:
        found = dataset.read_records(PLACES)
        return [bytes(found[index]) for index in range(len(PLACES))]

    with through_proxy(servers, kind, fault) as (store, proxy):
        location = Location(store, SHARD)
        for version in (OLD, NEW):
            data = reference.frames(version)
            store.put(SHARD, data)
            assert store.read(SHARD) == data
        dataset = open_dataset(location)
        chosen = [[version[place] for place in PLACES] for version in (OLD, NEW)]
        assert read_anywhere() == chosen[1]
        proxy.fault = fault
        for _ in rounds(proxy, outcome):
            if fault.kind in OF_RANGES:
                attempt(read_in_order, [OLD, NEW], "either")  # may read the whole object
            else:
                attempt(read_in_order, [OLD, NEW], outcome)
            attempt(read_anywhere, chosen, outcome)
        assert proxy.counters.fault_count


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), faults_of(WRITABLE_KINDS, [*OF_CONNECTIONS]))
def test_listings(servers: Servers, kind: str, name: str) -> None:
    fault, outcome = OF_CONNECTIONS[name]
    with through_proxy(servers, kind, fault) as (store, proxy):
        for key in KEYS:
            store.put(key, b"x")
        proxy.fault = fault
        for _ in rounds(proxy, outcome):
            attempt(lambda: sorted(info.key for info in store.list("list/")), [KEYS], outcome)
            attempt(lambda: len([*store.list_entries("list")]), [len(KEYS)], outcome)
        assert proxy.counters.fault_count


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), faults_of(WRITABLE_KINDS, [*OF_CONNECTIONS]))
def test_objects_are_written_whole_or_not_at_all(servers: Servers, kind: str, name: str) -> None:
    fault = OF_CONNECTIONS[name].fault
    large = bytes(range(256)) * 40_000  # in several parts

    def write_large() -> bool:
        with store.open_write("large") as file:
            for start in range(0, len(large), 1 << 20):
                file.write(large[start : start + (1 << 20)])
        return True

    def write_if_match() -> bool:
        version = store.info("matched").version
        return store.put_if_match("matched", b"new", version)

    writes: dict[str, tuple[Callable[[], bool], bytes, bytes | None]] = {
        "put": (lambda: store.put("put", b"new") is None, b"new", b"old"),
        "absent": (lambda: store.put_if_absent("absent", b"new"), b"new", None),
        "matched": (write_if_match, b"new", b"old"),
        "large": (write_large, large, None),
    }
    with through_proxy(servers, kind, fault) as (store, proxy):
        for key, (write, new, old) in writes.items():
            if old is not None:
                store.put(key, old)
            done: list[bool] = []
            proxy.fault = fault
            attempt(lambda: done.append(write()), [None], "either")  # noqa: B023
            proxy.fault = None
            found = store.read(key) if store.exists(key) else None
            assert found in (old, new)
            if done and done[0]:
                assert found == new
        assert proxy.counters.fault_count


@pytest.mark.parametrize("kind", HTTP_KINDS)
def test_a_proxy_without_faults_changes_nothing(servers: Servers, kind: str) -> None:
    with through_proxy(servers, kind, Fault("latency")) as (store, proxy):
        data = bytes(range(256)) * 1000
        store.put("a/é b", data)
        before = proxy.counters
        assert store.read("a/é b") == data
        assert store.read("a/é b", 1000, 2000) == data[1000:2000]
        after = proxy.counters
        assert after.request_count - before.request_count == 2
        assert after.byte_count - before.byte_count == len(data) + 1000
        assert after.connection_count - before.connection_count <= 2
        assert not after.fault_count


@pytest.mark.posix
@pytest.mark.parametrize("kind", ["s3"])
def test_ctrl_c_interrupts_waiting_for_a_server(servers: Servers, kind: str) -> None:
    """The default deadlines are minutes."""
    has_answered = threading.Event()
    with FaultProxy(servers[kind].address) as proxy:
        store = servers.new_store(kind, proxy.address)
        store.put("x", b"data")
        proxy.fault = Fault("silent")
        end = threading.Timer(5, lambda: (has_answered.set(), proxy.__exit__(None, None, None)))
        end.start()
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            store.read("x")
        assert not has_answered.is_set()
        end.cancel()
