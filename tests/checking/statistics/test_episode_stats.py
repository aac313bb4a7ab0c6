"""Statistics of episodes equal those of NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.checking.statistics.episode_stats import MAX_DIMENSIONS


def _episode(steps: int, random: np.random.Generator) -> dict[str, Any]:
    return {
        "action/arm": random.normal(size=(steps, 3)).astype(np.float32),
        "action/grip": random.integers(0, 2, (steps, 1)),
        "observation/state": random.random((steps, 2)),
        "is_first": np.arange(steps) == 0,
    }


def _payload(episode: dict[str, Any], *, is_sequence: bool) -> bytes:
    if is_sequence:
        return rs.encode_sequence_example(
            {}, {k: [*v.reshape(len(v), -1)] for k, v in episode.items()}
        )
    return rs.encode_example({f"steps/{key}": np.ravel(values) for key, values in episode.items()})


@pytest.mark.parametrize("is_sequence", [False, True])
@pytest.mark.parametrize("shards", [1, 3])
def test_lengths_and_actions(write: Any, tmp_path: Path, shards: int, is_sequence: bool) -> None:
    random = np.random.default_rng(shards)
    lengths = random.integers(1, 50, 40)
    episodes = [_episode(int(length), random) for length in lengths]
    for number in range(shards):
        payloads = [_payload(e, is_sequence=is_sequence) for e in episodes[number::shards]]
        write(tmp_path / f"a-{number:05d}-of-{shards:05d}.tfrecord", payloads)
    report = rs.stats(tmp_path)
    found = report.episodes
    assert found is not None
    assert (found.count, found.steps) == (40, lengths.sum())
    assert (found.lengths.min, found.lengths.max) == (lengths.min(), lengths.max())
    assert found.lengths.sample is not None
    assert found.lengths.sample.median == np.sort(lengths)[19]
    prefix = "" if is_sequence else "steps/"
    assert {key: len(numbers) for key, numbers in found.actions.items()} == {
        f"{prefix}action/arm": 3,
        f"{prefix}action/grip": 1,
    }
    for name in ("action/arm", "action/grip"):
        values = np.concatenate([episode[name] for episode in episodes])
        for dimension, numbers in enumerate(found.actions[f"{prefix}{name}"]):
            column = values[:, dimension]
            assert (numbers.count, numbers.min, numbers.max) == (
                len(column),
                column.min(),
                column.max(),
            )
            assert numbers.mean == pytest.approx(column.mean(dtype=np.float64))
    assert report.to_json()["episodes"]["actions"][f"{prefix}action/grip"][0]["max"] == 1
    (table,) = [table for table in report.content().tables if table.title.startswith("40 episodes")]
    assert [row[0] for row in table.rows][1:] == [
        *(f"{prefix}action/arm [{number}]" for number in range(3)),
        f"{prefix}action/grip",
    ]


def test_other_records_have_no_episodes(write: Any, tmp_path: Path) -> None:
    records = [{"steps/count": [1, 2]}, {"action": 1.0}]
    assert rs.stats(write(tmp_path / "a.tfrecord", records)).episodes is None


def test_episodes_without_steps_and_actions_of_other_widths(write: Any, tmp_path: Path) -> None:
    records = [
        {"steps/is_first": [1, 0], "steps/action": [0.5, 1.0, 1.5, 2.0]},
        {"steps/is_first": []},
    ]
    found = rs.stats(write(tmp_path / "a.tfrecord", records)).episodes
    assert found is not None
    assert (found.count, found.steps, found.lengths.min) == (2, 2, 0)
    assert [(n.min, n.max) for n in found.actions["steps/action"]] == [(0.5, 1.5), (1.0, 2.0)]


def test_as_many_actions_as_are_counted_are_counted_in_all_records(
    write: Any, tmp_path: Path
) -> None:
    """More features than fit are left out; the others have the numbers of all records."""
    names = [f"steps/action_{number:02d}" for number in range(MAX_DIMENSIONS + 1)]
    record = {"steps/is_first": [1, 0]} | {name: [0.5, 1.0] for name in names}
    found = rs.stats(write(tmp_path / "a.tfrecord", [record] * 2000)).episodes
    assert found is not None
    assert len(found.actions) == MAX_DIMENSIONS
    assert {numbers.count for (numbers,) in found.actions.values()} == {4000}
