"""Faults planted in one of the drawn episodes are found there; clean sets have no findings."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.checking.linting.episode_check import Episode, check_episode

from . import episodes as drawn

LINT_CASES = [
    (check, number) for check, plants in drawn.LINT_FAULTS.items() for number in range(len(plants))
]
VERIFY_CASES = [
    (defect, number)
    for defect, plants in drawn.VERIFY_FAULTS.items()
    for number in range(len(plants))
]


def _found(report: Any) -> set[tuple[str, int, int | None]]:
    """(check, record, step) of each place."""
    return {
        (
            str(finding.check),
            int(example.file.rpartition("/")[2]),
            int(example.place.removeprefix("step ")) if example.place else None,
        )
        for finding in report.findings
        for example in finding.examples
    }


def _assert_clean(seed: int, folder: Path) -> None:
    path = drawn.draw(seed).write(folder / f"{seed}.tfrecord")
    assert rs.lint(rs.Shards(path)).findings == [], seed
    report = rs.verify(path, deep=True)
    assert report.is_good, (seed, report.defects)


@pytest.mark.parametrize("seed", range(3))
def test_clean_sets_have_no_findings(seed: int, tmp_path: Path) -> None:
    _assert_clean(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 200, 25))
def test_many_clean_sets_have_no_findings(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 25):
        _assert_clean(seed, tmp_path)


@pytest.mark.parametrize(("check", "number"), LINT_CASES)
def test_planted_faults_are_found(check: str, number: int, tmp_path: Path) -> None:
    _assert_planted(check, number, range(1), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("check", "number"), LINT_CASES)
def test_planted_faults_are_found_in_many_sets(check: str, number: int, tmp_path: Path) -> None:
    _assert_planted(check, number, range(1, 8), tmp_path)


def _assert_planted(check: str, number: int, seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        random = np.random.default_rng(seed)
        robot = drawn.draw(seed, lengths=(40, 60), is_tinted=check == "swapped-channels")
        record = int(random.integers(1, len(robot.episodes)))
        planted = drawn.LINT_FAULTS[check][number](robot, record, random)
        path = robot.write(tmp_path / f"{seed}.tfrecord")
        report = rs.lint(rs.Shards(path))
        assert _found(report) == {(check, *planted)}, seed


@pytest.mark.parametrize(("defect", "number"), VERIFY_CASES)
def test_planted_defects_are_found(defect: str, number: int, tmp_path: Path) -> None:
    tried = 0
    for seed in range(5):
        random = np.random.default_rng(seed)
        robot = drawn.draw(seed, lengths=(5, 20))
        record = int(random.integers(len(robot.episodes)))
        if defect == "episode-flags-mismatch" and "is_first" not in robot.episodes[0]:
            continue
        about = drawn.VERIFY_FAULTS[defect][number](robot, record, random)
        path = robot.write(tmp_path / f"{seed}.tfrecord")
        (error,) = rs.verify(path, deep=True).defects
        assert (str(error.defect), error.record, error.path) == (defect, record, str(path)), seed
        key, _, step = about.partition(", ")
        assert error.feature == (robot.key(key) if key else None)
        assert not step or f"step {step}" in error.problem
        tried += 1
    assert tried >= 2


_FIRST = {"steps/is_first": [1, 0]}
_FLAT, _LENGTHS = "steps/tokens/ragged_flat_values", "steps/tokens/ragged_row_lengths_0"
_INNER = "steps/tokens/ragged_row_lengths_1"


@pytest.mark.parametrize(
    ("features", "wrong"),
    [
        ({**_FIRST, _FLAT: [5, 6, 7], _LENGTHS: [1, 2]}, []),
        ({**_FIRST, _FLAT: [5, 6, 7, 8, 9, 9], _LENGTHS: [1, 2]}, []),  # of vectors
        ({**_FIRST, _FLAT: [], _LENGTHS: [0, 0]}, []),
        ({**_FIRST, _FLAT: [5] * 5, _LENGTHS: [1, 1], _INNER: [2, 3]}, []),
        ({**_FIRST, _FLAT: [5, 6, 7, 8], _LENGTHS: [1, 2]}, [_FLAT]),
        ({**_FIRST, _FLAT: [5, 6], _LENGTHS: [1, 2]}, [_FLAT]),
        ({**_FIRST, _FLAT: [5, 6], _LENGTHS: [0, 0]}, [_FLAT]),
        ({**_FIRST, _FLAT: [5, 6], _LENGTHS: [3, -1]}, [_FLAT]),
        ({**_FIRST, _FLAT: [5, 6], _LENGTHS: [1, 1, 0, 0]}, [_FLAT]),
        ({**_FIRST, _FLAT: [5, 6]}, [_FLAT]),
        ({"steps/reward": [1.0, 2.0, 3.0], "steps/action": [0.5] * 7}, ["steps/action"]),
        ({"steps/a": [1, 2], "steps/b": [1, 2, 3]}, []),  # no field of RLDS
        ({"is_first": [1, 1], "action": [1, 2, 3]}, []),
    ],
)
def test_sequences_in_steps_and_other_records(
    features: dict[str, Any], wrong: list[str], tmp_path: Path
) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_example(features)
    report = rs.verify(tmp_path / "a.tfrecord", deep=True)
    found = [(error.feature, str(error.defect)) for error in report.defects]
    assert found == [(key, "feature-shape-mismatch") for key in wrong]


def test_flags_without_values(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_example({"steps/is_first": [1], "steps/action": [0.5]})
        writer.write_example({"steps/is_first": [], "steps/action": [0.5]})
        writer.write_example({"steps/action": [0.5]})
        writer.write_example({})
    defects = rs.verify(tmp_path / "a.tfrecord", deep=True).defects
    assert [(str(error.defect), error.record, error.feature) for error in defects] == [
        ("feature-shape-mismatch", 1, "steps/is_first"),
        ("feature-shape-mismatch", 2, "steps/is_first"),
        ("empty-episode", 3, None),
    ]


def test_checks_of_some_names_and_splits(tmp_path: Path) -> None:
    """Selected checks find what all of them find; a copy in another split is an error."""
    robot = drawn.draw(3, lengths=(40, 60))
    random = np.random.default_rng(0)
    for record, check in enumerate(("constant-camera", "not-finite", "no-instruction"), 1):
        drawn.LINT_FAULTS[check][0](robot, record, random)
    robot.write(tmp_path / "train-00000-of-00001.tfrecord")
    robot.episodes, robot.contexts = robot.episodes[:1], robot.contexts[:1]
    robot.write(tmp_path / "test-00000-of-00001.tfrecord")
    everything = rs.lint(rs.Shards(tmp_path))
    assert {(str(found.check), str(found.severity)) for found in everything.findings} == {
        ("constant-camera", "warning"),
        ("not-finite", "error"),
        ("no-instruction", "warning"),
        ("duplicate-episode", "error"),
    }
    for name in ("constant-camera", "frozen-camera", "not-finite", "duplicate-episode"):
        report = rs.lint(rs.Shards(tmp_path), only=[name])
        assert report.findings == [f for f in everything.findings if f.check == name]
        assert (report.image_count > 0) == name.endswith("camera")


_STEPS = 40
_MOVING = np.linspace(0, 1, _STEPS, dtype=np.float32)
_RESTING = np.append(_MOVING[:20], np.full(20, _MOVING[20])).astype(np.float32)
_WAVE = np.sin(np.arange(_STEPS) * 0.9).astype(np.float32)
_SWITCH = np.where(_WAVE > 0, 1, -1).astype(np.float32)
_RAISED = np.where(_MOVING > 0.4, np.float32(0.7), _MOVING)
_ONES = np.ones(_STEPS, np.float32)


@pytest.mark.parametrize(
    ("action", "state", "expected"),
    [
        ([_MOVING, np.minimum(_WAVE, 0.4)], _MOVING, "clipped-actions"),
        ([_MOVING, np.maximum(_WAVE, -0.4)], _MOVING, "clipped-actions"),
        ([_MOVING, _RAISED], _MOVING, ""),  # reaches its target once, and holds it
        ([_MOVING, _SWITCH], _MOVING, ""),
        ([_MOVING, np.maximum(_WAVE, 0)], _MOVING, ""),  # rests at 0
        ([_RESTING, _RESTING], _MOVING, "frozen-actions"),
        ([_RESTING, _RESTING], _RESTING, ""),  # waits
        ([_RESTING[:20], _RESTING[:20]], _MOVING[:20], ""),
        ([_ONES, _ONES], _RESTING, "frozen-actions"),
        ([_ONES[:9], _ONES[:9]], _RESTING[:9], ""),  # too short
        ([_ONES], _MOVING, ""),  # one dimension
        ([_ONES.astype(np.int64), _ONES.astype(np.int64)], _MOVING, ""),  # a choice
    ],
)
def test_actions(action: Any, state: Any, expected: str, tmp_path: Path) -> None:
    features = {
        "steps/action": np.stack(action, axis=1).ravel(),
        "steps/observation/state": state,
    }
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_example(features)
    findings = rs.lint(rs.Shards(tmp_path / "a.tfrecord")).findings
    assert [str(finding.check) for finding in findings] == [expected] * bool(expected)


def test_still_cameras_of_still_robots_and_partial_copies(tmp_path: Path) -> None:
    """A camera may be still while the state is; duplicates have the same actions and images."""
    robot = drawn.draw(2, lengths=(50, 60))
    first, second, third = robot.episodes[:3]
    camera, count = robot.cameras[0], 30
    first["observation/state"][:count] = first["observation/state"][0]
    first[camera][:count] = [first[camera][0]] * count
    shortest = min(len(second["action"]), len(third["action"]))
    for number, key in ((3, "action"), (4, camera)):
        robot.episodes[1] = {k: values[:shortest] for k, values in second.items()}
        robot.episodes[2] = {k: values[:shortest] for k, values in third.items()}
        robot.episodes[2][key] = robot.episodes[1][key]
        for name in {"is_last", "is_terminal"} & second.keys():
            robot.episodes[2][name] = robot.episodes[1][name]
        path = robot.write(tmp_path / f"{number}.tfrecord")
        assert rs.lint(rs.Shards(path)).findings == []


def test_no_instruction_at_all_is_one_note(tmp_path: Path) -> None:
    robot = drawn.draw(3)
    for context in robot.contexts:
        context["language_instruction"] = ""
    for steps in robot.episodes:
        steps.pop("language_instruction", None)
    (note,) = rs.lint(rs.Shards(robot.write(tmp_path / "a.tfrecord"))).findings
    assert (str(note.check), str(note.severity), note.count) == ("no-instruction", "note", 1)


@pytest.mark.parametrize("share", [0.5, 0.35])
def test_scenes_of_other_colours_are_not_exchanged_channels(share: float, tmp_path: Path) -> None:
    """Two scenes that mirror each other's colours are not a fault."""
    robot = drawn.draw(5, lengths=(10, 20), is_tinted=True)
    count = len(robot.episodes)
    for steps in robot.episodes[: int(share * count)]:
        for camera in robot.cameras:
            steps[camera] = [
                drawn.encode(drawn.decode(frame)[:, :, ::-1], "PNG") for frame in steps[camera]
            ]
    assert rs.lint(rs.Shards(robot.write(tmp_path / "a.tfrecord"))).findings == []


def test_infinite_states_next_to_a_still_camera_give_no_warning() -> None:
    frames = [drawn.encode(np.full((16, 16, 3), max(0, step - 30)), "PNG") for step in range(60)]
    state = np.random.default_rng(0).random((60, 3), np.float32)
    state[[3, 4, 25]] = np.inf
    found: list[tuple[str, int | None]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_episode(
            Episode(60, {"steps/state": state}, {"steps/camera": frames}, None),
            lambda check, _, step: found.append((check.value, step)),
            None,
        )
    assert found == [("not-finite", 3)]
