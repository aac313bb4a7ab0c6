"""Weights: is each record drawn as often as its weight says, on all ranks and after each resume?

Chooses weights from 1e-300 to 1e308, lengths of epochs and numbers of ranks, and compares what
`Weighted` draws with exact fractions: after each epoch, each record is within one draw of its
share; all ranks together read the order of one rank; a resumed loader reads what is left.
Independent draws (`with_replacement`) are compared by a chi-square test. Prints a table.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from shared import option_parser, print_outcomes

import recordsmith as rs

MOST_RECORDS = 150
LIMIT = 6.0  # standard deviations of a chi-square
KINDS = {
    "any size": lambda rng, count: 10.0 ** rng.uniform(-300, 308, count),
    "an outlier": lambda rng, count: np.r_[1e308, rng.uniform(0, 1, count - 1)],
    "similar": lambda rng, count: rng.uniform(0.1, 1, count),
    "long tail": lambda rng, count: rng.pareto(0.5, count) + 1e-300,
    "few, some 0": lambda rng, count: rng.integers(0, 4, count) + (np.arange(count) == 0),
    "equal": lambda rng, count: np.full(count, 10.0 ** rng.uniform(-300, 308)),
    "smallest": lambda rng, count: 5e-324 * rng.integers(1, 9, count),
}


def check(dataset: rs.Dataset, kind: str, seed: int) -> dict[str, float]:
    """Check one setting; return the largest distance from a share, and the chi-square."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, MOST_RECORDS))
    weights = KINDS[kind](rng, count)
    length, world_size = int(rng.integers(1, 400)), int(rng.integers(1, 8))
    batch_size, epochs = int(rng.integers(1, 40)), int(rng.integers(2, 9))
    found = {"records": count}
    for with_replacement in (False, True):
        source = rs.Weighted(
            dataset[:count], weights=weights, length=length, with_replacement=with_replacement
        )

        def loader(rank: int, world_size: int, batch_size: int, source: Any = source) -> rs.Loader:
            return rs.Loader(
                source, {"at": rs.Position()}, batch_size=batch_size, shuffle=True, seed=seed,
                epochs=epochs, rank=rank, world_size=world_size, threads=0,
            )  # fmt: skip

        whole = [batch["at"] for batch in loader(0, 1, length)]
        ranks = [
            [batch["at"] for batch in loader(n, world_size, batch_size)] for n in range(world_size)
        ]
        joined = []
        for step in zip(*ranks, strict=True):
            rows = np.full((world_size, max(map(len, step))), -1)
            for row, own in zip(rows, step, strict=True):
                row[: len(own)] = own
            joined.append(rows.T[rows.T >= 0])
        assert np.array_equal(np.concatenate(joined), np.concatenate(whole)), "ranks"

        one = loader(world_size - 1, world_size, batch_size)
        stop = int(rng.integers(0, len(one)))
        steps = iter(one)
        for _ in range(stop):
            next(steps)
        state = one.state_dict()
        again = loader(world_size - 1, world_size, batch_size)
        again.load_state_dict(state)
        rest = [batch["at"] for batch in again]
        expected = ranks[-1][stop:] if stop else ranks[-1]
        assert len(rest) == len(expected), "resumed steps"
        assert all(map(np.array_equal, rest, expected)), "resumed"

        exact = [Fraction(float(weight)) for weight in weights]
        shares = [length * weight / sum(exact) for weight in exact]
        drawn = np.zeros(count, np.int64)
        order = source.order(shuffle=True, seed=seed)
        last = 400 if with_replacement else 40
        for epoch in range(last):
            positions = order.positions(epoch, np.arange(length))
            if epoch < epochs:
                assert np.array_equal(positions, whole[epoch]), "epochs"
            drawn += np.bincount(positions, minlength=count)
            if not with_replacement:
                pairs = zip(drawn.tolist(), shares, strict=True)
                distance = max(abs(own - (epoch + 1) * share) for own, share in pairs)
                assert distance <= 1 + 1e-9, f"{float(distance)} draws from the share"
                found["distance"] = max(found.get("distance", 0), float(distance))
        assert not drawn[[not share for share in shares]].any(), "weight 0"
        if with_replacement:
            expected_counts = np.array([float(last * share) for share in shares])
            common = expected_counts >= 5
            rest_share = expected_counts[~common].sum()
            chi_square = ((drawn - expected_counts)[common] ** 2 / expected_counts[common]).sum()
            freedom = int(common.sum()) - (rest_share < 1e-6)
            assert drawn[~common].sum() <= rest_share + 8 * np.sqrt(rest_share) + 8, "rare"
            if freedom:
                spread = 2 / (9 * freedom)  # Wilson and Hilferty
                z = ((chi_square / freedom) ** (1 / 3) - (1 - spread)) / np.sqrt(spread)
                assert abs(z) < LIMIT, f"chi-square {chi_square} of {freedom}"
                found["deviation"] = float(z)
    return found


def main() -> int:
    options = option_parser(__doc__, 70, "settings").parse_args()
    outcomes: Counter[str] = Counter()
    rows: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.tfrecord"
        with rs.ShardWriter(path) as writer:
            for number in range(MOST_RECORDS):
                writer.write_example({"id": number})
        dataset = rs.open(path)
        for number in range(options.count):
            kind = [*KINDS][number % len(KINDS)]
            try:
                rows[kind].append(check(dataset, kind, options.seed + number))
                outcomes["as the fractions"] += 1
            except AssertionError as error:
                outcomes[f"WRONG, {kind}, seed {options.seed + number}: {error!s:.200}"] += 1
    print("weights        settings  records  farthest from share  chi-square, standard deviations")
    for kind, own in rows.items():
        if own:
            z = np.array([row.get("deviation", 0.0) for row in own])
            print(
                f"{kind:14} {len(own):8} {max(row['records'] for row in own):8} "
                f"{max(row['distance'] for row in own):20.6f}  {z.mean():+.2f} "
                f"(spread {z.std():.2f}, {z.min():+.2f} to {z.max():+.2f})"
            )
    return print_outcomes(outcomes, options.seed, "all draws as the fractions say")


if __name__ == "__main__":
    sys.exit(main())
