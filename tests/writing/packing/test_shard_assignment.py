"""Planning: every sample in one shard, correct shares, stable under small changes."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordsmith.dataset import share_counts
from recordsmith.sources import Listing, Sample
from recordsmith.sources.class_folders.image_folder import ImageReader
from recordsmith.stores import as_folder
from recordsmith.support.errors import OptionError, SourceError
from recordsmith.writing.packing.pack_options import PackOptions
from recordsmith.writing.packing.shard_assignment import ShardAssignment, assign_shards

from ...raising import raises

SHARES = st.lists(st.integers(1, 20), min_size=1, max_size=4).map(
    lambda parts: {f"split{n}": part / sum(parts) for n, part in enumerate(parts)}
)


def _listing(count: int, classes: int = 3, size_bytes: int = 100) -> Listing:
    samples = tuple(Sample(f"{n % classes}/{n}.jpg", size_bytes, n % classes) for n in range(count))
    return _listed(samples, tuple(map(str, range(classes))))


def _listed(samples: Sequence[Sample], *arguments: Any, **options: Any) -> Listing:
    """A listing that nothing is read from."""
    return Listing(samples, ImageReader(as_folder("nowhere")), *arguments, **options)


def _plan(listing: Listing, **options: Any) -> ShardAssignment:
    source = {"kind": options.pop("kind", "x")}
    return assign_shards(listing, PackOptions(**options), source)


def _split_of(plan: ShardAssignment, listing: Listing) -> dict[str, str]:
    return {
        listing.samples[number].name: shard.split
        for shard in plan.shards
        for number in plan.numbers(shard)
    }


@settings(max_examples=200)
@given(
    count=st.integers(1, 60),
    splits=SHARES,
    shards=st.none() | st.integers(1, 5),
    size=st.none() | st.integers(1, 3000),
    seed=st.integers(),
    stratify=st.booleans(),
)
def test_every_sample_is_in_exactly_one_shard(
    count: int,
    splits: dict[str, float],
    shards: int | None,
    size: int | None,
    seed: int,
    stratify: bool,
) -> None:
    listing = _listing(count)
    options = {
        "splits": splits,
        "shards": shards,
        "shard_size_bytes": size if shards is None else None,
        "seed": seed,
        "stratify": stratify,
    }
    try:
        plan = _plan(listing, **options)
    except OptionError:
        # too few samples for so many splits or shards
        assert any(share * count < (shards or 1) + len(splits) * 3 for share in splits.values())
        return
    assert plan == _plan(listing, **options)
    numbers = [number for shard in plan.shards for number in plan.numbers(shard).tolist()]
    assert sorted(numbers) == list(range(count))
    assert plan.splits == tuple(splits)
    assert len({shard.file for shard in plan.shards}) == len(plan.shards)
    slack = 3 if stratify else 1  # one for each class
    for split, share in splits.items():
        lengths = [shard.sample_count for shard in plan.shards if shard.split == split]
        assert abs(sum(lengths) - share * count) < slack
        assert min(lengths) >= 1
        assert max(lengths) - min(lengths) <= 1
        if shards is not None:
            assert len(lengths) == shards
    assert [shard.split for shard in plan.shards] == sorted(
        (shard.split for shard in plan.shards), key=list(splits).index
    )


@given(count=st.integers(0, 10**12), splits=SHARES)
def test_shares_add_up(count: int, splits: dict[str, float]) -> None:
    counts = share_counts(count, splits)
    assert list(counts) == list(splits)
    assert sum(counts.values()) == count
    for split, found in counts.items():
        assert abs(found - splits[split] * count) < 1 + 1e-9 * count


@pytest.mark.parametrize(
    ("count", "splits", "lengths"),
    [
        (10, {"a": 0.7, "b": 0.3}, [7, 3]),
        (10, {"a": 0.8, "b": 0.1, "c": 0.1}, [8, 1, 1]),
        (100, {"a": 0.29, "b": 0.71}, [29, 71]),  # 0.29 * 100 is 28.999999999999996
        (3, {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}, [1, 1, 1]),
        (1000, {"a": 0.7, "b": 0.2, "c": 0.1}, [700, 200, 100]),
    ],
)
def test_shares_are_decimal_numbers(
    count: int, splits: dict[str, float], lengths: list[int]
) -> None:
    assert [*share_counts(count, splits).values()] == lengths


def test_order_is_shuffled_by_the_seed() -> None:
    listing = _listing(500)
    plans = [_plan(listing, seed=seed) for seed in (0, 1, -1, 10**30)]
    orders = [[n for shard in plan.shards for n in plan.numbers(shard)] for plan in plans]
    assert len({tuple(order) for order in orders}) == 4
    for order in orders:
        kept = sum(a == b for a, b in enumerate(order))
        assert kept < 20
        labels = Counter(listing.samples[n].label for n in order[:250])
        assert min(labels.values()) > 50  # classes are mixed


def test_order_is_the_same_in_every_version() -> None:
    """Packing again with a later version gives the same splits."""
    listing = _listed(tuple(Sample(f"{n}é", n, n % 3) for n in range(12)), ("a", "b", "c"))
    halves = {"x": 0.5, "y": 0.5}
    plan = _plan(listing, splits=halves, shards=2)
    assert [plan.numbers(shard).tolist() for shard in plan.shards] == [
        [3, 11, 10],
        [9, 4, 7],
        [0, 1, 5],
        [8, 6, 2],
    ]


@pytest.mark.parametrize("stratify", [False, True])
def test_a_new_sample_moves_few_others(stratify: bool) -> None:
    splits = {"train": 0.8, "validation": 0.1, "test": 0.1}
    listing = _listing(1000)
    before = _split_of(_plan(listing, splits=splits, stratify=stratify), listing)
    for extra in range(10):
        more = _listed((Sample(f"0/new{extra}.jpg", 5, 0), *listing.samples), listing.class_names)
        after = _split_of(_plan(more, splits=splits, stratify=stratify), more)
        moved = [name for name, split in before.items() if after[name] != split]
        assert len(moved) <= len(splits) - 1


def test_stratified_splits_have_the_class_balance_of_the_dataset() -> None:
    labels = [0] * 50 + [1] * 30 + [2] * 7
    samples = tuple(Sample(str(n), 1, label) for n, label in enumerate(labels))
    splits = {"train": 0.6, "validation": 0.4}
    plan = _plan(_listed(samples, ("a", "b", "c")), splits=splits, stratify=True)
    for split, share in splits.items():
        mix = Counter(
            samples[n].label
            for shard in plan.shards
            if shard.split == split
            for n in plan.numbers(shard)
        )
        for label, count in Counter(labels).items():
            assert abs(mix[label] - share * count) < 1
    # and a split is not sorted by class
    first = [samples[n].label for n in plan.numbers(plan.shards[0])]
    assert first != sorted(first)  # type: ignore[type-var]


# -- shards --------------------------------------------------------------------------------------


def test_shards_for_each_split() -> None:
    splits = {"train": 0.7, "test": 0.3}
    plan = _plan(_listing(20), splits=splits, shards={"train": 3, "test": 2})
    assert [shard.file for shard in plan.shards] == [
        *(f"train-{n:05d}-of-00003.tfrecord" for n in range(3)),
        *(f"test-{n:05d}-of-00002.tfrecord" for n in range(2)),
    ]
    with raises(OptionError, value={"train": 3}, match="'test'") as caught:
        _plan(_listing(20), splits=splits, shards={"train": 3})
    assert caught.value.option == "shards"


@given(size=st.integers(1, 10_000), count=st.integers(1, 40))
def test_shards_of_a_size(size: int, count: int) -> None:
    plan = _plan(_listing(count), shard_size_bytes=size)
    wanted = count * 100 / size
    assert len(plan.shards) <= count
    assert min(count, wanted) <= len(plan.shards) <= wanted + 1


# -- invalid options -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "value", "expected"),
    [
        ({"splits": {}}, "{}", "shares by name"),
        ({"splits": {"a": 0.5, "b": 0.4}}, "0.9", "1, or 100%"),
        ({"splits": {"a": 1.5}}, "1.5", "0 < share <= 1"),
        ({"splits": {"a": 1.0, "b": 0.0}}, "0.0", "0 < share <= 1"),
        ({"splits": {"a": -1.0, "b": 2.0}}, "-1.0", "0 < share <= 1"),
        ({"splits": {"a": float("nan")}}, "nan", "0 < share <= 1"),
        ({"splits": {"a": "half"}}, "'half'", "a name and a number"),
        ({"splits": {"a": 0.9, "b": 0.1}}, "'b'", ""),
        ({"splits": {"../x": 1.0}}, "'../x'", ""),
        ({"splits": {"a/b": 1.0}}, "'a/b'", ""),
        ({"splits": {".a": 1.0}}, "'.a'", ""),
        ({"splits": {"": 1.0}}, "''", ""),
        ({"splits": {"a*": 1.0}}, "'a*'", ""),
        ({"shards": 0}, "0", "a positive integer"),
        ({"shards": -2}, "-2", "a positive integer"),
        ({"shards": 4}, "4", "at most 3"),
        ({"shards": {"x": 1}}, "'x'", "some of train"),
        ({"shards": 1, "shard_size_bytes": 5}, None, ""),
        ({"shard_size_bytes": 0}, "0", "a positive integer"),
    ],
)
def test_invalid_and_conflicting_options(
    options: dict[str, Any], value: str | None, expected: str
) -> None:
    with pytest.raises(OptionError) as caught:
        _plan(_listing(3), **options)
    assert (caught.value.option, caught.value.value) == (next(iter(options)), value)
    assert caught.value.expected.startswith(expected)


# -- splits of the source, groups, order ---------------------------------------------------------


def _split_listing(count: int, pattern: Sequence[str], splits: tuple[str, ...]) -> Listing:
    samples = tuple(
        Sample(f"{n}", 1, n % 2, split=pattern[n % len(pattern)], group=f"{n // 4}")
        for n in range(count)
    )
    return _listed(samples, splits=splits)


@settings(max_examples=100)
@given(
    pattern=st.lists(st.sampled_from(["train", "val", "test"]), min_size=1, max_size=5),
    chosen=st.sets(st.sampled_from(["train", "val", "test"]), min_size=1),
    shares=SHARES,
)
def test_splits_of_the_source_are_divided_only_if_that_is_asked_for(
    pattern: list[str], chosen: set[str], shares: dict[str, float]
) -> None:
    listing = _split_listing(120, pattern, ("train", "val", "test"))
    given = [split for split in ("train", "val", "test") if split in pattern]
    if len(given) > 1:
        with raises(OptionError, option="splits", value=shares):
            _plan(listing, splits=shares)
    names = sorted(chosen)
    if not chosen <= {*given}:
        with raises(OptionError, option="resplit"):
            _plan(listing, splits=shares, resplit=names)
        return
    try:
        plan = _plan(listing, splits=shares, resplit=names)
    except OptionError as error:
        if error.option != "splits":
            raise
        return  # an empty split, as groups are large
    kept = [split for split in given if split not in chosen]
    first = given.index(next(split for split in given if split in chosen))
    assert plan.splits == (*kept[:first], *shares, *kept[first:])
    found = _split_of(plan, listing)
    divided: dict[str | None, set[str]] = {}
    for sample in listing.samples:
        if sample.split in chosen:
            assert found[sample.name] in shares
            divided.setdefault(sample.group, set()).add(found[sample.name])
        else:
            assert found[sample.name] == sample.split
    assert all(len(splits) == 1 for splits in divided.values())


@pytest.mark.parametrize(
    ("pattern", "options", "option"),
    [
        (["a", "b"], {"splits": {"x": 1.0}}, "splits"),
        (["a", "b"], {"splits": {"a": 0.5, "b": 0.5}}, "splits"),
        (["a", "b"], {"resplit": "a"}, "resplit"),
        (["a", "b"], {"splits": {"x": 1.0}, "resplit": []}, "resplit"),
        (["a", "b"], {"splits": {"x": 1.0}, "resplit": ["c"]}, "resplit"),
        (["a", "b"], {"splits": {"b": 1.0}, "resplit": "a"}, "splits"),
        (["a", "b"], {"stratify": True}, "stratify"),
        ([None], {"splits": {"x": 1.0}, "resplit": "a"}, "resplit"),
    ],
)
def test_options_that_contradict_the_splits_of_the_source_are_refused(
    pattern: list[Any], options: dict[str, Any], option: str
) -> None:
    splits = tuple(filter(None, pattern))
    with raises(OptionError, option=option):
        _plan(_split_listing(40, pattern, splits), **options)


def test_the_only_split_of_a_source_can_be_divided_by_its_name() -> None:
    samples = tuple(Sample(f"{n}", 1, n % 2) for n in range(10))
    listing = dataclasses.replace(_listed(samples), only_split="val")
    assert _plan(listing).splits == ("val",)
    shares = {"train": 0.8, "val": 0.2}
    for resplit in (None, "val", ["val"]):
        plan = _plan(listing, splits=shares, resplit=resplit)
        assert Counter(_split_of(plan, listing).values()) == {"train": 8, "val": 2}
    with raises(OptionError, option="resplit", value="test"):
        _plan(listing, splits=shares, resplit="test")


@settings(max_examples=100)
@given(
    groups=st.lists(st.none() | st.integers(0, 12), min_size=40, max_size=80),
    seed=st.integers(0, 9),
)
def test_groups_stay_together(groups: list[int | None], seed: int) -> None:
    samples = tuple(
        Sample(f"{n}", 1, group=None if group is None else f"g{group}")
        for n, group in enumerate(groups)
    )
    listing = _listed(samples)
    try:
        plan = _plan(listing, splits={"a": 0.6, "b": 0.4}, seed=seed)
    except OptionError:
        assert max(Counter(groups).values()) > 0.7 * len(groups)
        return
    split_of = _split_of(plan, listing)
    assert len(split_of) == len(samples)
    found: dict[str, set[str]] = {}
    for sample in samples:
        if sample.group is not None:
            found.setdefault(sample.group, set()).add(split_of[sample.name])
    assert all(len(splits) == 1 for splits in found.values())
    largest = max(Counter(groups).values())
    share = Counter(split_of.values())["a"] / len(samples)
    assert abs(share - 0.6) <= largest / len(samples)


def test_order_of_the_source_on_request() -> None:
    plan = _plan(_listing(30), shuffle=False, shards=3, splits={"a": 0.5, "b": 0.5})
    assert [n for shard in plan.shards for n in plan.numbers(shard)] == list(range(30))


def test_names_follow_a_template() -> None:
    plan = _plan(_listing(30), shards=2, shard_names="flowers_{split}_{shard:05d}-of-{shards:05d}")
    assert [shard.file for shard in plan.shards] == [
        "flowers_train_00000-of-00002.tfrecord",
        "flowers_train_00001-of-00002.tfrecord",
    ]
    plan = _plan(_listing(30), shard_names="{split}.record")
    assert [shard.file for shard in plan.shards] == ["train.record"]


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("x", "same name"),
        ("{split}", "same name"),
        ("{split", "template"),
        ("{other}", "template"),
        ("{0}", "template"),
        ("{split:d}", "template"),
        ("../{shard}", "file name"),
        (".{shard}", "file name"),
        ("", "file name"),
    ],
)
def test_invalid_templates(template: str, words: str) -> None:
    with pytest.raises(OptionError, match=words) as caught:
        _plan(_listing(30), shards=2, shard_names=template)
    assert (caught.value.option, caught.value.value) == ("shard_names", repr(template))


# -- the fingerprint -----------------------------------------------------------------------------


def test_fingerprints_of_different_plans_differ() -> None:
    listing = _listing(30)
    samples = listing.samples
    two = {"a": 0.5, "b": 0.5}
    plans = [
        _plan(listing),
        _plan(listing, seed=1),
        _plan(listing, shards=2),
        _plan(listing, splits=two),
        _plan(listing, splits=two, stratify=True),
        _plan(listing, splits={"x": 1.0}),
        _plan(listing, compression="gzip"),
        _plan(listing, kind="other"),
        _plan(listing, shuffle=False),
        _plan(listing, shard_names="x-{split}-{shard}"),
        _plan(_listed(samples[1:], listing.class_names)),
        _plan(_listed(samples, ("0", "1", "other"))),
        _plan(_listed((Sample(samples[0].name, 101, 0), *samples[1:]), listing.class_names)),
        _plan(_listed((Sample(samples[0].name, 100, 1), *samples[1:]), listing.class_names)),
        _plan(_listed((Sample("other", 100, 0), *samples[1:]), listing.class_names)),
    ]
    assert len({plan.fingerprint for plan in plans}) == len(plans)


def test_names_that_are_not_utf8_can_be_planned() -> None:
    samples = (Sample("a\udcff", 1), Sample("b", 1))
    plan = _plan(_listed(samples))
    assert plan.shards[0].sample_count == 2
    assert plan.fingerprint != _plan(_listed((Sample("a\udcfe", 1), samples[1]))).fingerprint


def test_names_that_are_invalid_in_files_are_source_errors() -> None:
    samples = (Sample("a", 1, 0, split="train"), Sample("b", 1, 1, split="../b"))
    with pytest.raises(SourceError) as caught:
        _plan(_listed(samples, ("fine", "two\nlines"), splits=("train", "../b")))
    class_problem, split_problem = caught.value.problems
    assert repr("two\nlines") in class_problem
    assert "'../b'" in split_problem


def test_groups_that_leave_a_split_empty() -> None:
    samples = tuple(Sample(str(number), 1, group="one") for number in range(9))
    with raises(OptionError, value="b", match="groups") as caught:
        _plan(_listed(samples), splits={"a": 0.5, "b": 0.5})
    assert caught.value.option == "splits"
