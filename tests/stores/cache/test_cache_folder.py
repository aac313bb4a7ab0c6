"""The cache folder: its limit, its damage, what is replaced, and what is not touched."""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import stat
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recordsmith.stores import CachedStore, MemoryStore, Range
from recordsmith.stores.local import block_files, reader
from recordsmith.stores.local.block_files import BLOCK_BYTES, PAGE_BYTES, BlockFiles, ObjectId
from recordsmith.support.errors import FileAccessError, OptionError

from ...places import IS_ROOT
from ...raising import raises
from ..rounds import RoundStore
from .test_cached_store import noise

LIMIT = 9 << 20
FITTING = 140
"""About how many pages fit into LIMIT."""

REPOSITORY = Path(__file__).parents[3]


def disk_bytes(folder: Path) -> int:
    """What `du` counts, with the folder itself."""
    done = subprocess.run(
        ["du", "-s", "--block-size=1", folder], check=True, capture_output=True, text=True
    )
    return int(done.stdout.split()[0])


def fill(store: CachedStore, key: str, pages: range, version: str = "1") -> None:
    for page in pages:
        store.read(key, page * PAGE_BYTES, (page + 1) * PAGE_BYTES, version)
    assert store.flush()


def hits(inner: RoundStore, store: CachedStore, key: str, pages: range, version: str = "1") -> int:
    """How many pages are read without a request, and rightly."""
    count = 0
    for page in pages:
        inner.requests()
        start = page * PAGE_BYTES
        data = inner.objects[key][0][start : start + PAGE_BYTES]
        assert store.read(key, start, start + PAGE_BYTES, version) == data
        count += inner.requests() == 0
    assert store.flush()
    return count


def one_object(pages: int, key: str = "x", version: str = "1", seed: int = 0) -> RoundStore:
    inner = RoundStore()
    inner.objects[key] = noise(pages * PAGE_BYTES, seed), version
    return inner


def reopened(inner: RoundStore, folder: Path, limit: int = LIMIT) -> CachedStore:
    """A store as in a process that has just started."""
    from recordsmith.stores.cache import block_cache

    block_cache.open_caches._by_path.clear()
    return CachedStore(inner, str(folder), limit)


def blocks(folder: Path) -> list[Path]:
    return sorted((folder / "blocks").iterdir())


# -- the limit -------------------------------------------------------------------------------------


def test_the_limit_is_never_exceeded(tmp_path: Path) -> None:
    """While a store reads far more than fits, in pieces of all sizes."""
    inner = one_object(8 * FITTING)
    size = len(inner.objects["x"][0])
    store = CachedStore(inner, str(tmp_path), LIMIT)
    dice = random.Random(3)
    most = 0
    for _ in range(30):
        starts = [dice.randrange(size) for _ in range(40)]
        ranges = [
            Range("x", start, min(size, start + dice.randrange(400_000)), "1") for start in starts
        ]
        list(store.read_many(ranges))
        most = max(most, disk_bytes(tmp_path))
    assert store.flush()
    most = max(most, disk_bytes(tmp_path))
    assert LIMIT * 3 // 4 < most <= LIMIT


def test_a_smaller_limit_holds_at_once(tmp_path: Path) -> None:
    inner = one_object(3 * FITTING)
    large = CachedStore(inner, str(tmp_path), 3 * LIMIT)
    fill(large, "x", range(2 * FITTING))
    assert hits(inner, large, "x", range(2 * FITTING)) == 2 * FITTING
    CachedStore(inner, str(tmp_path), LIMIT)
    assert disk_bytes(tmp_path) <= LIMIT
    assert hits(inner, large, "x", range(2 * FITTING)) <= FITTING
    assert disk_bytes(tmp_path) <= LIMIT
    CachedStore(inner, str(tmp_path), 3 * LIMIT)
    fill(large, "x", range(2 * FITTING))
    assert hits(inner, large, "x", range(2 * FITTING)) == 2 * FITTING


def test_a_new_cache_is_limited_by_the_free_space(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    max_bytes = BlockFiles(str(tmp_path)).max_bytes
    assert free * 0.3 < max_bytes < free * 0.7
    assert disk_bytes(tmp_path) < 100_000
    assert BlockFiles(str(tmp_path), LIMIT).max_bytes == LIMIT
    assert BlockFiles(str(tmp_path)).max_bytes == LIMIT
    assert BlockFiles(str(tmp_path), 2 * LIMIT, keeps_limit=True).max_bytes == LIMIT


def test_a_random_record_costs_few_pages(tmp_path: Path) -> None:
    inner = one_object(8 * FITTING)
    store = CachedStore(inner, str(tmp_path), LIMIT)
    store.read("x", 1_000_000, 1_110_000, "1")
    assert store.flush()
    assert sum((wanted.stop or 0) - wanted.start for wanted in inner.sent) <= 3 * PAGE_BYTES
    assert disk_bytes(tmp_path) < 5 * PAGE_BYTES


# -- what is replaced ------------------------------------------------------------------------------


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_epochs_over_ten_times_the_limit_hit_a_tenth(tmp_path: Path, is_shuffled: bool) -> None:
    inner = one_object(10 * FITTING)
    store = CachedStore(inner, str(tmp_path), LIMIT)
    starts = range(0, 9 * FITTING * PAGE_BYTES, 110_000)
    ranges = [Range("x", start, start + 110_000, "1") for start in starts]
    share = 0.0
    for epoch in range(3):
        if is_shuffled:
            random.Random(epoch).shuffle(ranges)
        inner.reset()
        for start in range(0, len(ranges), 32):
            list(store.read_many(ranges[start : start + 32]))
            store.flush()
        read = sum((wanted.stop or 0) - wanted.start for wanted in inner.sent)
        share = 1 - read / (len(ranges) * 110_000)
    assert 0.05 < share < 0.15


def test_old_versions_are_replaced_first(tmp_path: Path) -> None:
    inner = one_object(2 * FITTING)
    store = CachedStore(inner, str(tmp_path), LIMIT)
    fill(store, "x", range(FITTING))
    inner.objects["x"] = noise(2 * FITTING * PAGE_BYTES, 1), "2"
    fill(store, "x", range(FITTING), "2")
    assert hits(inner, store, "x", range(FITTING), "2") > 0.8 * FITTING


def test_the_longest_unused_blocks_are_replaced(tmp_path: Path) -> None:
    """Of objects that this process does not use, and none did for a while."""
    pages = BLOCK_BYTES // PAGE_BYTES // 4
    inner = one_object(2 * pages)
    for number, key in enumerate("abcde"):
        inner.objects[key] = noise(2 * pages * PAGE_BYTES, number), "1"
    first = CachedStore(inner, str(tmp_path), LIMIT)
    for key in "abcd":
        fill(first, key, range(pages))
    store = reopened(inner, tmp_path)
    fill(store, "e", range(pages))
    assert hits(inner, store, "e", range(pages)) < 0.7 * pages  # another process may use the rest
    for number, path in enumerate(sorted(blocks(tmp_path), key=lambda path: path.stat().st_mtime)):
        then = time.time() - (4000 - number if number < 2 else 0)
        os.utime(path, (then, then))
    store = reopened(inner, tmp_path)
    fill(store, "e", range(pages))
    assert hits(inner, store, "e", range(pages)) == pages
    assert hits(inner, store, "d", range(pages)) == pages


# -- damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_damage_is_a_miss(tmp_path: Path, seed: int) -> None:
    """Whatever the files contain: all bytes are right, and are cached again."""
    dice = random.Random(seed)
    pages = range(150)
    inner = one_object(len(pages))
    store = CachedStore(inner, str(tmp_path), 2 * LIMIT)
    fill(store, "x", pages)
    assert hits(inner, store, "x", pages) == len(pages)
    path = dice.choice([*blocks(tmp_path), tmp_path / "state"])
    data = bytearray(path.read_bytes())
    if seed % 4 == 0:  # any bytes
        for _ in range(dice.choice([1, 3, 200])):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    elif seed % 4 == 1:  # the table of pages
        for _ in range(dice.choice([1, 30])):
            data[dice.randrange(min(len(data), 4096))] = dice.randrange(256)
    elif seed % 4 == 2:  # the end is missing
        del data[dice.randrange(len(data)) :]
    else:  # a piece lies elsewhere: pages that were taken for others
        start, target = (dice.randrange(0, len(data), 4096) for _ in range(2))
        data[target : target + 3 * PAGE_BYTES] = data[start : start + 3 * PAGE_BYTES]
    path.write_bytes(data)
    store = reopened(inner, tmp_path, 2 * LIMIT)
    hits(inner, store, "x", pages)
    assert hits(inner, store, "x", pages) == len(pages)


def test_blocks_that_are_cut_or_deleted_while_they_are_open(tmp_path: Path) -> None:
    inner = one_object(20)
    store = CachedStore(inner, str(tmp_path), LIMIT)
    fill(store, "x", range(20))
    (path,) = blocks(tmp_path)
    os.truncate(path, 4096 + 10 * PAGE_BYTES + 5)
    assert hits(inner, store, "x", range(20)) < 20
    assert hits(inner, store, "x", range(20)) == 20
    os.truncate(path, 0)
    path.unlink()
    assert hits(inner, store, "x", range(20)) < 20
    assert hits(inner, store, "x", range(20)) == 20


# -- folders ---------------------------------------------------------------------------------------


def _snapshot(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize(
    "names",
    [
        ["photo.jpg"],
        ["index", "photo.jpg"],
        ["blocks"],
        ["CACHEDIR.TAG"],
        ["train-00000.tfrecord", "dataset.json"],
        ["folder/deep"],
    ],
)
def test_a_folder_with_other_files_is_refused(tmp_path: Path, names: list[str]) -> None:
    folder = tmp_path / "mine"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"Signature: mine")
    before = _snapshot(folder)
    with raises(OptionError, option="cache", value=str(folder)):
        CachedStore(MemoryStore(), str(folder), LIMIT)
    assert _snapshot(folder) == before


@pytest.mark.parametrize("tag", [b"", b"Signature: 8a477"])
def test_a_tag_that_a_killed_process_began(tmp_path: Path, tag: bytes) -> None:
    (tmp_path / "CACHEDIR.TAG").write_bytes(tag)
    BlockFiles(str(tmp_path), LIMIT)
    BlockFiles(str(tmp_path), LIMIT)
    assert len((tmp_path / "CACHEDIR.TAG").read_bytes()) > 43


@pytest.mark.posix
@pytest.mark.parametrize("name", ["state", "CACHEDIR.TAG", "block"])
def test_links_in_the_folder_are_not_followed(tmp_path: Path, name: str) -> None:
    inner = one_object(2)
    fill(CachedStore(inner, str(tmp_path / "cache"), LIMIT), "x", range(1))
    (block,) = blocks(tmp_path / "cache")
    path = block if name == "block" else tmp_path / "cache" / name
    mine = tmp_path / "mine"
    mine.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(mine)
    before = mine.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            store = reopened(inner, tmp_path / "cache")
        except OptionError:
            pass
        else:
            assert hits(inner, store, "x", range(2)) <= 1
            assert hits(inner, store, "x", range(1)) == 0
    assert mine.read_bytes() == before


def _let_others_prepare(what: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the cache folder as another user may have made it."""
    kind, _, name = what.partition(" ")
    path = {"state": folder / "state", "blocks": folder / "blocks"}.get(name.split()[0], folder)
    if kind == "hard-linked":
        os.link(path, folder.parent / "other")
    elif kind == "linked":
        path.rename(folder.parent / "other")
        path.symlink_to(folder.parent / "other")
    elif kind == "writable":
        path.chmod(0o720 if path.is_dir() else 0o622)
    elif os.geteuid() == 0:
        os.chown(path, 12345, -1)
    else:
        owner = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    if "user" in what:  # the same for a user who is not root, and for a file of root
        os.chown(folder, 12345, -1)
        os.chown(path, 0, -1)
        monkeypatch.setattr(os, "geteuid", lambda: 12345)


@pytest.mark.posix
@pytest.mark.parametrize(
    "what",
    [
        "hard-linked state",
        "linked state",
        "linked blocks",
        "linked folder",
        "writable state",
        "writable blocks",
        "writable folder",
        "foreign state",
        "foreign blocks",
        "foreign folder",
        pytest.param(
            "foreign state of a user",
            marks=pytest.mark.skipif(not IS_ROOT, reason="only root gives files away"),
        ),
    ],
)
def test_what_another_user_may_have_prepared_is_not_used(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, folder = one_object(1), tmp_path / "cache"
    fill(CachedStore(inner, str(folder), LIMIT), "x", range(1))
    before = blocks(folder)[0].read_bytes()
    _let_others_prepare(what, folder, monkeypatch)
    with pytest.raises(FileAccessError) as caught:
        BlockFiles(f"{folder}/", LIMIT)
    assert caught.value.errno in (errno.EPERM, errno.EINVAL)
    with pytest.warns(RuntimeWarning, match=re.escape(str(folder))):
        store = reopened(inner, folder)
    assert hits(inner, store, "x", range(1)) == 0
    assert blocks(folder)[0].read_bytes() == before


@pytest.mark.posix
@pytest.mark.parametrize("kind", ["hard link", "writable", "foreign"])
def test_a_block_that_another_user_may_have_written(tmp_path: Path, kind: str) -> None:
    inner = one_object(1)
    fill(CachedStore(inner, str(tmp_path / "cache"), LIMIT), "x", range(1))
    (path,) = blocks(tmp_path / "cache")
    if kind == "hard link":
        os.link(path, tmp_path / "other")
    elif kind == "writable":
        path.chmod(0o622)
    elif os.geteuid() == 0:
        os.chown(path, 12345, -1)
    else:
        pytest.skip("only root gives files away")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert hits(inner, reopened(inner, tmp_path / "cache"), "x", range(1)) == 0


@pytest.mark.posix
def test_files_are_private(tmp_path: Path) -> None:
    old_mask = os.umask(0)
    try:
        fill(CachedStore(one_object(1), str(tmp_path / "cache"), LIMIT), "x", range(1))
        assert stat.S_IMODE(blocks(tmp_path / "cache")[0].stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
        for name in ("state", "CACHEDIR.TAG"):
            assert stat.S_IMODE((tmp_path / "cache" / name).stat().st_mode) == 0o600
    finally:
        os.umask(old_mask)
    (tmp_path / "cache" / "state").chmod(0o644)
    BlockFiles(str(tmp_path / "cache"), LIMIT)
    assert stat.S_IMODE((tmp_path / "cache" / "state").stat().st_mode) == 0o600


# -- when caching is impossible --------------------------------------------------------------------


def test_a_full_disk_turns_caching_off_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    inner = one_object(FITTING)
    store = CachedStore(inner, str(tmp_path), LIMIT)
    fill(store, "x", range(5))
    monkeypatch.setattr(block_files._Block, "write_page", fail)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        fill(store, "x", range(5, 20))
        assert hits(inner, store, "x", range(20)) == 5
    assert [warning.category for warning in shown] == [RuntimeWarning]
    assert "No space left" in str(shown[0].message)


def test_a_read_only_folder_is_still_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = one_object(FITTING)
    fill(CachedStore(inner, str(tmp_path), LIMIT), "x", range(5))
    open_regular = block_files.open_regular

    def open_to_read(path: str, flags: int, _mode: int = 0o600) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return open_regular(path, flags)

    for module in (block_files, reader):
        monkeypatch.setattr(module, "open_regular", open_to_read)
    before = _snapshot(tmp_path)
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        store = reopened(inner, tmp_path)
    assert hits(inner, store, "x", range(10)) == 5  # without a second warning
    assert _snapshot(tmp_path) == before


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    inner = one_object(2)
    with pytest.warns(RuntimeWarning):
        store = CachedStore(inner, str(tmp_path / "file" / "cache"), LIMIT)
    assert hits(inner, store, "x", range(2)) == 0


def test_a_folder_that_is_deleted_turns_caching_off(tmp_path: Path) -> None:
    inner = one_object(4)
    store = CachedStore(inner, str(tmp_path / "cache"), LIMIT)
    fill(store, "x", range(2))
    shutil.rmtree(tmp_path / "cache")
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        fill(store, "x", range(2, 4))
    assert [warning.category for warning in shown] == [RuntimeWarning]
    assert hits(inner, store, "x", range(2, 4)) == 0
    assert not (tmp_path / "cache").exists()


def test_a_full_queue_makes_no_reader_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recordsmith.stores.cache import block_cache

    monkeypatch.setattr(block_cache, "_QUEUE_BYTES", 3 * PAGE_BYTES)
    go_on = threading.Event()
    write = BlockFiles.write

    def slow_write(*arguments: object) -> bool:
        assert go_on.wait(60)
        return write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(BlockFiles, "write", slow_write)
    inner = one_object(FITTING)
    store = CachedStore(inner, str(tmp_path), LIMIT)
    for page in range(10):  # nothing is written meanwhile
        start = page * PAGE_BYTES
        expected = inner.objects["x"][0][start:][:PAGE_BYTES]
        assert store.read("x", start, start + PAGE_BYTES, "1") == expected
    go_on.set()
    assert store.flush()
    assert 3 <= hits(inner, store, "x", range(10)) <= 4


def test_pages_are_written_before_the_process_ends(tmp_path: Path) -> None:
    program = f"""
import sys
sys.path.insert(0, {str(REPOSITORY)!r})
from tests.stores.cache.test_cache_folder import one_object, CachedStore, LIMIT
CachedStore(one_object(8), {str(tmp_path)!r}, LIMIT).read("x", version="1")
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=REPOSITORY)
    inner = one_object(8)
    assert hits(inner, CachedStore(inner, str(tmp_path)), "x", range(8)) == 8


def test_what_is_cached_is_counted(tmp_path: Path) -> None:
    files = BlockFiles(str(tmp_path), LIMIT)
    assert files.stats() == (0, 0, None, None)
    pages = [(2, bytes(PAGE_BYTES)), (3, bytes(7))]
    for number in (1, 2, 3):
        object_id = ObjectId(f"{number:016x}", f"{9 + number:016x}")
        assert files.write(object_id, 0, pages, lambda *_: None)
    size, objects, first, last = files.stats()
    assert (size, objects) == (3 * (PAGE_BYTES + 7), 3)
    assert first is not None
    assert last is not None
    assert time.time() - 60 < first <= last <= time.time() + 1
    files.clear()
    assert files.stats() == (0, 0, None, None)
    assert disk_bytes(tmp_path) < 100_000


def test_a_cache_that_is_being_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may open the folder after any step."""
    folder = str(tmp_path / "cache")
    steps: list[list[str]] = []

    def stepwise(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if os.path.isdir(folder):
                steps.append(sorted(os.listdir(folder)))
                block_files.check_folder(folder)
            return function(*arguments, **options)

        return call

    for name in ("make_private_folder", "check_private", "check_private_status"):
        monkeypatch.setattr(block_files, name, stepwise(getattr(block_files, name)))
    BlockFiles(folder)
    assert {1, 2, 3} <= {*map(len, steps)}
