"""What a loader says of its time: the sentence that helps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recordsmith.loading.loader_stats import BatchCost, LoaderStats, Tally

RUN: dict[str, Any] = {"batch_count": 9, "thread_count": 8, "processor_count": 8}


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        ({"batch_count": 1}, "unknown before the second batch"),
        (
            {"waited_seconds": 0.7, "between_seconds": 9.3},
            "The training step is the bottleneck: batches were ready 93% of the time.",
        ),
        (
            {"waited_seconds": 7.1, "between_seconds": 2.9, "decoding_seconds": 5,
             "has_pixels": True},
            ("Decoding images is the bottleneck: the loop waited 71% of the time for batches "
            "while 8 threads decoded. Smaller images (`recordsmith pack --shorter-side`) would "
            "help."),
        ),
        (
            {"waited_seconds": 7.1, "between_seconds": 2.9, "decoding_seconds": 5,
             "has_pixels": True, "processor_count": 9},
            "More threads or smaller images (`recordsmith pack --shorter-side`) would help.",
        ),
        (
            {"waited_seconds": 7.1, "between_seconds": 2.9, "decoding_seconds": 5,
             "has_pixels": True, "image_pixel_count": 9, "decoded_pixel_count": 8},
            ("Tiles in JPEGs that have none (`recordsmith pack PATH OUT --tiles`) or smaller "
            "images (`recordsmith pack --shorter-side`) would help."),
        ),
        (
            {"waited_seconds": 1, "decoding_seconds": 5, "thread_count": 1, "processor_count": 1},
            ("Decoding records is the bottleneck: the loop waited 100% of the time for batches "
            "while one thread decoded. Fewer features would help."),
        ),
        (
            {"waited_seconds": 1, "reading_seconds": 5, "decoding_seconds": 4},
            ("Reading is the bottleneck: the loop waited 100% of the time for batches while 8 "
            "threads read. A faster disk or shuffle=BlockShuffle() would help."),
        ),
        (
            {"waited_seconds": 1, "function_seconds": 5, "decoding_seconds": 4},
            ("Your functions are the bottleneck: the loop waited 100% of the time for batches "
            "while 8 threads ran them. Whole batches at once (map_batches) would help."),
        ),
        (
            {"waited_seconds": 1, "between_seconds": 1, "decoding_seconds": 1, "idle_seconds": 3},
            ("Threads wait for each other: the loop waited 50% of the time for batches, and "
            "8 threads were idle 75% of theirs."),
        ),
        (
            {"waited_seconds": 3, "between_seconds": 1, "reading_seconds": 1, "thread_count": 0},
            ("The loop makes each batch itself (threads=0) and waited 75% of the time. Reading is "
            "the largest part."),
        ),
    ],
)  # fmt: skip
def test_bottlenecks(measured: dict[str, Any], words: str) -> None:
    assert words in LoaderStats(**{**RUN, **measured}).bottleneck


def test_a_tally() -> None:
    tally = Tally()
    assert tally.stats(LoaderStats()) == LoaderStats()
    tally.request(10.0)
    tally.deliver(10.0, 13.0, BatchCost(1, 2, 3, 40, 500, 700, 6), 1, 0.5)
    tally.request(14.0)
    tally.deliver(14.0, 14.25, BatchCost(10, 20, 30, 400, 5000, 7000, 60), 2, 0.75)
    tally.request(16.25)  # and nothing came
    stats = tally.stats(LoaderStats(thread_count=3))
    assert stats == LoaderStats(
        elapsed_seconds=6.25, first_batch_seconds=3.0, waited_seconds=0.25, between_seconds=3.0,
        reading_seconds=11, decoding_seconds=22, function_seconds=33, idle_seconds=0.75,
        batch_count=2, record_count=440, byte_count=5500, read_byte_count=7700, rejected_count=66,
        skipped_count=3, thread_count=3,
    )  # fmt: skip
    assert stats.records_per_second == 440 / 6.25
    assert stats.bytes_per_second == 7700 / 6.25
    assert stats.read_amplification == 1.4
    document = json.loads(json.dumps(stats.to_json()))
    assert document["batches"] == 2
    assert document["bottleneck"] == stats.bottleneck
