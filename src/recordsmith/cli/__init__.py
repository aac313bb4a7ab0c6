"""The command line: one file per command, which parses, calls public functions and prints.

To add a command, add a file with a function of its name and list it in `_COMMANDS`.
Exit codes: 0 success, 1 defects in the data, 2 invalid command, 130 interrupted with Ctrl-C.
"""

from __future__ import annotations

import functools
import inspect as introspection
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from recordsmith.cli import console
from recordsmith.cli.append import append
from recordsmith.cli.bench import bench
from recordsmith.cli.cache import cache
from recordsmith.cli.demo import demo
from recordsmith.cli.detect import detect
from recordsmith.cli.diff import diff
from recordsmith.cli.edit import edit
from recordsmith.cli.export import export
from recordsmith.cli.finish import finish
from recordsmith.cli.forecast import forecast
from recordsmith.cli.head import head
from recordsmith.cli.index import index
from recordsmith.cli.inspect import inspect
from recordsmith.cli.lint import lint
from recordsmith.cli.options import parse_size
from recordsmith.cli.pack import pack
from recordsmith.cli.query import query
from recordsmith.cli.reshard import reshard
from recordsmith.cli.run import run
from recordsmith.cli.salvage import salvage
from recordsmith.cli.schema import schema
from recordsmith.cli.sheet import sheet
from recordsmith.cli.stats import stats
from recordsmith.cli.upgrade import upgrade
from recordsmith.cli.usage import reporting_usage, unknown_command
from recordsmith.cli.verify import verify
from recordsmith.cli.wording import (
    advice_for,
    complete_shards_text,
    how_to_resume,
    manifest_identity,
    option_in_shell,
)
from recordsmith.errors import (
    CorruptDataError,
    FileAccessError,
    RecordsmithError,
    SourceError,
    naming_options,
)

_COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {  # by panel of the help
    "Create datasets": (detect, lint, forecast, pack, run, finish, append, demo),
    "Inspect and check any TFRecord files": (inspect, stats, head, sheet, verify, schema, diff),
    "Repair and rewrite them": (salvage, reshard, edit, upgrade),
    "Use them elsewhere": (export, query, index, bench, cache),
}
_WRITING = {
    *(
        "pack",
        "run",
        "finish",
        "append",
        "demo",
        "sheet",
        "salvage",
        "reshard",
        "edit",
        "upgrade",
        "export",
        "index",
    )
}
"""Commands whose output is only a summary: --quiet hides it."""

_Quiet = Annotated[
    bool,
    typer.Option("-q", "--quiet", help="Hide progress, hints and summaries."),
]

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
_WITHOUT_PATHS = {"cache", "demo"}

_RERUN = "rerun the command to resume"
_REPEAT_SECONDS = 0.05

_DEFECTS, _INVALID_COMMAND, _INTERRUPTED, _PIPE_CLOSED, _TERMINATED = 1, 2, 130, 141, 143


def main() -> None:
    """Run the command line and exit with its code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        reconfigure = getattr(getattr(sys, name), "reconfigure", None)
        if reconfigure is not None:  # file names may be invalid text
            reconfigure(errors="backslashreplace")
    if not sys.warnoptions:  # warnings of other libraries address programmers
        warnings.simplefilter("ignore")
        logging.getLogger().setLevel(logging.ERROR)
    # OpenCV logs bad images, which our errors report with their place. It reads this when imported.
    os.environ.setdefault("OPENCV_LOG_LEVEL", "SILENT")
    signal.signal(signal.SIGTERM, _terminate)
    sys.unraisablehook = _repeat_interrupt
    app()


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a job as cleanly as Ctrl-C does."""


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


def _show_version(wanted: bool) -> None:
    if wanted:
        from recordsmith import __version__

        print(f"recordsmith {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """TFRecord datasets without TensorFlow: pack, verify, preview and load them.

    New here? Run `recordsmith demo`: it draws images and goes through all steps.

    For any TFRecord file, `recordsmith inspect FILE` shows its contents and
    `recordsmith verify FILE` finds what is damaged.
    """


def _reporting(command: Callable[..., None]) -> Callable[..., None]:
    """Add --quiet and options of remote files; print errors as one paragraph, exit with a code."""

    @functools.wraps(command)
    def run(*args: Any, quiet: bool = False, **kwargs: Any) -> None:
        given = {name: kwargs.pop(name, None) for name in _REMOTE_OPTIONS}
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # set by __main__
            signal.signal(signal.SIGINT, signal.default_int_handler)
        before, variables = None, ExitStack()
        try:
            if kwargs.get("json"):
                variables.enter_context(console.only_json())
            variables.enter_context(_remote_options(given))
            with ExitStack() as stack:
                before = manifest_identity(command.__name__, kwargs)
                if quiet:
                    stack.enter_context(console.quiet())
                if quiet and command.__name__ in _WRITING and not kwargs.get("json"):
                    null = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
                    stack.enter_context(redirect_stdout(null))
                command(*args, **kwargs)
            sys.stdout.flush()
        except RecordsmithError as error:
            first, *others = error.lines
            if kwargs.get("json"):
                with suppress(OSError):  # such as a closed pipe
                    console.print_json(error.to_json())
            console.print_error(first + advice_for(error, command.__name__, kwargs), *others)
            if isinstance(error, FileAccessError):
                console.print_aside(_soon(complete_shards_text, "", command.__name__, kwargs))
            is_defect = isinstance(error, (CorruptDataError, SourceError))
            raise typer.Exit(_DEFECTS if is_defect else _INVALID_COMMAND) from None
        except KeyboardInterrupt as stop:
            advice = _soon(how_to_resume, _RERUN, command.__name__, kwargs, before)
            console.print_aside(f"interrupted; {advice}" if advice else "interrupted")
            raise typer.Exit(
                _TERMINATED if isinstance(stop, _Terminated) else _INTERRUPTED
            ) from None
        except BrokenPipeError:
            _end_quietly()
        except MemoryError:
            console.print_error("out of memory")
            raise typer.Exit(_INVALID_COMMAND) from None
        except OSError as error:
            console.print_error(f"cannot write the output: {error.strerror or error}")
            _end_quietly(_INVALID_COMMAND)
        finally:
            variables.close()

    signature = introspection.signature(command, eval_str=True)
    added: dict[str, tuple[Any, Any]] = {"quiet": (_Quiet, False)}
    if command.__name__ not in _WITHOUT_PATHS:
        added |= {
            name: (Annotated[str | None, option], None) for name, option in _REMOTE_OPTIONS.items()
        }
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[
            *signature.parameters.values(),
            *(
                introspection.Parameter(
                    name, introspection.Parameter.KEYWORD_ONLY, default=default, annotation=kind
                )
                for name, (kind, default) in added.items()
            ),
        ]
    )
    return run


def _soon(advise: Callable[..., str], otherwise: str, command: str, *given: Any) -> str:
    """Return advice on a command that has ended; `otherwise` if its server does not respond."""
    if command not in _WRITING:
        return advise(command, *given)
    from recordsmith.stopping import call_with_timeout  # loads more than --help needs

    advice = call_with_timeout(advise, command, *given)
    return otherwise if advice is None else advice


@contextmanager
def _remote_options(given: Mapping[str, str | None]) -> Iterator[None]:
    """Set options of remote files as variables, which worker processes inherit.

    Raises:
        OptionError: one of them is invalid.
    """
    values = {name: value for name, value in given.items() if value is not None}
    if "store_options" in values:
        from recordsmith.stores.remote.store_options import parse_store_options

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


def _end_quietly(code: int = _PIPE_CLOSED) -> NoReturn:
    """Exit when the output pipe was closed, as in `recordsmith head PATH | head -3`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(code)


def _plain(params: list[Any]) -> list[Any]:
    """Show parameters as in the help of other tools, whatever the version of typer adds.

    `PATH...` in the usage; no types and ranges; the default at the end of the text.
    """
    for param in params:
        param._get_number_range_help_str = lambda: None  # noqa: SLF001 - shows [x>=1]
        if param.param_type_name == "argument":
            usage = param.metavar
            if param.nargs != 1:
                usage += "..."
            param.get_usage_pieces = lambda _, usage=usage: [usage]
            param.display_type_rich = lambda **_: ""
        elif getattr(param, "is_flag", False):
            param.display_type_rich = lambda **_: ""
        if param.show_default and param.default not in (None, False) and param.help:
            value = param.default
            shown = f"{value:g}" if isinstance(value, float) else str(value)
            param.help, param.show_default = f"{param.help} [default: {shown}]", False
    return params


class _Commands(TyperGroup):
    """The group of all commands."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        with naming_options(option_in_shell):
            return super().main(*args, **kwargs)

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args:
            return super().parse_args(ctx, args)  # prints the help
        with reporting_usage(self, ctx, args):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in self.commands:
            console.print_error(*unknown_command(args[0], self.commands).lines)
            raise typer.Exit(_INVALID_COMMAND)
        return super().resolve_command(ctx, args)


class _Command(TyperCommand):
    """A command that reports errors in what was typed as its other errors."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        required = [param for param in self.params if param.required]
        for param in required:
            param.required = False  # typer marks it twice; the usage line is enough
        try:
            super().format_help(ctx, formatter)
        finally:
            for param in required:
                param.required = True

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with reporting_usage(self, ctx, args):
            return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Commands,
    add_completion=True,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,  # bugs show a plain traceback
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(_root)
for _panel, _commands in _COMMANDS.items():
    for _command in _commands:
        app.command(cls=_Command, rich_help_panel=_panel)(_reporting(_command))
