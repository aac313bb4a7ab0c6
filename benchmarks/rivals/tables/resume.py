"""Training that is killed in the middle of an epoch, and resumed from its last state."""

from __future__ import annotations

import json
import random
import shutil
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from bench import Bench, reason, rival_of, say, with_variants

from case import Table

SAVE_EVERY, SECONDS, ROUNDS = 3, 300, 3

VARIANTS = {
    "recordsmith_shards": ("recordsmith_torch", "recordsmith_weighted", "recordsmith_packed"),
    "litdata_chunks": ("litdata_equal",),
    "energon_tars": ("energon_endless",),
    "lance_table": ("lance_splits",),
}
"""Modules that follow a rival in this table."""

Steps = list[list[int]]
"""The keys of each step: those of all ranks, one after the other."""


class Part(NamedTuple):
    """The processes that train at the same time, until they are killed or done."""

    ranks: int = 1
    threads: int = 2
    batch_size: int = 8


@dataclass(frozen=True)
class Case:
    """Each part but the last one is killed; the next one resumes from its last state."""

    title: str
    parts: tuple[Part, ...]
    epoch_count: int = 1
    filtered: bool = False


SAME_JOB = (
    Case("no workers", 2 * (Part(threads=0),)),
    Case("2 workers", 2 * (Part(),)),
    Case("killed twice", 3 * (Part(),)),
    Case("in the second epoch", 2 * (Part(),), epoch_count=2),
    Case("with a filter", 2 * (Part(),), filtered=True),
)
OTHER_JOB = (
    Case("batches of 12 after 8", (Part(), Part(batch_size=12))),
    Case("1 rank after 2", (Part(2), Part(batch_size=16))),
    Case("2 ranks after 1", (Part(batch_size=16), Part(2))),
    Case("1 rank of 2 workers after 2 of 1", (Part(2, threads=1), Part())),
    Case("2 ranks of 1 worker after 1 of 2", (Part(), Part(2, threads=1))),
)


class Difference(NamedTuple):
    """Of a run that was killed from one that was not."""

    repeated: int = 0
    lost: int = 0
    is_reordered: bool = False


class FailedError(Exception):
    """Something is not supported, or a process failed."""


def difference(expected: Steps, kept: Steps, rest: Steps, step_size: int | None) -> Difference:
    """Compare keys, and their order.

    kept: the steps that the last state contains; `rest`: those after it.
    step_size: how many keys of `rest` may be in any order, as several ranks have them at the same
        time; None if all keys have an order.
    """
    due, seen = Counter(chain(*expected)), Counter(chain(*kept, *rest))
    first, keys = list(chain(*kept)), list(chain(*expected))
    before, after = keys[: len(first)], keys[len(first) :]
    is_reordered = before != first or _parts(after, step_size) != _parts(chain(*rest), step_size)
    return Difference((seen - due).total(), (due - seen).total(), is_reordered)


def _parts(keys: Iterable[int], size: int | None) -> list[list[int]]:
    """All keys as they are; or parts of them, in which the order does not count."""
    found = list(keys)
    if size is None:
        return [found]
    return [sorted(found[start : start + size]) for start in range(0, len(found), size)]


@dataclass
class Torture:
    """The runs of one rival, from its packed images at a place."""

    bench: Bench
    module: str
    place: str
    folder: Path

    def run(self, case: Case, number: int) -> Difference:
        """Kill training at places that depend on a number, and resume it.

        Raises:
            FailedError: that did not work.
        """
        expected = self._undisturbed(case)
        kept, rest = self._killed(case, len(expected), number)
        is_same = len({part.ranks for part in case.parts}) == 1
        step_size = None if is_same else max(part.ranks * part.batch_size for part in case.parts)
        return difference(expected, kept, rest, step_size)

    def _undisturbed(self, case: Case) -> Steps:
        part = case.parts[0]
        folder = self.folder / "-".join(map(str, (*part, case.epoch_count, case.filtered)))
        if not (folder / "done").exists():
            self._train(part, case, folder, (), None)
            (folder / "done").touch()
        return _steps(folder, part)

    def _killed(self, case: Case, count: int, number: int) -> tuple[Steps, Steps]:
        """The steps that states contain, and those after the last one."""
        rng = random.Random(f"{case} {number}")
        kept: Steps = []
        states: list[str] = []
        saved = count // case.epoch_count * (case.epoch_count - 1)  # the kill is in the last epoch
        for index, part in enumerate(case.parts):
            folder = self.folder / f"{case.title}-{number}-{index}"
            kills_left = len(case.parts) - 1 - index
            kill_at = None
            if kills_left:
                most = saved + (count - 1 - saved) // kills_left
                kill_at = rng.randint(saved + SAVE_EVERY + 1, most)
            self._train(part, case, folder, states, kill_at)
            steps = _steps(folder, part)
            if kill_at is None:
                return kept, steps
            states = [f"{_log(folder, rank)}.state" for rank in range(part.ranks)]
            if not all(Path(state).exists() for state in states):
                raise FailedError("nothing left to kill: too many images were lost")
            saved = (kill_at - 1) // SAVE_EVERY * SAVE_EVERY
            kept += steps[: saved - len(kept)]
        raise AssertionError

    def _train(
        self, part: Part, case: Case, folder: Path, states: Sequence[str], kill_at: int | None
    ) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        options: dict[str, Any] = {
            "place": self.place,
            "threads": part.threads,
            "batch_size": part.batch_size,
            "world_size": part.ranks,
            "epoch_count": case.epoch_count,
            "filtered": case.filtered,
            "save_every": SAVE_EVERY,
            "kill_at": kill_at,
            "states": states,
            "port": _free_port(),
        }

        def run(rank: int) -> str | None:
            log = _log(folder, rank)
            measured = self.bench.job(
                self.module, "training:train", timeout=SECONDS, rank=rank, log=str(log), **options
            )
            if kill_at is not None and log.exists() and Path(f"{log}.state").exists():
                return None
            return reason(measured)

        with ThreadPoolExecutor(part.ranks) as pool:
            why = next(filter(None, pool.map(run, range(part.ranks))), None)
        if why is not None:
            raise FailedError(why)


def _log(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}"


def _steps(folder: Path, part: Part) -> Steps:
    logs = [_log(folder, rank).read_text().splitlines() for rank in range(part.ranks)]
    return [
        list(chain(*(json.loads(line) for line in lines)))
        for lines in zip_longest(*logs, fillvalue="[]")
    ]


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        port: int = opened.getsockname()[1]
        return port


def report(bench: Bench, cases: Sequence[Case], name: str, title: str) -> Table:
    rows, data = [], {}
    for module in with_variants(bench.rivals, VARIANTS):
        say(f"  {module}")
        place = bench.packed(module, "few")
        if isinstance(place, str):
            rows.append((rival_of(module).title, place, *[""] * (len(cases) - 1)))
            continue
        torture = Torture(bench, module, str(place), bench.folder / "torture" / module)
        found = dict(_outcomes(torture, cases))
        cells = map(cell, found.values())
        rows.append((rival_of(module).title, *cells, *[""] * (len(cases) - len(found))))
        data[module] = found
    return Table(
        name,
        title,
        (
            f"{bench.count('few'):,} images in batches of 8, unless the heading has another size. "
            "A training loop appends the keys of each batch to a log, saves its state after every "
            f"{SAVE_EVERY}, and is killed with its workers (SIGKILL) at a random batch; new "
            "processes load the last state and read to the end. The keys of the batches that the "
            "state contains and of those after it are compared with an undisturbed run. "
            f"{_round_count(bench)} rounds; the most that was repeated and lost in one of them."
        ),
        ("", *(case.title for case in cases)),
        tuple(rows),
        data=data,
    )


def _round_count(bench: Bench) -> int:
    return min(bench.rounds, ROUNDS)


def _outcomes(torture: Torture, cases: Sequence[Case]) -> Iterator[tuple[str, list[Any]]]:
    """Of each case: that of each round, or the reason why there is none.

    Those of the first case only, if the rival has no state.
    """
    for index, case in enumerate(cases):
        try:
            rounds = range(_round_count(torture.bench))
            found: list[Any] = [torture.run(case, number) for number in rounds]
        except FailedError as error:
            found = [str(error)]
        say(f"    {case.title}: {cell(found)}")
        yield case.title, found
        if index == 0 and "unsupported" in cell(found):
            return


def cell(found: Sequence[Any]) -> str:
    if isinstance(found[0], str):
        return str(found[0])
    repeated = max(outcome.repeated for outcome in found)
    lost = max(outcome.lost for outcome in found)
    if repeated or lost:
        return f"{repeated} repeated, {lost} lost"
    return "in another order" if any(outcome.is_reordered for outcome in found) else "exact"


def report_same_job(bench: Bench) -> Table:
    return report(bench, SAME_JOB, "resume", "Resuming the same job after a kill")


def report_other_job(bench: Bench) -> Table:
    return report(bench, OTHER_JOB, "resume-other", "Resuming with other ranks, workers or batches")
