"""Rows of packed documents have each token once, in order, and are the same for all ranks."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.raising import raises
from tests.reading import written
from tests.stores.rounds import RoundStore

import recordsmith as rs
from recordsmith.dataset import SelectedRecords, records_of
from recordsmith.loading.order.best_fit import best_fit
from recordsmith.loading.order.row_layout import BestFitLayout, Documents
from recordsmith.stores import Location
from recordsmith.stores.local import scratch
from recordsmith.support.errors import Defect

EOS = -1
FIRST = 1000  # token t of document d is d * FIRST + t


def documents(place: Path, lengths: Sequence[int], shard_count: int = 1) -> rs.Dataset:
    """Documents of so many tokens, all of which differ."""
    place.mkdir(parents=True, exist_ok=True)
    for shard in range(shard_count):
        with rs.ShardWriter(place / f"{shard}.tfrecord") as writer:
            for number in range(shard, len(lengths), shard_count):
                tokens = number * FIRST + np.arange(lengths[number])
                features = {"text": tokens} if lengths[number] or number % 2 else {}
                writer.write_example({"id": number, **features})
    return rs.open(place)


def rows_of(packed: rs.Packed) -> list[dict[str, Any]]:
    """All rows, in order."""
    payloads = packed.read_records(np.arange(len(packed)))
    assert payloads.shape == (len(packed),)
    return [dict(rs.decode_example(payload)) for payload in payloads]


def parts_of(row: dict[str, Any]) -> list[list[int]]:
    """The tokens of each document of a row, whose other features are checked."""
    columns = [row[name].tolist() for name in ("tokens", "document_ids", "positions", "loss_mask")]
    parts: list[list[int]] = []
    for token, number, position, has_loss in zip(*columns, strict=True):
        if number == 0:
            assert (token, position, has_loss) == (0, 0, 0)
            continue
        if number == len(parts) + 1:
            parts.append([])
        assert number == len(parts)
        assert position == len(parts[-1])
        assert has_loss == (position > 0)
        parts[-1].append(token)
    assert columns[1][sum(map(len, parts)) :] == [0] * (len(columns[1]) - sum(map(len, parts)))
    return parts


def best_fit_of(lengths: Sequence[int], capacity: int) -> list[int]:
    """The row of each piece, by looking at all rows."""
    rooms: list[list[int]] = []  # (room, when it had it), of each row
    rows = []
    for time, length in enumerate(lengths):
        fitting = [number for number, (room, _) in enumerate(rooms) if room >= length]
        if fitting:  # the last one among those of equal room
            row = min(fitting, key=lambda number: (rooms[number][0], -rooms[number][1]))
        else:
            row = len(rooms)
            rooms.append([capacity, 0])
        rooms[row] = [rooms[row][0] - length, time]
        rows.append(row)
    return rows


@given(st.integers(1, 70), st.lists(st.integers(1, 1000), max_size=150))
def test_best_fit_is_that_of_a_simple_search(capacity: int, numbers: list[int]) -> None:
    lengths = [1 + number % capacity for number in numbers]
    rows, row_count = best_fit(np.array(lengths, np.int64), capacity)
    expected = best_fit_of(lengths, capacity)
    assert rows.tolist() == expected
    assert row_count == max(expected, default=-1) + 1


@pytest.mark.parametrize(("length", "capacity"), [(0, 5), (6, 5), (1, 0), (1, 2**40)])
def test_the_kernel_checks_its_input(length: int, capacity: int) -> None:
    with pytest.raises(ValueError, match=r"range|capacity"):
        best_fit(np.array([length]), capacity)


@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=40).filter(any),
    length=st.integers(1, 30),
    eos=st.sampled_from([None, EOS]),
    split=st.booleans(),
    seed=st.sampled_from([None, 0, 7]),
    window=st.integers(1, 50),
)
def test_each_token_is_in_one_row(
    tmp_path_factory: pytest.TempPathFactory,
    lengths: list[int],
    length: int,
    eos: int | None,
    split: bool,
    seed: int | None,
    window: int,
) -> None:
    dataset = documents(tmp_path_factory.mktemp("text"), lengths, 2)
    stored = [example.get("text", np.empty(0, int)).tolist() for example in dataset]
    packed = rs.Packed(
        dataset, "text", length=length, eos=eos, split_documents=split, seed=seed, window=window
    )
    expected = [tokens + [EOS] * (eos is not None) for tokens in stored if tokens]
    token_count = sum(map(len, expected))
    payloads = packed.read_records(np.arange(len(packed))).tolist()
    rows = [parts_of(dict(rs.decode_example(payload))) for payload in payloads]
    used = [sum(map(len, row)) for row in rows]
    for at in range(len(rows)):  # long documents are kept now
        assert packed.read_records(np.array([at])).tolist() == payloads[at : at + 1]
    assert packed.token_count == sum(used) == token_count
    assert packed.fill == token_count / (len(rows) * length)
    if split:  # end to end, in the order of the seed
        stream = [token for row in rows for part in row for token in part]
        assert used[:-1] == [length] * (len(rows) - 1)
        joined = {tuple(tokens) for tokens in expected}
        order = []
        while stream:
            size = next(n for n in range(1, len(stream) + 1) if tuple(stream[:n]) in joined)
            order.append(stream[:size])
            stream = stream[size:]
        if seed is None:
            assert order == expected
    else:  # whole, or as many full rows as there are and the rest
        pieces = [tokens[at : at + length] for tokens in expected
                  for at in range(0, len(tokens), length)]  # fmt: skip
        assert sorted(part for row in rows for part in row) == sorted(pieces)
        assert all(len(row) == 1 for row, size in zip(rows, used, strict=True)
                   if len(row[0]) == length)  # fmt: skip
        if window >= len(lengths):
            decreasing = sorted((len(piece) for piece in pieces), reverse=True)
            assert len(rows) == max(best_fit_of(decreasing, length)) + 1


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    """103 documents of up to 30 tokens, in 3 shards; one is longer."""
    lengths = np.random.default_rng(5).integers(0, 31, 103)
    lengths[50] = 70
    return documents(tmp_path_factory.mktemp("packed"), lengths.tolist(), 3)


def packings(dataset: rs.Dataset, **options: Any) -> list[rs.Packed]:
    return [
        rs.Packed(dataset, "text", length=16, split_documents=split, **options)
        for split in (True, False)
    ]


def ids(packed: rs.Packed, **options: Any) -> rs.Loader:
    return rs.Loader(packed, {"id": rs.Position(), "tokens": "tokens"}, threads=0, **options)


def test_all_features_are_loaded(text: rs.Dataset) -> None:
    for packed in packings(text):
        loader = rs.Loader(packed, batch_size=5)
        spec = loader.spec()
        assert [*spec] == ["tokens", "document_ids", "positions", "loss_mask"]
        assert {(entry.dtype, entry.shape) for entry in spec.values()} == {
            (np.dtype(np.int64), (None, 16))
        }
        loaded = [
            {name: batch[name][row] for name in batch}
            for batch in loader for row in range(len(batch["tokens"]))
        ]  # fmt: skip
        for row, expected in zip(loaded, rows_of(packed), strict=True):
            assert all(np.array_equal(row[name], expected[name]) for name in spec)
        assert np.array_equal(rs.Examples(packed)[3]["tokens"], loaded[3]["tokens"])


def test_the_seed_changes_which_documents_are_together(text: rs.Dataset) -> None:
    for split in (0, 1):
        first, same, other = (
            [row["tokens"].tolist() for row in rows_of(packings(text, seed=seed)[split])]
            for seed in (1, 1, 2)
        )
        assert first == same != other


@pytest.mark.parametrize("choose", [
    lambda dataset: dataset[10:60], lambda dataset: dataset.filter("id > 40"),
    lambda dataset: dataset.shuffle(3),
])  # fmt: skip
def test_selected_documents(text: rs.Dataset, choose: Callable[[rs.Dataset], rs.Dataset]) -> None:
    chosen = choose(text)
    expected = sorted(t for example in chosen for t in example.get("text", np.empty(0)).tolist())
    for packed in packings(chosen):
        tokens = [token for row in rows_of(packed) for part in parts_of(row) for token in part]
        assert sorted(tokens) == expected


def test_numbers_in_files_and_in_other_processes(
    text: rs.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [rows_of(packed) for packed in packings(text, eos=EOS)]
    monkeypatch.setattr(scratch, "_ARRAY_IN_MEMORY_BYTES", 0)
    mapped = packings(text, eos=EOS)
    for packed in (mapped, pickle.loads(pickle.dumps(mapped))):
        for one, rows in zip(packed, expected, strict=True):
            for row, known in zip(rows_of(one), rows, strict=True):
                assert all(np.array_equal(row[name], known[name]) for name in known)


def test_documents_over_a_network(text: rs.Dataset) -> None:
    """Those of a batch are read in one round."""
    store = RoundStore(0.0)
    for shard in text.shards:
        store.set(shard.location.name, shard.location.read())
    remote = rs.open([Location(store, key) for key in store.objects])
    for packed, local in zip(packings(remote), packings(text), strict=True):
        store.reset()
        found, expected = (
            one.read_records(np.arange(len(one) - 1, -1, -2)).tolist() for one in (packed, local)
        )
        assert found == expected
        assert len(store.rounds) == 1
        for shuffle in (True, rs.BlockShuffle(4, 3)):
            batches, known = (
                [*rs.Loader(one, ["tokens"], batch_size=5, shuffle=shuffle)]
                for one in (packed, local)
            )
            for batch, other in zip(batches, known, strict=True):
                assert np.array_equal(batch["tokens"], other["tokens"])


def test_fill() -> None:
    """Of large windows, and of small ones, whose emptiest rows join the next window."""
    rng = np.random.default_rng(0)
    for lengths, small_window, lowest in (
        (np.clip(rng.lognormal(5.5, 1, 20_000), 1, 2048), 340, 0.998),
        (rng.integers(1, 2049, 20_000), 129, 0.95),
        (np.clip(rng.geometric(1 / 60, 20_000), 1, 2048), 2183, 0.999),
    ):
        for window, least in ((65_536, max(0.99, lowest)), (small_window, lowest)):
            layout = BestFitLayout(Documents(lengths.astype(np.int64), 0, None), 2048, window)
            assert layout.token_count / (2048 * layout.row_count) > least


def test_a_long_document_is_read_once_for_rows_that_come_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = rs.Packed(documents(tmp_path, [900, 3, 5, 700, 40]), "text", length=16)
    read: Counter[int] = Counter()
    whole = SelectedRecords.read_records

    def counting(self: Any, positions: Any, *arguments: Any) -> Any:
        read.update(positions.tolist())
        return whole(self, positions, *arguments)

    monkeypatch.setattr(SelectedRecords, "read_records", counting)
    loader = rs.Loader(packed, ["tokens"], batch_size=2, shuffle=True, threads=0)
    assert sum(len(batch["tokens"]) for batch in loader) == len(packed)
    assert (read[0], read[3]) == (1, 1)
    copied = pickle.loads(pickle.dumps(packed))
    assert (
        copied.read_records(np.array([0])).tolist() == packed.read_records(np.array([0])).tolist()
    )


# -- bad input -------------------------------------------------------------------------------------


def test_damaged_documents(tmp_path: Path, numbered: Any) -> None:
    dataset = documents(tmp_path, [5] * 30)
    packings_before = packings(dataset, seed=None)
    rows_before = [rows_of(packed) for packed in packings_before]
    numbered.damage(dataset, [13])
    for packed, before in zip(packings_before, rows_before, strict=True):
        packed.datasets = (rs.open(tmp_path),)
        bad = {row for row in range(len(before))
               if any(part[0] // FIRST == 13 for part in parts_of(before[row]))}  # fmt: skip
        loader = rs.Loader(packed, batch_size=4, threads=0, skip_errors=3)
        loaded = [tokens for batch in loader for tokens in batch["tokens"].tolist()]
        rest = [row["tokens"].tolist() for at, row in enumerate(before) if at not in bad]
        assert loaded == rest
        assert {(error.record, error.defect) for error in loader.skipped} == {
            (13, Defect.PAYLOAD_CRC)
        }
        with raises(rs.CorruptDataError, record=13):
            list(rs.Loader(packed, batch_size=4, threads=0))


@pytest.mark.parametrize("options", [{}, {"eos": EOS}, {"split_documents": False}])
def test_documents_that_are_damaged_before_they_are_counted(
    tmp_path: Path, numbered: Any, options: dict[str, Any]
) -> None:
    """Each costs one row, which `skip_errors` of a loader skips."""
    dataset = documents(tmp_path, [5] * 60)
    numbered.damage(dataset, [13, 40])
    packed = rs.Packed(rs.open(tmp_path), "text", length=16, seed=None, **options)
    loader = rs.Loader(packed, batch_size=4, skip_errors=2)
    rows = [tokens for batch in loader for tokens in batch["tokens"].tolist()]
    assert len(rows) == len(packed) - 2
    assert {error.record for error in loader.skipped} == {13, 40}
    assert not {13, 40} & {token // FIRST for row in rows for token in row if token > 0}
    for skip_errors in (0, 1):
        with raises(rs.CorruptDataError, defect=Defect.PAYLOAD_CRC):
            list(rs.Loader(packed, batch_size=4, skip_errors=skip_errors))
    numbered.damage(dataset, [number for number in range(60) if number not in (13, 40)])
    with raises(rs.OptionError, option="tokens"):
        rs.Packed(rs.open(tmp_path), "text", length=16)


def test_a_damaged_document_counts_once_for_all_of_its_rows(tmp_path: Path, numbered: Any) -> None:
    dataset = documents(tmp_path, [5, 60, 5])
    packed = rs.Packed(dataset, "text", length=16, seed=None)
    numbered.damage(dataset, [1])
    packed.datasets = (rs.open(tmp_path),)
    loader = rs.Loader(packed, batch_size=2, skip_errors=1, epochs=2)
    assert sum(len(batch["tokens"]) for batch in loader) == 0
    assert [error.record for error in loader.skipped] == [1]


def test_documents_that_have_changed(tmp_path: Path) -> None:
    lengths = [5] * 30
    packed = rs.Packed(documents(tmp_path / "one", lengths), "text", length=8)
    lengths[7] = 6
    packed.datasets = (documents(tmp_path / "other", lengths),)
    with raises(rs.CorruptDataError, record=7, defect=Defect.FEATURE_SHAPE):
        rows_of(packed)


def test_a_row_is_located_by_its_first_document(text: rs.Dataset) -> None:
    packed = rs.Packed(text, "text", length=16, seed=None)
    numbers = {int(example["id"][0]) * FIRST: at for at, example in enumerate(text)}
    for at, row in enumerate(rows_of(packed)):
        first = row["tokens"][0] // FIRST * FIRST
        assert packed.locate_record(at) == records_of(text).locate_record(numbers[first])
    assert packed.record_sizes(np.array([0, 3])).min() > 16


@pytest.mark.parametrize(("option", "options"), [
    ("length", {"length": 0}), ("length", {"length": 2.5}), ("length", {"length": 2**24 + 1}),
    ("eos", {"eos": 2**63}), ("eos", {"eos": "</s>"}), ("eos", {"eos": True}),
    ("seed", {"seed": 1.5}), ("window", {"window": 0}), ("tokens", {"tokens": "other"}),
    ("tokens", {"tokens": "name"}), ("tokens", {"tokens": "score"}), ("tokens", {"tokens": "none"}),
    ("tokens", {"tokens": 3}), ("long_documents", {"long_documents": "drop"}),
    ("length", {"long_documents": "error", "length": 5, "split_documents": False}),
    ("length", {"long_documents": "error", "length": 6, "eos": 0, "split_documents": False}),
    ("dataset", {"dataset": [[1, 2], [3]]}),
])  # fmt: skip
def test_bad_options(tmp_path: Path, option: str, options: dict[str, Any]) -> None:
    records = [{"tokens": [1] * 6, "name": "x", "score": 0.5, "none": np.empty(0, int)}] * 3
    given = {"dataset": written(tmp_path, records), "tokens": "tokens", "length": 6, **options}
    with raises(rs.OptionError, option=option):
        rs.Packed(**given)


def test_no_documents(tmp_path: Path) -> None:
    for records in ([], [{"tokens": np.empty(0, np.int64)}]):
        with raises(rs.OptionError, option="tokens"):
            rs.Packed(written(tmp_path, records), "tokens", length=6)


def test_a_state_of_other_rows_is_refused(tmp_path: Path) -> None:
    text, longer = (documents(tmp_path / str(size), [5, size]) for size in (5, 6))
    packed, whole = packings(text, eos=0)
    state = ids(packed, batch_size=2).state_dict()
    ids(packings(text, eos=0)[0], batch_size=2).load_state_dict(state)
    others = [packings(text, **one)[0] for one in ({"eos": 1}, {"eos": 0, "seed": 1})]
    others += [rs.Packed(text, "text", length=15, eos=0), packings(longer, eos=0)[0]]
    assert {len(other) for other in [packed, whole, *others]} == {1}
    for other in [whole, *others]:
        with raises(rs.OptionError, option="state"):
            ids(other, batch_size=2).load_state_dict(state)
