"""`python -m recordsmith`, and the `recordsmith` script: the command line."""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress

from recordsmith.support.errors import MissingExtraError, needs_extra


def main() -> None:
    """Run the command line. Before a command begins, Ctrl-C ends the process silently."""
    # While modules are imported, Python would print a traceback. A background process ignores
    # SIGINT; it continues to do so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()  # it would take a sixth of the time of the imports; commands enable it
    _silence_c_libraries()
    try:
        with needs_extra("cli", "typer"):
            from recordsmith.cli import main as run
    except MissingExtraError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    run()


def _silence_c_libraries() -> None:
    """Keep image decoders from printing to standard error: they name no file, and errors follow."""
    with suppress(AttributeError, OSError, ValueError):  # closed, or None
        sys.stderr.flush()
        own = os.dup(sys.stderr.fileno())
        sys.stderr = open(  # noqa: SIM115 - as long as the process
            own, "w", 1, encoding=sys.stderr.encoding, errors="backslashreplace"
        )
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 2)
        os.close(nothing)


if __name__ == "__main__":
    main()
