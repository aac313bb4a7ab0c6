from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from recordsmith.dataset.shard_index import index_locations
from recordsmith.stores import CachedStore, MemoryStore

LIMIT = 20_000_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder with 30,000 bytes of two objects, and an index."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "recordsmith"
    store = MemoryStore()
    cached = CachedStore(store, str(folder), LIMIT)
    for key in ("a", "b"):
        store.put(key, bytes(15_000))
        with cached.open_read(key) as file:
            assert len(file.read()) == 15_000
    assert cached.flush()
    index = index_locations(tmp_path / "x.tfrecord")[1]
    assert Path(index).is_relative_to(folder)
    index.put(b"123")
    (folder / "index" / "mine.txt").write_text("not an index")
    return folder


def test_what_a_cache_contains(run, folder: Path) -> None:
    document = run("cache", "--json").document
    assert document["folder"] == str(folder)
    assert document["limit_bytes"] == LIMIT
    assert 30_000 < document["size_bytes"] < 200_000
    assert (document["objects"], document["cached_bytes"]) == (2, 30_000)
    assert (document["indexes"], document["index_bytes"]) == (1, 3)
    assert document["is_cleared"] is False
    used = [datetime.fromisoformat(document[name]) for name in ("first_used", "last_used")]
    now = datetime.now(UTC)
    assert used[0] <= used[1] <= now
    assert (now - used[0]).total_seconds() < 600
    outcome = run("cache", folder)
    assert outcome.code == 0
    assert "30.0 kB of 2 objects" in outcome.out
    assert "of at most 20.0 MB" in outcome.out
    assert "1 index, " in outcome.out


def test_a_cache_is_emptied(run, folder: Path) -> None:
    document = run("cache", "--clear", "--json").document
    assert (document["objects"], document["cached_bytes"], document["indexes"]) == (0, 0, 0)
    assert (document["is_cleared"], document["last_used"]) == (True, None)
    assert document["limit_bytes"] == LIMIT
    assert document["size_bytes"] < 30_000
    assert (folder / "index" / "mine.txt").read_text() == "not an index"
    assert "emptied" in run("cache", "--clear").out


def test_a_folder_that_is_not_a_cache(run, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"mine")
    outcome = run("cache", tmp_path, "--clear")
    assert outcome.code == 2
    assert str(tmp_path) in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["photo.jpg"]


def test_no_cache_yet(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECORDSMITH_CACHE", str(tmp_path / "new"))
    document = run("cache", "--json").document
    assert (document["size_bytes"], document["limit_bytes"], document["objects"]) == (0, None, 0)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("typed", ["s3://bucket/cache", "missing"])
def test_what_is_no_cache_folder(run, folder: Path, typed: str) -> None:
    outcome = run("cache", typed if "://" in typed else folder / typed)
    assert outcome.code != 0
    assert typed in outcome.err
