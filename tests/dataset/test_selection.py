"""Selections of a dataset: any composition equals the same on a Python list, in every file format.

The oracle is a list of record numbers. Random orders and draws are checked for what they promise:
each record once, equal for equal seeds.
"""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.dataset import dataset_of, records_of
from recordsmith.dataset.selection import Selection
from recordsmith.format.wire import encode_record
from recordsmith.stores import as_folder

from ..numbered_examples import ids_of
from ..places import AnyPlace, new_place
from ..raising import raises

COUNTS = [40, 0, 1, 27, 13]
IDS = list(range(sum(COUNTS)))
LABELS = [number % 3 for number in IDS]
SEEDS = st.integers(-3, 3)
BOUNDS = st.none() | st.integers(-90, 90)
STEPS = st.none() | st.integers(-4, 4).filter(bool)
SHARES = {"a": 0.5, "b": 0.3, "c": 0.2}

Step = Callable[[rs.Dataset, list[int]], tuple[rs.Dataset, list[int]]]


def write(
    place: AnyPlace, counts: list[int], *, compression: str = "none", packed: bool
) -> AnyPlace:
    """Write records with their id and label to some shards; `packed` with a manifest."""
    numbers = iter(range(sum(counts)))
    folder = as_folder(place)
    folder.make_folder()
    for shard, count in enumerate(counts):
        name = f"train-{shard:05d}-of-{len(counts):05d}.tfrecord"
        with rs.ShardWriter(folder / name, compression=compression) as writer:
            for number in itertools.islice(numbers, count):
                writer.write_example({"id": number, "label": number % 3, "data": bytes(number)})
    if packed:
        out = place.with_name(f"{place.name}-packed")
        rs.reshard(place, out, shards=min(3, sum(counts)))
        return out
    return place


@pytest.fixture(scope="module", params=[
    "plain", "packed", "gzip", "one shard", "one record", "memory", "packed memory",
])  # fmt: skip
def dataset(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[rs.Dataset]:
    kind = "memory" if "memory" in request.param else "files"
    counts = {"one shard": [len(IDS)], "one record": [1]}.get(request.param, COUNTS)
    compression = "gzip" if request.param == "gzip" else "none"
    with new_place(kind, tmp_path_factory.mktemp("data")) as place:
        packed = "packed" in request.param
        yield rs.open(write(place / "in", counts, compression=compression, packed=packed))


# -- steps of a composition ------------------------------------------------------------------------


@st.composite
def cuts(draw: st.DrawFn) -> Step:
    cut = slice(draw(BOUNDS), draw(BOUNDS), draw(STEPS))
    return lambda dataset, ids: (dataset[cut], ids[cut])


@st.composite
def takes(draw: st.DrawFn) -> Step:
    count = draw(st.integers(0, 90))
    return lambda dataset, ids: (dataset.take(count), ids[:count])


@st.composite
def picks(draw: st.DrawFn) -> Step:
    fractions = draw(st.lists(st.floats(-1, 1, exclude_max=True), max_size=30))
    is_array, is_sorted = draw(st.booleans()), draw(st.booleans())

    def pick(dataset: rs.Dataset, ids: list[int]) -> tuple[rs.Dataset, list[int]]:
        places = [max(-len(ids), int(fraction * len(ids))) for fraction in fractions if ids]
        if is_sorted:
            places = sorted(place % len(ids) for place in places)
        asked: Any = np.array(places, np.int32) if is_array else places
        return dataset[asked], [ids[place] for place in places]

    return pick


@st.composite
def masks(draw: st.DrawFn) -> Step:
    bits = draw(st.integers(0, 2**90))

    def mask(dataset: rs.Dataset, ids: list[int]) -> tuple[rs.Dataset, list[int]]:
        flags = [bool(bits >> place & 1) for place in range(len(ids))]
        kept = [number for number, flag in zip(ids, flags, strict=True) if flag]
        return dataset[np.array(flags, bool)], kept

    return mask


@st.composite
def filters(draw: st.DrawFn) -> Step:
    label, most = draw(st.integers(0, 2)), draw(st.integers(0, 90))

    def keep(dataset: rs.Dataset, ids: list[int]) -> tuple[rs.Dataset, list[int]]:
        kept = [number for number in ids if number % 3 != label and number < most]
        return dataset.filter(f"label != {label} and id < {most}"), kept

    return keep


@st.composite
def shuffles(draw: st.DrawFn) -> Step:
    seed = draw(SEEDS)

    def shuffle(dataset: rs.Dataset, ids: list[int]) -> tuple[rs.Dataset, list[int]]:
        order = rs_order(len(ids), seed)
        return dataset.shuffle(seed), [ids[place] for place in order]

    return shuffle


@st.composite
def parts(draw: st.DrawFn) -> Step:
    seed, name = draw(SEEDS), draw(st.sampled_from([*SHARES]))

    def part(dataset: rs.Dataset, ids: list[int]) -> tuple[rs.Dataset, list[int]]:
        parts = dataset.split_by(SHARES, seed)
        return parts[name], [ids[place] for place in drawn(len(ids), seed)[name]]

    return part


_SCRATCH: dict[str, Any] = {}


def rs_order(count: int, seed: int) -> list[int]:
    """The order of a shuffle, found with another dataset: the order depends on the count alone."""
    return ids_of(_numbered(count).shuffle(seed))


def drawn(count: int, seed: int) -> dict[str, list[int]]:
    return {name: ids_of(part) for name, part in _numbered(count).split_by(SHARES, seed).items()}


def _numbered(count: int) -> rs.Dataset:
    """Records numbered from 0: the first ones of a plain shard."""
    return _SCRATCH["numbers"][:count]  # type: ignore[no-any-return]


@pytest.fixture(scope="module", autouse=True)
def _numbers(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("numbers") / "in"
    _SCRATCH["numbers"] = rs.open(write(folder, [len(IDS)], packed=False))


STEPS_IN_ORDER = st.one_of(
    st.builds(
        lambda start, stop, step: (
            lambda dataset, ids: (dataset[start:stop:step], ids[start:stop:step])
        ),
        BOUNDS, BOUNDS, st.none() | st.integers(1, 4),
    ),
    takes(), masks(), filters(), parts(),
)  # fmt: skip
ALL_STEPS = st.one_of(cuts(), takes(), picks(), masks(), filters(), shuffles(), parts())


def composed(dataset: rs.Dataset, steps: list[Step]) -> tuple[rs.Dataset, list[int]]:
    part, expected = dataset, IDS[: len(dataset)]
    for step in steps:
        part, expected = step(part, expected)
    return part, expected


def is_compressed(dataset: rs.Dataset) -> bool:
    return any(shard.compression != "none" for shard in dataset.shards)


@pytest.mark.slow
@settings(max_examples=100)
@given(steps=st.lists(ALL_STEPS, max_size=4))
def test_any_composition_equals_that_of_a_list(dataset: rs.Dataset, steps: list[Step]) -> None:
    part, expected = composed(dataset, steps)
    assert len(part) == len(expected)
    is_ascending = records_of(part).is_in_file_order
    assert not is_ascending or expected == sorted(expected)
    if is_compressed(dataset) and not is_ascending:
        for read in (list, lambda part: list(part.records()), lambda part: part.read_columns()):
            with raises(rs.OptionError, option="dataset"):
                read(part)
        return
    assert ids_of(part) == expected
    assert [len(record) for record in part.records()] == [
        len(record) for number in expected for record in _SCRATCH["numbers"].read_records([number])
    ]
    if expected:
        assert part.read_columns(["id"])["id"].tolist() == expected
        batches = [batch["id"].tolist() for batch in part.batches(7, ["id"])]
        assert [number for batch in batches for number in batch] == expected
        assert set(map(len, batches[:-1])) <= {7}
    if not is_compressed(dataset):
        assert [int(part[place]["id"][0]) for place in range(len(part))] == expected
        everywhere = list(range(-len(part), len(part)))
        found = part.read_records(everywhere).tolist()
        assert [int(rs.decode_example(one)["id"][0]) for one in found] == expected * 2


@settings(max_examples=30)
@given(steps=st.lists(STEPS_IN_ORDER, min_size=1, max_size=4))
def test_what_keeps_the_order_works_on_compressed_shards(
    dataset: rs.Dataset, steps: list[Step]
) -> None:
    part, expected = composed(dataset, steps)
    assert ids_of(part) == expected
    located = [
        (str(shard.location), number) for shard, number, _ in records_of(part).located_records()
    ]
    assert located == sorted(located)
    if not is_compressed(dataset):
        at = [records_of(part).locate_record(place)[:2] for place in range(len(part))]
        assert located == at


@settings(max_examples=30)
@given(steps=st.lists(ALL_STEPS, max_size=4))
def test_selections_survive_pickling(dataset: rs.Dataset, steps: list[Step]) -> None:
    part, expected = composed(dataset, steps)
    copy = pickle.loads(pickle.dumps(part))
    assert len(copy) == len(expected)
    assert records_of(copy).describe() == records_of(part).describe()
    if not is_compressed(dataset):
        assert ids_of(copy) == expected


@settings(max_examples=50)
@given(one=st.lists(ALL_STEPS, max_size=3), other=st.lists(ALL_STEPS, max_size=3))
def test_descriptions_are_equal_only_for_equal_selections(
    dataset: rs.Dataset, one: list[Step], other: list[Step]
) -> None:
    described = []
    for steps in (one, other):
        part, expected = composed(dataset, steps)
        document = records_of(part).describe()
        assert json.loads(json.dumps(document)) == document
        assert len(json.dumps(document)) < 600
        described.append((document, expected))
    if described[0][0] == described[1][0]:
        assert described[0][1] == described[1][1]


def test_the_description_of_a_shuffled_filter_has_its_condition(dataset: rs.Dataset) -> None:
    shuffled = dataset.filter("label == 1").shuffle(seed=1)[2:]
    assert records_of(shuffled).describe()["of"]["where"] == "label == 1"


# -- single methods --------------------------------------------------------------------------------


def test_split_by_divides_the_records_as_reshard_does(dataset: rs.Dataset, tmp_path: Path) -> None:
    if len(dataset) < 3:
        return
    found = {name: ids_of(part) for name, part in dataset.split_by(SHARES, seed=5).items()}
    assert sorted(number for ids in found.values() for number in ids) == IDS
    paths = list(dict.fromkeys(str(shard.location.parent) for shard in dataset.shards))
    rs.reshard(paths, tmp_path / "out", splits=SHARES, seed=5, shards=1)
    for name, ids in found.items():
        assert ids_of(rs.open(tmp_path / "out", name)) == ids == sorted(ids)


def test_only_filters_read_records(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", [10, 5], packed=False)
    (first,) = folder.glob("*-00000-*")
    data = bytearray(first.read_bytes())
    data[30] ^= 1  # in the payload of a record
    first.write_bytes(data)
    dataset = rs.open(folder)
    repr([dataset[2:], dataset[[3, 1]], dataset.take(4), dataset.shuffle(1)[::2],
          *dataset.split_by(SHARES).values(), dataset.splits["train"]])  # fmt: skip
    with raises(rs.CorruptDataError, path=first, record=0):
        dataset.filter("label == 1")
    assert ids_of(dataset[10:]) == ids_of(dataset[10:].filter("id >= 0")) == IDS[10:15]


@pytest.mark.parametrize("order", [slice(None, None, 2), slice(None, None, -1), [4, 9, 2, 0]])
def test_damage_is_raised_after_the_records_before_it(
    tmp_path: Path, order: slice | list[int]
) -> None:
    folder = write(tmp_path / "in", [6, 6], packed=False)
    dataset = rs.open(folder)
    where = records_of(dataset).locate_record(4)
    data = bytearray(Path(where.path).read_bytes())
    data[where.offset + 14] ^= 1
    Path(where.path).write_bytes(data)
    expected = IDS[:12][order] if isinstance(order, slice) else order
    found = []
    with pytest.raises(rs.CorruptDataError) as caught:
        for example in dataset[order]:
            found.append(int(example["id"][0]))  # noqa: PERF401 - what was read before counts
    assert found == expected[: expected.index(4)]
    assert (caught.value.path, caught.value.record) == (where.path, 4)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda data: data.take(-1), "count"),
        (lambda data: data.take(1.5), "count"),
        (lambda data: data.shuffle("1"), "seed"),
        (lambda data: data.shuffle(None), "seed"),
        (lambda data: data.filter("label =="), "where"),
        (lambda data: data.filter(None), "where"),
        (lambda data: data.filter("labl == 1"), "where"),
        (lambda data: data.split_by({"a": 0.5}), "splits"),
        (lambda data: data["label"], "positions"),
        (lambda data: data[[1.5]], "positions"),
        (lambda data: data[[True]], "positions"),
    ],
)
def test_invalid_selections(tmp_path: Path, make: Callable[[Any], Any], name: str) -> None:
    with raises(rs.OptionError, option=name):
        make(rs.open(write(tmp_path / "in", [3, 2], packed=False)))


def test_an_unknown_feature_of_a_filter_is_found_in_the_manifest(tmp_path: Path) -> None:
    dataset = rs.open(write(tmp_path / "in", [3, 2], packed=True))
    with raises(rs.OptionError, option="where"):
        dataset[:0].filter("labl == 1")


def test_a_shuffle_of_a_billion_records_takes_no_memory() -> None:
    shuffled = Selection(range(10**9)).shuffled(1).cut(slice(10, 10**9, 3)).shuffled(2)
    places = np.array([0, 5, 10**8])
    assert len(set(shuffled.at(places).tolist())) == 3
    assert len(pickle.dumps(shuffled.describe())) < 500


def test_splits_are_datasets_by_name(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", [20], packed=False)
    rs.reshard(folder, tmp_path / "out", splits={"train": 0.5, "test": 0.5}, seed=1, shards=2)
    dataset = rs.open(tmp_path / "out")
    assert list(dataset.splits) == ["train", "test"]
    for name, split in dataset.splits.items():
        opened = rs.open(tmp_path / "out", name)
        assert ids_of(split) == ids_of(opened)
        assert split.schema == opened.schema
        part = dataset[3:17].splits[name]
        assert ids_of(part) == [
            number for number in ids_of(dataset)[3:17] if number in ids_of(split)
        ]
        assert ids_of(dataset.shuffle(4).splits[name]) == [
            number for number in ids_of(dataset.shuffle(4)) if number in ids_of(split)
        ]
    with pytest.raises(KeyError):
        dataset.splits["validation"]


# -- parts of splits -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def seven_and_three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Splits `train` of 7 records, in two shards, and `test` of 3, with ids from 100."""
    folder = tmp_path_factory.mktemp("splits")
    names = ["train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"]
    for name, ids in zip(names, [range(4), range(4, 7), range(100, 103)], strict=True):
        (folder / f"{name}.tfrecord").write_bytes(
            b"".join(encode_record(rs.encode_example({"id": number})) for number in ids)
        )
    return folder


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ("train", [0, 1, 2, 3, 4, 5, 6]),
        ("train[:]", [0, 1, 2, 3, 4, 5, 6]),
        ("train[2:4]", [2, 3]),
        ("train[:-2]", [0, 1, 2, 3, 4]),
        ("train[-2:]", [5, 6]),
        ("train[:50%]", [0, 1, 2, 3]),  # 3.5 -> 4
        ("train[50%:]", [4, 5, 6]),
        ("train[:30%]", [0, 1]),  # 2.1 -> 2
        ("train[:10%]", [0]),  # 0.7 -> 1
        ("train[:7%]", []),  # 0.49 -> 0
        ("train[-10%:]", [6]),
        ("train[:-30%]", [0, 1, 2, 3, 4]),
        ("train[2:90%]", [2, 3, 4, 5]),  # 6.3 -> 6
        ("test[:50%]", [100, 101]),  # 1.5 -> 2, as Python rounds
        ("test[50%:]", [102]),
        ("test[5:2]", None),
        ("test[2:1]", []),
        ("train+test", [0, 1, 2, 3, 4, 5, 6, 100, 101, 102]),
        ("test+train", [100, 101, 102, 0, 1, 2, 3, 4, 5, 6]),
        ("train[:1] + test[1:]", [0, 101, 102]),
        ("train[5:]+train[:2]", [5, 6, 0, 1]),
        ("test[100%:]", []),
    ],
)
def test_parts_of_splits(seven_and_three: Path, split: str, expected: list[int] | None) -> None:
    whole = rs.open(seven_and_three)
    for open_it in (lambda: rs.open(seven_and_three, split), lambda: dataset_of(whole, split)):
        if expected is None:
            with raises(rs.OptionError, option="split"):
                open_it()
        else:
            assert ids_of(open_it()) == expected


@pytest.mark.parametrize(
    "split",
    [
        "train[", "train[]", "train[1]", "train[1:2:3]", "train[a:]", "train[:1.5]",
        "train[:10pct]", "train]", "+train", "train+", "", "+", "[:10]", "train[:8]", "train[-8:]",
        "train[:101%]",
        "tran[:50%]", "train+tset", "train[:5]x", "train[:%]", "train[:--1]",
    ],
)  # fmt: skip
def test_malformed_parts_of_splits(seven_and_three: Path, split: str) -> None:
    whole = rs.open(seven_and_three)
    for open_it in (lambda: rs.open(seven_and_three, split), lambda: dataset_of(whole, split)):
        with raises(rs.OptionError, option="split"):
            open_it()


@pytest.mark.posix
def test_a_split_whose_name_looks_like_several(tmp_path: Path) -> None:
    (tmp_path / "a+b[:1].tfrecord").write_bytes(encode_record(rs.encode_example({"id": 7})))
    assert list(rs.open(tmp_path).splits) == ["a+b[:1]"]
    assert ids_of(rs.open(tmp_path, "a+b[:1]")) == [7]
