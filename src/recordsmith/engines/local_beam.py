"""A process that runs a pipeline with FnApiRunner, which waits forever for some lost workers.

    python -m recordsmith.engines.local_beam < PICKLED

It is killed with its workers when one of them is lost, or when its input is closed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

from apache_beam.internal import pickler
from apache_beam.runners.portability.fn_api_runner import FnApiRunner


def main() -> None:
    """Run the pipeline that a function makes for a runner; both are read from standard input."""
    size = int.from_bytes(sys.stdin.buffer.read(8), "little")
    start = pickler.loads(sys.stdin.buffer.read(size))
    threading.excepthook = _end_without_worker
    threading.Thread(target=_end_with_input, daemon=True).start()
    start(FnApiRunner()).wait_until_finish()


def _end_without_worker(arguments: Any) -> None:
    """Runs where a thread ends with an exception, such as the one that waits for a worker."""
    threading.__excepthook__(arguments)
    sys.stderr.flush()
    _end_all()


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    _end_all()


def _end_all() -> None:
    """Kill this process and its workers, which are in its group."""
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
