"""The soak runs commands that exist, repeats them by their seeds, and reports those that fail."""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.posix

FOLDER = Path(__file__).parent
REPOSITORY = FOLDER.parent.parent


def _runner() -> Any:
    spec = importlib.util.spec_from_file_location("soak_run", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["soak_run"] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


RUNNER = _runner()


def test_the_seed_decides_the_commands() -> None:
    for step in RUNNER.STEPS.values():
        first, again, other = (
            list(islice(step.commands(random.Random(seed), 10), 5)) for seed in (1, 1, 2)
        )
        assert first == again
        assert not first or first != other


def test_only_the_soak_tries_new_inputs() -> None:
    def draw(profile: str) -> list[int]:
        drawn: list[int] = []

        @settings(settings.get_profile(profile), max_examples=20)
        @given(st.integers())
        def collect(number: int) -> None:
            drawn.append(number)

        collect()
        return drawn

    assert draw("default") == draw("default")
    assert draw("soak") != draw("soak")


@pytest.mark.slow
def test_a_property_test_with_a_seed() -> None:
    """The command that stands for all, of a file that is quick."""
    commands = RUNNER.STEPS["properties"].commands(random.Random(1), 10)
    command = next(one for one in commands if one[-1].endswith("wire/test_foreign.py"))
    run = subprocess.run(
        [sys.executable, *command], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
    assert " passed" in run.stdout


def test_one_command_runs_the_fuzzers() -> None:
    run = subprocess.run(
        [sys.executable, FOLDER / "run.py", "--only", "fuzzers", "--seconds", "2", "--seed", "5"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert run.stdout.startswith("seed 5\n")
    assert "python tests/fuzz/run.py --seed " in run.stdout


NEEDS = {"remote_training.py": "torch", "queries.py": "duckdb"}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNNER.PROGRAMS)
def test_every_program_takes_a_seed_and_a_count(name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    run = subprocess.run(
        [sys.executable, FOLDER / name, "--help"], capture_output=True, text=True, check=True
    )
    assert "--seed" in run.stdout
    assert "--count" in run.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("remote_jobs.py", "--kills=3 --faults=20 --seed=5 --processes=1", [" kills", " faults"]),
        ("remote_training.py", "--count=1 --images=1500 --seed=1", [" ranks killed"]),
    ],
)
def test_some_kills_and_failing_requests(name: str, options: str, words: list[str]) -> None:
    """`make soak` has more."""
    for package in ("moto", "obstore", *([NEEDS[name]] if name in NEEDS else [])):
        pytest.importorskip(package)
    command = [sys.executable, FOLDER / name, *options.split()]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert run.returncode == 0, run.stdout + run.stderr
    assert [word for word in words if word not in run.stdout] == []


def test_a_failure_is_reported_with_its_command(capfd: pytest.CaptureFixture[str]) -> None:
    def commands(dice: random.Random, _: float) -> Any:
        yield ["-c", "print('fine')"]
        yield ["-c", f"print('found it'); raise SystemExit({dice.choice([3])})"]
        yield ["-c", "import a_module_that_is_not_there"]

    assert RUNNER.soak({"broken": RUNNER.Step(commands, 1)}, 60, 1) == 1
    out = capfd.readouterr().out
    assert "exit code 3\nfound it\n" in out
    assert out.count("failed after") == 1
    assert "skipped, ModuleNotFoundError" in out
    assert "raise SystemExit(3)" in out.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("grace_seconds", [None, 0.1])
def test_what_does_not_end_is_stopped(grace_seconds: float | None) -> None:
    def commands(*_: Any) -> Any:
        yield ["-c", "import time; time.sleep(600)"]

    step = RUNNER.Step(commands, 1, grace_seconds)
    assert RUNNER.soak({"endless": step}, 1.2, 1) == (grace_seconds is not None)
