"""Jobs that are killed before each change of the file system, and run again."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

_CHANGES = frozenset(
    ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate", "fcntl.flock")
)


def killed_before(step: int, action: Callable[[], Any]) -> bool:
    """Run it in a child that kills itself before its `step`-th change of the file system.

    Returns:
        False if it makes fewer changes, and ended well.
    """
    child = os.fork()
    if child == 0:
        left = step

        def count(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if event in _CHANGES or writes:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        try:
            action()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or status == 0
    return os.WIFSIGNALED(status)
