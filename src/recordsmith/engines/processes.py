"""Processes of this machine.

    python -m recordsmith.engines.processes

runs the tasks of its standard input. It ends with its input, so it does not outlive the process
that started it.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import IO

from recordsmith.support.errors import OptionError
from recordsmith.support.tasks import Outcome, Task, failed_error, lost_error
from recordsmith.support.work import processor_count

_MAX_ATTEMPTS = 4
_MAX_PROCESSES = 1024
_SIZE_BYTES = 8


class Processes:
    """Runs tasks in processes of this machine, which are started for a job and end with it.

    A task whose process is killed runs again in another one.

    Example:
        rs.pack(rs.ImageFolder("flowers"), "out", engine=rs.engines.Processes(4))
    """

    def __init__(self, count: int | None = None) -> None:
        """`count`: the number of processes; None for one per processor."""
        if count is not None and (type(count) is not int or not 0 < count <= _MAX_PROCESSES):
            raise OptionError(
                option="count", value=count, expected=f"an integer from 1 to {_MAX_PROCESSES}"
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
                expected=f"a number of processes up to {_MAX_PROCESSES}, as in processes:4",
            ) from None

    def map(self, function: Callable[[Task], Outcome], tasks: Iterable[Task]) -> Iterator[Outcome]:
        """Yield the outcome of each task as it completes, as `Engine.map`."""
        running = _Running(function, tasks, self._count)
        try:
            yield from running.outcomes()
        finally:
            running.stop()


class _Running:
    """Tasks in progress: each thread has a process, to which it passes one task after the other."""

    def __init__(
        self, function: Callable[[Task], Outcome], tasks: Iterable[Task], count: int
    ) -> None:
        self._function = function
        self._tasks = iter(tasks)
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._is_stopped = False
        self._outcomes: SimpleQueue[Outcome | BaseException | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, name=f"task-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def outcomes(self) -> Iterator[Outcome]:
        """Yield outcomes until all threads have ended, or raise what one of them raised."""
        ended = 0
        while ended < len(self._threads):
            outcome = self._outcomes.get()
            if isinstance(outcome, BaseException):
                raise outcome
            if outcome is None:
                ended += 1
            else:
                yield outcome

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
                message = pickle.dumps((self._function, task))
                for _ in range(_MAX_ATTEMPTS):
                    process = process or self._start()
                    reply = _call(process, message) if process else None
                    if reply is not None or self._is_stopped:
                        break
                    process = None
                if reply is None:
                    raise lost_error(task)
                outcome = pickle.loads(reply)  # noqa: S301 - from a process of our own
                if isinstance(outcome, str):
                    raise failed_error(task, outcome)
                self._outcomes.put(outcome)
        except BaseException as error:  # noqa: BLE001 - raised where outcomes are taken
            self._outcomes.put(error)
        finally:
            self._outcomes.put(None)

    def _start(self) -> subprocess.Popen[bytes] | None:
        """Start a process, unless `stop` has begun, which would wait for it."""
        with self._lock:
            if self._is_stopped:
                return None
            process = subprocess.Popen(  # this Python, without a shell
                [sys.executable, "-m", "recordsmith.engines.processes"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            self._processes.append(process)
        return process


def _call(process: subprocess.Popen[bytes], message: bytes) -> bytes | None:
    """Pass a message to a process and return its reply; None if the process was killed."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError, ValueError):  # of a pipe that is closed
        _send(process.stdin, message)
        return _receive(process.stdout)
    return None


def _send(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(len(message).to_bytes(_SIZE_BYTES, "little") + message)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes | None:
    """Return the next message; None at the end, also within a message."""
    size = pipe.read(_SIZE_BYTES)
    if len(size) < _SIZE_BYTES:
        return None
    message = pipe.read(int.from_bytes(size, "little"))
    return message if len(message) == int.from_bytes(size, "little") else None


def main() -> None:
    """Run the tasks of standard input; write their outcomes to standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library or a process of a task prints is not an outcome
    while (message := _receive(sys.stdin.buffer)) is not None:
        _send(replies, _reply(message))


def _reply(message: bytes) -> bytes:
    """Return the outcome of a task, pickled, or why there is none."""
    try:
        function, task = pickle.loads(message)  # noqa: S301 - from the process that started this one
        return pickle.dumps(function(task))
    except Exception as error:  # noqa: BLE001 - such as classes that another version lacks
        return pickle.dumps(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
