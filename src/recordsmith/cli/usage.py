"""Errors in what was typed: one paragraph each, with the command that explains the options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from recordsmith.cli import console
from recordsmith.cli.wording import QUOTE_CONDITION, is_part_of_condition
from recordsmith.words import similar_name

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""The class of all such errors, in the copy of click that this version of typer uses."""

_INVALID_COMMAND = 2


@contextmanager
def reporting_usage(context: Any, given: Iterable[str]) -> Iterator[None]:
    """Print an error of typer in the block as ours, and exit."""
    given = list(given)  # parsing changes it
    try:
        yield
    except UsageError as error:
        message = str(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
        called = "recordsmith" if context.parent is None else f"recordsmith {context.info_name}"
        remedy = f"`{called} --help` explains the command."
        if "extra argument" in message and is_part_of_condition(given):
            remedy = QUOTE_CONDITION
        elif message.startswith("Missing"):  # typer may take the only path for OUT
            usage = " ".join(context.command.collect_usage_pieces(context))
            remedy = f"Usage: `{called} {usage}`"
        console.print_error(f"{message[:1].lower()}{message[1:]}. {remedy}")
        raise typer.Exit(_INVALID_COMMAND) from None


def unknown_command(typed: str, known: Iterable[str]) -> str:
    """Return the message for a command that does not exist."""
    similar = similar_name(typed, known)
    remedy = f"Did you mean {similar}?" if similar else "`recordsmith --help` lists the commands."
    return f"recordsmith has no command {typed!r}. {remedy}"
