"""Runs the peers of a case side by side, each in a process of its own.

All of them prepare and run once first: that run traces graphs and grows the memory, and is stated
apart. Then come the rounds: in each, every peer runs once, one
after the other, so that a busy machine disturbs all of them alike. The others wait on a pipe.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from builds import build_commit
from case import OURS, Case, NotComparableError, Peer, Settings, Table

HERE = Path(__file__).resolve().parent


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def make_inputs(settings: Settings, names: tuple[str, ...]) -> None:
    """Make what is missing, in another process: this one stays small and idle."""
    if names:
        say(f"  inputs: {', '.join(names)}")
        subprocess.run([*_command(settings, sys.executable, "make"), *names], check=True, cwd=HERE)


class Worker:
    """The process of one peer."""

    def __init__(self, settings: Settings, case: Case, peer: Peer) -> None:
        self.peer = peer
        self.first: dict[str, Any] = {}
        self.runs: list[dict[str, Any]] = []
        python = sys.executable
        if peer.python_setting is not None:
            python = getattr(settings, peer.python_setting) or python
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        if peer.commit is not None:
            environment["PYTHONPATH"] = str(build_commit(peer.commit, settings.folder))
        self._process = subprocess.Popen(
            [*_command(settings, python, "peer"), case.name, peer.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=HERE,
            env=environment,
        )
        ready = self._answer()
        self.missing: str | None = ready.get("missing")
        self.records: int = ready.get("records", 0)

    @property
    def process_id(self) -> int:
        """Of the process, for the operating system."""
        return self._process.pid

    def warm_up(self) -> Any:
        """Run for the first time; return the digest of the result."""
        self.first = self._ask("digest")
        return self.first["digest"]

    def run(self) -> None:
        """Run once and keep what was measured."""
        self.runs.append(self._ask("run"))

    def per_record(self, clock: str) -> list[float]:
        """Seconds of `cpu` or `wall` a record, for each run."""
        return [run[clock] / self.records for run in self.runs]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _ask(self, line: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.peer.name} ended with code {self._process.wait()}")
        return json.loads(line)  # type: ignore[no-any-return]


def compare(case: Case, settings: Settings) -> Table:
    """Measure all peers of a case.

    Raises:
        NotComparableError: they disagree on what they read or wrote.
    """
    say(f"{case.name}")
    make_inputs(settings, case.inputs)
    workers = [Worker(settings, case, peer) for peer in case.peers]
    try:
        for worker in workers:
            if worker.peer.name == OURS and worker.missing is not None:
                raise SystemExit(f"{OURS} itself cannot be measured: {worker.missing}")
        there = [worker for worker in workers if worker.missing is None]
        _warm_up(case, there)
        for number in range(settings.repeat):
            say(f"  round {number + 1} of {settings.repeat}")
            for worker in there:
                worker.run()
    finally:
        for worker in workers:
            worker.close()
    return _table(case, workers)


def measure_peaks(case: Case, settings: Settings) -> tuple[dict[str, list[int]], dict[str, int]]:
    """How many bytes above its imports each peer took, in each round, and of how many records.

    One fresh process for each figure: what was freed is not all given back.
    """
    say(case.name)
    make_inputs(settings, case.inputs)
    peaks: dict[str, list[int]] = {peer.name: [] for peer in case.peers}
    counts = {}
    for number in range(settings.repeat):
        say(f"  round {number + 1} of {settings.repeat}")
        for peer in case.peers:
            worker = Worker(settings, case, peer)
            worker.run()
            worker.close()
            peaks[peer.name].append(worker.runs[0]["memory"])
            counts[peer.name] = worker.records
    return peaks, counts


def _warm_up(case: Case, workers: list[Worker]) -> None:
    digests = {}
    for worker in workers:
        say(f"  warming up: {worker.peer.name}")
        digest = worker.warm_up()
        if digest is not None:
            digests[worker.peer.name] = json.dumps(digest)
    if len(set(digests.values())) > 1:
        raise NotComparableError(f"{case.name}: {digests}")


def _table(case: Case, workers: list[Worker]) -> Table:
    header = (
        "",
        f"CPU µs a {case.unit}",
        "the first time",
        "wall µs",
        "CPU, recordsmith = 1",
        *(("wall, recordsmith = 1",) if case.on_wall_too else ()),
        "target: recordsmith at most",
        "met",
    )
    clocks = ("cpu", "wall") if case.on_wall_too else ("cpu",)
    ours = next(worker for worker in workers if worker.peer.name == OURS)
    base = {clock: statistics.median(ours.per_record(clock)) for clock in clocks}
    rows: list[tuple[str, ...]] = []
    data: list[dict[str, Any]] = []
    for worker in workers:
        peer = worker.peer
        if worker.missing is not None:
            blanks = [""] * (len(header) - 4)
            rows.append((peer.name, "not installed", *blanks, _target(peer), ""))
            data.append({"peer": peer.name, "missing": worker.missing})
            continue
        taken = {clock: statistics.median(worker.per_record(clock)) for clock in ("cpu", "wall")}
        ratios = {clock: base[clock] / taken[clock] for clock in clocks}
        met = _is_met(peer, max(ratios.values()))
        rows.append(
            (
                peer.name,
                microseconds(taken["cpu"]),
                microseconds(worker.first["cpu"] / worker.records),
                microseconds(taken["wall"]),
                *(f"{1 / ratio:.3g}" for ratio in ratios.values()),
                _target(peer),
                "" if met is None else "yes" if met else f"**no**: {_times(max(ratios.values()))}",
            )
        )
        data.append(
            {
                "peer": peer.name,
                "records": worker.records,
                "cpu_seconds_per_record": worker.per_record("cpu"),
                "first_cpu_seconds_per_record": worker.first["cpu"] / worker.records,
                "wall_seconds_per_record": worker.per_record("wall"),
                "recordsmith_at_most": peer.at_most,
                "is_met": met,
            }
        )
    what = f"{case.what} {ours.records:,} {case.unit}s."
    return Table(case.name, case.title, what, header, tuple(rows), data={"peers": data})


def microseconds(seconds: float) -> str:
    """Three figures that count."""
    value = seconds * 1e6
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _is_met(peer: Peer, ratio: float) -> bool | None:
    if peer.at_most is None:
        return None
    return ratio < peer.at_most if peer.strictly else ratio <= peer.at_most


def _target(peer: Peer) -> str:
    if peer.at_most is None:
        return ""
    return "less" if peer.strictly else _times(peer.at_most)


def _times(ratio: float) -> str:
    return f"1/{1 / ratio:.3g}" if ratio < 1 else f"{ratio:.3g}"


def _command(settings: Settings, python: str, job: str) -> list[str]:
    kind = "quick" if settings.quick else "full"
    return [python, str(HERE / "worker.py"), job, str(settings.folder), kind]
