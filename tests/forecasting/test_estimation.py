"""Intervals contain the true total for 95 of 100 seeds, and are narrow."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from recordsmith.forecasting.estimation import (
    Estimate,
    KnownSamples,
    Numbers,
    _quantile,
    choose_samples,
)

COUNT = 3000
EVERYTHING = 10**15


class Population(NamedTuple):
    """Sizes of files, pixels of images, and bytes in other formats."""

    sizes: Numbers
    pixels: Numbers
    coarseness: Numbers
    totals: dict[str, Numbers]

    def estimate(self, name: str, count: int, seed: int, header_bytes: int) -> Estimate:
        choice = choose_samples(self.sizes, count, header_bytes, seed)
        numbers = choice.others[choice.chosen]
        known = KnownSamples(
            self.sizes[choice.others], choice.chosen, self.pixels[numbers], self.coarseness[numbers]
        )
        values = self.totals[name][choice.encoded]
        certain = values[: len(choice.certain)].sum()
        others = known.estimate_total(values[len(choice.certain) :])
        return Estimate(*(certain + end for end in others))


def population(spread: float) -> Population:
    """Images with log-normal sizes; `spread` is the standard deviation of the logarithm."""
    rng = np.random.default_rng(5)

    def noise(deviation: float) -> Numbers:
        return np.exp(rng.normal(0, deviation, COUNT))

    pixels = np.round(200_000 * noise(spread / 2))
    quality = rng.choice([5.9, 6.6, 7.0, 7.5], COUNT)
    detail = 0.3 * noise(0.4)
    sizes = np.round(pixels * detail * np.exp(6.5 - quality) + 600)
    totals = {
        "original": sizes + np.round(rng.normal(300, 5, COUNT)),
        "raw": pixels + 310,
        "png": np.round(pixels * 0.4 * noise(0.3)),
        "jpeg": np.round(pixels * detail * noise(0.1)),
        "unrelated": np.round(50_000 * noise(spread)),
    }
    return Population(sizes, pixels, quality, totals)


@pytest.fixture(scope="module", params=[0.3, 0.8, 1.2])
def skewed(request: pytest.FixtureRequest) -> Population:
    return population(request.param)


@pytest.mark.parametrize("header_bytes", [0, 30_000_000, EVERYTHING])
@pytest.mark.parametrize("name", ["original", "raw", "png", "jpeg"])
def test_95_of_100_intervals_contain_the_total(
    skewed: Population, name: str, header_bytes: int
) -> None:
    total = skewed.totals[name].sum()
    found = [skewed.estimate(name, 200, seed, header_bytes) for seed in range(100)]
    assert sum(each.low <= total <= each.high for each in found) >= 95
    assert all(each.low <= each.value <= each.high for each in found)


def test_what_is_known_makes_intervals_narrow() -> None:
    flowers = population(0.5)
    widths = {}
    for name, total in flowers.totals.items():
        each = flowers.estimate(name, 200, 0, EVERYTHING)
        widths[name] = (each.high - each.low) / 2 / total.sum()
    assert widths["original"] < 0.001
    assert widths["raw"] < 0.001
    assert widths["jpeg"] < 0.03
    assert widths["unrelated"] > 0.05  # nothing is known of it
    few_headers = flowers.estimate("raw", 200, 0, 0)
    assert (few_headers.high - few_headers.low) / 2 / flowers.totals["raw"].sum() > 0.01


def test_a_sample_of_everything_is_exact() -> None:
    flowers = population(0.8)
    each = flowers.estimate("jpeg", COUNT, 3, EVERYTHING)
    assert each == (flowers.totals["jpeg"].sum(),) * 3


def test_very_large_samples_are_always_chosen() -> None:
    sizes = np.full(1000, 100.0)
    sizes[[17, 503]] = 1e6
    for seed in range(5):
        choice = choose_samples(sizes, 50, EVERYTHING, seed)
        assert choice.certain.tolist() == [17, 503]
        assert len(set(choice.encoded.tolist())) == 50
        every = set(choice.encoded.tolist()) | set(choice.with_headers.tolist())
        assert every == set(range(1000))


def test_headers_are_read_of_as_many_samples_as_there_are_bytes_for() -> None:
    sizes = np.full(1000, 100.0)
    assert len(choose_samples(sizes, 50, 30_050, 0).chosen) == 300
    assert len(choose_samples(sizes, 50, 0, 0).chosen) == 50
    assert len(choose_samples(np.full(10_000, 1.0), 50, EVERYTHING, 0).chosen) == 20 * 50


def test_the_seed_chooses_the_sample() -> None:
    sizes = np.full(1000, 100.0)
    chosen = [choose_samples(sizes, 50, 0, seed).encoded.tolist() for seed in (1, 1, 2)]
    assert chosen[0] == chosen[1] != chosen[2]


@pytest.mark.parametrize(
    ("freedom", "expected"),  # scipy.stats.t.ppf(0.995, freedom)
    [(9, 3.2498355), (20, 2.8453397), (100, 2.6258905), (1_000_000, 2.5758341)],
)
def test_quantiles_are_those_of_student(freedom: int, expected: float) -> None:
    assert math.isclose(_quantile(freedom), expected, rel_tol=1e-3)
