"""Writing to S3 while requests fail: the right objects, or an error and none of the upload."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from recordsmith.stores import Store
from recordsmith.stores.network.multipart import PARTS_AT_ONCE
from recordsmith.stores.network.object_store import ObjectStore
from recordsmith.support.errors import FileAccessError, MissingFileError, OptionError

from ..raising import raises
from ..servers.s3 import S3

LARGE = random.Random(0).randbytes(100_000)  # in 7 parts
OLD = b"old"

PARTS = r"PUT", "partNumber="
COMPLETION = "POST", "uploadId="


@pytest.fixture
def store(s3: S3) -> ObjectStore:
    return ObjectStore("s3://bucket", **s3.options())


def write(store: Store, key: str, data: bytes, **options: Any) -> None:
    with store.open_write(key, **options) as file:
        for start in range(0, len(data), 30_000):
            file.write(data[start : start + 30_000])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", r"\?uploads"),
        ("PUT", "partNumber=1&"),
        ("PUT", "partNumber=7&"),
        COMPLETION,
    ],
)
@pytest.mark.parametrize("fault", ["403", "500", "reset"])
@pytest.mark.parametrize("old", [OLD, None])
def test_a_failed_upload_leaves_nothing(
    s3: S3, store: ObjectStore, method: str, path: str, fault: str, old: bytes | None
) -> None:
    if old is not None:
        s3.put("x", old)
    s3.fail([fault], method=method, path=path)
    with raises(FileAccessError, path="s3://bucket/x", operation="write"):
        write(store, "x", LARGE)
    assert s3.uploads() == []
    assert s3.objects() == ({} if old is None else {"x": old})


@pytest.mark.parametrize("old", [LARGE[::-1], None])
def test_an_upload_whose_completion_fails_each_time(
    s3: S3, store: ObjectStore, old: bytes | None
) -> None:
    """It is done if the object has become what was written, not if an older one is as large."""
    if old is not None:
        s3.put("x", old)
    before = s3.objects()
    s3.fail(["reset"], method="POST", path="uploadId=")
    with pytest.raises(FileAccessError):
        write(store, "x", LARGE)
    assert s3.objects() == before
    s3.fail(["lost"], method="POST", path="uploadId=")
    write(store, "x", LARGE)
    assert (s3.uploads(), s3.objects()) == ([], {"x": LARGE})


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, GeneratorExit])
def test_an_abandoned_upload_leaves_nothing(
    s3: S3, store: ObjectStore, error: type[BaseException]
) -> None:
    s3.put("x", OLD)

    def abandon() -> None:
        with store.open_write("x") as file:
            file.write(LARGE)
            assert s3.uploads() == ["x"]
            raise error

    with pytest.raises(error):
        abandon()
    assert (s3.uploads(), s3.objects()) == ([], {"x": OLD})


def test_a_large_object_that_must_not_be_replaced(s3: S3, store: ObjectStore) -> None:
    write(store, "x", LARGE, overwrite=False)
    with raises(OptionError, option="overwrite"):
        write(store, "x", LARGE[::-1], overwrite=False)
    writer = store.open_write("y")
    writer.write(LARGE)
    assert (writer.seal(), store.read("y"), writer.tell()) == ("y", LARGE, len(LARGE))
    writer.discard()
    assert (s3.uploads(), s3.objects()) == ([], {"x": LARGE})


def test_the_check_comes_before_the_object_and_after_most_parts(s3: S3, store: ObjectStore) -> None:
    def check() -> bool:
        requests = s3.requests()
        sent = [one for one in requests if "partNumber" in one.query]
        assert len(sent) >= (len(LARGE) >> 14) - PARTS_AT_ONCE
        assert not any(one.has_written for one in requests)
        raise FileAccessError(16, "another job has taken over", "x")

    writer = store.open_write("x")
    writer.check = check
    writer.write(LARGE)
    with raises(FileAccessError, errno=16):
        writer.publish()
    writer.discard()
    assert (s3.uploads(), s3.objects()) == ([], {})


def _put_if_match(store: ObjectStore) -> bool:
    return store.put_if_match("old", b"new", store.info("old").version)


OPERATIONS: dict[str, tuple[str, str, Callable[[ObjectStore], Any], dict[str, bytes]]] = {
    "put": ("PUT", "", lambda store: store.put("x", b"new"), {"x": b"new", "old": OLD}),
    "replace": ("PUT", "", lambda store: store.put("old", b"new"), {"old": b"new"}),
    "absent": ("PUT", "", lambda store: store.put_if_absent("x", b"1"), {"x": b"1", "old": OLD}),
    "match": ("PUT", "", _put_if_match, {"old": b"new"}),
    "delete": ("POST", r"\?delete", lambda store: store.delete("old"), {}),
    "part": (*PARTS, lambda store: write(store, "old", LARGE), {"old": LARGE}),
    "begin": ("POST", "uploads", lambda store: write(store, "old", LARGE), {"old": LARGE}),
    "complete": (*COMPLETION, lambda store: write(store, "old", LARGE), {"old": LARGE}),
    "new": (*COMPLETION, lambda store: write(store, "x", LARGE), {"x": LARGE, "old": OLD}),
}
"""Name -> method and path of the request that fails once, what is done, and the objects then."""


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("fault", ["reset", "500", "503", "lost", "done-500"])
def test_a_request_that_fails_once_is_repeated(
    s3: S3, store: ObjectStore, name: str, fault: str
) -> None:
    method, path, operate, expected = OPERATIONS[name]
    s3.put("old", OLD)
    s3.fail([fault], method=method, path=path, most=1)
    assert operate(store) in (True, None)
    assert sum(one.fault == fault for one in s3.requests()) == 1
    assert s3.objects() == expected


@pytest.mark.parametrize("fault", ["reset", "500", "lost", "done-500"])
def test_what_another_writer_has_written_is_not_ours(
    s3: S3, store: ObjectStore, fault: str
) -> None:
    s3.put("old", OLD)
    version = store.info("old").version
    s3.put("old", b"theirs")
    s3.fail([fault], method="PUT", most=1)
    assert not store.put_if_absent("old", b"mine")
    s3.fail([fault], method="PUT", most=1)
    assert not store.put_if_match("old", b"mine", version)
    assert s3.objects() == {"old": b"theirs"}


def test_a_large_object_is_copied_by_the_server(s3: S3, store: ObjectStore) -> None:
    s3.put("x", LARGE)
    s3.requests()
    checks: list[int] = []
    store.copy("x", "y", lambda: bool(checks.append(1)))
    assert [(one.method, one.key) for one in s3.requests()] == [("HEAD", "x"), ("PUT", "y")]
    assert (len(checks), s3.objects()) == (1, {"x": LARGE, "y": LARGE})


@pytest.mark.slow
@pytest.mark.parametrize("page", ["delimiter=&|list-type=2&prefix", "continuation-token"])
@pytest.mark.parametrize("most", [2, 6, 1 << 20])
def test_a_listing_that_fails_is_never_short(
    s3: S3, store: ObjectStore, page: str, most: int
) -> None:
    """Also if the library gives up, after 4 requests."""
    keys = [f"k/{number:02}" for number in range(50)]
    for key in keys:
        s3.put(key, b"")
    s3.fail(["reset"], method="GET", path=f"{page}|start-after", most=most)
    listed: list[str] = []
    try:
        listed += (info.key for info in store.list("k/"))
    except FileAccessError:
        assert most > 6
    else:
        assert most <= 6
        assert listed == keys
    assert sum(one.fault == "reset" for one in s3.requests()) >= min(most, 4)


def test_a_bucket_that_is_missing(s3: S3) -> None:
    store = ObjectStore("s3://another-bucket", **s3.options())
    for write_to in (
        lambda: store.put("x", b""),
        lambda: store.put_if_absent("x", b""),
        lambda: write(store, "x", LARGE),
    ):
        with raises(MissingFileError, match="bucket"):
            write_to()


@pytest.mark.posix
def test_a_forked_process_reports_that_it_cannot_read(store: ObjectStore) -> None:
    """It would wait for threads that exist only in its parent."""
    store.put("x", b"")
    child = os.fork()
    if child == 0:
        try:
            with raises(OptionError, match="forked"):
                store.read("x")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert store.read("x") == b""
