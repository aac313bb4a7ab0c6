"""Sentences say what was measured, and call nothing faster that was not clearly so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from recordsmith.measuring import BenchReport, Measured, Trial
from recordsmith.measuring.advice import advise, is_faster
from recordsmith.measuring.bench_report import ImageSample


def trial(
    name: str, *rates: float, threads: int = 2, order: str = "shuffled", side=None, batches=10
) -> Trial:
    """A trial whose rounds of a second had so many records a second."""
    rounds = tuple(
        Measured(1.0, batches, int(rate), 100 * int(rate), 0.1, 1.5, 0.4, 0.9) for rate in rates
    )
    return Trial(name, threads, order, side, rounds)


def report(*trials: Trial, **changed: Any) -> BenchReport:
    known = BenchReport(
        record_count=5000,
        size_bytes=10**8,
        batch_size=32,
        image_key="image/encoded",
        image="224x224, fit=resize",
        compression="none",
        processor_count=4,
        cached_share=1.0,
        total_seconds=10.0,
        trials=trials,
    )
    return replace(known, **changed)


@pytest.mark.parametrize(
    ("one", "other", "is_so"),
    [
        ((1300, 1310), (1000, 1010), True),
        ((1100, 1110), (1000, 1010), False),  # a tenth
        ((1600, 1000), (1000, 1050), False),  # in one of two rounds
        ((1300,), (1000,), False),
        ((1500,), (1000,), True),
        ((1500,), (1000, 1010), True),
        ((), (1000,), False),
        ((1000,), (), False),
    ],
)
def test_faster_means_clearly_faster(one, other, is_so: bool) -> None:
    assert is_faster(trial("threads", *one), trial("requested", *other)) is is_so


def test_a_few_batches_are_not_compared() -> None:
    """Some of them were made before the measurement began."""
    few = Trial("order", 2, "in order", None, (Measured(0.1, 3, 10**6, 10**8, 0, 0, 0, 0),))
    assert not is_faster(few, trial("requested", 1000, 1000))
    assert not is_faster(trial("requested", 10**8), few)


def test_short_trials_are_reported() -> None:
    """They are named; nothing is called faster, or not faster."""
    trials = [trial("requested", 1000, 1000), trial("sample", 60, 61)]
    few = [
        trial("threads", 10**6, 10**6, threads=1, batches=3),
        trial("order", 10**6, 10**6, order="in order", batches=3),
        trial("tiles", 2000, 2000, batches=3),
        trial("smaller", 2000, 2000, side=256, batches=3),
    ]
    advice = " ".join(advise(report(*trials, *few, sample=ImageSample(64, 1000, 1010, 250))))
    named = "1 thread; in order; sample, tiles; sample, shorter side 256. Use smaller batches"
    assert f"Too few batches to compare (less than 8): {named}" in advice
    assert "faster" not in advice
    assert "Too few" not in " ".join(advise(report(*trials)))


def test_no_advice_without_measurements() -> None:
    assert advise(report()) == ()
    assert advise(report(trial("requested"))) == ()


def test_threads() -> None:
    requested = trial("requested", 1000, 1000)
    more = trial("threads", 1900, 1950, threads=4)
    less = trial("threads", 500, 510, threads=1)
    advice = " ".join(advise(report(requested, less, more)))
    assert "Use 4 threads: 1.9 times as fast, 1,920 instead of 1,000 images/s" in advice
    advice = " ".join(advise(report(requested, less)))
    assert "Threads help: 505 images/s with 1 thread, 1,000 images/s with 2 threads." in advice
    advice = " ".join(advise(report(requested, less, processor_count=2)))
    assert "no more processors" in advice
    same = trial("threads", 980, 1020, threads=1)
    advice = " ".join(advise(report(requested, same)))
    assert "No other number of threads was clearly faster or slower" in advice
    advice = " ".join(advise(report(requested, less, replace(same, thread_count=4))))
    assert "was clearly faster than 2, but 1 was clearly slower: 505 images/s" in advice


def test_order() -> None:
    requested = trial("requested", 1000, 1000)
    blocks = trial("order", 1500, 1510, order="blocks")
    in_order = trial("order", 1040, 1000, order="in order")
    advice = " ".join(advise(report(requested, in_order, blocks, image_key=None)))
    assert "Read in blocks (BlockShuffle): 1.5 times as fast, 1,500" in advice
    advice = " ".join(advise(report(requested, in_order, image_key=None)))
    assert "No other order was clearly faster: shuffled 1,000 records/s, in order 1,020" in advice
    noisy = trial("order", 400, 1000, order="in order")
    advice = " ".join(advise(report(requested, noisy, image_key=None)))
    assert "too noisy" in advice
    assert "clearly faster" not in advice


def test_a_smaller_side_is_compared_with_the_same_images() -> None:
    trials = (
        trial("requested", 5000, 5000),
        trial("sample", 1000, 1000),
        trial("smaller", 2500, 2500, side=256),
    )
    trials = tuple(
        replace(one, rounds=tuple(replace(each, image_pixel_count=9999) for each in one.rounds))
        for one in trials
    )
    first, *_ = advise(report(*trials, sample=ImageSample(64, 1000, None, 250)))
    assert "64 of these images, packed at a shorter side of 256, loaded 2.5 times" in first
    assert "2,500 instead of 1,000 images/s, and keep 40% of the pixels and 25% of the b" in first
    assert "`recordsmith pack PATH OUT --format shards --shorter-side 256`" in first
    trials = (*trials[:2], trial("smaller", 1010, 1010, side=256))
    first, *_ = advise(report(*trials, sample=ImageSample(64, 1000, None, 250)))
    assert "not clearly faster" in first


def test_tiles_are_compared_with_the_same_images() -> None:
    trials = (trial("requested", 5000, 5000), trial("sample", 1000, 1000))
    sample = ImageSample(64, 1000, 1010)
    first, *_ = advise(report(*trials, trial("tiles", 1150, 1150), sample=sample))
    assert "64 of these images, packed with tiles, loaded 1.1 times as fast, 1,150" in first
    assert "and have 101% of the bytes: `recordsmith reshard PATH OUT --tiles`" in first
    for rates in ((1050, 1060), (1300, 900)):
        first, *_ = advise(report(*trials, trial("tiles", *rates), sample=sample))
        assert "Tiles were not clearly faster" in first
        assert "--tiles" not in first


def test_step_that_hides_loading() -> None:
    assert "batch of 32 that takes longer than 32 ms will" in " ".join(
        advise(report(trial("requested", 1000)))
    )
    advice = " ".join(advise(report(trial("requested", 10), record_count=20)))
    assert "batch of 20 that takes longer than 2,000 ms will" in advice
    assert "each batch was an epoch of 20" in advice


@pytest.mark.parametrize(
    ("share", "message"),
    [
        (1.0, "All files were in the page cache, so the disk was not"),
        (0.5, "50% of the files were in the page cache; the others came"),
        (0.0, "The files were not in the page cache"),
        (None, "is unknown"),
    ],
)
def test_cached_files_are_reported(share, message: str) -> None:
    assert message in " ".join(advise(report(trial("requested", 1000), cached_share=share)))


def test_busy_machine_and_compressed_shards_are_reported() -> None:
    advice = " ".join(advise(report(trial("requested", 1000, 700), compression="gzip")))
    assert "differ by 30%" in advice
    assert "compressed (gzip)" in advice
    advice = " ".join(advise(report(trial("requested", 1000, 990))))
    assert "differ by" not in advice
    assert "compressed" not in advice


def test_idle_threads_are_reported() -> None:
    idle = replace(trial("requested"), rounds=(Measured(1.0, 10, 1000, 1, 0.1, 0.1, 1.8),))
    advice = " ".join(advise(report(idle, trial("threads", 1000, threads=1))))
    assert "idle 90% of their time" in advice


def test_figures_of_a_trial() -> None:
    measured = trial("requested", 1000, 3000)
    assert measured.total.record_count == 4000
    assert measured.records_per_second == 2000
    assert (measured.lowest, measured.highest) == (1000, 3000)
    assert measured.bytes_per_second == 200_000
    assert measured.shares == pytest.approx({"reading": 0.05, "decoding": 0.75, "idle": 0.2})
    assert measured.waiting_share == pytest.approx(0.9)
    decoded = Measured(1.0, 1, 10, 500, cpu_seconds=0.02, image_pixel_count=8)
    one = Trial("tiles", 1, "shuffled", None, (decoded, replace(decoded, decoded_pixel_count=4)))
    assert (one.record_bytes, one.cpu_microseconds) == (50, 2000)
    assert one.decoded_share == one.to_json()["decoded_share"] == 0.25
    nothing = trial("requested")
    assert (nothing.decoded_share, nothing.cpu_microseconds, nothing.record_bytes) == (None, 0, 0)
    assert nothing.records_per_second == nothing.lowest == nothing.bytes_per_second == 0
    assert set(nothing.shares.values()) == {0.0}
