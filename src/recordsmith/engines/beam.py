"""Pipelines of Apache Beam."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, redirect_stderr, suppress
from functools import partial
from typing import Any

from recordsmith.errors import MissingExtraError, OptionError
from recordsmith.stores import Location, as_folder, is_url
from recordsmith.stores.local.scratch import ScratchFile, ScratchFolder
from recordsmith.tasks import Document, failed_error, lost_error
from recordsmith.work import Work

try:
    import apache_beam as beam
    from apache_beam.internal import pickler
    from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions
except ImportError as _error:
    raise MissingExtraError("beam", _error.name or "apache_beam") from None

_MOST_ATTEMPTS = 4
_LOCAL = "FnApiRunner"
_PAUSE_SECONDS, _REMOTE_PAUSE_SECONDS = 0.1, 2.0
_SHOWN_BYTES = 4000  # of what a failed pipeline printed
_CANCELLED, _FAILED = "cancelled", "failed"
_TASKS, _RESULTS = "tasks", "results"


class Beam:
    """Runs the tasks of a job as a pipeline.

    Tasks and results lie in a folder that all workers share, and is empty in the end. A pipeline
    that fails, such as by a killed worker, is run again with the tasks that have no result.

    Example:
        options = ["--project=P", "--region=R", "--temp_location=gs://my-bucket/tmp"]
        rs.pack("gs://my-bucket/flowers", "gs://my-bucket/out",
                engine=rs.engines.Beam("DataflowRunner", options))
    """

    def __init__(
        self,
        runner: str | None = None,
        options: Sequence[str] = (),
        *,
        folder: str | None = None,
    ) -> None:
        """
        Args:
            runner: its name, such as DataflowRunner or FlinkRunner; None for FnApiRunner, which
                runs on this machine.
            options: of the pipeline, as on a command line. Without any, FnApiRunner has a process
                for each processor.
            folder: a path or URL that this process and the workers share; None for the
                `--temp_location` in the options, or a local temporary folder.
        """
        if isinstance(options, str) or not all(isinstance(one, str) for one in options):
            raise OptionError(option="options", value=options, expected="a list of texts")
        self._runner = runner or _LOCAL
        self._options = list(options)
        _check_options(self._options)
        if self._runner == _LOCAL and not options:
            self._options = ["--direct_running_mode=multi_processing", "--direct_num_workers=0"]
        self._folder = folder

    def __repr__(self) -> str:
        return f"Beam({self._runner!r})"

    @classmethod
    def parse(cls, address: str) -> Beam:
        """Make it from the text of an option: a runner and the options of the pipeline."""
        try:
            runner, *options = shlex.split(address) or [""]
        except ValueError as error:  # a quote that is not closed
            raise OptionError(
                f"the options are invalid: {error}", option="engine", value=f"beam:{address}"
            ) from None
        return cls(runner, options)

    def map(
        self, function: Callable[[Document], Document], tasks: Iterable[Document]
    ) -> Iterator[Document]:
        """Yield the result of each task as it completes, as `Engine.map`.

        All tasks are written to the folder before the first one runs.
        """
        with ExitStack() as stack:
            folder = self._new_folder(stack)
            waiting = set(_store_tasks(folder, tasks))
            for _ in range(_MOST_ATTEMPTS):
                running = _Running(partial(self._start, function, folder, sorted(waiting)))
                try:
                    yield from _results(folder, waiting, running)
                except BaseException:
                    (folder / _CANCELLED).put(b"")
                    running.cancel()
                    raise
                running.join()
                if not waiting:
                    return
                if (folder / _FAILED).exists():
                    failed = json.loads((folder / _FAILED).read())
                    raise failed_error(failed["task"], failed["error"]) from running.error
            lost = lost_error(json.loads(_place(folder, min(waiting), _TASKS).read()))
            if running.error is not None:
                last_line = str(running.error).rstrip().rpartition("\n")[2]
                lost.advise(f"The pipeline ended with: {last_line:.300}")
            raise lost from running.error

    def _new_folder(self, stack: ExitStack) -> Location:
        """Return an empty folder, which is removed in the end."""
        cloud = PipelineOptions(self._options).view_as(GoogleCloudOptions)
        shared = self._folder or cloud.temp_location
        scratch = None if shared else ScratchFolder()
        root = shared if scratch is None else scratch.path
        folder = as_folder(root if is_url(root) else os.path.abspath(root))
        folder /= f"recordsmith-{os.urandom(8).hex()}"
        for kind in (_TASKS, _RESULTS):
            (folder / kind).make_folder()
        stack.callback(_remove, folder, scratch)
        return folder

    def _start(
        self, function: Callable[[Document], Document], folder: Location, numbers: Sequence[int]
    ) -> Any:
        """Start a pipeline; return its result, which can be waited for and cancelled."""
        start = partial(_start_pipeline, self._options, function, str(folder), numbers)
        if self._runner == _LOCAL:
            return _LocalResult(start)
        try:
            return start(self._runner)
        except (OSError, RuntimeError, ValueError) as error:
            raise OptionError(
                f"the pipeline does not start: {error}", option="engine", value=self._runner
            ) from error


def _check_options(options: list[str]) -> None:
    """Raise OptionError if an option has an invalid value, for which Beam would end the process."""
    printed = io.StringIO()
    try:
        with redirect_stderr(printed):
            PipelineOptions(options).get_all_options()
    except (SystemExit, ValueError) as error:
        shown = printed.getvalue().rstrip().rpartition("error: ")[2]
        raise OptionError(
            f"the options of the pipeline are invalid: {shown or error}",
            option="options",
            value=options,
        ) from None


def _start_pipeline(
    options: Sequence[str],
    function: Callable[[Document], Document],
    folder: str,
    numbers: Sequence[int],
    runner: Any,
) -> Any:
    pipeline = beam.Pipeline(runner=runner, options=PipelineOptions(list(options)))
    (
        pipeline
        | beam.Create(numbers)
        | beam.Reshuffle()
        | "Run" >> beam.Map(_run_task, function, folder)
    )
    return pipeline.run()


class _LocalResult:
    """A pipeline that runs in a process of its own."""

    def __init__(self, start: Callable[[Any], Any]) -> None:
        self._shown = ScratchFile()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "recordsmith.engines.local_beam"],
            stdin=subprocess.PIPE,
            stdout=self._shown.fileno(),
            stderr=self._shown.fileno(),
            start_new_session=True,
        )
        data = pickler.dumps(start)
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(len(data).to_bytes(8, "little") + data)
            self._process.stdin.flush()

    def wait_until_finish(self) -> None:
        """Wait for its end.

        Raises:
            RuntimeError: it failed, or lost a worker.
        """
        status = self._process.wait()
        self.cancel()
        if status:
            self._shown.seek(max(0, self._shown.seek(0, os.SEEK_END) - _SHOWN_BYTES))
            raise RuntimeError(self._shown.read().decode(errors="replace"))

    def cancel(self) -> None:
        """End it with its workers."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()


class _Running:
    """A pipeline that runs in a thread. error: what it ended with."""

    def __init__(self, start: Callable[[], Any]) -> None:
        self.error: BaseException | None = None
        self._result = start()
        self._thread = threading.Thread(target=self._run, name="pipeline", daemon=True)
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def join(self) -> None:
        self._thread.join()

    def cancel(self) -> None:
        """End the pipeline."""
        with suppress(Exception):  # the runner cannot, or it has ended
            self._result.cancel()
        self.join()

    def _run(self) -> None:
        try:
            self._result.wait_until_finish()
        except BaseException as error:  # noqa: BLE001 - raised where results are taken
            self.error = error


def _run_task(number: int, function: Callable[[Document], Document], folder_name: str) -> None:
    """Run a task in a worker, with the credentials of its environment."""
    folder = as_folder(folder_name)
    if (folder / _CANCELLED).exists():
        return
    task = json.loads(_place(folder, number, _TASKS).read())
    try:
        result = function(task)
    except Exception:
        failed = {"task": task, "error": traceback.format_exc()}
        (folder / _FAILED).put(json.dumps(failed).encode())
        raise
    _place(folder, number, _RESULTS).put(json.dumps(result).encode())


def _results(folder: Location, waiting: set[int], running: _Running) -> Iterator[Document]:
    """Yield results as they appear until the pipeline has ended; remove them from `waiting`."""
    has_ended = False
    while waiting and not has_ended:
        has_ended = running.has_ended  # before the last look
        for place in (folder / _RESULTS).list():
            number, _, suffix = place.name.partition(".")
            if suffix != "json":  # it is being written
                continue
            if int(number) in waiting:
                yield json.loads(place.read())
                waiting.remove(int(number))
            place.delete()  # so that lists stay short
        if not has_ended:
            time.sleep(_REMOTE_PAUSE_SECONDS if folder.store.is_remote else _PAUSE_SECONDS)


def _store_tasks(folder: Location, tasks: Iterable[Document]) -> Iterator[int]:
    """Write each task to the folder; yield its number."""

    def store(numbered: tuple[int, Document]) -> int:
        number, task = numbered
        _place(folder, number, _TASKS).put(json.dumps(task).encode())
        return number

    at_once = folder.store.concurrency
    with closing(Work(at_once, None).in_order(store, enumerate(tasks), ahead=at_once)) as stored:
        yield from stored


def _place(folder: Location, number: int, kind: str) -> Location:
    return folder / kind / f"{number}.json"


def _remove(folder: Location, _scratch: ScratchFolder | None) -> None:
    """Remove a folder, until which the temporary folder around it is kept."""
    places = (folder / _TASKS, folder / _RESULTS, folder)
    for place in places:
        place.store.remove_leftovers(place.key)  # of workers that were killed
    Work(folder.store.concurrency, None).each(Location.delete, folder.list())
    for place in places:
        place.store.remove_empty_folder(place.key)
