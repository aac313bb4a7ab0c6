"""A process that runs tasks: a line of JSON each on standard input, results on standard output.

    python -m recordsmith.engines.worker MODULE:NAME

It ends with its input, so it does not outlive the process that started it.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable

from recordsmith.tasks import Document


def run_text(function: Callable[[Document], Document], task: str | bytes) -> str:
    """Run a task that is JSON text; return its result as such."""
    return json.dumps(function(json.loads(task)))


def main() -> None:
    """Run the tasks of standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    module, _, name = sys.argv[1].partition(":")
    function = getattr(importlib.import_module(module), name)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library or a process of a task prints is not a result
    for line in sys.stdin.buffer:
        results.write(run_text(function, line).encode() + b"\n")
        results.flush()


if __name__ == "__main__":
    main()
