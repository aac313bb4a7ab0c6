"""Jobs that write to S3 resume without sending or reading again what is complete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.stores import Location
from recordsmith.stores.network.object_store import ObjectStore
from recordsmith.support.errors import FileAccessError

from ...servers.s3 import S3

SHARDS = [f"train-{number:05d}-of-00004.tfrecord" for number in range(4)]


def pack(s3: S3) -> None:
    """Shards 0 and 1 are written in one request, 2 and 3 in parts."""
    rows = [{"id": number, "x": bytes(50 if number < 40 else 2000)} for number in range(80)]
    out = Location(ObjectStore("s3://bucket", **s3.options()), "out")
    rs.pack(rs.Rows(rows), out, shards=4, shuffle=False, threads=2)


JOBS: dict[str, tuple[bool, Callable[[Path, Location], object]]] = {
    "overwrite": (True, lambda data, out: rs.reshard(data, out, shards=2, overwrite=True)),
    "edit": (False, lambda data, out: rs.edit(data, out, drop=["id"])),
    "append": (True, rs.append),
    "remove": (True, lambda _, out: rs.edit_in_place(out, without=[1])),
    "repair": (False, rs.salvage),
    "csv": (False, lambda data, out: rs.export(data, out, "csv")),
    "parquet": (True, lambda data, out: rs.export(data, out, "parquet", overwrite=True)),
}
"""Name -> whether there is an earlier result, and the job; each writes objects in parts."""


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_failed_parts_leave_nothing(s3: S3, tmp_path: Path, name: str) -> None:
    replaces, job = JOBS[name]
    random = np.random.default_rng(0)
    rows = [{"id": n, "x": random.random(500, np.float32)} for n in range(60)]
    rs.pack(rs.Rows(rows), tmp_path, shards=1, shuffle=False)
    store = ObjectStore("s3://bucket", **s3.options())

    def begin(folder: str) -> tuple[Location, dict[str, bytes]]:
        out = Location(store, folder)
        if name == "parquet":
            rs.export(tmp_path, out, "csv")
        elif replaces:
            rs.pack(rs.Rows(rows[::-1]), out, shards=1, shuffle=False)
        return out, s3.objects(prefix=f"{folder}/")

    out, _ = begin("good")
    s3.requests()
    job(tmp_path, out)
    assert sum("partNumber" in one.query for one in s3.requests()) > 2
    good = s3.objects(prefix="good/")
    for number, (method, path) in enumerate(
        [
            ("POST", r"[?]uploads"),
            ("PUT", "partNumber=2&"),
            ("POST", "uploadId="),
            ("PUT", r"(dataset|[.]export)[.]json"),
        ]
    ):
        for fault in ("403", "500", "reset"):
            folder = f"{number}-{fault}"
            out, old = begin(folder)
            s3.fail([fault], method=method, path=path)
            with pytest.raises(FileAccessError):
                job(tmp_path, out)
            s3.fail(rate=0)
            found = s3.objects(prefix=f"{folder}/")
            shown = {key for key in found if not key.startswith(".")}
            assert all(found[key] in (good.get(key), old.get(key)) for key in shown)
            kept = {old[key] for key in old if key.endswith(".tfrecord")}
            written = {good[key] for key in good if key.endswith(".tfrecord")}
            assert kept <= {*found.values()} or written <= {*found.values()}
            assert s3.uploads() == []
            job(tmp_path, out)
            assert s3.objects(prefix=f"{folder}/") == good


def transfers(s3: S3) -> dict[str, int]:
    """How often the bytes of each shard were sent or read."""
    found: dict[str, int] = {}
    for one in s3.requests():
        name = one.key.rpartition("/")[2]
        if name in SHARDS and one.method in ("GET", "PUT", "POST") and one.query != "delete":
            found[name] = found.get(name, 0) + 1
    return found


@pytest.fixture
def wanted(s3: S3) -> Any:
    pack(s3)
    found = s3.objects(prefix="out/")
    assert {*SHARDS} <= {*found}
    s3.delete("")
    s3.requests()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("missing", [[], [0], [3], [0, 1, 2, 3]])
def test_only_missing_shards_are_written(s3: S3, wanted: Any, missing: list[int]) -> None:
    paths = [f"/{SHARDS[number]}[?]" for number in missing] or ["dataset.json"]
    s3.fail(["403"], method="PUT", path="|".join(paths))
    with pytest.raises(FileAccessError):
        pack(s3)
    assert "out/dataset.json" not in s3.objects()
    s3.fail(rate=0)
    s3.requests()
    there = {name for name in SHARDS if f"out/.recordsmith/{name}.done" in s3.objects()}
    assert there <= {*SHARDS} - {SHARDS[number] for number in missing}
    assert missing or there == {*SHARDS}
    pack(s3)
    assert {*transfers(s3)} == {*SHARDS} - there
    assert s3.objects(prefix="out/") == wanted


def test_a_shard_that_was_replaced_is_written_again(s3: S3, wanted: Any) -> None:
    s3.fail(["403"], method="PUT", path="dataset.json")
    with pytest.raises(FileAccessError):
        pack(s3)
    s3.fail(rate=0)
    for name in (SHARDS[1], SHARDS[2]):
        s3.put(f"out/{name}", wanted[name][::-1])
    s3.requests()
    pack(s3)
    assert {*transfers(s3)} == {SHARDS[1], SHARDS[2]}
    assert s3.objects(prefix="out/") == wanted
