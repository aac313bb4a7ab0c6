"""`python -m recordsmith`, and the `recordsmith` script: the command line."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line. Until a command begins, Ctrl-C ends the process without a word."""
    # Loading takes a moment, in which Python would answer with a traceback; nothing has begun yet.
    # Where SIGINT is ignored, as in the background, that is left as it is.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from recordsmith.cli import main as run

    run()


if __name__ == "__main__":
    main()
