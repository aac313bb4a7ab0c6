"""Parts of a dataset that many processes write: what is published, and what failures leave."""

from __future__ import annotations

import json
import os
import pickle
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.stores import Location, as_folder
from recordsmith.support.errors import CorruptDataError, FileAccessError, OptionError, SourceError
from recordsmith.writing import abandon_table, begin_table, finish_table, write_table_part
from recordsmith.writing.building import publishing

from ...killed_jobs import killed_before
from ...places import contents, visible
from ...raising import raises

pa = pytest.importorskip("pyarrow")

SCHEMA = {
    "id": pa.int64(),
    "name": pa.string(),
    "blob": pa.binary(),
    "score": pa.float32(),
    "flag": pa.bool_(),
    "tags": pa.list_(pa.string()),
    "box": pa.list_(pa.float32(), 4),
    "wide": pa.float64(),
}
ROWS = [
    {
        "id": number,
        "name": None if number % 5 == 0 else f"näme {number}",
        "blob": bytes([number % 256]) * (number % 7),
        "score": number / 8,
        "flag": number % 3 == 0,
        "tags": None if number % 4 == 0 else [f"t{n}" for n in range(number % 3)],
        "box": None if number % 6 == 0 else [0.0, 0.5, number, 1.0],
        "wide": number / 10,
    }
    for number in range(60)
]


def table(start: int, stop: int) -> Any:
    return pa.Table.from_pylist(ROWS[start:stop], schema=pa.schema(SCHEMA))


def wire(document: Any) -> Any:
    """A job or result after its way to another process."""
    return pickle.loads(pickle.dumps(document))


def write(place: Location, parts: Mapping[int, Any], **options: Any) -> rs.Dataset:
    job = wire(begin_table(place, **options))
    results = [wire(write_table_part(job, number, batches)) for number, batches in parts.items()]
    finish_table(job, results)
    return rs.open(place)


def stored(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader without recordsmith finds in the record of a row."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if value is None:
            continue
        values = value if isinstance(value, list) else [value]
        found[name] = [one.encode() if isinstance(one, str) else one for one in values]
    found["wide"] = [float(np.float32(found["wide"][0]))]
    return found


def decoded(dataset: rs.Dataset) -> list[dict[str, Any]]:
    return [
        {
            key: value if isinstance(value, list) else value.tolist()
            for key, value in example.items()
        }
        for example in dataset
    ]


def test_order_is_of_parts(place: Location) -> None:
    parts = {2: [table(40, 60)], 0: [table(0, 7), table(7, 20)], 7: [], 1: [table(20, 40)]}
    dataset = write(place, parts)
    assert decoded(dataset) == [stored(row) for row in ROWS]
    assert len(dataset.shards) == 3
    assert rs.verify(place).is_good
    assert len(contents(place)) == 3 + 3 + 1  # shards, indexes, manifest


def test_types_return(place: Location) -> None:
    schema = pa.schema({**SCHEMA, "empty": pa.string(), "when": pa.timestamp("us")})
    full = pa.Table.from_pylist([{**row, "when": row["id"]} for row in ROWS], schema=schema)
    nothing = full.slice(0, 20).set_column(1, "name", pa.nulls(20))
    dataset = write(place, {0: [nothing], 1: full.slice(20).to_batches()})
    expected = pa.concat_tables([nothing.cast(schema), full.slice(20)])
    found = dataset.to_arrow(restore_types=True).read_all()
    exact = [name for name in schema.names if name != "wide"]  # doubles lose digits
    assert found.select(exact).to_pylist() == expected.select(exact).to_pylist()
    assert found.select(exact).schema.types == expected.select(exact).schema.types
    assert found.schema.field("wide").type == pa.float32()


def test_large_parts_become_several_shards(place: Location) -> None:
    batches = table(0, 60).to_batches(max_chunksize=5)
    dataset = write(place, {0: batches, 1: [table(0, 1)]}, shard_size_bytes=1000)
    assert len(dataset.shards) > 4
    assert decoded(dataset) == [stored(row) for row in [*ROWS, ROWS[0]]]


def test_rows_of_nulls_are_records(place: Location) -> None:
    empty = pa.table({"x": pa.nulls(3)})
    dataset = write(place, {0: [empty], 1: [pa.table({"x": [1, 2]})]})
    assert [example.get("x", np.empty(0)).tolist() for example in dataset] == [[], [], [], [1], [2]]


def test_empty_lists_of_unknown_type(place: Location) -> None:
    parts = {0: [pa.table({"x": [[], []]})], 1: [pa.table({"x": [["a"], []]})]}
    assert decoded(write(place, parts)) == [{}, {}, {"x": [b"a"]}, {"x": []}]


@pytest.mark.parametrize(
    "kind", [pa.list_, pa.large_list, pa.list_view, lambda of: pa.list_(of, 1)]
)
@pytest.mark.parametrize(("lists", "row"), [([[None], None], 0), ([None, [None], [None]], 1)])
def test_null_in_lists_of_unknown_type(
    place: Location, kind: Any, lists: list[Any], row: int
) -> None:
    part = pa.table({"x": pa.array(lists, kind(pa.null()))})
    unknown = pa.table({"x": pa.array([None, None], kind(pa.null()))})
    with raises(OptionError, option="columns", value="x") as caught:
        write(place, {0: [unknown, part]})
    assert f"row {2 + row}: a list contains null" in str(caught.value)


def test_rejected_columns(place: Location) -> None:
    job = begin_table(place)
    bad = pa.table({"a": [{"x": 1}], "b": [[[1]]], "c": [1]})
    with raises(OptionError, option="columns") as caught:
        write_table_part(job, 0, [table(0, 5), bad])
    assert "'a'" in str(caught.value)
    assert "'b'" in str(caught.value)
    abandon_table(job)
    assert not contents(place)


def test_failed_part(place: Location) -> None:
    def batches() -> Any:
        yield table(0, 20)
        yield table(20, 40)
        raise RuntimeError

    job = begin_table(place, shard_size_bytes=100)
    before = contents(place)
    with pytest.raises(RuntimeError):
        write_table_part(job, 0, batches())
    assert contents(place) == before
    again = write_table_part(job, 0, [table(0, 60)])
    finish_table(job, [again])
    assert decoded(rs.open(place)) == [stored(row) for row in ROWS]


def test_attempts_that_do_not_count_are_removed(place: Location) -> None:
    job = begin_table(place)
    attempts = [write_table_part(job, 0, [table(0, 60)]) for _ in range(3)]
    finish_table(job, attempts[1:2])
    assert len(contents(place)) == 3
    assert decoded(rs.open(place)) == [stored(row) for row in ROWS]
    with pytest.raises(FileAccessError):
        write_table_part(job, 0, [table(0, 60)])
    abandon_table(job)
    assert len(contents(place)) == 3


def test_the_result_decides_which_attempt_counts(place: Location) -> None:
    """Also if attempts have different records, as functions of users may make them."""
    job = begin_table(place)
    first, second = (write_table_part(job, 0, [table(at, at + 20)]) for at in (0, 30))
    assert first.shards != second.shards
    finish_table(job, [first])
    assert decoded(rs.open(place)) == [stored(row) for row in ROWS[:20]]
    assert rs.verify(place).is_good


@pytest.mark.parametrize("overwrite", [False, True])
def test_begin_may_be_repeated(place: Location, overwrite: bool) -> None:
    """Before, between and after other steps."""
    if overwrite:
        write(place, {0: [table(0, 9)]})
    results: list[Any] = []
    job: Any = None
    for start in (0, 30):
        jobs = [begin_table(place, overwrite, token="5" * 32) for _ in range(2)]
        assert {job.token for job in jobs} == {"5" * 32}
        job = job or jobs[0]
        results.append(write_table_part(job, start, [table(start, start + 30)]))
    finish_table(job, results)
    before = contents(place)
    begin_table(place, overwrite, token="5" * 32)
    assert contents(place) == before
    assert decoded(rs.open(place)) == [stored(row) for row in ROWS]
    assert rs.verify(place).is_good


@pytest.mark.parametrize("is_finished", [True, False])
def test_attempt_that_ends_too_late(place: Location, is_finished: bool) -> None:
    job = begin_table(place)
    result = write_table_part(job, 0, [table(0, 60)])

    def slow() -> Any:
        yield table(0, 30)
        if is_finished:
            finish_table(job, [result])
        else:
            abandon_table(job)

    with pytest.raises(FileAccessError):
        write_table_part(job, 0, slow())
    assert len(contents(place)) == (3 if is_finished else 0)
    if is_finished:
        assert decoded(rs.open(place)) == [stored(row) for row in ROWS]


def test_not_a_dataset_before_the_end(place: Location) -> None:
    job = begin_table(place)
    write_table_part(job, 0, [table(0, 60)])
    with pytest.raises(rs.RecordsmithError):
        rs.open(place)
    abandon_table(job)
    abandon_table(job)
    assert not contents(place)


@pytest.mark.parametrize("is_empty", [False, True])
def test_no_rows(place: Location, is_empty: bool) -> None:
    with pytest.raises(SourceError):
        write(place, {0: [table(0, 0)], 1: []} if is_empty else {})
    assert not contents(place)


def test_existing_dataset(place: Location) -> None:
    write(place, {number: [table(number, number + 9)] for number in range(3)})
    before = contents(place)
    with raises(OptionError, option="out"):
        begin_table(place)
    assert contents(place) == before
    dataset = write(place, {0: [table(0, 60)]}, overwrite=True)
    assert decoded(dataset) == [stored(row) for row in ROWS]
    assert len(contents(place)) == 3


def test_overwriting_an_abandoned_job(place: Location) -> None:
    """Another job takes the folder over, and the first one cannot publish."""
    job = begin_table(place)
    result = write_table_part(job, 0, [table(0, 30)])
    dataset = write(place, {0: [table(0, 60)]}, overwrite=True)
    with pytest.raises((FileAccessError, OptionError)):
        finish_table(job, [result])
    with pytest.raises(FileAccessError):
        write_table_part(job, 1, [table(0, 30)])
    assert decoded(dataset) == [stored(row) for row in ROWS]
    assert len(contents(place)) == 3


def test_refused_results(place: Location) -> None:
    job, other = (
        begin_table(place),
        begin_table(Location(place.store, f"{place.key}/other".lstrip("/"))),
    )
    first = write_table_part(job, 0, [table(0, 30)])
    with raises(OptionError, option="results", value=0):
        finish_table(job, [first, first])
    with raises(OptionError, option="results", value=0):
        finish_table(replace(job, token=other.token), [first])
    with raises(OptionError, option="results"):
        finish_table(job, [{"token": job.token, "number": 0}])  # type: ignore[list-item]
    finish_table(job, [first])
    assert len(rs.open(place)) == 30


def test_missing_shard(tmp_path: Path) -> None:
    """As on a machine that does not share the folder of the workers."""
    job = begin_table(tmp_path / "out")
    result = write_table_part(job, 0, [table(0, 30)])
    for file in (tmp_path / "out" / ".recordsmith").glob("train-*"):
        file.unlink()
    with pytest.raises(SourceError):
        finish_table(job, [result])
    assert not (tmp_path / "out").exists()
    with pytest.raises(FileAccessError):
        write_table_part(job, 0, [table(0, 30)])


def test_kinds_that_differ(place: Location) -> None:
    parts = {0: [pa.table({"x": [1]})], 1: [pa.table({"x": ["one"]})]}
    with raises(OptionError, option="columns", value="x"):
        write(place, parts)
    assert not contents(place)


def test_a_bucket_with_options(
    bucket: tuple[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options that the user passed travel with the job; those of the environment do not."""
    url, options = bucket
    job = wire(begin_table(f"{url}/out", store_options=options))
    finish_table(job, [wire(write_table_part(job, 0, [table(0, 60)]))])
    assert decoded(rs.open(f"{url}/out", store_options=options)) == [stored(row) for row in ROWS]
    monkeypatch.setenv("RECORDSMITH_STORE_OPTIONS", json.dumps(options))
    job = begin_table(f"{url}/other")
    pickled = pickle.dumps([job, write_table_part(job, 0, [table(0, 60)])])
    assert not [value for value in options.values() if str(value).encode() in pickled]
    with raises(OptionError, option="store_options"):
        begin_table("out", store_options=options)


@pytest.mark.posix
@pytest.mark.parametrize("step", ["part", "finish"])
def test_killed_at_any_change(tmp_path: Path, step: str) -> None:
    """Another attempt ends with the same records, and nothing else is left."""
    number = 0
    while True:
        number += 1
        out = tmp_path / str(number)
        job = begin_table(out)
        results = [write_table_part(job, 1, [table(30, 60)])]
        if step == "part":
            killed = killed_before(number, lambda: write_table_part(job, 0, [table(0, 30)]))  # noqa: B023
            results.append(write_table_part(job, 0, [table(0, 30)]))
        else:
            results.append(write_table_part(job, 0, [table(0, 30)]))
            killed = killed_before(number, lambda: finish_table(job, results))  # noqa: B023
            if killed and not (out / "dataset.json").exists():
                with pytest.raises(rs.RecordsmithError):
                    rs.open(out)
        manifest = finish_table(job, results)
        assert manifest.record_count == 60
        assert decoded(rs.open(out)) == [stored(row) for row in ROWS]
        assert len(visible(out)) == 3
        if not killed:
            break
        write_table_part(begin_table(out, overwrite=True), 0, [])
    assert number > 5


def stopped_after_the_manifest_was_removed(job: Callable[[], object]) -> None:
    """Kill a job while it gives files their final names."""

    def kill() -> None:
        publishing._remove = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        job()

    assert killed_before(10**6, kill)


@pytest.mark.posix
def test_an_interrupted_append(tmp_path: Path) -> None:
    """A table replaces the dataset with `overwrite`; if it is abandoned, the append is done."""
    out = tmp_path / "out"
    for name in ("out", "more"):
        write(as_folder(tmp_path / name), {0: [table(0, 30)]})
    stopped_after_the_manifest_was_removed(lambda: rs.append(tmp_path / "more", out))
    with raises(OptionError, option="out", match="recordsmith recover"):
        begin_table(out)
    abandon_table(begin_table(out, overwrite=True))
    assert decoded(rs.open(out)) == 2 * [stored(row) for row in ROWS[:30]]
    assert not rs.append(tmp_path / "more", out).is_new
    dataset = write(as_folder(out), {0: [table(0, 60)]}, overwrite=True)
    assert decoded(dataset) == [stored(row) for row in ROWS]
    assert len(visible(out)) == 2


@pytest.mark.posix
def test_an_abandoned_job_does_not_make_a_dataset_of_what_a_killed_one_has_left(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    write(as_folder(out), {0: [table(0, 30)]})
    stopped_after_the_manifest_was_removed(
        lambda: write(as_folder(out), {0: [table(30, 60)]}, overwrite=True)
    )
    assert len(visible(out)) == 1
    for _ in range(2):
        abandon_table(begin_table(out, overwrite=True))
        with raises(CorruptDataError, defect="unfinished-dataset"):
            rs.open(out)
    dataset = write(as_folder(out), {0: [table(0, 60)]}, overwrite=True)
    assert decoded(dataset) == [stored(row) for row in ROWS]


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_shards_are_as_the_manifest_says(tmp_path: Path, compression: str | None) -> None:
    parts = {number: [table(20 * number, 20 * number + 20)] for number in range(3)}
    write(as_folder(tmp_path / "out"), parts, compression=compression)
    assert rs.verify(tmp_path / "out").is_good
