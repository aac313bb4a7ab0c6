"""The process of one peer: prepares, then runs once for each line on standard input.

    python worker.py make FOLDER KIND INPUT...      make inputs, read them, and end
    python worker.py peer FOLDER KIND CASE PEER     measure

What is printed by libraries goes to standard error.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from case import Task
from clock import cpu_seconds
from inputs import Inputs


def main() -> None:
    job, folder, kind, *rest = sys.argv[1:]
    inputs = Inputs(Path(folder), quick=kind == "quick")
    results = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if job == "make":
        for name in rest:
            inputs.make(name)
            inputs.read_anew(name)
        return
    from cases import find_peer

    try:
        task = find_peer(*rest).prepare(inputs)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), file=results)
        return
    print(json.dumps({"records": task.records}), file=results)
    for line in sys.stdin:
        with_digest = line.strip() == "digest"
        print(json.dumps(measure(task, with_digest)), file=results)


def measure(task: Task, with_digest: bool) -> dict[str, Any]:
    """Run once: seconds of CPU and of the clock, and how far the memory rose above the start."""
    if task.before is not None:
        task.before()
    gc.collect()
    resident = reset_peak()
    wall, cpu = time.perf_counter(), cpu_seconds()
    result = task.run()
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    measured: dict[str, Any] = {"cpu": cpu, "wall": wall, "memory": peak_bytes() - resident}
    if with_digest:
        measured["digest"] = None if task.digest is None else task.digest(result)
    return measured


def reset_peak() -> int:
    """Reset the peak, where the system supports it; return the bytes resident now."""
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
