"""Options of URLs: for which URLs they are, from where they come, and that they stay secret."""

from __future__ import annotations

import errno
import json
import pickle
from typing import Any, TypeAlias

import pytest

import recordsmith as rs
from recordsmith.stores import read_settings
from recordsmith.stores.location import STORES
from recordsmith.stores.network.fsspec_store import FsspecStore
from recordsmith.stores.network.store_options import options_for

from ..raising import raises

pytest.importorskip("obstore")
Bucket: TypeAlias = tuple[str, dict[str, Any]]

OPTIONS = {
    "region": "a",
    "s3://": {"region": "b", "x": 1},
    "s3://bucket": {"region": "c"},
    "https://host/folder/": {"y": 2},
}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("gs://bucket/key", {"region": "a"}),
        ("s3://other/key", {"region": "b", "x": 1}),
        ("s3://bucket", {"region": "c", "x": 1}),
        ("s3://bucket/key", {"region": "c", "x": 1}),
        ("s3://bucket-of-others/key", {"region": "b", "x": 1}),
        ("https://host/folder", {"region": "a", "y": 2}),
        ("https://host/folder/file", {"region": "a", "y": 2}),
        ("https://host/folders/file", {"region": "a"}),
        ("https://host", {"region": "a"}),
    ],
)
def test_options_below_a_url_are_for_what_begins_with_it(url: str, expected: object) -> None:
    assert options_for(url, OPTIONS) == expected


def test_options_below_a_url_are_an_object() -> None:
    with raises(rs.OptionError, option="store_options", expected="an object"):
        options_for("s3://bucket", {"s3://bucket": "secret"})


@pytest.mark.parametrize("text", ["x", "-1", "0", "0.5", "9" * 30, "9999999999TB", "٣"])
def test_an_invalid_size(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("RECORDSMITH_CACHE_BYTES", text)
    with raises(rs.OptionError, expected="a size such as 256MB or 1GiB"):
        read_settings()


@pytest.mark.parametrize("size", ["10GiB", 1.5, True, 0, -1])
def test_the_size_of_a_cache_is_a_number(size: Any) -> None:
    with raises(rs.OptionError, option="cache_bytes", expected="a number of bytes"):
        rs.remote("s3://bucket/key", cache="cache", cache_bytes=size)


@pytest.mark.parametrize("options", ["region", [("region", "a")], 3])
def test_options_are_a_dict(options: Any) -> None:
    with raises(rs.OptionError, option="store_options"):
        rs.remote("s3://bucket/key", store_options=options)


def test_variables_are_defaults(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    url, options = bucket
    monkeypatch.setenv("RECORDSMITH_STORE_OPTIONS", json.dumps(options))
    place = rs.remote(url)
    (place / "key").put(b"data")
    assert rs.remote(f"{url}/key").read() == b"data"
    wrong = {"endpoint": "http://127.0.0.1:1", "retry_config": {"max_retries": 0}}
    with raises(rs.FileAccessError):
        rs.remote(f"{url}/key", store_options=wrong).read()


def test_equal_options_open_one_store(bucket: Bucket) -> None:
    url, options = bucket
    one, other = rs.remote(url, store_options=options), rs.remote(url, store_options={**options})
    assert one.store is other.store
    assert rs.remote(url, store_options={**options, "region": "eu-west-1"}).store != one.store


def test_options_of_objects(bucket: Bucket) -> None:
    """Such as those that find credentials, which are not JSON."""
    url, options = bucket
    keys = {"access_key_id": options.pop("access_key_id"), "token": None, "expires_at": None}
    keys["secret_access_key"] = options.pop("secret_access_key")
    place = rs.remote(url, store_options={**options, "credential_provider": lambda: keys})
    (place / "key").put(b"data")
    assert (place / "key").read() == b"data"


def test_open_takes_options(bucket: Bucket, numbered: Any) -> None:
    url, options = bucket
    numbered.packed(rs.remote(f"{url}/data", store_options=options), {"train": [3, 2]})
    for paths in (f"{url}/data", [f"{url}/data"], rs.remote(f"{url}/data", store_options=options)):
        dataset = rs.open(paths, "train", store_options=options)
        assert [int(example["id"][0]) for example in dataset] == [0, 1, 2, 3, 4]
        assert not rs.verify(dataset).defects  # reads the files again
        assert len(rs.open(dataset.shards[0].location)) == 3
        again = pickle.loads(pickle.dumps(dataset))
        assert int(again[4]["id"][0]) == 4


@pytest.mark.parametrize("below", ["", "s3://", "/data"])
def test_a_pickled_store_has_only_the_options_that_were_passed(
    bucket: Bucket, numbered: Any, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    url, options = bucket
    secret = {"secret_access_key": options.pop("secret_access_key")}
    of_process = {below if below == "s3://" else url + below: secret} if below else secret
    monkeypatch.setenv("RECORDSMITH_STORE_OPTIONS", json.dumps(of_process))
    place = rs.remote(f"{url}/data", store_options=options)
    numbered.packed(place, {"train": [3, 2]})
    pickled = pickle.dumps(rs.open(place))
    assert secret["secret_access_key"].encode() not in pickled
    assert options["access_key_id"].encode() in pickled
    assert len([*pickle.loads(pickled)]) == 5
    assert pickle.dumps(pickle.loads(pickled)) == pickled
    changed = of_process | {"access_key_id": "of the process"}
    monkeypatch.setenv("RECORDSMITH_STORE_OPTIONS", json.dumps(changed))
    assert pickle.loads(pickled).shards[0].location.store._options == options | secret


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"regoin": "5EC12E7"}, "regoin"),
        ({"client_options": {"timeot": "5EC12E7"}}, "client_options"),
        ({"client_options": 5}, "client_options"),
        ({"retry_config": {"max_retries": "5EC12E7"}}, "retry_config"),
        ({"endpoint": 5}, "endpoint"),
        ({"endpoint": "5EC12E7:5"}, "endpoint"),
        ({"endpoint": "http://"}, "endpoint"),
    ],
)
def test_an_error_names_the_option(options: dict[str, Any], name: str) -> None:
    with raises(rs.OptionError, option="store_options", match=name) as caught:
        rs.remote("s3://b/x", store_options=options).read()
    assert "5EC12E7" not in f"{caught.value} {caught.value.to_json()}"


def test_the_variable_of_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "127.0.0.1:5077")
    with raises(rs.OptionError, match="variable AWS_ENDPOINT_URL"):
        rs.remote("s3://b/x", store_options={"region": "other"}).read()


@pytest.mark.parametrize(
    ("error", "number"),
    [(ConnectionRefusedError(errno.ECONNREFUSED, ""), errno.ECONNREFUSED),
     (TimeoutError(), errno.EIO), (KeyError("5EC12E7"), errno.EIO)],
)  # fmt: skip
def test_errors_of_file_systems_have_their_cause(error: Exception, number: int) -> None:
    memory = pytest.importorskip("fsspec.implementations.memory")

    class Files(memory.MemoryFileSystem):  # type: ignore[misc, name-defined]
        cachable = False

        def info(self, *_: Any, **__: Any) -> Any:
            try:
                raise error
            except Exception as cause:
                raise OSError(number, "5EC12E7") from cause

    with raises(rs.FileAccessError, errno=number, match=type(error).__name__) as caught:
        FsspecStore(Files()).read("x")
    assert "5EC12E7" not in str(caught.value)


def test_a_pickled_file_system_has_only_the_options_that_were_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(STORES, "memory")  # that of fsspec instead
    options = {"memory://folder": {"skip_instance_cache": True, "password": "secret-of-process"}}
    monkeypatch.setenv("RECORDSMITH_STORE_OPTIONS", json.dumps(options))
    place = rs.remote("memory://folder/a", store_options={"name": "passed"})
    place.store._files.pipe_file("/folder/a/b", b"data")  # type: ignore[attr-defined]
    pickled = pickle.dumps(place)
    assert b"secret-of-process" not in pickled
    assert b"passed" in pickled
    again = pickle.loads(pickled)
    assert (again / "b").read() == b"data"
    assert again == place
