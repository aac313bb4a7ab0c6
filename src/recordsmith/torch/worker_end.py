"""Ends workers whose main process was killed.

A worker of torch looks whether the process that forked it has ended. With the start method
forkserver that is the fork server, which ends after all workers, so each would wait for the other.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from multiprocessing import parent_process


@cache
def end_with_main_process() -> None:
    """End this worker as soon as its main process has ended, if torch does not."""
    main = parent_process()
    if main is None or main.pid == os.getppid():
        return

    def wait_and_end() -> None:
        main.join()
        os._exit(1)

    threading.Thread(target=wait_and_end, name="recordsmith-main-ended", daemon=True).start()
