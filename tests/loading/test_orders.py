"""Random settings of a loader read what is stated, exactly as often, however they are resumed.

A setting is made from its number: records, windows or rows; a shuffle; batches, ranks, and the
ranks that resume. What is expected follows from the definitions alone: which rows an epoch has from
each group (a class, a dataset of a mix), and which of them are whose, from the order of one rank.
The last tests compare orders with independent uniform numbers.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, cycle, islice
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from tests.reading import written

import recordsmith as rs
from recordsmith.loading.order.mix import MixOrder
from recordsmith.loading.order.shuffle import DatasetOrder
from recordsmith.support.permutation import GroupPermutations

COUNT, QUICK, ALL = 48, 30, 600
LABELS = [0 if at % 2 else at % 3 + at // 24 for at in range(COUNT)]  # of each record
STEPS = [at * 5 % 9 for at in range(COUNT)]
TOKENS = [[at * 1000 + 1 + token for token in range(at * 7 % 13)] for at in range(COUNT)]
Row = tuple[Any, ...]  # the position and the values of some features
Datasets = dict[str, tuple[rs.Dataset, list[int]]]


class Case(NamedTuple):
    """What a loader reads, and the rows that it must have.

    contents: the values of `keys`, by position.
    groups: positions; an epoch has exactly as many rows of each as its weight says.
    weights: of the groups, by epoch; the last ones stay.
    is_even: whether no record comes again before all others of its group.
    batch_size: of each rank, which has neighbouring rows then; None for any.
    unit: rows of a group come so many at once.
    """

    source: Any
    keys: list[str]
    contents: list[Row]
    groups: list[list[int]]
    weights: Sequence[list[float]] = ([1],)
    is_even: bool = True
    batch_size: int | None = None
    unit: int = 1


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Datasets:
    """All records in three shards, and those of a filter, with the numbers of their records."""
    folder = tmp_path_factory.mktemp("orders")
    for begin, end in ((0, 20), (20, 20), (20, COUNT)):
        written(folder, [
            {"id": at, "label": LABELS[at], "text": np.array(TOKENS[at], np.int64),
             "steps/x": np.arange(STEPS[at])} for at in range(begin, end)
        ])  # fmt: skip
    whole = rs.open(folder)
    chosen = [at for at in range(COUNT) if LABELS[at] != 1]
    return {"all": (whole, [*range(COUNT)]), "filtered": (whole.filter("label != 1"), chosen)}


def some(datasets: Datasets, rng: Any, least: int = 1) -> tuple[rs.Dataset, list[int]]:
    """A slice of the records or of the filtered ones, and their numbers."""
    dataset, numbers = datasets[rng.choice(["all", "filtered"])]
    begin = int(rng.integers(0, len(numbers) - least + 1))
    part = slice(begin, int(rng.integers(begin + least, len(numbers) + 1)))
    return dataset[part], numbers[part]


def plain(datasets: Datasets, rng: Any) -> Case:
    dataset, numbers = some(datasets, rng)
    return Case(dataset, ["id"], [(at,) for at in numbers], [[*range(len(numbers))]])


def weighted(datasets: Datasets, rng: Any) -> Case:
    dataset, numbers = some(datasets, rng)
    labels = [LABELS[at] for at in numbers]
    of_class = Counter(labels)
    given: Any
    if rng.random() < 0.7:
        given = {label: int(rng.integers(1, 4)) for label in of_class}
        options = {"by": "label", "weights": given}
        shares = [float(given[label]) for label in sorted(of_class)]
    else:  # the weight of a record is one by the size of its class
        labels = [of_class[label] for label in labels]
        options = {"weights": [1 / size for size in labels]}
        shares = [sum(1 / size for size in labels if size == own) for own in sorted({*labels})]
    groups = [[at for at, own in enumerate(labels) if own == label] for label in sorted({*labels})]
    is_even = rng.random() < 0.7
    length = int(rng.integers(12, 60))
    source = rs.Weighted(dataset, **options, length=length, with_replacement=not is_even)
    return Case(source, ["id"], [(at,) for at in numbers], groups, [shares], is_even)


def by_class(datasets: Datasets, rng: Any) -> Case:
    dataset, numbers = some(datasets, rng)
    labels = [LABELS[at] for at in numbers]
    groups = [[at for at, own in enumerate(labels) if own == one] for one in sorted({*labels})]
    classes, examples = int(rng.integers(1, len(groups) + 1)), int(rng.integers(1, 7))
    size = classes * examples
    length = int(rng.integers(1, 10)) * size
    source = rs.ByClass(dataset, "label", classes=classes, examples=examples, length=length)
    weights = [[1.0] * len(groups)]
    contents = [(at,) for at in numbers]
    return Case(source, ["id"], contents, groups, weights, batch_size=size, unit=examples)


def episodes(datasets: Datasets, rng: Any) -> Case:
    dataset, numbers = some(datasets, rng, least=9)
    window, stride = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    pad: Any = rng.choice(["drop", "repeat", "zero"])
    source = rs.Episodes(dataset, window=window, stride=stride, pad=pad, count_by="steps/x")
    ends = {at: STEPS[at] - (window - 1 if pad == "drop" else 0) for at in numbers}
    windows = [(at, start) for at in numbers for start in range(0, ends[at], stride)]
    return Case(source, ["id", "window/start"], [*windows], [[*range(len(windows))]])


def mix(datasets: Datasets, rng: Any) -> Case:
    make = rng.choice([plain, episodes])
    parts = [make(datasets, rng) for _ in range(rng.integers(1, 5))]
    lists = [rng.choice([0.5, 1, 2, 3], rng.integers(1, 4)).tolist() for _ in parts]
    is_fixed = rng.random() < 0.5
    if is_fixed:
        lists = [weights[:1] for weights in lists]
    elif len(parts) > 1:
        lists[-1][-1] = 0.0
    epochs = range(max(map(len, lists)))
    weights = [[own[min(epoch, len(own) - 1)] for own in lists] for epoch in epochs]
    contents = [row for part in parts for row in part.contents]
    given = [own[0] if is_fixed else own for own in lists]
    length = None if 20 <= len(contents) < 80 else int(rng.integers(20, 60))
    pairs = zip((part.source for part in parts), given, strict=True)
    source = rs.Mix([*pairs], length=length)
    ends = np.cumsum([len(part.contents) for part in parts]).tolist()
    groups = [[*range(*span)] for span in zip([0, *ends], ends, strict=False)]
    return Case(source, parts[0].keys, contents, groups, weights)


def packed(datasets: Datasets, rng: Any) -> Case:
    dataset, numbers = some(datasets, rng, least=3)
    length, eos = int(rng.integers(4, 30)), rng.choice([None, -1])
    source = rs.Packed(
        dataset, "text", length=length, eos=eos, split_documents=bool(rng.integers(2)),
        seed=rng.choice([None, 5]), window=int(rng.integers(1, 50)),
    )  # fmt: skip
    rows = [
        rs.decode_example(row)["tokens"].tolist()
        for row in source.read_records(np.arange(len(source)))
    ]
    documents = [TOKENS[at] + [-1] * (eos is not None) for at in numbers if TOKENS[at]]
    tokens = sorted(chain.from_iterable(documents))
    assert sorted(token for row in rows for token in row if token) == tokens, "not each token once"
    return Case(source, ["tokens"], [(row,) for row in rows], [[*range(len(rows))]])


MAKERS: list[Callable[[Datasets, Any], Case]] = [plain, weighted, mix, episodes, packed, by_class]


class Share(NamedTuple):
    """Which batches a rank reads."""

    batch_size: int
    world_size: int
    last_batch: Literal["keep", "drop", "pad"]
    has_whole_batches: bool = False

    def expected(
        self, rank: int, epochs: list[list[Row]], epoch: int = 0, read: int = 0
    ) -> Iterator[tuple[int, int, list[Row]]]:
        """Yield the batches of a rank, and the epoch and how much of it is read after each."""
        size = self.batch_size * self.world_size
        for number, rows in islice(enumerate(epochs), epoch, None):
            left = rows[read:]
            if self.last_batch == "drop":
                left = left[: len(left) // size * size]
            elif self.last_batch == "pad":
                left += islice(cycle(rows), -len(left) % size)
            for begin in range(0, len(left), size):
                is_last = begin + size >= len(left)
                after = (number + 1, 0) if is_last else (number, read + begin + size)
                own = slice(rank, size, self.world_size)
                if self.has_whole_batches:
                    own = slice(rank * self.batch_size, (rank + 1) * self.batch_size)
                yield *after, left[begin : begin + size][own]
            read = 0


def share(rng: Any, case: Case, last_batch: Any) -> Share:
    """Batches and ranks for an epoch: at most 12 steps, and at least one."""
    world_size, count = int(rng.integers(1, 8)), len(case.source)
    if case.batch_size is not None:
        batch_count = count // case.batch_size
        world_size = min(world_size, batch_count)
        while last_batch == "keep" and batch_count % world_size:
            world_size -= 1
        return Share(case.batch_size, world_size, last_batch, has_whole_batches=True)
    if last_batch == "drop":
        world_size = min(world_size, count)
    batch_size = max(int(rng.integers(1, 9)), -(-count // (12 * world_size)))
    if last_batch == "drop":
        batch_size = min(batch_size, count // world_size)
    return Share(batch_size, world_size, last_batch)


def draw(example: dict[str, Any], generator: Any) -> dict[str, Any]:
    return {**example, "random": generator.random()}


def check_setting(datasets: Datasets, number: int) -> None:
    rng = np.random.default_rng(number)
    case = MAKERS[number % len(MAKERS)](datasets, rng)
    source, count = case.source, len(case.source)
    shuffles = [False, True, rs.BlockShuffle(int(rng.integers(1, 9)), int(rng.integers(1, 5)))]
    is_drawn = isinstance(source, (rs.Weighted, rs.ByClass))
    shuffle = True if is_drawn else shuffles[int(rng.integers(3))]
    last_batch = ["keep", "keep", "drop", "pad"][rng.integers(4)]
    first, *others = (share(rng, case, last_batch) for _ in range(4))
    window = int(rng.integers(1, 40)) if rng.random() < 0.2 else None
    window = window if case.batch_size is None else None
    is_random, threads = rng.random() < 0.2, 2 * int(rng.random() < 0.1)
    epochs, seed = int(rng.integers(1, 4)), int(rng.integers(100))

    def loader(epochs: int, rank: int, own: Share, group: int | None = None) -> rs.Loader:
        return rs.Loader(
            source, {"at": rs.Position(), **{key: key for key in case.keys}},
            batch_size=own.batch_size, world_size=own.world_size, last_batch=own.last_batch,
            rank=rank, shuffle=shuffle, seed=seed, epochs=epochs, threads=threads,
            buckets=None if window is None else rs.BucketBySize(window, group=group),
            map_examples=draw if is_random else None,
        )  # fmt: skip

    def rows(batch: dict[str, Any]) -> list[Row]:
        return [*zip(*(column.tolist() for column in batch.values()), strict=True)]

    # the order of all ranks together, of two iterations
    alone = Share(case.batch_size or count, 1, "keep")
    whole = loader(2 * epochs, 0, alone, first.batch_size * first.world_size)
    flat = [row for batch in whole for row in rows(batch)]
    order = [flat[begin : begin + count] for begin in range(0, len(flat), count)]
    check_counts(case, order)
    if shuffle is False and window is None and not isinstance(source, rs.Mix):
        assert [row[0] for row in order[0]] == [*range(count)]

    progress = [(0, 0)]
    states: list[list[Any]] = []
    for rank in range(first.world_size):
        expected = [*first.expected(rank, order[:epochs])]
        one = loader(epochs, rank, first)
        assert len(one) == len(expected)
        own_states = [json.dumps(one.state_dict())]
        for batch, (_, _, batch_rows) in zip(one, expected, strict=True):
            assert rows(batch) == batch_rows
            own_states.append(json.dumps(one.state_dict()))
        states.append(own_states)
        progress[1:] = [(epoch, read) for epoch, read, _ in expected]
    assert all(own == states[0] for own in states)

    resuming = [[loader(epochs, rank, own) for rank in range(own.world_size)] for own in others]
    for step, (place, state) in enumerate(zip(progress, states[0], strict=True)):
        is_end = step == len(progress) - 1  # the next iteration begins
        rest = order if is_end else order[:epochs]
        again = step % first.world_size
        tried = [(first, again, loader(epochs, again, first))]
        own = others[step % len(others)]
        tried += [(own, *pair) for pair in enumerate(resuming[step % len(others)])]
        for own, rank, one in tried:
            one.load_state_dict(json.loads(state))
            found = [rows(batch) for batch in one]
            assert found == [batch for _, _, batch in own.expected(rank, rest, *place)], step


def check_counts(case: Case, order: list[list[Row]]) -> None:
    """Check that epochs have the rows that they must have."""
    read: Counter[int] = Counter()
    for epoch, rows in enumerate(order):
        assert len(rows) == len(case.source)
        for position, *values in rows:
            assert tuple(values[: len(case.keys)]) == case.contents[position]
        own = Counter(row[0] for row in rows)
        read += own
        weights = case.weights[min(epoch, len(case.weights) - 1)]
        for group, weight in zip(case.groups, weights, strict=True):
            share = len(rows) * weight / sum(weights)
            if not isinstance(case.source, (rs.Weighted, rs.ByClass)):
                assert abs(sum(own[position] for position in group) - share) < 1
            elif case.is_even:  # parts of draws are carried over
                draws = sum(read[position] for position in group)
                # weights are rounded to draw
                assert abs(draws - (epoch + 1) * share) < case.unit + 1e-9
            times = [read[position] for position in group]
            assert not case.is_even or max(times) - min(times) <= 1
        assert own.total() == sum(own[position] for group in case.groups for position in group)


@pytest.mark.parametrize("part", range(5))
def test_settings(datasets: Datasets, part: int) -> None:
    for number in range(part, QUICK, 5):
        check_setting(datasets, number)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(50))
def test_all_settings(datasets: Datasets, part: int) -> None:
    for number in range(QUICK + part, ALL, 50):
        check_setting(datasets, number)


# -- statistics of orders --------------------------------------------------------------------------

DRAWN = 3_000  # orders of each kind
LIMIT = 4.9  # standard deviations: p = 1e-6 on both sides, in 3 tests of 4 orders and 1 of 6

Orders = Callable[[int], Any]  # a PositionOrder by seed


def deviation(chi_square: float, freedom: int) -> float:
    """Return by how many standard deviations it is too large (Wilson and Hilferty)."""
    spread = 2 / (9 * freedom)
    return float(((chi_square / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread))


def deviation_of(counts: npt.NDArray[Any], expected: npt.NDArray[Any] | float) -> float:
    return deviation(((counts - expected) ** 2 / expected).sum(), counts.size - 1)


def weighted_order(datasets: Datasets, count: int, **options: Any) -> Orders:
    dataset, _ = datasets["all"]
    source = rs.Weighted(dataset[:count], **{"weights": [1] * count, **options})
    return lambda seed: source.order(shuffle=True, seed=seed)


def mix_order(counts: list[int], draws: tuple[int, ...]) -> Orders:
    return lambda seed: MixOrder(counts, [draws], shuffle=True, seed=seed)


def shuffled(count: int, shuffle: Any = True) -> Orders:
    return lambda seed: DatasetOrder(count, shuffle=shuffle, seed=seed)


class OfGroup(NamedTuple):
    """The orders of a class, without the order of the draws of all classes."""

    count: int
    orders: GroupPermutations

    def positions(self, epoch: int, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        group, count, lap = (np.full_like(places, at) for at in (4, self.count, epoch))
        return self.orders.numbers(group, count, lap, places)


def of_group(count: int) -> Orders:
    return lambda seed: OfGroup(count, GroupPermutations(seed))


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "orders",
    [
        pytest.param(shuffled(7), id="few"),
        pytest.param(of_group(7), id="group of few"),
        pytest.param(shuffled(33), id="many", marks=SLOW),
        pytest.param(of_group(33), id="group of many", marks=SLOW),
    ],
)
def test_positions_neighbours_and_epochs_are_uniform(orders: Orders) -> None:
    """Each position at each place; each pair at neighbouring places, and in two epochs."""
    places = np.arange(orders(0).count)
    count = len(places)
    table, pairs, epochs = (np.zeros((count, count), np.int64) for _ in range(3))
    for number in range(DRAWN):
        order = orders(number // 3)
        one, other = (order.positions(2 * (number % 3) + at, places) for at in (0, 1))
        place = number % count
        table[places, one] += 1
        pairs[one[place], one[place - 1]] += 1
        epochs[one[place], other[place]] += 1
    expected = DRAWN / count  # the sums of rows and columns are fixed
    chi_square = ((table - expected) ** 2 / expected).sum() * (count - 1) / count
    assert abs(deviation(chi_square, (count - 1) ** 2)) < LIMIT
    is_pair = places[:, np.newaxis] != places
    assert not pairs[~is_pair].any()
    assert abs(deviation_of(pairs[is_pair], DRAWN / is_pair.sum())) < LIMIT
    assert abs(deviation_of(epochs, DRAWN / count**2)) < LIMIT


def class_shares(weights: list[float]) -> npt.NDArray[np.float64]:
    """How often each of 48 records is drawn."""
    sizes = np.bincount(LABELS)
    return (np.array(weights) / sizes)[LABELS] / sum(weights)


SHARES: dict[str, Callable[[Datasets], tuple[Orders, Any]]] = {
    "blocks": lambda _: (shuffled(12, rs.BlockShuffle(3, 2)), np.full(12, 1 / 12)),
    "mix": lambda _: (mix_order([7, 40], (3, 12)), np.repeat([1 / 35, 1 / 50], [7, 40])),
    "few of a class": lambda datasets: (weighted_order(datasets, 7, length=3), np.full(7, 1 / 7)),
    "class": lambda datasets: (
        weighted_order(datasets, COUNT, by="label", weights={0: 3, 1: 2, 2: 6, 3: 1}, length=36),
        class_shares([3, 2, 6, 1]),
    ),
    "replaced": lambda datasets: (
        weighted_order(
            datasets, COUNT, by="label", weights={0: 3, 1: 2, 2: 6, 3: 1}, length=36,
            with_replacement=True,
        ),
        class_shares([3, 2, 6, 1]),
    ),
    "pairs, replaced": lambda datasets: (
        weighted_order(datasets, 12, with_replacement=True), np.full((12, 12), 1 / 144)
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", SHARES)
def test_places_have_records_in_proportion(datasets: Datasets, kind: str) -> None:
    orders, shares = SHARES[kind](datasets)
    counts = np.zeros(shares.shape, np.int64)
    for seed in range(DRAWN):
        order = orders(seed)
        places = (seed + np.arange(counts.ndim)) % order.count
        counts[(*order.positions(seed % 4, places),)] += 1
    assert abs(deviation_of(counts, DRAWN * shares)) < LIMIT
