"""Programs on a terminal: what they show there, and what they print elsewhere."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Sequence
from typing import NamedTuple


class Seen(NamedTuple):
    code: int
    shown: str  # on the terminal
    printed: str  # to standard output, where that is a pipe


def run(
    arguments: Sequence[str | os.PathLike[str]],
    *,
    columns: int = 100,
    pipe: bool = False,
    interrupt_at: str = "",
) -> Seen:
    """Run a program to its end.

    The terminal is read all the while: a write to one that is not read would wait for ever.

    Args:
        pipe: standard output is a pipe; only progress and errors are shown on the terminal.
        interrupt_at: press Ctrl-C as soon as this text is shown.
    """
    main, terminal = pty.openpty()
    with subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if pipe else terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", "COLUMNS": str(columns)},
    ) as process:
        os.close(terminal)
        shown = b""
        while piece := _read(main):
            shown += piece
            if interrupt_at and interrupt_at.encode() in shown:
                process.send_signal(signal.SIGINT)
                interrupt_at = ""
        printed = process.stdout.read() if process.stdout else b""
    os.close(main)
    return Seen(process.returncode, shown.decode(), printed.decode())


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the program is gone
        return b""
