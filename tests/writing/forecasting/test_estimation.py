"""Intervals contain the true total for 95 of 100 seeds, and are narrow where sizes are known."""

from __future__ import annotations

import numpy as np
import pytest

from recordsmith.writing.forecasting.forecast import Numbers, choose_samples, estimate_total
from recordsmith.writing.forecasting.forecast_report import Estimate

COUNT = 3000


def population(spread: float) -> tuple[Numbers, dict[str, Numbers]]:
    """Sizes of files, which are log-normal, and what their images take in other formats."""
    rng = np.random.default_rng(5)

    def noise(deviation: float) -> Numbers:
        return np.exp(rng.normal(0, deviation, COUNT))

    pixels = np.round(200_000 * noise(spread / 2))
    detail = 0.3 * noise(0.4)
    sizes = np.round(pixels * detail * noise(0.5) + 600)
    return sizes, {
        "original": sizes + np.round(rng.normal(300, 5, COUNT)),
        "raw": pixels + 310,
        "png": np.round(pixels * 0.4 * noise(0.3)),
        "jpeg": np.round(pixels * detail * noise(0.1)),
        "unrelated": np.round(50_000 * noise(spread)),
    }


def estimate(sizes: Numbers, values: Numbers, count: int, seed: int) -> Estimate:
    choice = choose_samples(sizes, count, seed)
    return estimate_total(sizes, choice, values[choice.numbers])


@pytest.mark.parametrize("spread", [0.3, 0.8, 1.2])
@pytest.mark.parametrize("name", ["original", "raw", "png", "jpeg"])
def test_95_of_100_intervals_contain_the_total(spread: float, name: str) -> None:
    sizes, totals = population(spread)
    estimates = [estimate(sizes, totals[name], 200, seed) for seed in range(100)]
    total = totals[name].sum()
    assert sum(each.low <= total <= each.high for each in estimates) >= 95
    assert all(each.low <= each.value <= each.high for each in estimates)


def test_known_sizes_make_intervals_narrow() -> None:
    sizes, totals = population(0.5)
    widths = {}
    for name, values in totals.items():
        found = estimate(sizes, values, 200, 0)
        widths[name] = (found.high - found.low) / 2 / values.sum()
    assert widths["original"] < 0.001
    assert widths["raw"] < 0.06  # by the mean
    assert 0.02 < widths["jpeg"] < 0.15
    assert widths["unrelated"] > 0.05


def test_a_sample_of_everything_is_exact() -> None:
    sizes, totals = population(0.8)
    assert estimate(sizes, totals["jpeg"], COUNT, 3) == (totals["jpeg"].sum(),) * 3


def test_very_large_samples_are_always_chosen() -> None:
    sizes = np.full(1000, 100.0)
    sizes[[17, 503]] = 1e6
    for seed in range(5):
        choice = choose_samples(sizes, 50, seed)
        assert choice.numbers[: choice.certain_count].tolist() == [17, 503]
        assert len(set(choice.numbers.tolist())) == 50


def test_the_seed_chooses_the_sample() -> None:
    sizes = np.full(1000, 100.0)
    chosen = [choose_samples(sizes, 50, seed).numbers.tolist() for seed in (1, 1, 2)]
    assert chosen[0] == chosen[1] != chosen[2]
