"""Processes of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import IO

from recordsmith.errors import OptionError
from recordsmith.tasks import Document, lost_error
from recordsmith.work import processor_count

_MOST_ATTEMPTS = 4
_MOST_PROCESSES = 1024


class Processes:
    """Runs tasks in processes of this machine, which are started for a job and end with it.

    A task whose process is killed runs again in another one.

    Example:
        rs.pack(rs.ImageFolder("flowers"), "out", engine=rs.engines.Processes(4))
    """

    def __init__(self, count: int | None = None) -> None:
        """`count`: the number of processes; None for one per processor."""
        if count is not None and (type(count) is not int or not 0 < count <= _MOST_PROCESSES):
            raise OptionError(
                option="count", value=count, expected=f"an integer from 1 to {_MOST_PROCESSES}"
            )
        self._count = count or processor_count()

    def __repr__(self) -> str:
        return f"Processes({self._count})"

    @classmethod
    def parse(cls, address: str) -> Processes:
        """Make it from the text of an option: the number of processes, or nothing."""
        try:
            return cls(int(address) if address else None)
        except ValueError:  # also an OptionError
            raise OptionError(
                option="engine",
                value=f"processes:{address}",
                expected=f"a number of processes up to {_MOST_PROCESSES}, as in processes:4",
            ) from None

    def map(
        self, function: Callable[[Document], Document], tasks: Iterable[Document]
    ) -> Iterator[Document]:
        """Yield the result of each task as it completes, as `Engine.map`."""
        running = _Running(f"{function.__module__}:{function.__qualname__}", tasks, self._count)
        try:
            yield from running.results()
        finally:
            running.stop()


class _Running:
    """Tasks in progress: each thread has a process, to which it passes one task after the other."""

    def __init__(self, function: str, tasks: Iterable[Document], count: int) -> None:
        self._function = function
        self._tasks = iter(tasks)
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._is_stopped = False
        self._found: SimpleQueue[Document | BaseException | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, name=f"task-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def results(self) -> Iterator[Document]:
        """Yield results until all threads have ended, or raise what one of them raised."""
        ended = 0
        while ended < len(self._threads):
            found = self._found.get()
            if isinstance(found, BaseException):
                raise found
            if found is None:
                ended += 1
            else:
                yield found

    def stop(self) -> None:
        """Begin no further task, and end all processes."""
        with self._lock:
            self._is_stopped = True
            for process in self._processes:
                process.kill()
        for thread in self._threads:
            thread.join()
        for process in self._processes:
            with suppress(BrokenPipeError), process:  # closes its pipes; one may hold a task
                process.wait()

    def _serve(self) -> None:
        process: subprocess.Popen[bytes] | None = None
        try:
            while True:
                with self._lock:
                    task = None if self._is_stopped else next(self._tasks, None)
                if task is None:
                    break
                line = json.dumps(task).encode() + b"\n"
                for _ in range(_MOST_ATTEMPTS):
                    process = process or self._start()
                    result = _call(process, line) if process else None
                    if result is not None or self._is_stopped:
                        break
                    process = None
                if result is None:
                    raise lost_error(task)
                self._found.put(json.loads(result))
        except BaseException as error:  # noqa: BLE001 - raised where results are taken
            self._found.put(error)
        finally:
            self._found.put(None)

    def _start(self) -> subprocess.Popen[bytes] | None:
        """Start a process, unless `stop` has begun, which would wait for it."""
        with self._lock:
            if self._is_stopped:
                return None
            process = subprocess.Popen(  # noqa: S603 - this Python, without a shell
                [sys.executable, "-m", "recordsmith.engines.worker", self._function],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            self._processes.append(process)
        return process


def _call(process: subprocess.Popen[bytes], line: bytes) -> bytes | None:
    """Pass a task to a process and return its result; None if the process was killed."""
    tasks: IO[bytes] | None = process.stdin
    results: IO[bytes] | None = process.stdout
    assert tasks is not None
    assert results is not None
    try:
        tasks.write(line)
        tasks.flush()
        result = results.readline()
    except (BrokenPipeError, ValueError):
        return None
    return result if result.endswith(b"\n") else None
