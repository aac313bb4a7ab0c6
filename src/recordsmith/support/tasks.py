"""Tasks of a job, which run in any process, and what an engine is.

An engine pickles tasks and their outcomes. Files with tasks are of `packing.PackPlan`, and JSON.
"""

from __future__ import annotations

import platform
import re
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from recordsmith.support.errors import OptionError, RecordsmithError

VERSION = 3
"""Changes if a worker of another version would write other bytes or return other results, or cannot
read a task.
"""

_SAME_VERSION = "Install the same version of recordsmith on all machines."
_NOT_THE_SAME = re.compile(r"\w*(Import|ModuleNotFound|Attribute|Name|[Pp]ickl)\w*Error", re.ASCII)
_RAISED = re.compile(r"^\w[\w.]*(?:Error|Exception)\b.*$", re.MULTILINE)  # ends a traceback


@dataclass(frozen=True)
class Task:
    """A part of a job that runs on its own: it reads its inputs, and writes at most one file.

    function: called with the content; a function of a module. What it returns is the result.
    number: its place in the job, from 0.
    name: what messages call it: the file that it writes, or the only one that it reads.
    size: how much of the job's progress it is, such as its number of samples or bytes.
    content: everything that it needs, without credentials.
    version: of the process that made it.
    """

    function: Callable[[Any], Any]
    number: int
    name: str
    size: int
    content: Any
    version: int = field(default_factory=lambda: VERSION)


@dataclass(frozen=True)
class Outcome:
    """The result of a task, or the error that it ended with, and on which machine it ran."""

    number: int
    result: Any = None
    error: RecordsmithError | None = None
    machine: str = field(default_factory=platform.node)


class Engine(Protocol):
    """Runs tasks: in other processes, or on other machines."""

    def map(self, function: Callable[[Task], Outcome], tasks: Iterable[Task]) -> Iterator[Outcome]:
        """Yield the outcome of each task as it completes, in any order.

        Takes tasks only as fast as they run. A task whose worker is lost is repeated, a few times;
        more than one outcome of a task does no harm. When the iterator is closed, tasks that have
        not begun are cancelled.

        Args:
            function: of a module, so that it is known by its name; raises no error of recordsmith.
            tasks: can be pickled, like their outcomes.

        Raises:
            RecordsmithError: the workers of a task were lost too often, or cannot run it.
        """
        ...


def run_task(task: Task) -> Outcome:
    """Run a task in a worker."""
    try:
        if task.version != VERSION:
            raise version_error(task.version)
        return Outcome(task.number, task.function(task.content))
    except RecordsmithError as error:
        return Outcome(task.number, error=error)
    except Exception as error:  # noqa: BLE001 - a fault of this program or of its environment
        traceback.print_exc()
        failure = RecordsmithError(f"a worker failed with {type(error).__name__}: {error}")
        return Outcome(task.number, error=failure)


def run_on(engine: Engine, tasks: Iterable[Task], advance: Callable[[int], None]) -> dict[int, Any]:
    """Run tasks on an engine; return their results by number, as `completed`."""
    return dict(completed(engine, tasks, advance))


def completed(
    engine: Engine, tasks: Iterable[Task], advance: Callable[[int], None]
) -> Generator[tuple[int, Any]]:
    """Run tasks on an engine; yield number and result of each as it completes.

    A caller that may not take all results must close the generator.
    """
    if isinstance(engine, type) or not hasattr(engine, "map"):
        raise OptionError(
            option="engine", value=engine, expected="an engine such as rs.engines.Processes(4)"
        )
    begun: dict[int, tuple[str, int]] = {}

    def noted() -> Iterator[Task]:
        for task in tasks:
            begun[task.number] = task.name, task.size
            yield task

    done: set[int] = set()
    outcomes = engine.map(run_task, noted())
    try:
        for outcome in outcomes:
            if not isinstance(outcome, Outcome) or outcome.number not in begun:
                raise result_error(outcome)
            number = outcome.number
            name, size = begun[number]
            if (error := outcome.error) is not None:
                where = "" if outcome.machine == platform.node() else f" on {outcome.machine}"
                error.advise(f"The task for {name} failed{where}.")
                raise error
            if number not in done:  # a repeated task may find what the first one wrote
                done.add(number)
                advance(size)
                yield number, outcome.result
    finally:
        close = getattr(outcomes, "close", None)
        if close is not None:
            close()
    if missing := begun.keys() - done:
        raise missing_error(missing)


def in_order(results: Iterable[tuple[int, Any]]) -> Iterator[Any]:
    """Yield results in the order of their numbers; those that come early wait in memory."""
    waiting: dict[int, Any] = {}
    following = 0
    for number, result in results:
        waiting[number] = result
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def version_error(version: object) -> OptionError:
    """Return the error for a task of another version of recordsmith."""
    return OptionError(
        f"the task is of version {version!r:.40}",
        option="task",
        expected=f"version {VERSION}",
        remedy=_SAME_VERSION,
    )


def result_error(value: object) -> OptionError:
    """Return the error for what an engine returned if it is not a result of the job."""
    return OptionError(
        "the engine returned something that is not the result of a task of this job",
        option="results",
        value=value,
        remedy=_SAME_VERSION,
    )


def missing_error(numbers: Iterable[int]) -> OptionError:
    """Return the error for tasks without a result."""
    missing = sorted(numbers)
    shown = ", ".join(map(str, missing[:10]))
    more = f" and {len(missing) - 10:,} more" if len(missing) > 10 else ""
    return OptionError(
        f"tasks without a result: {shown}{more}", option="results", remedy="Run these tasks again."
    )


def lost_error(task: Task) -> RecordsmithError:
    """Return the error for a task whose worker was lost again and again."""
    return RecordsmithError(
        f"the workers for task {task.number}, for {task.name}, were killed",
        remedy="They may need more memory: run fewer at the same time, or make smaller shards.",
    )


def failed_error(task: Task, error: object) -> RecordsmithError:
    """Return the error for a task that a worker cannot run, such as where it imports nothing."""
    raised = _RAISED.findall(str(error))
    reason = raised[-1] if raised else f"{type(error).__name__}: {error}".partition("\n")[0]
    return RecordsmithError(
        f"the worker for task {task.number}, for {task.name}, failed: {reason}",
        remedy=(
            f"{_SAME_VERSION} They also need the same version of Python."
            if _NOT_THE_SAME.search(reason)
            else ""
        ),
    )
