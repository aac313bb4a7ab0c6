"""CPU seconds of a process and of its children, whether they have ended or not.

The operating system's clock for them counts nanoseconds; for children that go on working, such as
the workers of a loader, hundredths of a second. Nothing but the standard library is imported.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from pathlib import Path


def cpu_seconds() -> float:
    """User and system time of all threads of this process and of its children."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + _living_cpu_seconds()


def _living_cpu_seconds() -> float:
    """Of the running child processes and their children, where the system reports it."""
    ticks = process_ticks(os.getpid())
    ticks.pop(os.getpid(), None)
    return sum(ticks.values()) / os.sysconf("SC_CLK_TCK")


def process_ticks(root: int) -> dict[int, int]:
    """A running process, its children and theirs -> the clock ticks that each has used."""
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            fields = stat.read_text().rpartition(")")[2].split()
            process = int(stat.parent.name)
            parents[process], ticks[process] = int(fields[1]), sum(map(int, fields[11:15]))
    family = {root} & ticks.keys()
    while grown := {child for child, parent in parents.items() if parent in family} - family:
        family |= grown
    return {process: ticks[process] for process in family}
