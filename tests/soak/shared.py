"""What the programs of this folder share: options, the report, and child processes."""

from __future__ import annotations

import argparse
import os
import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))


def option_parser(description: str | None, count: int, what: str) -> argparse.ArgumentParser:
    """Return a parser of `--seed`, by default a new one, and `--count`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--count", type=int, default=count, help=what)
    return parser


def print_outcomes(outcomes: Counter[str], seed: int, success: str) -> int:
    """Print how often each outcome came; return the exit code, 1 if one is called WRONG."""
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:8,}  {outcome}")
    is_wrong = any("WRONG" in outcome for outcome in outcomes)
    print(f"seed {seed}: {'FAILED' if is_wrong else success}")
    return int(is_wrong)


def fork(
    action: Callable[[], Any], output: Path | None = None, *, has_session: bool = False
) -> int:
    """Run it in a child, which exits with the number it returns, or with 1 if it raises.

    Args:
        output: a file that takes what the child prints.
        has_session: start a session, so that the child's own children can be found.
    """
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        if has_session:
            os.setsid()
        if output is not None:
            descriptor = os.open(output, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
        returned = action()
        status = returned if isinstance(returned, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def exit_code(child: int) -> int:
    """Wait until a child has ended; return its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
