"""The process of one peer: prepares, then runs once for each line on standard input.

    python worker.py make FOLDER KIND INPUT...      make inputs and end
    python worker.py peer FOLDER KIND CASE PEER     measure

CPU seconds are those of all threads of this process, and of its children. The operating system's
clock for them counts nanoseconds; for children that go on working, such as the workers of a loader,
hundredths of a second. What is printed by libraries goes to standard error.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from case import Task
from inputs import Inputs


def main() -> None:
    job, folder, kind, *rest = sys.argv[1:]
    inputs = Inputs(Path(folder), quick=kind == "quick")
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if job == "make":
        for name in rest:
            inputs.make(name)
        return
    from cases import find_peer

    try:
        task = find_peer(*rest).prepare(inputs)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), file=answers)
        return
    print(json.dumps({"records": task.records}), file=answers)
    for line in sys.stdin:
        with_digest = line.strip() == "digest"
        print(json.dumps(measure(task, with_digest)), file=answers)


def measure(task: Task, with_digest: bool) -> dict[str, Any]:
    """Run once: seconds of CPU and of the clock, and how far the memory rose above the start."""
    if task.before is not None:
        task.before()
    gc.collect()
    resident = reset_peak()
    wall, cpu = time.perf_counter(), cpu_seconds()
    result = task.run()
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    answer: dict[str, Any] = {"cpu": cpu, "wall": wall, "memory": peak_bytes() - resident}
    if with_digest:
        answer["digest"] = None if task.digest is None else task.digest(result)
    return answer


def cpu_seconds() -> float:
    """User and system time of all threads of this process and of its children."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + _living_cpu_seconds()


def _living_cpu_seconds() -> float:
    """Of the children that live, where the system tells; theirs among them."""
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            fields = stat.read_text().rpartition(")")[2].split()
            process = int(stat.parent.name)
            parents[process], ticks[process] = int(fields[1]), sum(map(int, fields[11:15]))
    family = {os.getpid()}
    while grown := {child for child, parent in parents.items() if parent in family} - family:
        family |= grown
    family.remove(os.getpid())
    return sum(ticks.get(process, 0) for process in family) / os.sysconf("SC_CLK_TCK")


def reset_peak() -> int:
    """Let the peak be counted anew, where the system can; answers the bytes resident now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak_bytes()
    return _status_bytes("VmRSS") or peak_bytes()


def peak_bytes() -> int:
    """The most memory that was resident."""
    # the kernel's own figure for a process begins with what its parent had
    peak = _status_bytes("VmHWM")
    if peak is not None:
        return peak
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def _status_bytes(field: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return None


if __name__ == "__main__":
    main()
