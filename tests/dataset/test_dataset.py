"""Dataset as a sequence, compared with a Python list for all ways of slicing and reading."""

from __future__ import annotations

import errno
import itertools
import pickle
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import recordsmith as rs
from recordsmith.dataset import ShardWriter, records_of
from recordsmith.format.wire import encode_record
from recordsmith.stores import Location, PlaceLike, as_location
from recordsmith.stores.local.store import LocalStore

from .. import numbered_examples as numbered
from ..places import new_place
from ..raising import raises

COUNTS = [4, 0, 1, 7, 3]
IDS = list(range(sum(COUNTS)))
BOUNDS = st.none() | st.integers(-20, 20)
SLICES = st.builds(slice, BOUNDS, BOUNDS, st.none() | st.integers(-6, 6).filter(bool))


@pytest.fixture(scope="module", params=["files", "memory"])
def folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Location]:
    with new_place(request.param, tmp_path_factory.mktemp("numbers")) as place:
        yield numbered.packed(place, {"train": COUNTS})


@pytest.fixture(scope="module")
def dataset(folder: Location) -> rs.Dataset:
    return rs.open(folder)


@pytest.fixture(scope="module")
def foreign(folder: Location) -> rs.Dataset:
    return rs.open(folder / "*.tfrecord")


@pytest.fixture(scope="module", params=["manifest", "pattern"])
def opened(request: pytest.FixtureRequest, folder: Location) -> rs.Dataset:
    """With and without its manifest."""
    return rs.open(folder if request.param == "manifest" else folder / "*.tfrecord")


@pytest.fixture(scope="module", params=["gzip", "zlib"])
def compressed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> rs.Dataset:
    folder = tmp_path_factory.mktemp(request.param)
    return rs.open(numbered.packed(folder, {"train": COUNTS}, request.param))


# -- as a sequence -------------------------------------------------------------------------------


def test_every_position(opened: rs.Dataset) -> None:
    assert len(opened) == len(IDS)
    for position in range(-len(IDS), len(IDS)):
        numbered.assert_is_example(opened[position], IDS[position])
        numbered.assert_is_example(opened[np.int64(position)], IDS[position])
    for number, example in enumerate(opened):
        numbered.assert_is_example(example, number)
    assert numbered.ids_of(reversed(opened)) == IDS[::-1]


@pytest.mark.parametrize("position", [len(IDS), -len(IDS) - 1, 10**30, -(10**30)])
def test_positions_out_of_range(dataset: rs.Dataset, position: int) -> None:
    with pytest.raises(IndexError, match=rf"{position}.*{len(IDS)} records"):
        dataset[position]
    with pytest.raises(IndexError):
        records_of(dataset).read_record(position)
    with pytest.raises(IndexError):
        dataset[3:5][2]


@pytest.mark.parametrize("index", [1.0, "a", None])
def test_invalid_positions(dataset: rs.Dataset, index: Any) -> None:
    with raises(rs.OptionError, option="positions"):
        dataset[index]
    with pytest.raises(ValueError, match="zero"):
        dataset[::0]


def test_compressed_shards_have_no_random_access(compressed: rs.Dataset) -> None:
    assert len(compressed) == len(IDS)
    for index in (0, -1):
        with raises(rs.OptionError, option="paths", match=r"gzip|zlib"):
            compressed[index]
    np.testing.assert_array_equal(compressed.read_columns(["id"])["id"], IDS)


def test_record_counts_are_known_from_manifests_and_slices(folder: Location) -> None:
    assert records_of(rs.open(folder)).known_record_count == len(IDS)
    foreign = rs.open(folder / "*.tfrecord")
    assert records_of(foreign).known_record_count is None
    assert "5 shards, records not counted yet" in repr(foreign)
    assert records_of(foreign[2:5]).known_record_count == 3


def test_several_threads_read_it_at_once(dataset: rs.Dataset) -> None:
    rng = random.Random(0)
    positions = [rng.randrange(len(IDS)) for _ in range(300)]
    with ThreadPoolExecutor(8) as pool:
        singles = list(pool.map(lambda position: dataset[position], positions))
        passes = list(pool.map(lambda _: numbered.ids_of(dataset), range(8)))
    for position, example in zip(positions, singles, strict=True):
        numbered.assert_is_example(example, position)
    assert passes == [IDS] * 8


def test_repr_has_shards_and_records(dataset: rs.Dataset) -> None:
    lines = repr(dataset[2:5]).splitlines()
    assert "3 records in 5 shards" in lines[0]
    assert lines[1:] == [
        "  splits: train",
        "  features: id (int64), name (bytes), score (float), steps (int64)",
        "  classes: daisy, müsli, a b",
    ]
    html = rs.Dataset(replace(dataset.view, class_names=("<b>", "a\x1b[31m")))._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>," not in html
    assert "\x1b" not in html


# -- columns -------------------------------------------------------------------------------------


def _rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Convert columns to the examples that single decoding returns."""
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_columns_equal_the_examples(opened: rs.Dataset) -> None:
    columns: Any = opened.read_columns()
    assert set(columns) == set(numbered.features(0))
    assert isinstance(columns["steps"], rs.RaggedArray)
    assert isinstance(columns["name"], rs.BytesArray)
    assert (columns["id"].dtype, columns["score"].dtype) == (np.int64, np.float32)
    for number, row in enumerate(_rows(columns)):
        expected = numbered.features(number)
        assert row["id"] == expected["id"]
        assert row["score"] == expected["score"]
        assert row["name"] == expected["name"].encode()
        assert row["steps"].tolist() == expected["steps"]


def test_columns_with_declared_shapes(dataset: rs.Dataset) -> None:
    columns = dataset.read_columns(
        {"id": rs.FeatureSpec("int64", (1,)), "x": rs.FeatureSpec("float", (), -1.5)}
    )
    np.testing.assert_array_equal(columns["id"], np.array(IDS)[:, None])
    np.testing.assert_array_equal(columns["x"], np.full(len(IDS), -1.5, np.float32))


@pytest.mark.parametrize(("key", "hint"), [("nam", "'name'"), ("zzz", "id, name, score, steps")])
def test_unknown_columns_list_the_known_ones(dataset: rs.Dataset, key: str, hint: str) -> None:
    for read in (lambda: dataset.read_columns([key]), lambda: dataset.batches(2, [key])):
        with raises(rs.OptionError, option="keys", value=key, match=hint):
            read()


def test_a_string_is_not_a_list_of_names(dataset: rs.Dataset) -> None:
    for read in (lambda: dataset.read_columns("id"), lambda: dataset.batches(2, "id")):
        with raises(rs.OptionError, option="keys", value="id"):
            read()


@pytest.mark.parametrize("position", range(len(IDS)))
def test_errors_in_columns_name_the_record(
    place: Location, dataset: rs.Dataset, position: int
) -> None:
    path = place / "a.tfrecord"
    with ShardWriter(path) as writer:
        for number in IDS:
            writer.write_example({"id": number if number != position else "text"})
    for part, keys in [
        (rs.open(path), {"id": rs.FeatureSpec("int64", ())}),
        (rs.open(path)[position:], {"id": rs.FeatureSpec("int64", ())}),
    ]:
        for read in (part.read_columns, lambda keys, part=part: list(part.batches(3, keys))):
            with raises(
                rs.CorruptDataError, defect=rs.Defect.FEATURE_KIND, path=path, record=position
            ):
                read(keys)


def test_all_columns_of_a_part_that_lacks_a_feature(place: Location) -> None:
    """The schema is that of the whole dataset; a missing feature of a slice is empty."""
    path = place / "a.tfrecord"
    with ShardWriter(path) as writer:
        writer.write_example({"id": 0, "extra": 5})
        writer.write_example({"id": 1})
    dataset = rs.open(path)
    assert set(dataset.read_columns()) == {"id", "extra"}
    columns = dataset[1:].read_columns()
    np.testing.assert_array_equal(columns["id"], [1])
    assert columns["extra"].tolist() == [[]]


# -- batches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, -3])
def test_invalid_batch_size(dataset: rs.Dataset, size: int) -> None:
    with pytest.raises(rs.OptionError) as caught:
        dataset.batches(size)
    assert (caught.value.option, caught.value.value) == ("size", str(size))


def test_batches_have_the_same_columns_if_a_feature_is_sometimes_missing(place: Location) -> None:
    path = place / "a.tfrecord"
    with ShardWriter(path) as writer:
        for number in range(6):
            writer.write_example({"id": number} | ({"extra": [1.5]} if number > 3 else {}))
    batches = list(rs.open(path).batches(2))
    assert [batch["extra"].tolist() for batch in batches] == [[[], []], [[], []], [[1.5], [1.5]]]
    assert all(batch["extra"].values.dtype == np.float32 for batch in batches)  # type: ignore[union-attr]
    for batch in rs.open(path).batches(4, {"extra": rs.FeatureSpec(shape=(), default=2.0)}):
        assert isinstance(batch["extra"], np.ndarray)


def test_batches_of_a_feature_of_two_kinds_need_a_kind(place: Location) -> None:
    path = place / "a.tfrecord"
    with ShardWriter(path) as writer:
        writer.write_example({"x": 1})
        writer.write_example({"x": "text"})
    with raises(rs.OptionError, option="keys", value="x", match="different kinds"):
        rs.open(path).batches(1, ["x"])


# -- schema --------------------------------------------------------------------------------------


# -- records that are no Examples ----------------------------------------------------------------


# -- many positions at once ----------------------------------------------------------------------


@given(data=st.data())
def test_positions_are_integers_or_a_mask(dataset: rs.Dataset, data: Any) -> None:
    """Positions as in a Python list, a mask as in `itertools.compress`."""
    payloads = list(dataset.records())
    form = data.draw(st.sampled_from([list, tuple, np.array, "u1", "i4", np.int64]))
    least = 0 if form == "u1" else -15
    chosen = data.draw(st.lists(st.integers(least, 14), min_size=1))
    expected = [payloads[position] for position in chosen]
    positions = np.array(chosen, form) if form in ("u1", "i4", np.int64) else form(chosen)
    if data.draw(st.booleans()):
        mask = data.draw(st.lists(st.booleans(), min_size=15, max_size=15))
        expected = list(itertools.compress(payloads, mask))
        positions = data.draw(st.sampled_from([list, tuple, np.array]))(mask)
    assert dataset.read_records(positions).tolist() == expected
    assert records_of(dataset).record_sizes(positions).tolist() == [
        len(payload) for payload in expected
    ]


@pytest.mark.parametrize("positions", [
    [1.7, 2.9], [1.0], ["1", "2"], [b"1"], np.ones(14, bool), [True], [None], np.ones((2, 1), int),
    [[1], [2, 3]], np.empty(0), np.array([1, 2], object) / 2, 3, "12", {1, 2},
])  # fmt: skip
def test_positions_that_are_not_integers(dataset: rs.Dataset, positions: Any) -> None:
    examples = rs.Examples(dataset)
    records = records_of(dataset)
    for read in (dataset.read_records, records.record_sizes, records.by_shard,
                 examples.batch):  # fmt: skip
        with pytest.raises(rs.OptionError):
            read(positions)


def _numbers(place: PlaceLike, count: int) -> list[bytes]:
    payloads = [bytes([number]) * (number + 1) for number in range(count)]
    as_location(place).put(b"".join(map(encode_record, payloads)))
    return payloads


@pytest.mark.parametrize("place", ["length", "length's checksum", "payload", "checksum"])
def test_damage_among_many_records_is_located(tmp_path: Path, place: str) -> None:
    path = tmp_path / "x.tfrecord"
    payloads = _numbers(path, 9)
    dataset = rs.open(path)
    assert dataset.read_records(range(9)).tolist() == payloads
    data = bytearray(path.read_bytes())
    begin = sum(len(payload) + 16 for payload in payloads[:5])
    at = {"length": 0, "length's checksum": 9, "payload": 13, "checksum": 12 + 6 + 1}[place]
    data[begin + at] ^= 4
    with path.open("r+b") as file:  # in place: the map sees it
        file.write(data)
    assert dataset.read_records([8, 4, 0]).tolist() == [payloads[n] for n in (8, 4, 0)]
    with raises(rs.CorruptDataError, path=path) as caught:
        dataset.read_records([8, 5, 0])
    if place in ("payload", "checksum"):
        assert caught.value.defect is rs.Defect.PAYLOAD_CRC
        assert (caught.value.record, caught.value.offset) == (5, begin)


def test_replaced_object_is_never_mixed_with_the_old_one(place: Location) -> None:
    """An open file stays as it was; elsewhere the version shows the change."""
    path = place / "x.tfrecord"
    payloads = _numbers(path, 9)
    dataset = rs.open(path)
    dataset.read_records([3])
    path.put(path.read()[::-1])
    if isinstance(place.store, LocalStore):
        assert dataset.read_records([7, 2]).tolist() == [payloads[7], payloads[2]]
    else:
        with raises(rs.FileAccessError, errno=errno.ESTALE, path=str(path), operation="read"):
            dataset.read_records([7, 2])


def test_a_repr_shows_how_records_were_chosen(place: Location) -> None:
    data = rs.open(numbered.packed(place, {"train": [3, 2], "test": [1]}))
    assert ": 6 records in 3 shards" in repr(data)
    assert "records: " not in repr(data)
    shuffled = data.shuffle(7)
    assert "shuffled, seed 7" in repr(shuffled)
    chosen = shuffled.filter("id > 1")
    assert "shuffled, seed 7, filter: id > 1" in repr(chosen)
    assert "4 records in 3 shards" in repr(chosen)
    assert repr(data.splits) == "Splits('train': 5 records, 'test': 1 record)"
    assert "'train'" in repr(chosen.splits)
    with pytest.raises(KeyError, match="'tests' does not exist; did you mean 'test'"):
        data.splits["tests"]
    assert data.splits.get("tests") is None


# -- validity ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "spec", "expected"),
    [
        ("age", None, [36, 0, 7]),  # of one shape in the records that have it
        ("age", rs.FeatureSpec("int64", (), default=-1), [36, -1, 7]),
        ("age", rs.FeatureSpec("int64", "ragged"), [[36], [], [7]]),
        ("pair", None, [[0.5, 1.0], [0.0, 0.0], [2.0, 3.0]]),
        ("name", None, [b"Ada", b"", b"Bob"]),
        ("name", rs.FeatureSpec("bytes", (), default=b"?"), [b"Ada", b"?", b"Bob"]),
        ("tags", None, [[b"a", b"b"], [], []]),
    ],
)
def test_columns_with_validity(place: Location, key: str, spec: Any, expected: list[Any]) -> None:
    path = place / "a.tfrecord"
    with rs.ShardWriter(path) as writer:
        full = {"age": 36, "pair": [0.5, 1.0], "name": "Ada", "tags": ["a", "b"]}
        writer.write_example(full)
        writer.write_example({"other": 1})
        writer.write_example(
            {"age": 7, "pair": [2.0, 3.0], "name": "Bob", "tags": []}, {"tags": "bytes"}
        )
    dataset = rs.open(path)
    columns, validity = dataset.read_columns({key: spec}, with_validity=True)
    assert columns[key].tolist() == expected
    assert {key: valid.tolist() for key, valid in validity.items()} == {key: [True, False, True]}
    batches = list(dataset.batches(2, {key: spec}, with_validity=True))
    assert [row for batch, _ in batches for row in batch[key].tolist()] == expected
    assert [valid[key].tolist() for _, valid in batches] == [[True, False], [True]]
    dropped = dataset[::-1].batches(2, {key: spec}, with_validity=True, drop_last=True)
    assert [valid[key].tolist() for _, valid in dropped] == [[True, False]]
    with rs.ShardWriter(place / "copy.tfrecord") as writer:
        writer.write_columns(columns, validity)
    copied = rs.open(place / "copy.tfrecord").read_columns({key: spec}, with_validity=True)
    assert copied[0][key].tolist() == expected
    assert copied[1][key].tolist() == [True, False, True]


def test_validity_of_what_all_records_have_or_of_no_records(place: Location) -> None:
    with rs.ShardWriter(place / "a.tfrecord") as writer:
        writer.write_columns({"x": np.arange(20)})
    dataset = rs.open(place / "a.tfrecord")
    assert dataset.read_columns(with_validity=True)[1]["x"].tolist() == [True] * 20
    columns, validity = dataset[:0].read_columns(["x"], with_validity=True)
    assert columns["x"].tolist() == []
    assert validity["x"].tolist() == []


# -- repr of examples ------------------------------------------------------------------------------


def test_the_repr_of_an_example_shortens_bytes(tmp_path: Path, images: ModuleType) -> None:
    example = {
        "image": images.jpeg(0, 12, 8),
        "raw": bytes(range(200)),
        "text": "words " * 50,
        "short": ["a", "b"],
        "many": [str(n) for n in range(1000)],
        "label": 3,
    }
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_example(example)
    found = rs.open(tmp_path / "a.tfrecord")[0]
    text = repr(found)
    assert len(text) < 600
    assert "<jpeg image, 12x8, " in text
    assert "<200 bytes: 00 01 02 " in text
    assert "'short': [b'a', b'b']" in text
    assert "'label': array([3])" in text
    assert "… 1,000 values" in text
    again = pickle.loads(pickle.dumps(found))
    for value in (found, again):
        assert isinstance(value, dict)
        assert value["raw"] == [example["raw"]]
        assert np.array_equal(value["label"], [3])


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("map", "map_examples"),
        ("batch", "batch_size"),
        ("padded_batch", "rs.Loader"),
        ("repeat", "epochs"),
        ("prefetch", "rs.Loader"),
        ("shard", "world_size"),
        ("train_test_split", "split_by"),
        ("column_names", "schema"),
        ("cardinality", "len"),
        ("shufle", "'shuffle'"),
    ],
)
def test_methods_of_other_libraries_name_ours(dataset: rs.Dataset, name: str, named: str) -> None:
    with pytest.raises(AttributeError, match=name) as caught:
        getattr(dataset, name)
    assert named in str(caught.value)


def test_a_dataset_has_no_other_attributes(dataset: rs.Dataset) -> None:
    assert not any(hasattr(dataset, name) for name in ("map", "__array__", "_shards", "zyx"))
    assert len(pickle.loads(pickle.dumps(dataset))) == len(dataset)
