"""Runs a command: reports errors as one paragraph, ends with an exit code, handles interruptions.

Exit codes: 0 success, 1 defects in the data, 2 invalid command, 130 interrupted with Ctrl-C.
"""

from __future__ import annotations

import gc
import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from typing import Annotated, Any, NoReturn

import typer

from recordsmith.cli import console
from recordsmith.cli.function_options import expand
from recordsmith.cli.parsing import parse_size
from recordsmith.cli.wording import AFTER_INTERRUPTION, advice_for, option_in_shell
from recordsmith.support.errors import (
    CorruptDataError,
    DataError,
    RecordsmithError,
    SourceError,
    naming_options,
)

_SUMMARIZED = frozenset(
    (
        *("pack", "run", "finish", "append", "demo", "sheet", "salvage", "reshard", "edit"),
        *("export", "index"),
    )
)
"""Commands whose output is only a summary: --quiet hides it."""

_QUIET = Annotated[bool, typer.Option("-q", "--quiet", help="Hide progress, hints and summaries.")]
_REMOTE_OPTIONS = {
    name: typer.Option(help=text, metavar=metavar, rich_help_panel="Remote files")
    for name, metavar, text in (
        (
            "store_options",
            "JSON",
            'Options for the stores of URLs, such as \'{"region": "eu-west-1"}\'.',
        ),
        ("cache", "FOLDER", "A local folder that keeps what is read from URLs."),
        ("cache_bytes", "SIZE", "Size limit of this folder. [default: 10GiB]"),
    )
}
_WITHOUT_PATHS = frozenset({"cache", "demo"})

_REPEAT_SECONDS = 0.05

_DEFECTS, _INVALID_COMMAND, _INTERRUPTED, _PIPE_CLOSED, _TERMINATED = 1, 2, 130, 141, 143


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a job as cleanly as Ctrl-C does."""


def handle_signals() -> None:
    """Let SIGTERM end a command like Ctrl-C, also while Python runs a finalizer."""
    signal.signal(signal.SIGTERM, _terminate)
    sys.unraisablehook = _repeat_interrupt


def _terminate(*_: object) -> NoReturn:
    raise _Terminated


def _repeat_interrupt(ignored: sys.UnraisableHookArgs) -> None:
    """Send the signal again if Python ignored its exception, as it does in a finalizer."""
    if not isinstance(ignored.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    is_terminated = isinstance(ignored.exc_value, _Terminated)
    number = signal.SIGTERM if is_terminated else signal.SIGINT
    # Later, when the finalizer has returned: in here, the exception would be ignored again.
    threading.Timer(_REPEAT_SECONDS, os.kill, (os.getpid(), number)).start()


def executable(name: str, command: Callable[..., None]) -> Callable[..., None]:
    """Return what typer calls: a command with all its options that reports its errors."""
    signature, call = expand(command)

    def run(*, quiet: bool = False, **given: Any) -> None:
        remote = {option: given.pop(option, None) for option in _REMOTE_OPTIONS}
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # set by __main__
            signal.signal(signal.SIGINT, signal.default_int_handler)
        settings = ExitStack()
        try:
            if given.get("json"):
                settings.enter_context(console.only_json())
            settings.enter_context(naming_options(option_in_shell))
            settings.enter_context(_remote_options(remote))
            with ExitStack() as stack:
                if quiet:
                    stack.enter_context(console.quiet())
                if quiet and name in _SUMMARIZED and not given.get("json"):
                    null = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
                    stack.enter_context(redirect_stdout(null))
                gc.freeze()  # what was imported stays
                gc.enable()
                call(**given)
            sys.stdout.flush()
        except RecordsmithError as error:
            _print_error(error, name, given)
            is_defect = isinstance(error, (CorruptDataError, SourceError))
            raise typer.Exit(_DEFECTS if is_defect else _INVALID_COMMAND) from None
        except KeyboardInterrupt as stop:
            advice = f"; {AFTER_INTERRUPTION[name]}" if name in AFTER_INTERRUPTION else ""
            console.print_aside(f"interrupted{advice}")
            is_terminated = isinstance(stop, _Terminated)
            raise typer.Exit(_TERMINATED if is_terminated else _INTERRUPTED) from None
        except BrokenPipeError:
            _end_silently()
        except MemoryError:
            console.print_error("out of memory")
            raise typer.Exit(_INVALID_COMMAND) from None
        except OSError as error:
            console.print_error(f"cannot write the output: {error.strerror or error}")
            _end_silently(_INVALID_COMMAND)
        finally:
            settings.close()

    added: dict[str, tuple[Any, Any]] = {"quiet": (_QUIET, False)}
    if name not in _WITHOUT_PATHS:
        added |= {
            option: (Annotated[str | None, info], None) for option, info in _REMOTE_OPTIONS.items()
        }
    parameters = [
        inspect.Parameter(
            option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )
        for option, (annotation, default) in added.items()
    ]
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), *parameters]
    )
    return run


def _print_error(error: RecordsmithError, command: str, given: Mapping[str, Any]) -> None:
    if isinstance(error, DataError) and command != "head":
        error.advise_to_show()
    first, *others = error.lines
    if given.get("json"):
        with suppress(OSError):  # such as a closed pipe
            console.print_json(error.to_json())
    console.print_error(first + advice_for(error, command, given), *others)


@contextmanager
def _remote_options(given: Mapping[str, str | None]) -> Iterator[None]:
    """Set options of remote files as variables, which worker processes inherit.

    Raises:
        OptionError: one of them is invalid.
    """
    values = {name: value for name, value in given.items() if value is not None}
    if "store_options" in values:
        from recordsmith.stores import parse_store_options

        parse_store_options(values["store_options"])
    if "cache_bytes" in values:
        values["cache_bytes"] = str(parse_size(values["cache_bytes"], "cache_bytes"))
    variables = {f"RECORDSMITH_{name.upper()}": value for name, value in values.items()}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _end_silently(code: int = _PIPE_CLOSED) -> NoReturn:
    """Exit when the output pipe was closed, as in `recordsmith head PATH | head -3`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(code)
