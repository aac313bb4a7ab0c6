"""Workers of a DataLoader end with their main process, whatever starts them."""

from __future__ import annotations

import os
import threading
from functools import cache
from multiprocessing import parent_process

from torch.utils.data import get_worker_info


def end_with_main_process() -> None:
    """End this process as soon as its main process has ended, if it is a worker of a DataLoader.

    A worker of torch looks whether the process that forked it has ended. With the start method
    forkserver, the default on Linux from Python 3.14 on, that is the fork server, which ends after
    all workers, so each would wait for the other.
    """
    if get_worker_info() is not None:
        _watch_main_process()


@cache
def _watch_main_process() -> None:
    main = parent_process()
    if main is None or main.pid == os.getppid():
        return  # torch watches it

    def wait_and_end() -> None:
        main.join()
        os._exit(1)

    threading.Thread(target=wait_and_end, name="recordsmith-main-ended", daemon=True).start()
