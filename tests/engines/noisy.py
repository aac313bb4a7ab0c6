"""The command line in a process that prints, as do its workers: `python noisy.py pack …`."""

from __future__ import annotations

import atexit
import importlib
import os
import subprocess
import sys
from typing import Any


def make_noise() -> None:
    """Print as Python, as a library in C and as another process."""
    print("noise of Python", flush=True)
    os.write(1, b"noise of C\n")
    subprocess.run(["echo", "noise of a process"], check=True)


def run_noisily(task: Any) -> Any:
    """Run a task that prints."""
    from recordsmith.support.tasks import run_task

    make_noise()
    return run_task(task)


def main() -> None:
    """Run the command line."""
    from recordsmith.__main__ import main as run
    from recordsmith.support import tasks

    job: Any = importlib.import_module("recordsmith.writing.reshaping.reshard")
    make_plan = job.make_plan

    def plan_noisily(*arguments: Any) -> Any:
        make_noise()
        atexit.register(make_noise)
        return make_plan(*arguments)

    job.make_plan = plan_noisily
    by_name = any(word.startswith("processes") for word in sys.argv)  # others pickle this script
    noisy = importlib.import_module("noisy") if by_name else sys.modules[__name__]
    tasks.run_task = noisy.run_noisily
    run()


if __name__ == "__main__":
    main()
