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

import pytest

from recordsmith.errors import FileAccessError, OptionError
from recordsmith.stores import MemoryStore, Range
from recordsmith.stores.cache import CachedStore
from recordsmith.stores.cache.block_cache import BlockCache
from recordsmith.stores.local import cache_file
from recordsmith.stores.local.cache_file import BLOCK_BYTES, PART_BYTES, CacheFile, ObjectId

from ...raising import raises
from .test_cached_store import CountingStore, noise

LIMIT = 9 << 20
PARTS = 32
"""How many parts fit into LIMIT."""

MANY = 60  # parts, of which some are replaced
REPOSITORY = Path(__file__).parents[3]


def disk_bytes(folder: Path) -> int:
    """What `du` counts, with the folder itself."""
    found = subprocess.run(
        ["du", "-s", "--block-size=1", folder], check=True, capture_output=True, text=True
    )
    return int(found.stdout.split()[0])


def fill(store: CachedStore, key: str, parts: range, version: str = "1") -> None:
    for part in parts:
        store.read(key, part * PART_BYTES, (part + 1) * PART_BYTES, version)
    assert store.flush()


def hits(
    inner: CountingStore, store: CachedStore, key: str, parts: range, version: str = "1"
) -> int:
    """How many parts are read without a request, and rightly."""
    count = 0
    for part in parts:
        inner.requests()
        start = part * PART_BYTES
        data = inner.objects[key][0][start : start + PART_BYTES]
        assert store.read(key, start, start + PART_BYTES, version) == data
        count += inner.requests() == 0
    assert store.flush()
    return count


def one_object(parts: int, key: str = "x", version: str = "1", seed: int = 0) -> CountingStore:
    inner = CountingStore()
    inner.objects[key] = noise(parts * PART_BYTES, seed), version
    return inner


# -- the limit -------------------------------------------------------------------------------------


def test_the_limit_is_never_exceeded(tmp_path: Path) -> None:
    """While several stores read far more than fits, in pieces of all sizes."""
    inner = one_object(8 * PARTS)
    size = len(inner.objects["x"][0])
    store = CachedStore(inner, str(tmp_path), LIMIT)
    dice = random.Random(3)
    most = 0
    for _ in range(30):
        starts = [dice.randrange(size) for _ in range(40)]
        list(
            store.read_many(
                Range("x", at, min(size, at + dice.randrange(400_000)), "1") for at in starts
            )
        )
        most = max(most, disk_bytes(tmp_path))
    assert store.flush()
    most = max(most, disk_bytes(tmp_path))
    assert LIMIT * 3 // 4 < most <= LIMIT


def test_a_smaller_limit_holds_at_once_and_keeps_the_rest(tmp_path: Path) -> None:
    inner = one_object(2 * PARTS)
    large = CachedStore(inner, str(tmp_path), 3 * LIMIT)
    fill(large, "x", range(2 * PARTS))
    assert hits(inner, large, "x", range(2 * PARTS)) == 2 * PARTS
    CachedStore(inner, str(tmp_path), LIMIT)
    assert disk_bytes(tmp_path) <= LIMIT
    assert PARTS // 4 <= hits(inner, large, "x", range(2 * PARTS)) <= PARTS
    assert disk_bytes(tmp_path) <= LIMIT
    CachedStore(inner, str(tmp_path), 3 * LIMIT)
    before = hits(inner, large, "x", range(2 * PARTS))
    assert before >= PARTS // 2
    assert hits(inner, large, "x", range(2 * PARTS)) > before


def test_a_file_that_a_killed_process_left_too_large(tmp_path: Path) -> None:
    inner = one_object(PARTS)
    CachedStore(inner, str(tmp_path), LIMIT)
    with (tmp_path / "blocks").open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(bytes(1 << 20))
    CacheFile(str(tmp_path))
    assert disk_bytes(tmp_path) <= LIMIT


def test_a_new_cache_is_limited_by_the_free_space(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    most_bytes = CacheFile(str(tmp_path)).most_bytes
    assert free * 0.3 < most_bytes < free * 0.7
    assert disk_bytes(tmp_path) < 100_000
    assert CacheFile(str(tmp_path), LIMIT).most_bytes == LIMIT
    assert CacheFile(str(tmp_path)).most_bytes == LIMIT
    assert CacheFile(str(tmp_path), 2 * LIMIT, keeps_limit=True).most_bytes == LIMIT


# -- what is replaced ------------------------------------------------------------------------------


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_epochs_over_ten_times_the_limit_hit_a_tenth(tmp_path: Path, is_shuffled: bool) -> None:
    inner = one_object(10 * PARTS)
    store = CachedStore(inner, str(tmp_path), LIMIT)
    ranges = [Range("x", at, at + 110_000, "1") for at in range(0, 9 * PARTS * PART_BYTES, 110_000)]
    share = 0.0
    for epoch in range(3):
        if is_shuffled:
            random.Random(epoch).shuffle(ranges)
        inner.reads = []
        for at in range(0, len(ranges), 32):
            list(store.read_many(ranges[at : at + 32]))
            store.flush()
        read = sum((wanted.stop or 0) - wanted.start for wanted in inner.reads)
        share = 1 - read / (len(ranges) * 110_000)
    assert 0.05 < share < 0.12


def test_old_versions_are_replaced_first(tmp_path: Path) -> None:
    inner = one_object(2 * PARTS)
    store = CachedStore(inner, str(tmp_path), LIMIT)
    fill(store, "x", range(PARTS * 2))
    inner.objects["x"] = noise(2 * PARTS * PART_BYTES, 1), "2"
    fill(store, "x", range(PARTS), "2")
    assert hits(inner, store, "x", range(PARTS), "2") > 0.8 * PARTS


def test_unused_objects_are_replaced_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects that this process does not use, and none did for a while."""
    inner = one_object(2 * PARTS)
    inner.objects["y"] = noise(2 * PARTS * PART_BYTES, 1), "1"
    fill(CachedStore(inner, str(tmp_path), LIMIT), "x", range(2 * PARTS))
    time.sleep(0.01)
    _forget_uses()
    store = CachedStore(inner, str(tmp_path))
    fill(store, "y", range(PARTS))
    assert hits(inner, store, "y", range(PARTS)) < 0.3 * PARTS  # another process may use x
    now = time.time()
    monkeypatch.setattr(cache_file.time, "time", lambda: now + 3600)
    fill(store, "y", range(PARTS))
    assert hits(inner, store, "y", range(PARTS)) > 0.8 * PARTS


def test_parts_without_room_are_not_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = one_object(10 * PARTS)
    store = CachedStore(inner, str(tmp_path), LIMIT)
    fill(store, "x", range(10 * PARTS))
    fill(store, "x", range(10 * PARTS))
    looked_for = []
    read = CacheFile.read

    def noted(file: CacheFile, of: ObjectId, start: int, stop: int) -> tuple[bytes, int, int]:
        looked_for.append(start)
        return read(file, of, start, stop)

    monkeypatch.setattr(CacheFile, "read", noted)
    found = hits(inner, store, "x", range(10 * PARTS))
    assert PARTS // 2 < found <= len(looked_for) < 2 * PARTS
    looked_for.clear()
    now = time.time()
    monkeypatch.setattr(cache_file.time, "time", lambda: now + 3600)
    hits(inner, store, "x", range(10 * PARTS))
    assert len(looked_for) == 10 * PARTS


def test_a_claimed_size_takes_no_memory(tmp_path: Path) -> None:
    cache = BlockCache(str(tmp_path), LIMIT, keeps_limit=False)
    of = cache.id_of("x", "1")
    for part in range(4 * PARTS):  # until there is no room
        cache.write_later(of, part * PART_BYTES, bytes(PART_BYTES), is_end=False)
        cache.flush(10)
    for start in range(1 << 41, (1 << 41) + 100 * PART_BYTES, PART_BYTES):
        cache.round_out(of, start, start + 1)
    assert not cache.refuses(of, 1 << 41, (1 << 41) + 1)
    assert cache.refuses(of, 1 << 50, (1 << 50) + 1)  # has no number
    assert cache.round_out(of, 1 << 50, (1 << 50) + 1)[2] == frozenset()
    assert sum(map(len, cache._refused.values())) < 1 << 20


def _forget_uses() -> None:
    """As in a process that has just started."""
    from recordsmith.stores.cache import block_cache

    block_cache._opened.clear()


# -- damage ----------------------------------------------------------------------------------------

_TABLE = cache_file.HEAD_BYTES


def _flip(place: int) -> Callable[[bytearray], None]:
    def damage(data: bytearray) -> None:
        data[place] ^= 0x10

    return damage


def _everywhere(data: bytearray) -> None:
    for place in range(64, len(data), 5000):
        data[place] ^= 1


def _move_slots(data: bytearray) -> None:
    """All blocks lie one slot further than their entries."""
    start = _TABLE + 4096
    data[start : start + 15 * PART_BYTES] = data[start + PART_BYTES : start + 16 * PART_BYTES]


def _impossible_sizes(data: bytearray) -> None:
    for slot in range(16):
        for block in range(16):
            at = _TABLE + 152 * slot + 24 + 8 * block + 4
            data[at : at + 4] = b"\xff\xff\xff\x7f"


def _shorter_blocks(data: bytearray) -> None:
    for slot in range(16):
        at = _TABLE + 152 * slot + 28
        data[at : at + 4] = (100).to_bytes(4, "little")


def _cut(size: int) -> Callable[[bytearray], None]:
    def damage(data: bytearray) -> None:
        del data[size:]

    return damage


def _overwrite(content: bytes) -> Callable[[bytearray], None]:
    def damage(data: bytearray) -> None:
        data[: len(content)] = content

    return damage


def _stale_tables(data: bytearray) -> None:
    """The tables of an earlier time: other parts lie in the slots."""
    group = cache_file.GROUP_BYTES
    first, second = data[_TABLE : _TABLE + 4096], data[_TABLE + group : _TABLE + group + 4096]
    data[_TABLE : _TABLE + 4096] = second
    data[_TABLE + group : _TABLE + group + 4096] = first


DAMAGE = {
    "a bit of a block": _flip(_TABLE + 4096 + 5),
    "a bit of an entry": _flip(_TABLE + 3),
    "a bit of a checksum": _flip(_TABLE + 24),
    "a bit of the number of groups": _flip(8),
    "a bit of the limit": _flip(18),
    "the magic": _flip(0),
    "everywhere": _everywhere,
    "moved slots": _move_slots,
    "impossible sizes": _impossible_sizes,
    "shorter blocks": _shorter_blocks,
    "stale tables": _stale_tables,
    "empty": _cut(0),
    "part of the head": _cut(13),
    "only the head": _cut(4096),
    "part of a table": _cut(4096 + 700),
    "part of a slot": _cut(_TABLE + 4096 + 3 * PART_BYTES + 77),
    "another file": _overwrite(noise(5000, 9)),
    "many groups": _overwrite(b"RSCACHE\1" + (1 << 39).to_bytes(8, "little")),
    "negative groups": _overwrite(b"RSCACHE\1" + b"\xff" * 8),
}


HARMLESS = {"a bit of the limit", "the magic"}
"""Damage that a process that has the file open need not notice."""


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("is_open", [False, True])
def test_damage_is_a_miss(tmp_path: Path, damage: str, is_open: bool) -> None:
    """All bytes are right, in a process that has the file open or opens it; a process that opens it
    caches them again.
    """
    parts = range(PARTS // 2)
    inner = one_object(len(parts))
    store = CachedStore(inner, str(tmp_path), LIMIT)
    fill(store, "x", parts)
    assert hits(inner, store, "x", parts) == len(parts)
    data = bytearray((tmp_path / "blocks").read_bytes())
    DAMAGE[damage](data)
    (tmp_path / "blocks").write_bytes(data)
    if not is_open:
        del store
        _forget_uses()
        store = CachedStore(inner, str(tmp_path), LIMIT)
    assert hits(inner, store, "x", parts) < len(parts) or (is_open and damage in HARMLESS)
    if not is_open:
        assert hits(inner, store, "x", parts) > 0.8 * len(parts)


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
    CacheFile(str(tmp_path), LIMIT)
    CacheFile(str(tmp_path), LIMIT)
    assert len((tmp_path / "CACHEDIR.TAG").read_bytes()) > 43


@pytest.mark.parametrize("name", ["blocks", "CACHEDIR.TAG"])
def test_links_in_the_folder_are_not_followed(tmp_path: Path, name: str) -> None:
    inner = one_object(2)
    CacheFile(str(tmp_path / "cache"), LIMIT)
    mine = tmp_path / "mine"
    mine.write_bytes((tmp_path / "cache" / name).read_bytes()[:100])
    (tmp_path / "cache" / name).unlink()
    (tmp_path / "cache" / name).symlink_to(mine)
    before = mine.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            store = CachedStore(inner, str(tmp_path / "cache"), LIMIT)
        except OptionError:
            pass
        else:
            assert hits(inner, store, "x", range(2)) == 0
    assert mine.read_bytes() == before


def _let_others_prepare(what: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the cache folder as another user may have made it."""
    path, kind = folder / "blocks" if "file" in what else folder, what.partition(" ")[0]
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
        os.chown(folder / "blocks", 0, -1)
        monkeypatch.setattr(os, "geteuid", lambda: 12345)


@pytest.mark.parametrize(
    "what",
    [
        "hard-linked file",
        "linked file",
        "linked folder",
        "writable file",
        "writable folder",
        "foreign file",
        "foreign folder",
        pytest.param(
            "foreign file of a user",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away"),
        ),
    ],
)
def test_what_another_user_may_have_prepared_is_not_used(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, folder = one_object(1), tmp_path / "cache"
    fill(CachedStore(inner, str(folder), LIMIT), "x", range(1))
    before = (folder / "blocks").read_bytes()
    _let_others_prepare(what, folder, monkeypatch)
    with pytest.raises(FileAccessError) as caught:
        CacheFile(f"{folder}/", LIMIT)
    assert caught.value.errno in (errno.EPERM, errno.EINVAL)
    _forget_uses()
    with pytest.warns(RuntimeWarning, match=re.escape(str(folder))):
        store = CachedStore(inner, str(folder), LIMIT)
    assert hits(inner, store, "x", range(1)) == 0
    assert (folder / "blocks").read_bytes() == before


@pytest.mark.parametrize("name", ["other", "data"])
def test_the_short_tag_of_another_program(tmp_path: Path, name: str) -> None:
    """Some programs write only the signature, which is the beginning of this library's tag."""
    (tmp_path / "CACHEDIR.TAG").write_bytes(cache_file._TAG[:43])
    (tmp_path / name).write_bytes(b"x")
    with raises(OptionError, option="cache"):
        CacheFile(str(tmp_path), LIMIT)
    assert (tmp_path / "CACHEDIR.TAG").stat().st_size == 43


def test_files_are_private(tmp_path: Path) -> None:
    old_mask = os.umask(0)
    try:
        CacheFile(str(tmp_path / "cache"), LIMIT)
        assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
        for name in ("blocks", "CACHEDIR.TAG"):
            assert stat.S_IMODE((tmp_path / "cache" / name).stat().st_mode) == 0o600
    finally:
        os.umask(old_mask)
    (tmp_path / "cache" / "blocks").chmod(0o644)
    CacheFile(str(tmp_path / "cache"), LIMIT)
    assert stat.S_IMODE((tmp_path / "cache" / "blocks").stat().st_mode) == 0o600


# -- when caching is impossible --------------------------------------------------------------------


def test_a_full_disk_turns_caching_off_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = one_object(PARTS)
    store = CachedStore(inner, str(tmp_path), LIMIT)
    fill(store, "x", range(5))
    write_blocks = cache_file.cache_kernel.write_blocks
    monkeypatch.setattr(cache_file.cache_kernel, "write_blocks", lambda *_: 28)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        fill(store, "x", range(5, 20))
        assert hits(inner, store, "x", range(20)) == 5
    assert [warning.category for warning in shown] == [RuntimeWarning]
    assert "No space left" in str(shown[0].message)
    monkeypatch.setattr(cache_file.cache_kernel, "write_blocks", write_blocks)


def test_a_read_only_folder_is_still_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = one_object(PARTS)
    fill(CachedStore(inner, str(tmp_path), LIMIT), "x", range(5))
    _forget_uses()
    open_regular = cache_file.open_regular

    def open_to_read(path: str, flags: int, _mode: int = 0o600) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return open_regular(path, flags)

    monkeypatch.setattr(cache_file, "open_regular", open_to_read)
    before = _snapshot(tmp_path)
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        store = CachedStore(inner, str(tmp_path), LIMIT)
    assert hits(inner, store, "x", range(10)) == 5  # without a second warning
    assert _snapshot(tmp_path) == before


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    inner = one_object(2)
    with pytest.warns(RuntimeWarning):
        store = CachedStore(inner, str(tmp_path / "file" / "cache"), LIMIT)
    assert hits(inner, store, "x", range(2)) == 0


def test_a_deleted_folder_releases_its_space(tmp_path: Path) -> None:
    inner = one_object(PARTS)
    folder = tmp_path / "cache"
    file = CacheFile(str(folder), LIMIT)
    file.write(ObjectId(1, 2), 0, 0, memoryview(bytes(PART_BYTES)), lambda *_: None)
    descriptor = file._file
    shutil.rmtree(folder)
    assert os.fstat(descriptor).st_blocks > 0
    with pytest.raises(OSError):
        file.check_exists()
    assert os.fstat(descriptor).st_blocks == 0
    store = CachedStore(inner, str(folder), LIMIT)
    assert hits(inner, store, "x", range(2)) == 0


def test_a_full_queue_makes_no_reader_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recordsmith.stores.cache import block_cache

    monkeypatch.setattr(block_cache, "_QUEUE_BYTES", 3 * PART_BYTES)
    go_on = threading.Event()
    write = CacheFile.write

    def slow_write(*arguments: object) -> bool:
        assert go_on.wait(60)
        return write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(CacheFile, "write", slow_write)
    inner = one_object(PARTS)
    store = CachedStore(inner, str(tmp_path), LIMIT)
    for part in range(10):  # nothing is written meanwhile
        start = part * PART_BYTES
        assert (
            store.read("x", start, start + PART_BYTES, "1")
            == inner.objects["x"][0][start:][:PART_BYTES]
        )
    go_on.set()
    assert store.flush()
    assert 3 <= hits(inner, store, "x", range(10)) <= 4


def test_blocks_are_written_before_the_process_ends(tmp_path: Path) -> None:
    program = f"""
import sys
sys.path.insert(0, {str(REPOSITORY)!r})
from tests.stores.cache.test_cache_folder import one_object, CachedStore, LIMIT
CachedStore(one_object(8), {str(tmp_path)!r}, LIMIT).read("x", version="1")
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=REPOSITORY)
    inner = one_object(8)
    assert hits(inner, CachedStore(inner, str(tmp_path)), "x", range(8)) == 8


# -- the file itself -------------------------------------------------------------------------------


def test_almost_all_slots_are_used(tmp_path: Path) -> None:
    file = CacheFile(str(tmp_path), 200 << 20)
    slots = os.path.getsize(tmp_path / "blocks") // cache_file.GROUP_BYTES * 16
    block = memoryview(bytes(1))
    stored = sum(
        file.write(ObjectId(1, 2), part, 0, block, lambda *_: True)
        for part in range(slots * 9 // 10)
    )
    assert stored > slots * 9 // 10 * 0.98


def test_cached_blocks_are_counted(tmp_path: Path) -> None:
    file = CacheFile(str(tmp_path), LIMIT)
    assert file.stats() == (0, 0, None, None)
    for name in (1, 2, 3):
        assert file.write(
            ObjectId(name, 9 + name), 0, 2, memoryview(bytes(BLOCK_BYTES + 7)), lambda *_: None
        )
    size, objects, first, last = file.stats()
    assert (size, objects) == (3 * (BLOCK_BYTES + 7), 3)
    assert first is not None
    assert last is not None
    assert time.time() - 60 < first <= last <= time.time()
    file.clear()
    assert file.stats() == (0, 0, None, None)
    assert disk_bytes(tmp_path) < 100_000


def test_two_processes_that_claim_one_slot(tmp_path: Path) -> None:
    """What one wrote is not read as the part of the other, nor as another block."""
    kernel = cache_file.cache_kernel
    CacheFile(str(tmp_path), 5 << 20)  # one group
    with (tmp_path / "blocks").open("r+b") as file:
        number = file.fileno()
        mine, theirs = (1, 2, 0), (1, 3, 0)  # versions of an object
        for key in (mine, theirs):
            assert kernel.claim(number, 0, 5, *key, 1000) == 0
        assert kernel.write_blocks(number, 0, 5, *mine, 0, noise(2 * BLOCK_BYTES)) == 0
        assert kernel.read(number, 1, 3, 0, 2 * BLOCK_BYTES, 1000, 9)[1:] == (0, 2 * BLOCK_BYTES)
        assert kernel.claim(number, 0, 5, *mine, 1000) == 0
        assert kernel.write_blocks(number, 0, 5, *mine, 0, noise(2 * BLOCK_BYTES)) == 0
        data = noise(2 * BLOCK_BYTES)
        assert kernel.read(number, 1, 2, 0, len(data), 1000, 9) == (data, -1, -1)
        # the second block with its checksum is moved to the place of the first
        entry, slot = _TABLE + 152 * 5 + 24, _TABLE + 4096 + 5 * PART_BYTES
        os.pwrite(number, os.pread(number, 8, entry + 8), entry)
        os.pwrite(number, data[BLOCK_BYTES:], slot)
        assert kernel.read(number, 1, 2, 0, len(data), 1000, 9)[1:] == (0, BLOCK_BYTES)
