"""Plans of listings that outgrow memory: the same as in memory, from one pass over the listing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.errors import OptionError
from recordsmith.packing import Plan, make_plan
from recordsmith.packing.pack_task import PackTasks
from recordsmith.packing.recipe import Recipe
from recordsmith.packing.spilled_samples import SpilledSamples, SpilledTable
from recordsmith.sources import Listing, Sample
from recordsmith.sources.class_folders.image_files import ImageReader
from recordsmith.sources.numbered import LazyNotices, RelistedSamples
from recordsmith.stores import as_folder

SPLITS = ("a", "b", "c")
NAMES = st.text("ab\udcffé/", max_size=3)
RESPLITS = st.lists(st.sampled_from(SPLITS), unique=True, max_size=3).map(sorted)


@st.composite
def _samples(draw: st.DrawFn) -> list[Sample]:
    count = draw(st.integers(1, 60))
    has_splits, has_groups = draw(st.booleans()), draw(st.booleans())
    versions = st.integers(0, 2**62)
    return [
        Sample(
            f"{number}{draw(NAMES)}",
            draw(st.integers(0, 1000)),
            draw(st.none() | st.integers(0, 3)),
            draw(st.sampled_from(SPLITS)) if has_splits else None,
            draw(st.sampled_from([None, None, "x", "yé", "z"])) if has_groups else None,
            draw(versions) if draw(st.integers(0, 99)) else None,
            draw(st.none() | st.fixed_dictionaries({"at": st.integers(0, 99)})),
        )
        for number in range(count)
    ]


def _listing(samples: Sequence[Sample], walks: list[int]) -> Listing:
    """A listing that counts how often it is walked."""

    def walk() -> Iterator[Sample]:
        walks.append(1)
        yield from samples

    given_splits = {sample.split for sample in samples}
    streamed = RelistedSamples(walk)
    return Listing(
        streamed,
        ImageReader(as_folder("nowhere")),
        ("0", "1", "2", "3"),
        LazyNotices(streamed, lambda: ("walked",)),
        tuple(split for split in SPLITS if split in given_splits),
    )


def _content(listing: Listing, plan: Plan) -> list[Any]:
    """Everything of a plan that leaves the process."""
    tasks = PackTasks(as_folder("out"), Recipe(), listing, plan)
    return [
        plan.splits,
        plan.fingerprint,
        [(shard.file, shard.split, len(shard.samples)) for shard in plan.shards],
        [json.dumps(task.to_json()) for task in tasks.each()],
    ]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    samples=_samples(),
    run_bytes=st.integers(1, 3000),
    splits=st.none() | st.sampled_from([{"p": 0.5, "q": 0.5}, {"p": 0.2, "q": 0.7, "a": 0.1}]),
    resplit=st.none() | RESPLITS,
    shards=st.none() | st.integers(1, 4),
    size=st.none() | st.integers(1, 9000),
    shuffle=st.booleans(),
    stratify=st.booleans(),
    seed=st.integers(0, 3),
)
def test_plans_on_disk_are_those_in_memory(
    samples: list[Sample],
    run_bytes: int,
    splits: Mapping[str, float] | None,
    resplit: list[str] | None,
    shards: int | None,
    size: int | None,
    *,
    shuffle: bool,
    stratify: bool,
    seed: int,
) -> None:
    options: dict[str, Any] = {
        "splits": splits,
        "resplit": resplit,
        "shards": shards,
        "shard_size_bytes": size if shards is None else None,
        "shuffle": shuffle,
        "stratify": stratify,
        "seed": seed,
    }
    walks: list[int] = []
    listing = _listing(samples, [])
    try:
        expected = _content(listing, make_plan(listing, **options))
    except OptionError as error:
        with pytest.raises(OptionError, match=re.escape(str(error))):
            make_plan(_listing(samples, walks), **options, run_bytes=run_bytes)
        return
    listing = _listing(samples, walks)
    plan = make_plan(listing, **options, run_bytes=run_bytes)
    assert _content(listing, plan) == expected
    assert list(listing.notices) == ["walked"]
    assert len(walks) == 1
    assert sorted(n for shard in plan.shards for n in plan.numbers(shard.samples)) == [
        *range(len(samples))
    ]


def _parity(_: object, name: bytes) -> int:
    return int(bytes(name)) % 2


def test_samples_with_equal_hashes_are_in_the_order_of_the_listing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("recordsmith.packing.sample_keys._Hasher.number", _parity)
    samples = [Sample(str(number), 1) for number in range(300)]
    plan = make_plan(_listing(samples, []), run_bytes=1000)
    assert isinstance(plan.samples, SpilledSamples)
    assert plan.numbers(plan.shards[0].samples).tolist() == [*range(0, 300, 2), *range(1, 300, 2)]


def _noting(tables: list[SpilledTable]) -> Callable[..., SpilledSamples]:
    usual = SpilledTable.arrange

    def arrange(table: SpilledTable, division: Any) -> SpilledSamples:
        tables.append(table)
        return usual(table, division)

    return arrange


@pytest.mark.parametrize("engine", [None, rs.engines.Processes(2)])
def test_datasets_of_plans_on_disk(
    tmp_path: Path, images: ModuleType, monkeypatch: pytest.MonkeyPatch, engine: Any
) -> None:
    """Also what is skipped: the first unreadable images in the order of the listing."""
    flowers = images.make_folder(tmp_path / "flowers", {"daisy": 60, "rose": 40})
    for path in sorted(flowers.glob("*/*"))[::2]:
        path.write_bytes(b"broken")
    spilled: list[SpilledTable] = []
    monkeypatch.setattr(SpilledTable, "arrange", _noting(spilled))
    reports = []
    for out, run_bytes in (("memory", 1 << 20), ("disk", 900)):
        monkeypatch.setattr("recordsmith.packing.planning.RUN_BYTES", run_bytes)
        reports.append(
            rs.pack(
                rs.ImageFolder(flowers), tmp_path / out, shards=3, skip_errors=True, engine=engine
            )
        )
    assert len(spilled) == 1
    assert reports[0].skipped == reports[1].skipped
    assert reports[0].skipped_count == reports[1].skipped_count == 50
    contents = [
        {path.name: path.read_bytes() for path in (tmp_path / out).rglob("*") if path.is_file()}
        for out in ("memory", "disk")
    ]
    assert contents[0] == contents[1]


def test_no_space_for_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    samples = [Sample(str(number), 1) for number in range(300)]
    make_plan(_listing(samples, []))
    with pytest.raises(rs.FileAccessError):
        make_plan(_listing(samples, []), run_bytes=1000)


def test_a_chosen_task_is_made_without_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = [Sample(str(number), 1) for number in range(300)]
    listing = _listing(samples, [])
    plan = make_plan(listing, shards=300)
    tasks = PackTasks(as_folder("out"), Recipe(), listing, plan)
    every = [*tasks.each()]
    read: list[int] = []
    usual = plan.numbers
    object.__setattr__(plan, "numbers", lambda places: (read.extend(places), usual(places))[1])
    assert [*tasks.each([7, 200])] == [every[7], every[200]]
    assert len(read) == 2
