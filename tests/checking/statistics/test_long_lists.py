"""Lists that are decoded in pieces have the same statistics, in memory that they do not fill."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.checking.statistics import feature_blocks, record_builder, sampling
from recordsmith.format.example.spans import delimited
from recordsmith.image import encode_mask

RNG = np.random.default_rng(3)
MASKS = [encode_mask(np.full((4, 4), n % 3, np.uint8)) for n in range(90)]


def example(**features: Any) -> bytes:
    return rs.encode_example({key.replace("__", "/"): value for key, value in features.items()})


def unpacked(values: list[float]) -> bytes:
    """An Example whose floats are not packed, after some that are."""
    packed = delimited(1, np.array(values[:3], "<f4").tobytes())
    rest = b"".join(b"\x0d" + np.float32(value).tobytes() for value in values[3:])
    feature = delimited(2, delimited(2, packed + rest))
    return delimited(1, delimited(1, delimited(1, b"x"), feature))


def twice(values: list[int]) -> bytes:
    """An Example with a feature that occurs twice."""
    return example(x=values[:9]) + example(x=values)


def boxes(count: int) -> Mapping[str, Any]:
    low = RNG.random((2, count)) / 2
    names = ("image__object__bbox__ymin", "image__object__bbox__xmin")
    found: dict[str, Any] = {}
    for name, values in zip(names, low, strict=True):
        found[name] = values.astype("f4")
        found[name.replace("min", "max")] = (values + 0.25).astype("f4")
    return found


RECORDS: dict[str, Callable[[], bytes]] = {
    "floats": lambda: example(x=RNG.random(900).astype("f4"), y=[1, 2]),
    "not finite": lambda: example(x=[float("nan"), 1.0, float("inf")] * 200),
    "small integers": lambda: example(x=RNG.integers(0, 100, 900)),
    "large integers": lambda: example(x=RNG.integers(-(2**63), 2**63 - 1, 900)),
    "labels": lambda: example(label=RNG.integers(0, 9, 900), x=[b"a"] * 500),
    "texts": lambda: example(label=[b"%d" % (n % 7) for n in range(900)]),
    "bytes of many sizes": lambda: example(x=[RNG.bytes(n * 7 % 900) for n in range(300)]),
    "empty strings": lambda: example(x=[b""] * 900),
    "masks": lambda: example(my_mask=MASKS, crops=MASKS[:70]),
    "boxes": lambda: example(**boxes(300)),
    "an episode": lambda: example(
        steps__action=RNG.random(900).astype("f4"),
        steps__reward=RNG.random(300).astype("f4"),
        steps__is_first=[1] + [0] * 299,
    ),
    "not packed": lambda: unpacked(RNG.random(400).tolist()),
    "twice": lambda: twice(RNG.integers(0, 9, 400).tolist()),
    "steps": lambda: rs.encode_sequence_example(
        {"x": RNG.integers(0, 9, 500)},
        {"obs": [RNG.random(n % 40).astype("f4") for n in range(90)], "none": [[], []]},
    ),
    "steps of an episode": lambda: rs.encode_sequence_example(
        {}, {"action": [[0.5, n] for n in range(80)], "frame": [[RNG.bytes(90)]] * 80}
    ),
}


@pytest.mark.parametrize("name", RECORDS)
def test_pieces_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    path = tmp_path / "x.tfrecord"
    with rs.ShardWriter(path) as writer:
        other = rs.encode_example({"x": [1]})
        is_other_allowed = "steps" not in name and "episode" not in name
        writer.write(other if is_other_allowed else RECORDS[name]())
        for _ in range(3):
            writer.write(RECORDS[name]())
    monkeypatch.setattr(sampling, "SAMPLE_SIZE", 50)  # which values depends on their numbers
    whole = rs.stats(path).to_json()
    for module, limit, value in (
        (feature_blocks, "MANY_VALUES", 64),
        (feature_blocks, "_PIECE_BYTES", 100),
        (record_builder, "_LARGE_BYTES", 100),
    ):
        monkeypatch.setattr(module, limit, value)
    assert rs.stats(path).to_json() == whole


_MEASURE = """
import re, sys
import recordsmith as rs
rs.stats(sys.argv[1], threads=1)
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("kind", ["integers", "steps"])
def test_memory_does_not_grow_with_the_list(tmp_path: Path, kind: str) -> None:
    """A value of one byte takes 85 bytes where lists are decoded whole: here 1 GB."""
    values = np.arange(12_000_000) % 100
    payload = rs.encode_example({"x": values})
    if kind == "steps":
        payload = rs.encode_sequence_example({}, {"x": np.array_split(values, 50)})
    path = tmp_path / "x.tfrecord"
    with rs.ShardWriter(path) as writer:
        writer.write(payload)
    run = [sys.executable, "-c", _MEASURE, str(path)]
    peak = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert int(peak) < 300
