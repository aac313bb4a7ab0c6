"""Changes of datasets with layers that are killed, or that begin at the same time."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.stores import Location, MemoryStore, PlaceLike, as_folder, remote
from recordsmith.writing.building import publishing
from recordsmith.writing.layers.adding import remove_layer

from ...killed_jobs import killed_before
from ...layered import add, layer_files, listed_files, rows_of
from ...places import contents
from ...raising import raises
from ...servers.s3 import S3
from ..building.disturbed_stores import DyingStore, Killed, Turns
from ..building.test_killed_jobs import copied
from ..building.test_two_writers import FEW_SEEDS, is_busy

pytest.importorskip("pyarrow")

Job = Callable[[Location], Any]


def base(folder: Location) -> Location:
    """9 records in 3 shards with two layers, one of which hides labels, and what jobs read."""
    out = folder / "out"
    rows = [{"id": n, "label": n % 2} for n in range(9)]
    rs.pack(rs.Rows(rows), out, shards=3, shuffle=False, numbers_of=["label"])
    add(out, "a", [{"id": n, "a": n * 1.5} for n in range(9)])
    add(out, "b", [{"id": n, "label": 10 + n} for n in range(9)])
    new = [{"id": n, "label": 70, "a": 0.5} for n in (1, 5)]
    rs.pack(rs.Rows(new), folder / "new", shards=1)
    more = [{"id": n, "label": 0, "a": 0.5} for n in (20, 21)]
    rs.pack(rs.Rows(more), folder / "more", shards=1)
    return out


def _values(name: str, **options: Any) -> Job:
    def job(out: Location) -> None:
        rows = [{"id": n, "label" if name == "b" else "c": 30 + n} for n in range(9)]
        add(out, name, rows, **options)

    return job


JOBS: dict[str, Job] = {
    "add": _values("c"),
    "add over": _values("b", overwrite=True),
    "remove": lambda out: remove_layer(out, "b"),
    "edit": lambda out: rs.edit_in_place(out, where="id not in (3, 4, 5, 8)", threads=1),
    "replace": lambda out: rs.edit_in_place(out, replace=out.parent / "new", on="id", threads=1),
    "append": lambda out: rs.append(out.parent / "more", out, threads=1),
}


def pack_over(out: Location) -> None:
    rs.pack(rs.Rows([{"id": 5}]), out, overwrite=True, threads=1)


def state(out: Location) -> dict[str, Any] | None:
    """What the files have and a reader sees; None if it is refused."""
    try:
        dataset = rs.open(out)
    except (rs.CorruptDataError, rs.OptionError, rs.FileAccessError):
        return None
    read = [{key: list(row[key]) for key in sorted(row)} for row in dataset]
    assert rows_of(out) == {"train": read}
    return rows_of(out)


def assert_is_clean(out: Location) -> None:
    """No file of a layer is there that is not listed, and everything is intact."""
    assert layer_files(out) == listed_files(out)
    assert rs.verify(out, deep=True).is_good


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_killed_at_every_change_of_a_store(name: str) -> None:
    job, before = JOBS[name], MemoryStore()
    old = state(base(Location(before, "")))
    done, taken = copied(before), copied(before)
    job(Location(done, "out"))
    pack_over(Location(taken, "out"))
    complete = [old, state(Location(done, "out"))]
    assert complete[0] != complete[1]
    wanted = [contents(Location(store, "out")) for store in (before, done)]
    for changes in count():
        killed = copied(before)
        dying = DyingStore(killed, changes)
        with suppress(Killed):
            job(Location(dying, "out"))
        if not dying.is_dead:
            break
        assert state(Location(killed, "out")) in (None, *complete), changes
        recovered, again = Location(copied(killed), "out"), Location(copied(killed), "out")
        report = rs.recover(recovered)
        assert contents(recovered) in wanted, changes
        assert report.record_count == len(rs.open(recovered))
        with suppress(rs.OptionError):  # refused until `recover`, or it has that layer already
            job(again)
        rs.recover(again)
        assert state(again) == complete[1], changes
        assert_is_clean(again)
        over = Location(copied(killed), "out")
        pack_over(over)
        assert contents(over) == contents(Location(taken, "out")), changes
    assert changes > 5


@pytest.mark.posix
@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_killed_before_any_change_of_the_file_system(tmp_path: Path, name: str) -> None:
    job = JOBS[name]
    base(as_folder(tmp_path / "base"))
    shutil.copytree(tmp_path / "base", tmp_path / "done")
    old, done = as_folder(tmp_path / "base") / "out", as_folder(tmp_path / "done") / "out"
    job(done)
    complete, wanted = [state(old), state(done)], [contents(old), contents(done)]
    folder = as_folder(tmp_path / "trial")
    for step in range(1, 1000):
        shutil.copytree(tmp_path / "base", tmp_path / "trial")
        out = folder / "out"
        if not killed_before(step, lambda: job(folder / "out")):
            break
        assert state(out) in (None, *complete), step
        if step % 2:
            rs.recover(out)
            found = contents(out)
            found.pop(".recordsmith/lock", None)
            assert found in [{k: v for k, v in one.items() if "lock" not in k} for one in wanted]
        else:
            with suppress(rs.OptionError):
                job(out)
            rs.recover(out)
            assert state(out) == complete[1], step
        assert_is_clean(out)
        shutil.rmtree(tmp_path / "trial")
    assert step > 10


@pytest.mark.slow
@pytest.mark.parametrize("names", [("add", "append"), ("add", "add over"), ("add", "edit"),
                                   ("remove", "replace"), ("add", "add")])  # fmt: skip
def test_two_that_begin_at_the_same_time(names: tuple[str, str]) -> None:
    """One after the other, or one of them is refused."""
    before = MemoryStore()
    base(Location(before, ""))
    outcomes = {}
    for order in ((), (0,), (1,), (0, 1), (1, 0)):
        store = copied(before)
        with suppress(rs.OptionError):
            for number in order:
                JOBS[names[number]](Location(store, "out"))
        outcomes[order] = state(Location(store, "out"))
    for seed in FEW_SEEDS:
        store = copied(before)
        jobs = [lambda one, n=name: JOBS[n](Location(one, "out")) for name in names]
        results = Turns(seed).run(store, jobs)  # type: ignore[arg-type]
        for result in results:
            assert (
                not isinstance(result, BaseException)
                or is_busy(result)
                or isinstance(result, (rs.OptionError, rs.CorruptDataError))
            ), (seed, result)
        out = Location(store, "out")
        if state(out) is None:
            rs.recover(out)
        did = {n for n, result in enumerate(results) if not isinstance(result, BaseException)}
        possible = [one for order, one in outcomes.items() if did <= {*order}]
        assert state(out) in possible, (seed, results)
        rs.recover(out)
        assert_is_clean(out)


def test_failed_jobs_leave_nothing(place: Location) -> None:
    out = base(place)
    before = contents(out)
    shard: PlaceLike = sorted(f for f in layer_files(out) if "layers/b/" in f)[1]
    data = (out / shard).read()
    (out / shard).put(data[:30] + b"?" + data[31:])
    damaged = contents(out)
    for job in (JOBS["edit"], JOBS["replace"]):
        with pytest.raises(rs.CorruptDataError):
            job(out)
        assert {k: v for k, v in contents(out).items() if "lock" not in k} == {
            k: v for k, v in damaged.items() if "lock" not in k
        }
    (out / shard).put(data)
    assert rs.verify(out).is_good
    assert contents(out).keys() == before.keys()


@pytest.mark.parametrize("name", ["add", "add over", "edit"])
def test_a_manifest_that_is_too_large(
    place: Location, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The files of layers have their names already."""
    out = base(place)
    before = contents(out)
    monkeypatch.setattr(publishing, "NOTE_BYTES", 100)
    with raises(rs.OptionError, option="out"):
        JOBS[name](out)
    monkeypatch.undo()
    found = contents(out)
    assert {k for k in found if "lock" not in k} == {k for k in before if "lock" not in k}
    assert_is_clean(out)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fault"), [("add over", "500"), ("edit", "lost")])
def test_a_request_that_fails_each_time(s3: S3, name: str, fault: str) -> None:
    """At many objects that a job asks for: the old dataset or the new one, after `recover`."""
    job = JOBS[name]
    folder = remote("s3://bucket/some", store_options=s3.options())
    old = state(base(folder))
    objects = s3.objects()
    s3.requests()
    job(folder / "out")
    requests = {(one.method, one.key) for one in s3.requests()}
    complete, done = [old, state(folder / "out")], s3.objects()
    failed = 0
    for method, key in sorted(requests)[::12]:
        s3.delete("")
        for known, data in objects.items():
            s3.put(known, data)
        s3.fail([fault], method=method, path=f"/{re.escape(key)}(?:$|[?])")
        with suppress(rs.FileAccessError, rs.OptionError, rs.CorruptDataError):
            job(folder / "out")
            failed -= 1
        failed += 1
        s3.fail(rate=0)
        assert state(folder / "out") in (None, *complete), (method, key)
        rs.recover(folder / "out")
        assert state(folder / "out") in complete, (method, key)
        assert_is_clean(folder / "out")
        if state(folder / "out") == old:
            job(folder / "out")
            assert s3.objects().keys() == done.keys()
    assert failed > 0
