"""Records with layers read as the same records merged by protobuf, in every way of reading."""

from __future__ import annotations

import functools
import operator
import os
import pickle
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.dataset import (
    Dataset,
    open_around_defects,
    part_for_task,
    part_from_task,
    parts_of,
    records_of,
)
from recordsmith.dataset.locating import by_manifest
from recordsmith.dataset.selected_records import records_of_part
from recordsmith.dataset.shard_index import index_locations
from recordsmith.format.wire import encode_records
from recordsmith.stores import Location, as_folder
from recordsmith.stores.cache.store import CachedStore
from recordsmith.support.errors import CorruptDataError, Defect

from .. import layered_datasets as layered
from ..raising import raises
from ..stores.counting import CountingStore

KEYS = ("a", "b", "c")

numbers = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3)
values = st.one_of(
    numbers,
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=3),
    st.lists(st.binary(max_size=5), min_size=1, max_size=2),
)
rows = st.dictionaries(st.sampled_from(KEYS), values, max_size=3)
kinds_of_bases = st.sampled_from(["one map", "two maps", "sequence"])


@st.composite
def cases(draw: Any) -> Any:
    """Shards of records, and layers that have values for some records of features of any kind."""
    counts = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(any))
    counts = [n for at, n in enumerate(counts) if n or 0 not in counts[:at]]  # one may be empty
    kind = draw(kinds_of_bases)
    records = [
        ({"id": [at], **draw(rows)}, draw(rows) if kind == "two maps" else {})
        for at in range(sum(counts))
    ]
    layers = [
        [{key: draw(values) for key in keys if draw(st.booleans())} for _ in records]
        for keys in draw(st.lists(st.sets(st.sampled_from((*KEYS, "new")), min_size=1), max_size=3))
    ]
    return counts, kind, records, layers, draw(st.sampled_from(["none", "gzip"]))


def payload(kind: str, record: tuple[Mapping[str, Any], Mapping[str, Any]]) -> bytes:
    first, second = record
    if kind == "sequence":
        steps: Any = {"steps": [[1], [2, 3]]}
        return rs.encode_sequence_example(first, steps)
    return rs.encode_example(first) + (rs.encode_example(second) if second else b"")


def whole_rows(messages: list[Any], layer: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a layer, which repeat what it hides, and what remains in it to be unset."""
    keys = {key for row in layer for key in row}
    done = []
    for message, row in zip(messages, layer, strict=True):
        own = message.context if hasattr(message, "context") else message.features
        old = rs.decode_example(b"\x0a" + _varint(own.ByteSize()) + own.SerializeToString())
        done.append({key: row.get(key, old.get(key)) for key in keys if key in row or key in old})
    return done


def _varint(value: int) -> bytes:
    return bytes([value & 127 | 128, *_varint(value >> 7)]) if value > 127 else bytes([value])


def make(tmp_path: Path, reference: Any, case: Any) -> tuple[Dataset, Dataset]:
    """The dataset with layers, and its merged records."""
    counts, kind, records, layers, compression = case
    folder = Path(os.path.realpath(tmp_path)) / str(len(list(tmp_path.iterdir())))
    payloads = [payload(kind, record) for record in records]
    message = reference.messages()
    message = message.SequenceExample if kind == "sequence" else message.Example

    def shards(payloads: list[bytes]) -> dict[str, list[list[bytes]]]:
        left = iter(payloads)
        return {"train": [[next(left) for _ in range(count)] for count in counts]}

    layered.write(folder / "out", shards(payloads), compression)
    for number, layer in enumerate(layers):
        if any(layer):
            own = whole_rows([*map(message.FromString, payloads)], layer)
            layered.add(folder / "out", f"layer-{number}", own)
            payloads = [p + rs.encode_example(row) for p, row in zip(payloads, own, strict=True)]
    merged = [message.FromString(p).SerializeToString(deterministic=True) for p in payloads]
    layered.write(folder / "merged", shards(merged), compression)
    return rs.open(folder / "out"), rs.open(folder / "merged")


def plain(value: Any) -> Any:
    """Nested lists and bytes of anything that reading returns."""
    if isinstance(value, Mapping):
        return {key: plain(value[key]) for key in sorted(value)}
    if isinstance(value, rs.SequenceExample):
        return [plain(section) for section in value]
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if isinstance(value, rs.RaggedArray):
        return [plain(value[row]) for row in range(len(value))]
    if hasattr(value, "tolist"):
        return repr(value.tolist())
    return value


def kinds(dataset: Dataset) -> dict[str, str]:
    known = dataset.schema.columns.items()
    return {key: feature.kind for key, feature in known if feature.kind not in ("mixed", "none")}


def columns(dataset: Dataset, only: Any = None, **options: Any) -> Any:
    keys = [key for key in kinds(dataset) if only is None or key in only]
    specs: Any = {
        key: rs.FeatureSpec("int64", "ragged", in_steps=True)
        if key == "steps"
        else rs.FeatureSpec(kinds(dataset)[key], "ragged", default=())
        for key in keys
    }
    return dataset.read_columns(specs, **options)


def where(dataset: Dataset) -> Any:
    numbers = [key for key, kind in kinds(dataset).items() if kind == "int64" and key != "steps"]
    return [[*map(plain, dataset.filter(f"{key} > 0"))] for key in numbers]


def in_task(dataset: Dataset) -> Any:
    parts = records_of(dataset).parts()
    tasks = [pickle.loads(pickle.dumps(part_for_task(part))) for part in parts]
    records = [records_of_part(part_from_task(task)) for task in tasks]
    return [[payload for *_, payload in one.located_records()] for one in records]


def at_random(read: Callable[[Dataset], Any]) -> Callable[[Dataset], Any]:
    return lambda dataset: None if dataset.shards[0].compression != "none" else read(dataset)


READERS: dict[str, Callable[[Dataset], Any]] = {
    "in order": list,
    "again from a pickle": lambda d: list(pickle.loads(pickle.dumps(d))),
    "slice": lambda d: list(d[1:-1]),
    "every second": lambda d: list(d[::2]),
    "parts": lambda d: [list(part) for part in parts_of(d, "1B" if d else "1MB")],
    "columns": columns,
    "each column": lambda d: [
        columns(d, only=[key], with_validity=True) for key in sorted(kinds(d))
    ],
    "pairs of columns": lambda d: [columns(d, only=pair) for pair in pairwise(sorted(kinds(d)))],
    "columns with validity": lambda d: columns(d, with_validity=True),
    "batches": lambda d: [*d.batches(3, {"id": rs.FeatureSpec("int64", ())})],
    "filter": where,
    "one": at_random(lambda d: [d[row] for row in range(-len(d), len(d))]),
    "shuffled": at_random(lambda d: list(d.shuffle(3))),
    "selected": at_random(lambda d: list(d.select([*range(0, len(d), 2), 0]))),
    "shuffled columns": at_random(lambda d: columns(d.shuffle(1))),
    "schema": lambda d: {key: feature.kind for key, feature in d.schema.columns.items()},
}


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases())
def test_each_way_of_reading(tmp_path: Path, reference: Any, case: Any) -> None:
    dataset, merged = make(tmp_path, reference, case)
    for name, read in READERS.items():
        assert plain(read(dataset)) == plain(read(merged)), name
    decoded = [
        [
            plain(rs.decode_example(p) if case[1] != "sequence" else rs.decode_sequence_example(p))
            for p in part
        ]
        for part in in_task(dataset)
    ]
    assert functools.reduce(operator.iadd, decoded, []) == [*map(plain, merged)]


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases())
def test_many_datasets(tmp_path: Path, reference: Any, tf: Any, case: Any) -> None:
    """Also against TensorFlow, and against the shards that `reshard` makes."""
    dataset, merged = make(tmp_path, reference, case)
    for name, read in READERS.items():
        assert plain(read(dataset)) == plain(read(merged)), name
    message = tf.train.SequenceExample if case[1] == "sequence" else tf.train.Example
    expected = [message.FromString(record) for record in merged.records()]
    assert [message.FromString(record) for record in dataset.records()] == expected
    out = Path(str(dataset.shards[0].location)).parent.parent / "again"
    rs.reshard(dataset, out, shards=1, compression="none")
    files = [str(shard.location) for shard in rs.open(out).shards]
    records = [record.numpy() for record in tf.data.TFRecordDataset(files, buffer_size=1 << 16)]
    assert [message.FromString(record) for record in records] == expected


# -- faults ----------------------------------------------------------------------------------------

COUNT, IN_SHARD = 20, 10


def payloads_of(count: int = COUNT) -> dict[str, list[list[bytes]]]:
    made = [rs.encode_example({"id": at, "x": [1] * 5}) for at in range(count)]
    return {"train": [made[:IN_SHARD], made[IN_SHARD:]]}


def with_layer(place: Any) -> Any:
    layered.write(place, payloads_of())
    return layered.add(place, "new", [{"y": 2 * at} for at in range(COUNT)])


@pytest.fixture(params=["files", "held", "ranges"])
def folder(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """20 records in two shards with a layer; over a network, held in memory or read in ranges."""
    if request.param == "ranges":
        monkeypatch.setattr(by_manifest, "HELD_BYTES", 0)
    is_file = request.param == "files"
    return with_layer(tmp_path / "out" if is_file else Location(CountingStore(), "bucket/out"))


def loaded(dataset: Dataset, **options: Any) -> Any:
    features = {"id": rs.Scalar("id"), "y": rs.Scalar("y")}
    with rs.Loader(dataset, features, batch_size=4, shuffle=True, threads=0, **options) as loader:
        pairs = [np.stack([batch["id"], batch["y"]], axis=1) for batch in loader]
    return dict(np.concatenate(pairs).tolist())


FAULTED: dict[str, Callable[[Dataset], Any]] = {
    "in order": list,
    "one": lambda dataset: dataset[15],
    "many": lambda dataset: dataset.read_records(np.arange(COUNT)[::-1]),
    "columns": lambda dataset: dataset.read_columns(["y"]),
    "filter": lambda dataset: dataset.filter("y > 3"),
    "arrow": lambda dataset: dataset.to_arrow(threads=2).read_all(),
    "loader": loaded,
}


@pytest.mark.parametrize(
    ("at", "defect"), [(14, Defect.PAYLOAD_CRC), (1, Defect.LENGTH_CRC)], ids=["payload", "frame"]
)
@pytest.mark.parametrize("read", FAULTED.values(), ids=FAULTED)
def test_a_damaged_layer_is_named(
    folder: Any, at: int, defect: Defect, read: Callable[[Dataset], Any]
) -> None:
    file = layered.layer_files(folder, "new")[1]
    data = bytearray(file.read())
    offset = len(data) // IN_SHARD * 5
    data[offset + at] ^= 1
    file.put(bytes(data))
    for index in index_locations(file):  # which would lead behind the damaged frame
        index.delete()
    with raises(CorruptDataError, defect=defect, path=file, record=5, offset=offset):
        read(rs.open(folder))
    if defect is Defect.PAYLOAD_CRC:
        expected = {n: 2 * n for n in range(COUNT) if n != 15}
        assert loaded(rs.open(folder), skip_errors=1) == expected
        assert rs.open(folder)[14]["y"] == [28]


def test_a_damaged_shard_is_named(folder: Any) -> None:
    file = rs.open(folder).shards[1].location
    data = bytearray(file.read())
    data[-5] ^= 1
    file.put(bytes(data))
    for read in (list, lambda dataset: dataset[-1]):
        with raises(CorruptDataError, defect=Defect.PAYLOAD_CRC, path=file, record=9):
            read(rs.open(folder))


@pytest.mark.parametrize(
    ("change", "defect"),
    [
        (lambda file: file.delete(), Defect.MISSING_SHARD),
        (lambda file: file.put(file.read()[:-1]), Defect.SHARD_SIZE),
        (lambda file: file.put(b""), Defect.SHARD_SIZE),
    ],
    ids=["missing", "cut", "empty"],
)
def test_a_missing_or_cut_layer(folder: Any, change: Any, defect: Defect) -> None:
    file = layered.layer_files(folder, "new")[1]
    change(file)
    with raises(CorruptDataError, defect=defect, path=file):
        rs.open(folder)
    dataset, defects = open_around_defects(folder)
    assert [(error.defect, error.path) for error in defects] == [(defect, str(file))]
    assert ["y" in example for example in dataset] == [True] * 10 + [False] * 10
    assert [shard.entry is not None for shard in dataset.shards] == [True, True]


def test_a_layer_that_is_taken_away_while_a_dataset_is_opened(
    folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest lists files that are gone when their folder is listed: there is a newer one."""
    list_folder, removed = by_manifest._listed, []

    def listed(place: Location) -> Any:
        if not removed:
            removed.append(rs.remove_layer(folder, "new"))
        return list_folder(place)

    monkeypatch.setattr(by_manifest, "_listed", listed)
    assert "y" not in rs.open(folder)[0]


def test_a_layer_with_another_number_of_records(folder: Any) -> None:
    """The same bytes in fewer or more frames."""
    file = layered.layer_files(folder, "new")[1]
    size = len(file.read())
    for count in (1, 11):
        sizes = [size // count - 16] * (count - 1)
        sizes.append(size - sum(sizes) - 16 * count)
        file.put(bytes(encode_records([bytes(size) for size in sizes])))
        with raises(CorruptDataError, path=file, defect=Defect.RECORD_COUNT):
            [*rs.open(folder).records()]
    file.put(bytes(encode_records([bytes(size - 16)])))
    with raises(CorruptDataError, path=file, defect=Defect.SHARD_SIZE):
        rs.open(folder).read_records([15])


def test_a_wrong_answer_is_not_kept_in_memory() -> None:
    """A held file that fails verification is read once more, as a proxy may have changed it."""

    class Proxy(CountingStore):
        left = 0

        def read(self, key: str, *arguments: Any, **options: Any) -> bytes:
            data = bytearray(super().read(key, *arguments, **options))
            if self.left and "/new/" in key:
                self.left -= 1
                data[self.at] ^= 1
            return bytes(data)

        at = 1

    for at, read in ((1, list), (14, list), (14, loaded), (14, lambda dataset: dataset[0])):
        folder = with_layer(Location(store := Proxy(), "bucket/out"))
        dataset = rs.open(folder)
        dataset.shards[0].layers[0].prepare()
        for shard in dataset.shards:
            shard.layers[0].close()
        store.at, store.left = at, 1
        read(dataset) if read is not list else [dataset[row] for row in range(COUNT)]
        assert not store.left


# -- requests --------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_held", [True, False])
@pytest.mark.parametrize("can_list", [True, False])
def test_requests(monkeypatch: pytest.MonkeyPatch, is_held: bool, can_list: bool) -> None:
    """A layer in memory is read once; of a larger one, a range for each record, in the round."""
    if not is_held:
        monkeypatch.setattr(by_manifest, "HELD_BYTES", 0)
    store = CountingStore()
    folder = with_layer(Location(store, "bucket/out"))
    folder.store.can_list = can_list  # type: ignore[misc]
    store.reset()
    dataset = rs.open(folder)
    assert store.counts == ({"list": 2, "read": 2} if can_list else {"read": 2})
    files = {file.key for file in layered.layer_files(folder, "new")}
    store.reset()
    dataset.read_records([1, 18])
    info = [] if can_list else [("info", key) for key in files]
    assert sorted(asked for asked in store.asked if asked[1] in files) == sorted(
        info + [("read", key) for key in files]
    )
    indexes = [key for _, key in store.asked if "/new/" in key and key not in files]
    assert len(indexes) == (0 if is_held else 2)
    for read in (lambda: dataset.read_records([3, 15]), lambda: list(dataset)):
        store.reset()
        read()
        of_layers = [key for _, key in store.asked if key in files]
        assert len(of_layers) == (0 if is_held else 2)


def test_only_the_files_of_the_features_are_read() -> None:
    store = CountingStore()
    folder = with_layer(Location(store, "bucket/out"))
    layered.add(folder, "other", [{"z": at} for at in range(COUNT)])
    features = {"y": rs.Scalar("y")}
    for read, layers in (
        (lambda dataset: dataset.read_columns(["y"]), {"new"}),
        (lambda dataset: dataset.to_arrow(["y"], where="z > 3").read_all(), {"new", "other"}),
        (lambda dataset: dataset.filter("z > 3"), {"other"}),
        (lambda dataset: [*dataset.batches(7, ["y", "id"])], {"new", ""}),
        (lambda dataset: [*rs.Loader(dataset, features, batch_size=4, shuffle=True)], {"new"}),
    ):
        dataset = rs.open(folder)
        store.reset()
        read(dataset)
        folders = {key.removeprefix("bucket/out/").rpartition("/")[0] for _, key in store.asked}
        assert folders == {layer and f"layers/{layer}" for layer in layers}


@pytest.mark.parametrize("kind", ["s3", "web"])
def test_servers(servers: Any, tmp_path: Path, monkeypatch: Any, kind: str) -> None:
    """In a bucket, and over a web server; in this process and from a pickle; with a cache."""
    with_layer(tmp_path / "out")
    store = servers.new_store(kind)
    for file in as_folder(tmp_path / "out").list():
        store.put(f"out/{file.relative_to(as_folder(tmp_path / 'out'))}", file.read())
    expected = [plain(example) for example in rs.open(tmp_path / "out")]
    cached = CachedStore(store, os.fspath(tmp_path / "cache"))
    for held_bytes in (0, 64 << 20):
        monkeypatch.setattr(by_manifest, "HELD_BYTES", held_bytes)
        for folder in (Location(store, "out"), Location(cached, "out"), Location(cached, "out")):
            dataset = rs.open(folder)
            again = pickle.loads(pickle.dumps(dataset))
            for one in (dataset, again):
                assert [plain(one[row]) for row in (15, 3)] == [expected[15], expected[3]]
                assert [plain(example) for example in one] == expected
