"""Try new random inputs for a given time: property tests, fuzzers, and the programs of this folder.

    python tests/soak/run.py --seconds 600                   all, for ten minutes together
    python tests/soak/run.py --seconds 60 --only fuzzers     one of: properties, fuzzers, programs
    python tests/soak/run.py --seed 7                        the seeds of another run

Each command is printed with its seed. Exit code 1 if one fails; the commands that repeat the
failures are printed last. A command that runs when the time of its step is over is stopped;
that is a failure of a fuzzer, which was told the time.

To add a program: a file of this folder with the options of `shared.option_parser(__doc__, …)`. It
exits with 1 if something is wrong, and writes to the temporary folder only.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
REPOSITORY = FOLDER.parent.parent
PROGRAMS = [
    path.name
    for path in sorted(FOLDER.glob("[!t]*.py"))
    if path.name not in ("run.py", "shared.py")
]
_FIRST_COUNT = 8
_MAX_LINES = 60  # of what a failed command printed
_MIN_SECONDS = 1.0  # to begin another command

Commands = Iterator[list[str]]


def properties(dice: random.Random, _: float) -> Commands:
    """The property tests, file by file, in another order each time."""
    files = [
        path.relative_to(REPOSITORY)
        for path in sorted((REPOSITORY / "tests").rglob("test_*.py"))
        if "@given(" in path.read_text("utf-8")
    ]
    while True:
        for path in dice.sample(files, len(files)):
            options = ["--hypothesis-profile=soak", f"--hypothesis-seed={_seed(dice)}"]
            yield ["-m", "pytest", "-q", "-m", "hypothesis", *options, str(path)]


def fuzzers(dice: random.Random, seconds: float) -> Commands:
    """All harnesses of tests/fuzz."""
    share = max(1, int(seconds * 0.9))  # the rest is for starting
    yield ["tests/fuzz/run.py", "--seed", str(_seed(dice)), "--seconds", str(share)]


def programs(dice: random.Random, _: float) -> Commands:
    """The programs of this folder in turn, each time with twice the count."""
    count = _FIRST_COUNT
    while True:
        for name in PROGRAMS:
            yield [f"tests/soak/{name}", "--seed", str(_seed(dice)), "--count", str(count)]
        count *= 2


@dataclass(frozen=True)
class Step:
    """Commands, and how long they may run.

    commands: makes them from random numbers and the seconds that they have.
    share: of the time.
    grace_seconds: a command that runs for so long when the time is over fails; None: it is stopped
        at once, which is no failure.
    """

    commands: Callable[[random.Random, float], Commands]
    share: float
    grace_seconds: float | None = None


STEPS = {
    "properties": Step(properties, 0.4),
    "fuzzers": Step(fuzzers, 0.3, grace_seconds=120),
    "programs": Step(programs, 0.3),
}


def _seed(dice: random.Random) -> int:
    return dice.randrange(2**32)


def soak(steps: dict[str, Step], seconds: float, seed: int) -> int:
    """Run the commands of all steps, each for its share of the time.

    Returns:
        The exit code: 1 if a command failed.
    """
    print(f"seed {seed}", flush=True)
    total = sum(step.share for step in steps.values())
    failed = []
    for name, step in steps.items():
        allowed = seconds * step.share / total
        stop = time.monotonic() + allowed
        # a string, so that the seeds of a step do not depend on the other steps
        for arguments in step.commands(random.Random(f"{name} {seed}"), allowed):
            left = stop - time.monotonic()
            if left < _MIN_SECONDS:
                break
            command = shlex.join(["python", *arguments])
            print(command, end=": ", flush=True)
            outcome = _run([sys.executable, *arguments], left, step.grace_seconds)
            print(outcome, flush=True)
            if outcome.startswith("failed"):
                failed.append(command)
    print(f"\n{len(failed)} failed" if failed else "\nnothing failed")
    for command in failed:
        print(f"  {command}")
    return int(bool(failed))


def _run(command: list[str], seconds: float, grace_seconds: float | None) -> str:
    """How a command ended, with what it printed if it failed."""
    started = time.monotonic()
    most = seconds + (grace_seconds or 0)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env={**os.environ, "TMPDIR": folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # so that the processes that it starts can be stopped too
        ) as process,
    ):
        try:
            output, _ = process.communicate(timeout=most)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            if grace_seconds is None:
                return f"stopped after {most:.0f} s"
            return f"failed, still running after {most:.0f} s"
    took = f"{time.monotonic() - started:.0f} s"
    lines = output.splitlines()
    missing = [line for line in lines if line.startswith("ModuleNotFoundError: ")]
    if process.returncode == 0:
        return f"passed in {took}"
    if missing and "recordsmith" not in missing[-1]:
        return f"skipped, {missing[-1]}"
    return "\n".join([f"failed after {took}, exit code {process.returncode}", *lines[-_MAX_LINES:]])


def main() -> int:
    parser = argparse.ArgumentParser(description="Try new random inputs for a given time.")
    parser.add_argument("--seconds", type=float, default=600, help="for all steps together")
    parser.add_argument("--seed", type=int, help="default: a new one")
    parser.add_argument("--only", choices=STEPS)
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    steps = {options.only: STEPS[options.only]} if options.only else STEPS
    return soak(steps, options.seconds, seed)


if __name__ == "__main__":
    sys.exit(main())
