"""Loaders of compressed shards promise what all loaders do, and read each shard once an epoch."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.dataset import records_of
from recordsmith.loading.batches import sequential_reader
from recordsmith.stores import Location

COUNTS = (9, 0, 14, 1, 17)  # 41
SHUFFLES = [False, rs.BufferShuffle(1), rs.BufferShuffle(7), rs.BufferShuffle(1000)]


@pytest.fixture(scope="module", params=["gzip", "zlib", "mixed", "none"])
def dataset(
    request: pytest.FixtureRequest, small: Any, tmp_path_factory: pytest.TempPathFactory
) -> rs.Dataset:
    compressions = ["gzip", "none", "zlib"] if request.param == "mixed" else [request.param]
    folder = tmp_path_factory.mktemp(request.param)
    return small.write_shards(folder, COUNTS, compressions, lengths=(0, 5000))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def zipped(small: Any, tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    return small.write_shards(tmp_path_factory.mktemp("zipped"), COUNTS, ["gzip"])  # type: ignore[no-any-return]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the shards that are begun to be read in order."""
    names: list[str] = []
    read = sequential_reader._OpenShard._read

    def counted(shard: Any) -> Any:
        names.append(shard._shard.location.name)
        return read(shard)

    monkeypatch.setattr(sequential_reader._OpenShard, "_read", counted)
    return names


@pytest.fixture(params=[None, 300], ids=["whole blocks", "small blocks"])
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of one block, and of many."""
    if request.param is not None:
        monkeypatch.setattr("recordsmith.wire.stream.BLOCK_BYTES", request.param)


# -- order, split, resume --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("last_batch", ["keep", "drop", "pad"])
def test_resuming_at_any_step_changes_nothing(
    small: Any, dataset: rs.Dataset, shuffle: bool | rs.BufferShuffle, last_batch: str
) -> None:
    read = small.assert_resumes_at_every_step(
        dataset,
        batch_size=4,
        rank=1,
        world_size=2,
        shuffle=shuffle,
        last_batch=last_batch,
        epochs=2,
        seed=3,
    )
    assert len(read) == 2 * (5 if last_batch == "drop" else 6)


@pytest.mark.slow
@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("batch_size", [1, 3, 50])
def test_records_are_those_of_the_same_shards_uncompressed(
    small: Any,
    dataset: rs.Dataset,
    tmp_path: Path,
    shuffle: bool | rs.BufferShuffle,
    batch_size: int,
) -> None:
    plain = small.write_shards(tmp_path, COUNTS, lengths=(0, 5000))
    options = {"batch_size": batch_size, "shuffle": shuffle, "epochs": 3, "last_batch": "pad"}
    expected = small.ids(small.loader(plain, **options))
    for threads in (0, 3):
        assert small.ids(small.loader(dataset, threads=threads, **options)) == expected


@given(
    shuffle=st.sampled_from(SHUFFLES),
    batch_size=st.integers(1, 6),
    world_size=st.integers(1, 50),
    cut=st.sampled_from([slice(None), slice(3, 30), slice(9, 9), slice(10, 12)]),
)
@settings(max_examples=30)
def test_ranks_share_an_epoch(
    small: Any,
    zipped: rs.Dataset,
    shuffle: bool | rs.BufferShuffle,
    batch_size: int,
    world_size: int,
    cut: slice,
) -> None:
    ranks = [
        small.ids(
            small.loader(
                zipped[cut], batch_size=batch_size, rank=rank, world_size=world_size,
                shuffle=shuffle,
            )
        )
        for rank in range(world_size)
    ]  # fmt: skip
    together = [number for step in small.dealt(ranks) for number in step]
    expected = list(range(41))[cut]
    assert sorted(together) == expected
    if shuffle is False:
        assert together == expected


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 4)), max_size=3),
    st.sampled_from(SHUFFLES),
)
@settings(max_examples=20)
def test_others_may_go_on_in_mid_epoch(
    small: Any,
    zipped: rs.Dataset,
    worlds: list[tuple[int, int, int]],
    shuffle: bool | rs.BufferShuffle,
) -> None:
    read = small.read_by_changing_worlds(zipped, [*worlds, (3, 2, 99)], shuffle=shuffle)
    whole = small.ids(small.loader(zipped, batch_size=41, shuffle=shuffle))[0]
    assert read == whole


# -- in order --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_each_shard_is_begun_once_an_epoch(
    small: Any, zipped: rs.Dataset, opened: list[str], shuffle: bool | rs.BufferShuffle
) -> None:
    small.ids(small.loader(zipped, batch_size=4, rank=1, world_size=2, shuffle=shuffle, epochs=3))
    assert len(opened) <= 3 * 4  # one of five is empty


@pytest.mark.parametrize("threads", [0, 2])
def test_no_more_is_in_memory_than_two_runs(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """As much is read of the next run as is handed out of this one."""
    zipped = small.write_shards(tmp_path, [400], ["gzip"], lengths=(2000,))
    monkeypatch.setattr("recordsmith.wire.stream.BLOCK_BYTES", 4096)
    read, handed_out, most = 0, 0, 0
    payload = sequential_reader._OpenShard.payload

    def counted(self: Any, number: int) -> Any:
        nonlocal read
        read += 1
        return payload(self, number)

    monkeypatch.setattr(sequential_reader._OpenShard, "payload", counted)
    loader = small.loader(
        zipped, batch_size=5, shuffle=rs.BufferShuffle(50), threads=threads, prefetch=1, epochs=2
    )
    for batch in loader:
        handed_out += len(batch["id"])
        most = max(most, read - handed_out)
    assert read == handed_out == 800
    assert most <= 50 + 3 * 5 + 10


def test_epochs_without_end_begin_at_once(small: Any, zipped: rs.Dataset) -> None:
    """A run ends where its epoch ends, also if an epoch is one run."""
    with small.loader(
        zipped, batch_size=41, shuffle=rs.BufferShuffle(10**15), epochs=None
    ) as loader:
        batches = [batch["id"].tolist() for _, batch in zip(range(3), loader, strict=False)]
    assert all(sorted(batch) == list(range(41)) for batch in batches)
    assert len({tuple(batch) for batch in batches}) == 3


def test_nothing_stays_open(small: Any, zipped: rs.Dataset, monkeypatch: Any) -> None:
    files: list[Any] = []
    open_read = Location.open_read

    def kept(location: Location) -> Any:
        files.append(open_read(location))
        return files[-1]

    monkeypatch.setattr(Location, "open_read", kept)
    with small.loader(zipped, batch_size=3, shuffle=rs.BufferShuffle(5), threads=2) as loader:
        iteration = iter(loader)
        next(iteration)
    assert files
    assert all(file.closed for file in files)


# -- damage ----------------------------------------------------------------------------------------


def _payload_damaged(path: Path, number: int, compression: str) -> None:
    """Turn a bit of a record, and compress again: the checksum of the record is wrong."""
    import gzip
    import zlib

    unpack = gzip.decompress if compression == "gzip" else zlib.decompress
    data = bytearray(unpack(path.read_bytes()))
    begin = 0
    for _ in range(number):
        begin += int.from_bytes(data[begin : begin + 8], "little") + 16
    data[begin + 14] ^= 1
    path.write_bytes(gzip.compress(data) if compression == "gzip" else zlib.compress(bytes(data)))


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("compression", ["gzip", "zlib"])
@pytest.mark.parametrize("shuffle", [False, rs.BufferShuffle(6)])
def test_a_damaged_record_is_named_or_skipped(
    small: Any, tmp_path: Path, shuffle: bool | rs.BufferShuffle, compression: str
) -> None:
    dataset = small.write_shards(tmp_path, [10, 8], [compression])
    assert dataset.schema.record_count == len(dataset) == 18
    path = tmp_path / "000.tfrecord"
    for number in (4, 9):  # 9 is the last one of its shard
        _payload_damaged(path, number, compression)
    options = {"batch_size": 3, "shuffle": shuffle, "epochs": 2}
    with pytest.raises(rs.CorruptDataError) as caught:
        small.ids(small.loader(dataset, **options))
    assert caught.value.defect is rs.Defect.PAYLOAD_CRC
    assert (caught.value.path, caught.value.record in (4, 9)) == (str(path), True)
    loader = small.loader(dataset, skip_errors=2, **options)
    batches = small.ids(loader)
    assert [len(batch) <= 3 for batch in batches] == [True] * 12
    for epoch in (batches[:6], batches[6:]):
        found = sorted(number for batch in epoch for number in batch)
        assert found == [number for number in range(18) if number not in (4, 9)]
    assert sorted((fault.path, fault.record) for fault in loader.skipped) == [
        (str(path), 4), (str(path), 9),
    ]  # fmt: skip
    with pytest.raises(rs.CorruptDataError) as caught:
        small.ids(small.loader(dataset, skip_errors=1, **options))
    assert (str(caught.value.defect), caught.value.record) == ("payload-crc-mismatch", 9)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("shuffle", [False, rs.BufferShuffle(6)])
@pytest.mark.parametrize("damage", ["cut", "broken"])
def test_what_comes_after_a_break_is_lost_record_by_record(
    small: Any, tmp_path: Path, shuffle: bool | rs.BufferShuffle, damage: str
) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    path = folder / "000.tfrecord"
    noise = random.Random(0)
    with rs.ShardWriter(path, compression="gzip") as writer:
        for number in range(40):
            writer.write_example({"id": number, "data": noise.randbytes(3000)})
    dataset = rs.open(path)
    assert dataset.schema.record_count == len(dataset) == 40
    data = path.read_bytes()
    middle = len(data) // 2
    if damage == "cut":
        path.write_bytes(data[:middle])
    else:
        path.write_bytes(data[:middle] + noise.randbytes(middle))
    options = {"batch_size": 3, "shuffle": shuffle, "epochs": 2}
    with pytest.raises(rs.CorruptDataError, match=r"record \d+") as caught:
        small.ids(small.loader(dataset, **options))
    assert caught.value.path == str(path)
    loader = small.loader(dataset, skip_errors=40, **options)
    batches = small.ids(loader)
    assert len(batches) == 28
    lost = {fault.record for fault in loader.skipped}
    for epoch in (batches[:14], batches[14:]):
        found = sorted(number for batch in epoch for number in batch)
        assert found == list(range(len(found)))
        assert lost == set(range(len(found), 40))
    assert 15 < len(lost) < 25
    with pytest.raises(rs.CorruptDataError):
        small.ids(small.loader(dataset, skip_errors=len(lost) - 1, **options))


def test_a_shard_with_fewer_records_than_promised(small: Any, tmp_path: Path) -> None:
    dataset = small.write_shards(tmp_path, [10, 5], ["gzip"])
    assert dataset.schema.record_count == len(dataset) == 15
    other = small.write_shards(tmp_path / "other", [6], ["gzip"])
    path = tmp_path / "000.tfrecord"
    path.write_bytes(Path(records_of(other).locate_record(0).path).read_bytes())
    with pytest.raises(rs.CorruptDataError) as caught:
        small.ids(small.loader(dataset, batch_size=4))
    assert (str(caught.value.defect), caught.value.record) == ("record-count-mismatch", 6)
    loader = small.loader(dataset, batch_size=4, skip_errors=4)
    assert sum(small.ids(loader), []) == [*range(6), *range(10, 15)]  # noqa: RUF017
    path.unlink()
    with pytest.raises(rs.FileAccessError, match="000"):
        small.ids(small.loader(dataset, batch_size=4, skip_errors=4))


# -- options ---------------------------------------------------------------------------------------


def test_a_shard_that_is_replaced_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recordsmith.wire.stream.BLOCK_BYTES", 300)  # it is begun in each epoch
    rows = [{"id": number, "noise": f"{number * 7919 % 10007}"} for number in range(400)]
    rs.pack(rs.Rows(rows), tmp_path / "data", compression="gzip", shards=1)
    (path,) = (tmp_path / "data").glob("*.tfrecord.gz")
    loader = rs.Loader(
        rs.open(tmp_path / "data"),
        {"id": rs.Scalar("id")},
        batch_size=100,
        shuffle=rs.BufferShuffle(50),
        epochs=3,
        threads=0,
    )
    batches = iter(loader)
    assert len(next(batches)["id"]) == 100
    rs.pack(
        rs.Rows([{"id": -1}] * 400), tmp_path / "other", compression="gzip", shards=1
    )  # as many records
    (other,) = (tmp_path / "other").glob("*.tfrecord.gz")
    expected = path.stat().st_size
    other.replace(path)
    with pytest.raises(rs.CorruptDataError) as caught:
        for batch in batches:
            assert (batch["id"] >= 0).all()
    error = caught.value
    assert (error.defect, error.path) == (rs.Defect.SHARD_SIZE, str(path))
    assert (error.found, error.expected) == (f"{path.stat().st_size} bytes", f"{expected} bytes")


@pytest.mark.parametrize("shuffle", [True, rs.BlockShuffle()])
def test_other_shuffles_are_refused_when_the_loader_is_made(
    small: Any, zipped: rs.Dataset, shuffle: Any
) -> None:
    with pytest.raises(rs.OptionError) as caught:
        small.loader(zipped, batch_size=2, shuffle=shuffle)
    assert caught.value.option == "shuffle"


def test_slices_are_read_forwards_only(small: Any, zipped: rs.Dataset) -> None:
    expected = list(range(len(zipped)))[1::3]
    assert [*itertools.chain(*small.ids(small.loader(zipped[1::3], batch_size=2)))] == expected
    for part in (zipped[::-1], zipped.shuffle(), zipped[[1, 0]]):
        with pytest.raises(rs.OptionError) as caught:
            small.loader(part, batch_size=2)
        assert caught.value.option == "dataset"


def test_compressed_shards_of_which_nothing_is_wanted_do_not_matter(
    small: Any, tmp_path: Path
) -> None:
    dataset = small.write_shards(tmp_path, [5, 6], ["gzip", "none"])
    loader = small.loader(dataset[5:], batch_size=6, shuffle=True)
    assert sorted(small.ids(loader)[0]) == list(range(5, 11))


def test_buffers_of_other_sizes_are_other_orders(small: Any, zipped: rs.Dataset) -> None:
    state = small.loader(zipped, batch_size=2, shuffle=rs.BufferShuffle(5)).state_dict()
    with pytest.raises(rs.OptionError) as caught:
        small.loader(zipped, batch_size=2, shuffle=rs.BufferShuffle(6)).load_state_dict(state)
    assert caught.value.option == "state"
