"""Pipelines of Apache Beam."""

from __future__ import annotations

import hashlib
import hmac
import io
import os
import pickle
import shlex
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, redirect_stderr, suppress
from functools import partial
from typing import Any

from recordsmith.stores import Location, ScratchFile, ScratchFolder, as_folder, is_url
from recordsmith.support.errors import OptionError, needs_extra
from recordsmith.support.tasks import Outcome, Task, failed_error, lost_error, result_error
from recordsmith.support.work import WorkerPool

with needs_extra("beam", "apache_beam"):
    import apache_beam as beam
    from apache_beam.internal import pickler
    from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

_MAX_ATTEMPTS = 4
_LOCAL = "FnApiRunner"
_SHOWN_BYTES = 4000  # of what a failed pipeline printed
_SIGNATURE_BYTES = 32
_CANCELLED, _FAILED = "cancelled", "failed"
_TASKS, _OUTCOMES = "tasks", "outcomes"


class Beam:
    """Runs the tasks of a job as a pipeline.

    Tasks and outcomes are in a folder that all workers share, and is empty in the end. They are
    signed with a key that only the pipeline has, so nothing else that is put there is unpickled. A
    pipeline that fails, such as by a killed worker, is run again with the tasks that have no
    outcome.

    Example:
        # DataflowRunner has --project, --region and --temp_location among its options
        engine = rs.engines.Beam(None, ["--direct_num_workers=2"])
        rs.pack(rs.ImageFolder("flowers"), "out", engine=engine)
    """

    def __init__(
        self, runner: str | None = None, options: Sequence[str] = (), *, folder: str | None = None
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
        if isinstance(options, str) or not all(isinstance(option, str) for option in options):
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

    def map(self, function: Callable[[Task], Outcome], tasks: Iterable[Task]) -> Iterator[Outcome]:
        """Yield the outcome of each task when the pipeline has ended.

        All tasks are written to the folder before the first one runs.
        """
        with ExitStack() as stack:
            files = _SignedFiles(self._new_folder(stack), os.urandom(32))
            waiting = set(files.write_all(_TASKS, tasks))
            for _ in range(_MAX_ATTEMPTS):
                error = self._run(function, files, sorted(waiting))
                for number in sorted(waiting & files.numbers(_OUTCOMES)):
                    yield files.read(files.location(_OUTCOMES, number))
                    waiting.remove(number)
                if not waiting:
                    return
                if (files.folder / _FAILED).exists():
                    number, reason = files.read(files.folder / _FAILED)
                    raise failed_error(files.task(number), reason) from error
            lost = lost_error(files.task(min(waiting)))
            if error is not None:
                last_line = str(error).rstrip().rpartition("\n")[2]
                lost.advise(f"The pipeline ended with: {last_line:.300}")
            raise lost from error

    def _run(
        self, function: Callable[[Task], Outcome], files: _SignedFiles, numbers: Sequence[int]
    ) -> Exception | None:
        result = self._start(function, files, numbers)
        try:
            result.wait_until_finish()
        except Exception as error:  # noqa: BLE001 - such as a lost worker, for which it runs again
            return error
        except BaseException:
            (files.folder / _CANCELLED).put(b"")
            with suppress(Exception):  # the runner cannot, or it has ended
                result.cancel()
            raise
        return None

    def _new_folder(self, stack: ExitStack) -> Location:
        """Return an empty folder, which is removed in the end."""
        cloud = PipelineOptions(self._options).view_as(GoogleCloudOptions)
        shared = self._folder or cloud.temp_location
        scratch = None if shared else ScratchFolder()
        root = shared if scratch is None else scratch.path
        folder = as_folder(root if is_url(root) else os.path.abspath(root))
        folder /= f"recordsmith-{os.urandom(8).hex()}"
        for kind in (_TASKS, _OUTCOMES):
            (folder / kind).make_folder()
        stack.callback(_remove, folder, scratch)
        return folder

    def _start(
        self, function: Callable[[Task], Outcome], files: _SignedFiles, numbers: Sequence[int]
    ) -> Any:
        """Start a pipeline; return its result, which can be waited for and cancelled."""
        start = partial(_start_pipeline, self._options, function, files, numbers)
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


class _SignedFiles:
    """Pickles in a folder; those without the signature of the job are not unpickled."""

    def __init__(self, folder: Location | str, key: bytes) -> None:
        self.folder = as_folder(folder)
        self._key = key

    def __reduce__(self) -> Any:  # a worker opens the folder with its own credentials
        return _SignedFiles, (str(self.folder), self._key)

    def location(self, kind: str, number: int) -> Location:
        return self.folder / kind / f"{number}.task"

    def write(self, location: Location, value: object) -> None:
        data = pickle.dumps(value)
        location.put(self._signature(data) + data)

    def write_all(self, kind: str, values: Iterable[object]) -> Iterator[int]:
        """Write values, many at the same time; yield the number of each."""

        def write(numbered: tuple[int, object]) -> int:
            number, value = numbered
            self.write(self.location(kind, number), value)
            return number

        at_once = self.folder.store.concurrency
        workers = WorkerPool(at_once, None)
        with closing(workers.in_order(write, enumerate(values), ahead=at_once)) as written:
            yield from written

    def numbers(self, kind: str) -> set[int]:
        """Return the numbers of the values that are completely written."""
        names = [location.name.split(".") for location in (self.folder / kind).list()]
        return {int(number) for number, *suffixes in names if suffixes == ["task"]}

    def read(self, location: Location) -> Any:
        content = location.read()
        signature, data = content[:_SIGNATURE_BYTES], content[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(data)):
            raise result_error(str(location))
        return pickle.loads(data)  # noqa: S301 - written by this job

    def task(self, number: int) -> Task:
        task: Task = self.read(self.location(_TASKS, number))
        return task

    def _signature(self, data: bytes) -> bytes:
        return hmac.digest(self._key, data, hashlib.sha256)


def _start_pipeline(
    options: Sequence[str],
    function: Callable[[Task], Outcome],
    files: _SignedFiles,
    numbers: Sequence[int],
    runner: Any,
) -> Any:
    pipeline = beam.Pipeline(runner=runner, options=PipelineOptions(list(options)))
    (
        pipeline
        | beam.Create(numbers)
        | beam.Reshuffle()
        | "Run" >> beam.Map(_run_task, function, files)
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


def _run_task(number: int, function: Callable[[Task], Outcome], files: _SignedFiles) -> None:
    """Run a task in a worker, with the credentials of its environment."""
    if (files.folder / _CANCELLED).exists():
        return
    try:
        outcome = function(files.task(number))
    except Exception:
        files.write(files.folder / _FAILED, (number, traceback.format_exc()))
        raise
    files.write(files.location(_OUTCOMES, number), outcome)


def _remove(folder: Location, _scratch: ScratchFolder | None) -> None:
    """Remove a folder, until which the temporary folder around it is kept."""
    places = (folder / _TASKS, folder / _OUTCOMES, folder)
    for location in places:
        location.store.remove_leftovers(location.key)  # of workers that were killed
    WorkerPool(folder.store.concurrency, None).each(Location.delete, folder.list())
    for location in places:
        location.store.remove_empty_folder(location.key)
