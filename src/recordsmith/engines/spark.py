"""A Spark cluster."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial

from recordsmith.engines.cluster import check_reachable, run_ahead
from recordsmith.support.errors import OptionError, RecordsmithError, needs_extra
from recordsmith.support.tasks import Outcome, Task, failed_error, lost_error

with needs_extra("spark", "pyspark", "py4j"):
    from py4j.protocol import Py4JError
    from pyspark import SparkContext, inheritable_thread_target
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

_WRONG_PYTHON = re.compile("ModuleNotFoundError|ImportError|VERSION_MISMATCH|Cannot run program")


class Spark:
    """Runs tasks on the executors of a Spark application, each as a Spark job of its own.

    A task whose executor is killed runs again on another one; `spark.task.maxFailures` is how
    often. In `local[4]` it is not repeated, in `local[4,4]` it is.

    Example:
        session = SparkSession.builder.getOrCreate()
        rs.pack(rs.ImageFolder("flowers"), "out", engine=rs.engines.Spark(session))
    """

    def __init__(self, session: SparkSession | None = None) -> None:
        """`session`: not of Spark Connect; None for the active session.

        Raises:
            OptionError: it is not such a session, or no session is active.
        """
        session = SparkSession.getActiveSession() if session is None else session
        context = getattr(session, "_sc", None)
        if not isinstance(context, SparkContext):
            raise OptionError(
                option="session",
                value=session,
                expected="a SparkSession that is not remote, as Spark Connect runs no tasks",
            )
        self._context = context

    def __repr__(self) -> str:
        return f"Spark({self._context.master!r})"

    @classmethod
    def parse(cls, address: str) -> Spark:
        """Make it from the text of an option: a master; nothing where spark-submit sets it."""
        if address.startswith("spark://"):
            check_reachable("spark", address)
        if address.startswith("local"):  # otherwise the `python3` that is found first
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.appName("recordsmith")
        try:
            return cls((builder.master(address) if address else builder).getOrCreate())
        except (Py4JError, PySparkException) as error:
            raise OptionError(
                f"Spark does not start: {' '.join(str(error).splitlines()[:2])}",
                option="engine",
                value=f"spark:{address}",
                expected="a master such as spark://10.0.0.1:7077 or local[4]",
            ) from error

    def map(self, function: Callable[[Task], Outcome], tasks: Iterable[Task]) -> Iterator[Outcome]:
        """Yield the outcome of each task as it completes, as `Engine.map`."""
        group = f"recordsmith-{os.urandom(8).hex()}"
        run = inheritable_thread_target(partial(self._run, group, function))
        most = 2 * max(1, self._context.defaultParallelism)
        threads = ThreadPoolExecutor(most, "task")

        def cancel(running: Collection[Future[Outcome]]) -> None:
            threads.shutdown(wait=False, cancel_futures=True)
            if running:
                self._context.cancelJobGroup(group)

        return run_ahead(
            tasks,
            lambda: most,
            lambda task: threads.submit(run, task),
            lambda running: wait(running, return_when=FIRST_COMPLETED).done,
            self._outcome,
            cancel,
        )

    def _outcome(self, future: Future[Outcome], task: Task) -> Outcome:
        try:
            return future.result()
        except (Py4JError, PySparkException) as error:
            raise self._task_error(task, error) from error

    def _task_error(self, task: Task, error: Exception) -> RecordsmithError:
        """Return the error for a task, with the one line of Spark's Java trace that explains it."""
        reason = str(error).partition("most recent failure: ")[2].partition("\n")[0]
        if "PythonException" in f"{type(error)} {error}":
            failed = failed_error(task, error)
        elif "Cannot run program" in reason:
            failed = failed_error(task, reason.rpartition("): ")[2])
        else:
            failed = lost_error(task)
            failed.advise(f"Spark reports: {reason:.300}." if reason else "")
        if _WRONG_PYTHON.search(str(failed)):
            failed.advise(
                f"Spark's workers run {self._context.pythonExec!r}: set PYSPARK_PYTHON to a Python "
                "that has recordsmith on every machine."
            )
        return failed

    def _run(self, group: str, function: Callable[[Task], Outcome], task: Task) -> Outcome:
        self._context.setJobGroup(group, "recordsmith", interruptOnCancel=True)
        outcomes: list[Outcome] = self._context.parallelize([task], 1).map(function).collect()
        return outcomes[0]
