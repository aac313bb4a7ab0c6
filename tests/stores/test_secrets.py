"""Credentials are in nothing that is written or printed, also if servers repeat them in errors."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.stores import remote
from recordsmith.stores.network.object_store import ObjectStore
from recordsmith.support.errors import RecordsmithError

from ..servers.s3 import FAULTS, S3, SECRETS

HIDDEN = [*SECRETS.values(), "Signature="]


def assert_none(text: str | bytes) -> None:
    data = text.encode() if isinstance(text, str) else text
    assert [word for word in HIDDEN if word.encode() in data] == []


def assert_none_written(folder: Path, s3: S3) -> None:
    s3.fail(rate=0)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert_none(path.read_bytes())
    objects = s3.objects()
    for name, data in objects.items():
        assert_none(name)
        assert_none(data)
    assert any(name.endswith(".tfrecord") for name in objects)


def test_the_server_repeats_them(s3: S3) -> None:
    """Otherwise the other tests could not fail."""
    import obstore
    from obstore.store import from_url

    options: Any = s3.options()
    store = from_url("s3://bucket", client_options={"allow_http": True}, **options)
    for status in ("403", "500"):
        s3.fail([status])
        with pytest.raises(Exception, match="Signature=") as failed:
            obstore.get(store, "x")
        assert all(secret in str(failed.value) for secret in (SECRETS["session_token"], "AKIA"))


@pytest.mark.slow
def test_commands(s3: S3, tmp_path: Path) -> None:
    """All of them find the credentials in the environment."""
    source, url = tmp_path / "rows.csv", "s3://bucket/out"
    source.write_text("id,name\n" + "".join(f"{n},{n % 3}\n" for n in range(50)))
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    access = s3.variables("bucket")
    environment = {**os.environ, **cache, **access}

    def run(*arguments: object) -> int:
        done = subprocess.run(
            [sys.executable, "-m", "recordsmith", *map(str, arguments)],
            env=environment, capture_output=True, cwd=tmp_path, check=False, timeout=120,
        )  # fmt: skip
        assert_none(done.stdout)
        assert_none(done.stderr)
        (tmp_path / f"{arguments[0]}.json").write_bytes(done.stdout)
        return done.returncode

    pack = ("pack", source, url, "--shards", 2)
    s3.fail(["403"], method="PUT", path="tfrecord")
    assert run(*pack, "--json") != 0
    s3.fail(rate=0)
    assert run(*pack) == 0
    for command in ("inspect", "verify", "stats"):
        assert run(command, url, "--json") == 0
    assert run("reshard", url, "s3://bucket/again", "--shards", 1, "--json") == 0
    assert run("index", url) == 0
    assert run("inspect", "s3://not-a-bucket/x") != 0
    secret = SECRETS["secret_access_key"]
    assert run("inspect", f"s3://AKIA:{secret}@bucket/x") != 0
    s3.fail(["403"])
    assert run("inspect", url, "--json") != 0
    assert_none_written(tmp_path, s3)


JOBS: dict[str, Callable[[Any, Path], Any]] = {
    "pack": lambda out, _: rs.pack(rs.Rows([{"id": 1}]), out, overwrite=True),
    "large": lambda out, _: rs.pack(rs.Rows([{"x": bytes(1 << 17)}]), out, overwrite=True),
    "open": lambda out, _: repr(rs.open(out)) + str(rs.open(out)[0]),
    "verify": lambda out, _: rs.verify(out, deep=True).to_json(),
    "export": lambda out, folder: rs.export(out, folder / "csv", "csv", overwrite=True),
    "list": lambda out, _: [*out.list(), *out.list_entries()],
    "delete": lambda out, _: (out / "x").delete(),
    "match": lambda out, _: (out / "x").put_if_match(b"1", '"2"'),
    "options": lambda out, _: remote(
        "s3://bucket", store_options={**out.store._options, "no_such_option": "x"}
    ).exists(),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        *((name, fault) for name in JOBS for fault in ("", "403")),  # each job, then each fault
        *((name, fault) for name in ("large", "open") for fault in ("400", *FAULTS)),
    ],
)
def test_calls(s3: S3, tmp_path: Path, name: str, fault: str) -> None:
    """With credentials in `store_options`, which nothing shows."""
    out = remote("s3://bucket/out", store_options=s3.options())
    JOBS["pack"](out, tmp_path)
    if fault:
        s3.fail([fault])
    try:
        assert_none(repr(JOBS[name](out, tmp_path)))
    except RecordsmithError as error:
        shown: BaseException | None = error
        while shown is not None:  # loggers also print what is suppressed
            assert_none(repr(shown) + str(shown) + repr(vars(shown)))
            shown = shown.__context__
        assert_none("".join(traceback.format_exception(error)))
        assert_none(pickle.dumps(error))
    s3.fail(rate=0)
    assert_none("".join(map(repr, (out, out.store, str(out), out.identity))))
    (tmp_path / "empty").touch()
    assert_none_written(tmp_path, s3)


def test_pickles(s3: S3, tmp_path: Path) -> None:
    """Those of stores have the options that `docs/security.md` names; tasks have none."""
    cache = tmp_path / "cache"
    out = remote("s3://bucket/out", store_options=s3.options(), cache=cache, cache_bytes=1 << 24)
    JOBS["pack"](out, tmp_path)
    dataset = rs.open(out)
    source = rs.ImageFiles(tmp_path)
    (tmp_path / "a.png").write_bytes(b"not read")
    plan = rs.plan(source, remote("s3://bucket/x", store_options=s3.options()))
    plan.save(tmp_path / "plan.jsonl")
    loader = rs.Loader(dataset, ["id"], batch_size=1)
    assert [batch["id"].tolist() for batch in loader] == [[1]]
    secret = SECRETS["secret_access_key"].encode()
    for value in (out, out.store, dataset, loader):
        assert secret in pickle.dumps(value)
        assert_none(repr(value) + str(value) + repr(pickle.loads(pickle.dumps(value))))
    for task in plan.tasks():
        assert_none(pickle.dumps(task) + repr(task).encode())
    assert any(path.is_file() for path in cache.rglob("*"))
    for path in cache.rglob("*"):
        assert_none(str(path))
    assert_none_written(tmp_path, s3)


@pytest.mark.parametrize("function", [rs.open, rs.inspect, rs.verify, rs.index, remote])
def test_signed_urls(function: Callable[[str], Any]) -> None:
    """Are refused, as they would be in names of files and messages."""
    for url in ("https://a.test/x.tfrecord?Token={}", "https://user:{}@a.test/x.tfrecord"):
        with pytest.raises(RecordsmithError) as refused:
            function(url.format(SECRETS["session_token"]))
        error = refused.value
        assert_none("".join(traceback.format_exception(error)) + repr(vars(error)))
        assert_none(pickle.dumps(error))


def test_options_are_not_in_messages(s3: S3) -> None:
    store = ObjectStore("s3://bucket", **{**s3.options(), "secret_access_key": 7})
    with pytest.raises(RecordsmithError) as refused:
        store.exists("x")
    assert_none(repr(refused.value) + str(refused.value))
