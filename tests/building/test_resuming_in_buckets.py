"""Jobs that write to S3 resume without sending or reading again what is complete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.errors import FileAccessError
from recordsmith.stores import Location
from recordsmith.stores.remote import ObjectStore

from ..stores.faulty_s3 import QUICK, FaultyS3

pytest.importorskip("moto")
pytest.importorskip("obstore")

SHARDS = [f"train-{number:05d}-of-00004.tfrecord" for number in range(4)]


@pytest.fixture(scope="module")
def running() -> Iterator[FaultyS3]:
    with FaultyS3() as server:
        server.make_bucket()
        yield server


@pytest.fixture
def server(running: FaultyS3, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyS3]:
    for name, value in QUICK.items():
        monkeypatch.setattr(name, value)
    running.requests()
    yield running
    running.fail(rate=0)
    running.delete("")


def pack(server: FaultyS3) -> None:
    """Shards 0 and 1 are written in one request, 2 and 3 in parts."""
    rows = [{"id": number, "x": bytes(50 if number < 40 else 2000)} for number in range(80)]
    out = Location(ObjectStore("s3://bucket", **server.options()), "out")
    rs.pack(rs.Rows(rows), out, shards=4, shuffle=False, threads=2)


def transfers(server: FaultyS3) -> dict[str, int]:
    """How often the bytes of each shard were sent or read."""
    found: dict[str, int] = {}
    for one in server.requests():
        name = one.key.rpartition("/")[2]
        if name in SHARDS and one.method in ("GET", "PUT", "POST") and one.query != "delete":
            found[name] = found.get(name, 0) + 1
    return found


@pytest.fixture
def wanted(server: FaultyS3) -> Any:
    pack(server)
    found = server.objects(prefix="out/")
    assert {*SHARDS} <= {*found}
    server.delete("")
    server.requests()
    return found


@pytest.mark.parametrize("missing", [[], [0], [3], [0, 1, 2, 3]])
def test_only_missing_shards_are_written(server: FaultyS3, wanted: Any, missing: list[int]) -> None:
    paths = [f"/{SHARDS[number]}[?]" for number in missing] or ["dataset.json"]
    server.fail(["403"], method="PUT", path="|".join(paths))
    with pytest.raises(FileAccessError):
        pack(server)
    assert "out/dataset.json" not in server.objects()
    server.fail(rate=0)
    server.requests()
    there = {name for name in SHARDS if f"out/.recordsmith/{name}.done" in server.objects()}
    assert there <= {*SHARDS} - {SHARDS[number] for number in missing}
    assert missing or there == {*SHARDS}
    pack(server)
    assert {*transfers(server)} == {*SHARDS} - there
    assert server.objects(prefix="out/") == wanted


def test_a_shard_that_was_replaced_is_written_again(server: FaultyS3, wanted: Any) -> None:
    server.fail(["403"], method="PUT", path="dataset.json")
    with pytest.raises(FileAccessError):
        pack(server)
    server.fail(rate=0)
    for name in (SHARDS[1], SHARDS[2]):
        server.put(f"out/{name}", wanted[name][::-1])
    server.requests()
    pack(server)
    assert {*transfers(server)} == {SHARDS[1], SHARDS[2]}
    assert server.objects(prefix="out/") == wanted
