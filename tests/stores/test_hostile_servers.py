"""Servers that lie: about sizes, versions, names and the ends of lists."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.stores import Location, read_settings
from recordsmith.stores.network import object_store
from recordsmith.stores.network.store_options import PassedOptions
from recordsmith.support.errors import FileAccessError, OptionError

from ..raising import raises
from ..servers.answering import Request, serving

pytest.importorskip("obstore")

_QUICK = {"client_options": {"timeout": "2s"}, "retry_config": {"max_retries": 0}}
_MAX_MEMORY = 200 << 20


def bucket(url: str, key: str = "data") -> Location:
    options = {"endpoint": url, "region": "us-east-1", "skip_signature": True, **_QUICK}
    return rs.remote(f"s3://bucket/{key}", store_options=options)


def listing(
    *keys: str, folders: tuple[str, ...] = (), token: str = "", size: int = 5, tag: str = "e"
) -> bytes:
    objects = "".join(
        f"<Contents><Key>{key}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
        f"<ETag>&quot;{tag}&quot;</ETag><Size>{size}</Size></Contents>"
        for key in keys
    )
    prefixes = "".join(
        f"<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>" for key in folders
    )
    more = f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    return (
        f"<ListBucketResult><IsTruncated>{'true' if token else 'false'}</IsTruncated>{more}"
        f"{objects}{prefixes}</ListBucketResult>"
    ).encode()


@pytest.mark.slow
def test_stated_sizes_take_no_memory() -> None:
    def claim(request: Request) -> None:
        size = 1 << 60
        ranges = {"status": 206, "Content_Range": f"bytes 5-{size - 1}/{size}"}
        is_range = "Range" in request.headers
        request.answer(b"x" * 100, Content_Length=size - 5, **(ranges if is_range else {}))
        time.sleep(0.05)  # so that the rest arrives alone
        request.wfile.write(b"y" * 100)
        request.close_connection = True

    with serving(claim) as url:
        for location in (bucket(url), rs.remote(f"{url}/a", store_options=_QUICK)):
            for start in (0, 5):
                with pytest.raises(FileAccessError):
                    location.read(start)


@pytest.mark.posix
def test_more_than_requested_is_not_collected() -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

    def send(request: Request) -> None:
        request.answer(b"", 206, Content_Range="bytes 0-9/100", Content_Length=1 << 40)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            request.wfile.write(b"x" * (1 << 16))
        request.close_connection = True

    with serving(send) as url, pytest.raises(FileAccessError):
        bucket(url).read(0, 10)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before < _MAX_MEMORY


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "names"),
    [
        (listing("other/a", "/etc/passwd", "data", "data/", "data/b"), ["b"]),
        (listing("data/b", folders=("other/", "data/", "data/c/")), ["b", "c"]),
        (listing("data/b", "data/b", "data/c/d"), ["b"]),
        (listing("data/../a", "data/b"), None),
        (listing("data//a", "data/b"), None),
        (listing("data/a&#27;[31m"), None),
        (listing("data/a", size=-1), None),
        (listing("data/a", size=1 << 63), None),
        (listing("data/a", size=1 << 64), None),
    ],
)
def test_listed_names_stay_in_their_folder(page: bytes, names: list[str] | None) -> None:
    with serving(lambda request: request.answer(page)) as url:
        folder = bucket(url)
        if names is None:
            with pytest.raises(FileAccessError):
                list(folder.list_entries())
            with pytest.raises(FileAccessError):
                list(folder.list())
        else:
            assert [entry.name for entry in folder.list_entries()] == names
            assert all(found.key.startswith("data/") for found in folder.list())


@pytest.mark.parametrize("tag", ["a&#10;b", "日本", "x" * 60_000, ""])
def test_odd_versions_make_no_request_invalid(tag: str) -> None:
    def answer(request: Request) -> None:
        if "list-type" in request.path:
            request.answer(listing("data/a", tag=tag))
        else:
            request.answer(b"0123456789", 206, Content_Range="bytes 0-9/10")

    with serving(answer) as url:
        (entry,) = bucket(url).list_entries()
        assert re.fullmatch(r"[!-~]+", entry.version)
        with pytest.raises(FileAccessError) as caught:
            bucket(url).store.read("data/a", 0, 10, entry.version)
        assert caught.value.errno == errno.ESTALE


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["more", "none", "same"])
def test_lists_without_end(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "_LISTING_SECONDS", 0.5)
    monkeypatch.setattr(object_store, "_MAX_LISTED", 2000)
    pages = iter(range(10**9))

    def answer(request: Request) -> None:
        number = next(pages)
        keys = [f"data/{number:09}-{at}" for at in range(100)] if kind == "more" else ["data/a"]
        request.answer(listing(*(keys if kind != "none" else []), token=f"t{number}"))

    with serving(answer) as url:
        for read in (Location.list_entries, Location.list):
            with pytest.raises(FileAccessError):
                list(read(bucket(url)))  # type: ignore[operator]


PROGRAM = """
import sys, time
import recordsmith as rs
from recordsmith.support.threads import submit_request

class SlowOutput:  # which the interpreter flushes while it ends
    closed = False

    def flush(self):
        time.sleep(1)

sys.stdout = SlowOutput()
bucket = rs.remote("s3://bucket/data", store_options={
    "endpoint": sys.argv[1], "region": "us-east-1", "skip_signature": True})
submit_request(lambda: CALL)
sys.stdin.readline()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", ["bucket.read()", "bucket.put(b'')", "bucket.list_entries()", "list(bucket.list())"]
)
def test_a_response_while_a_program_ends(call: str) -> None:
    """The threads of the library must not need Python's lock then: that aborts the process."""
    begun = threading.Event()

    def answer(request: Request) -> None:
        begun.set()
        time.sleep(0.5)
        request.answer(listing() if "list-type" in request.path else b"data")

    with (
        serving(answer) as url,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM.replace("CALL", call), url],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process,
    ):  # fmt: skip
        assert begun.wait(60)
        _, errors = process.communicate("\n")
    assert (process.returncode, errors) == (0, "")


def test_renewed_credentials_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: Request) -> None:
        is_known = "NEWKEY" in request.headers.get("Authorization", "")
        request.answer(b"data", 200 if is_known else 403)

    with serving(answer) as url:
        options = {"endpoint": url, "region": "us-east-1", **_QUICK}
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
        monkeypatch.setenv("AWS_PROFILE", "")
        location = rs.remote("s3://renewed/a", store_options=options)
        with pytest.raises(FileAccessError):
            location.read()
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "NEWKEY")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        assert location.read() == b"data"


@pytest.mark.parametrize(
    "url",
    ["s3://[b/x", "http://[::1", "http://h:99999/x", "http://h:abc/x", "s3://bu\tcket/a",
     "s3://b/a\nb", "file:///etc/hostname", "s3:/bucket/a"],
)  # fmt: skip
def test_mistyped_urls(url: str) -> None:
    with pytest.raises(OptionError):
        rs.open(url)


@pytest.mark.parametrize(
    "options",
    [{"client_options": 5}, {"client_options": None}, {"client_options": {"default_headers": 5}},
     {"endpoint": 5}, {"endpoint": ""}, {"endpoint": "nonsense"}, {"retry_config": 5},
     {"config": 5}, {1: 2}, {"url": "x"}, {"self": "x"}, {"account_name": "x"}],
)  # fmt: skip
@pytest.mark.parametrize("scheme", ["s3", "az", "http"])
def test_invalid_options(scheme: str, options: dict[Any, Any]) -> None:
    with serving(lambda request: request.answer(b"", 404)) as url:
        place = url if scheme == "http" else f"{scheme}://bucket"
        closed = {"proxy_url": "http://127.0.0.1:1"} if scheme == "az" else {}
        given = {**_QUICK, "client_options": {"timeout": "2s", **closed}, **options}
        for read in (Location.read, lambda found: list(found.list_entries())):
            with pytest.raises((OptionError, FileAccessError)):
                read(rs.remote(f"{place}/a", store_options=given))


def test_places_with_the_same_name_differ() -> None:
    options = [
        {"endpoint": "http://a"}, {"aws_endpoint": "http://b"}, {"endpoint_url": "http://c"},
        {"AWS_ENDPOINT_URL": "http://d"}, {"config": {"endpoint": "http://e"}}, {},
    ]  # fmt: skip
    stores = [
        object_store.ObjectStore.from_url("s3://bucket/a", PassedOptions({"region": "x", **one}))[0]
        for one in options
    ]
    assert len({store.identity("a") for store in stores}) == len(options)
    assert read_settings().cache is None


def test_a_size_that_lies_ends_a_long_read() -> None:
    def answer(request: Request) -> None:
        if request.command == "HEAD":
            request.answer(Content_Length=1 << 60, ETag='"e"')
        else:
            request.answer(b"", 416)

    with serving(answer) as url, pytest.raises(FileAccessError), bucket(url).open_read() as file:
        file.readall()


def test_a_web_server_that_refuses_a_folder() -> None:
    def refuse(request: Request) -> None:
        request.answer(status=403 if request.path in ("/d", "/d/") else 404)

    with (
        serving(refuse) as url,
        raises(rs.FileAccessError, errno=errno.EACCES, match="Pass the names") as caught,
    ):
        rs.open(f"{url}/d", store_options=_QUICK)
    assert "credentials" not in str(caught.value)


def test_a_pattern_of_files_of_a_web_server() -> None:
    place = rs.remote("http://127.0.0.1:1/d/train-*")
    assert str(place) == "http://127.0.0.1:1/d/train-*"
    assert str(rs.remote("http://127.0.0.1:1/a%25b c")) == "http://127.0.0.1:1/a%25b%20c"


def test_pack_to_a_web_server_scans_no_source(tmp_path: Any) -> None:
    class Source:
        def list_samples(self) -> Any:
            raise AssertionError

        def open_reader(self) -> Any:
            raise AssertionError

        def describe(self) -> Any:
            raise AssertionError

    with raises(OptionError, match="read-only"):
        rs.pack(Source(), "http://127.0.0.1:1/out")


def test_a_list_that_breaks_goes_on_behind_its_last_page() -> None:
    keys = [f"data/{number:04}" for number in range(3000)]
    asked: list[str] = []

    def answer(request: Request) -> None:
        at = re.search(r"continuation-token=(\d+)", request.path)
        after = re.search(r"start-after=data(?:/|%2F)(\d+)", request.path)
        asked.append(f"from {at[1]}" if at else f"after {after[1]}" if after else "")
        if len(asked) == 2:
            request.answer(b"", 503)
            return
        begin = int(at[1]) if at else int(after[1]) + 1 if after else 0
        token = str(begin + 1000) if begin < 2000 else ""
        request.answer(listing(*keys[begin : begin + 1000], token=token))

    with serving(answer) as url:
        assert [found.key for found in bucket(url).list()] == keys
    assert asked == ["", "from 1000", "after 0999", "from 2000"]


@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_a_range_of_an_object_that_has_become_shorter(scheme: str) -> None:
    """None of its bytes are there, but not of the version that is read."""

    def answer(request: Request) -> None:
        request.answer(b"", 200 if request.command == "HEAD" else 416, ETag='"new"')

    with serving(answer) as url:
        location = bucket(url) if scheme == "s3" else rs.remote(f"{url}/data", store_options=_QUICK)
        read = location.store.read
        assert read(location.key, 5, 9) == read(location.key, 5, 9, "new") == b""
        for stop in (5, 9):
            with raises(FileAccessError, errno=errno.ESTALE):
                read(location.key, 5, stop, "old")


def test_a_web_server_that_ignores_conditions() -> None:
    def answer(request: Request) -> None:
        request.answer(b"abcd", 206, Content_Range="bytes 0-3/9", ETag='"new"')

    with serving(answer) as url:
        location = rs.remote(f"{url}/data", store_options=_QUICK)
        assert location.store.read(location.key, 0, 4, "new") == b"abcd"
        with raises(FileAccessError, errno=errno.ESTALE):
            location.store.read(location.key, 0, 4, "old")
