"""Which windows an episode has, against their definition in plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.loading.episodes.window_shape import WindowShape

RANGES = st.builds(
    lambda start, length, step: range(start, start + length, step),
    st.integers(-6, 6),
    st.integers(1, 8),
    st.integers(1, 3),
)


@given(
    steps=st.lists(st.integers(0, 30), max_size=5),
    window=st.integers(1, 9),
    stride=st.integers(1, 5),
    pad=st.sampled_from(["drop", "repeat", "zero"]),
    ranges=st.dictionaries(st.sampled_from("ab"), RANGES, max_size=2),
)
def test_windows_are_those_of_the_definition(
    steps: list[int], window: int, stride: int, pad: str, ranges: dict[str, range]
) -> None:
    shape = WindowShape(window, stride, pad, ranges)  # type: ignore[arg-type]
    counts = shape.counts(np.array(steps, np.uint8))
    offsets = [0, window - 1, *(step for at in ranges.values() for step in at)]
    for count, length in zip(counts.tolist(), steps, strict=True):
        # every place of the first step at which the window fits; with padding, every step
        if pad == "drop":
            fits = [
                first
                for first in range(-20, 40)
                if all(0 <= first + offset < length for offset in offsets)
            ]
        else:
            fits = list(range(length))
        assert shape.first_steps(np.arange(count)).tolist() == fits[::stride]
    assert shape.steps("a") == ranges.get("a", range(window))
