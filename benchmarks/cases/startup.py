"""What it costs to start: an import, or a command that only prints its help.

Each figure is a whole process, interpreter included, the first row being the interpreter alone.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from typing import Any

from case import Settings, Table
from measure import say

NAME = "startup"
_HEAVY = ("cv2", "typer", "rich", "PIL", "tensorflow")
_COMMANDS = {
    "the interpreter alone": ["-c", "pass"],
    "`import recordsmith`": ["-c", "import recordsmith"],
    "`import recordsmith; recordsmith.open`": ["-c", "import recordsmith; recordsmith.open"],
    "`import numpy`": ["-c", "import numpy"],
    "`import tensorflow`": ["-c", "import tensorflow"],
    "`recordsmith --help`": ["-m", "recordsmith", "--help"],
}


def report(settings: Settings) -> Table:
    """CPU and wall milliseconds of each command, the middle of the rounds."""
    say(NAME)
    runs: dict[str, list[tuple[float, float] | None]] = {name: [] for name in _COMMANDS}
    for number in range(-1, settings.repeat):  # the first warms the page cache
        say(f"  round {number + 1} of {settings.repeat}")
        for name, command in _COMMANDS.items():
            seconds = _time(command)
            if number >= 0:
                runs[name].append(seconds)
    rows, data = [], []
    for name, taken in runs.items():
        good = [run for run in taken if run is not None]
        cells = ("n/a", "n/a")
        if len(good) == len(taken):
            cpu, wall = (statistics.median(values) for values in zip(*good, strict=True))
            cells = (f"{cpu * 1e3:,.0f}", f"{wall * 1e3:,.0f}")
        rows.append((name, *cells))
        data.append({"command": name, "cpu_and_wall_seconds": good})
    loaded = _loaded_by_import()
    note = f"Of {', '.join(_HEAVY)}, `import recordsmith` loads: {', '.join(loaded) or 'none'}."
    return Table(
        NAME,
        "Start",
        "A whole process, interpreter included.",
        ("", "CPU ms", "wall ms"),
        tuple(rows),
        (note,),
        {"rows": data, "loaded_by_import": loaded},
    )


def _time(arguments: list[str]) -> tuple[float, float] | None:
    """(CPU, wall) seconds of a Python process, or None if it failed."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    usage: Any
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        return None
    return usage.ru_utime + usage.ru_stime, wall


def _loaded_by_import() -> list[str]:
    code = f"import sys, recordsmith; print(*[m for m in {_HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()
