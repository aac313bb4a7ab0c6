"""Errors in what was typed: one line each, with the option, its value and what is expected."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, get_args

import typer

from recordsmith.cli import console
from recordsmith.cli.wording import QUOTE_CONDITION, is_part_of_condition, option_in_shell
from recordsmith.errors import OptionError
from recordsmith.words import similar_name

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""The class of all such errors, in the copy of click that this version of typer uses."""

_INVALID_COMMAND = 2
_OTHER_TOOLS = {"--workers": "--threads", "--num-workers": "--threads", "--jobs": "--threads"}


@contextmanager
def reporting_usage(command: Any, context: Any, given: Sequence[str]) -> Iterator[None]:
    """Print an error of typer in the block as ours, and exit."""
    given = list(given)  # parsing changes it
    try:
        yield
    except UsageError as error:
        found = _explained(error, command, context, given)
        console.print_error(*found.lines)
        raise typer.Exit(_INVALID_COMMAND) from None


def unknown_command(typed: str, known: Iterable[str]) -> OptionError:
    """Return the error for a command that does not exist."""
    similar = similar_name(typed, known)
    remedy = f"Did you mean {similar}?" if similar else "`recordsmith --help` lists the commands."
    return OptionError(f"recordsmith has no command {typed!r}", remedy=remedy)


def _explained(error: Any, command: Any, context: Any, given: list[str]) -> OptionError:
    param = getattr(error, "param", None)
    if isinstance(error, typer.BadParameter) and param is not None:
        values, _ = _parsed(command, context, given)
        name = param.name
        if name == "paths" and isinstance(values.get("out"), str):
            name = "out"  # typer takes the only path of `PATH... OUT` for OUT
        value = values.get(name) if name == param.name else None
        if value is None or (param.param_type_name == "argument" and not value):
            return _missing(name, command, context)
        return _invalid(name, value, command, error)
    typed = getattr(error, "option_name", None)
    if typed is None:
        _, rest = _parsed(command, context, given)
        if not rest:
            return OptionError(str(error.format_message()))
        remedy = QUOTE_CONDITION if is_part_of_condition(rest) else _see_help(context)
        return OptionError(f"unexpected argument {shlex.quote(rest[0])}", remedy=remedy)
    for param in command.params:
        if typed in param.opts:
            needs = "takes no value" if getattr(param, "is_flag", False) else "needs a value"
            return OptionError(f"{typed} {needs}", option=param.name, remedy=_see_help(context))
    return _unknown_option(typed, command, context)


def _missing(name: str, command: Any, context: Any) -> OptionError:
    arguments = {
        param.name: f"{param.metavar}{'' if param.nargs == 1 else '...'}"
        for param in command.params
        if param.param_type_name == "argument"
    }
    shown = arguments.get(name, option_in_shell(name, None)).removesuffix("...")
    usage = " ".join(["recordsmith", context.info_name, *arguments.values()])
    return OptionError(f"{shown} is missing", option=name, remedy=f"Usage: `{usage}`")


def _invalid(name: str, value: Any, command: Any, error: Any) -> OptionError:
    annotation = inspect.signature(command.callback).parameters[name].annotation
    kind, info = get_args(annotation)
    if int not in (kind, *get_args(kind)):
        return OptionError(f"{option_in_shell(name, None)}: {error.message}", option=name)
    expected = "an integer" if info.min is None else f"an integer of at least {info.min}"
    with suppress(ValueError):
        value = int(value)
    return OptionError(option=name, value=value, expected=expected)


def _unknown_option(typed: str, command: Any, context: Any) -> OptionError:
    known = [opt for param in command.params for opt in param.opts if opt.startswith("--")]
    usual = _OTHER_TOOLS.get(typed)
    names = {name.removeprefix("--"): name for name in known}
    similar = similar_name(typed.lstrip("-"), names)
    likely = usual if usual in known else names[similar] if similar else None
    remedy = _see_help(context) if likely is None else f"Did you mean {likely}?"
    return OptionError(f"{_called(context)} has no option {typed}", remedy=remedy)


def _see_help(context: Any) -> str:
    return f"`{_called(context)} --help` explains the command."


def _called(context: Any) -> str:
    """Return what runs the command: `recordsmith pack`."""
    return "recordsmith" if context.parent is None else f"recordsmith {context.info_name}"


def _parsed(command: Any, context: Any, given: list[str]) -> tuple[Mapping[str, Any], list[str]]:
    """Return what was typed for each parameter, and arguments that belong to none."""
    try:
        values, rest, _ = command.make_parser(context).parse_args(args=given)
    except UsageError:
        return {}, []
    return values, rest
