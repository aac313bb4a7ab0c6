"""File systems of pyarrow keep the contract; paths are as the file system takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.stores import Store
from recordsmith.stores.remote import FsspecStore

from ..raising import raises
from ..servers.s3 import SECRETS
from .contract import StoreContract

fsspec: Any = pytest.importorskip("fsspec")
arrow_files: Any = pytest.importorskip("pyarrow.fs")


class TestArrowFiles(StoreContract):
    many = 1500

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        files = arrow_files.LocalFileSystem()
        return FsspecStore(arrow_files.SubTreeFileSystem(str(tmp_path), files))

    def test_folders_in_the_way(self, store: Store) -> None:
        """They stay: pyarrow removes folders only with all that is in them."""
        store.put("f/b/old", b"")
        store.delete("f/b/old")
        store.delete("f/b")
        with raises(rs.OptionError, match="is a folder"):
            store.put("f/b", b"")


def local_files() -> list[Any]:
    return [arrow_files.LocalFileSystem(), fsspec.filesystem("file")]


@pytest.mark.parametrize("files", local_files(), ids=["arrow", "fsspec"])
def test_relative_paths_of_local_files(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = rs.remote("a/b", filesystem=files)
    (place / "c").put(b"data")
    assert (tmp_path / "a" / "b" / "c").read_bytes() == b"data"
    assert [str(found.key) for found in place.list()] == [(place / "c").key]
    assert rs.remote(f"{tmp_path}/a", filesystem=files).identity == place.parent.identity


@pytest.mark.parametrize("files", local_files(), ids=["arrow", "fsspec"])
@pytest.mark.parametrize(
    ("url", "options", "option"),
    [("s3://bucket/a", None, "filesystem"), ("a", {"region": "b"}, "store_options")],
)
def test_a_file_system_excludes(
    files: Any, url: str, options: dict[str, Any] | None, option: str
) -> None:
    with raises(rs.OptionError, option=option):
        rs.remote(url, filesystem=files, store_options=options)


def test_a_bucket_of_arrow(bucket: tuple[str, dict[str, Any]], numbered: Any) -> None:
    """Its paths begin with the bucket, without a slash."""
    url, options = bucket
    files = arrow_files.S3FileSystem(
        access_key=SECRETS["access_key_id"],
        secret_key=SECRETS["secret_access_key"],
        region="us-east-1",
        endpoint_override=options["endpoint"],
    )
    place = rs.remote(f"{url.removeprefix('s3://')}/data", filesystem=files)
    numbered.packed(place, {"train": [3]})
    assert len(rs.open(place)) == 3
    written = rs.remote(f"{url}/data", store_options=options)
    assert sorted(found.name for found in place.list()) == sorted(
        found.name for found in written.list()
    )
    assert not rs.verify(written).defects
