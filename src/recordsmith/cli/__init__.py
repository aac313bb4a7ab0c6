"""The command line: one file a command; each parses, calls public functions, and prints.

To add a command: one file here with a function of its name, and its place in `_COMMANDS`.
Exit codes: 0 done, 1 the data has defects, 2 the command was wrong, 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

import recordsmith
from recordsmith.cli.append import append
from recordsmith.cli.bench import bench
from recordsmith.cli.console import print_error, print_json
from recordsmith.cli.demo import demo
from recordsmith.cli.diff import diff
from recordsmith.cli.edit import edit
from recordsmith.cli.export import export
from recordsmith.cli.head import head
from recordsmith.cli.index import index
from recordsmith.cli.inspect import inspect
from recordsmith.cli.pack import pack
from recordsmith.cli.reshard import reshard
from recordsmith.cli.salvage import salvage
from recordsmith.cli.schema import schema
from recordsmith.cli.sheet import sheet
from recordsmith.cli.verify import verify
from recordsmith.cli.wording import in_options, way_out
from recordsmith.errors import CorruptDataError, RecordsmithError, SourceError

_COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {  # by what they are for
    "Make a dataset": (pack, append, demo),
    "Look into TFRecord files, whoever wrote them": (inspect, head, sheet, verify, schema, diff),
    "Mend and reshape them": (salvage, reshard, edit),
    "Hand them over": (export, index, bench),
}

_DEFECTS, _WRONG_COMMAND, _STOPPED, _PIPE_CLOSED, _TERMINATED = 1, 2, 130, 141, 143


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before we came
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        reconfigure = getattr(getattr(sys, name), "reconfigure", None)
        if reconfigure is not None:  # a name that is not text shall not stop a report
            reconfigure(errors="backslashreplace")
    if not sys.warnoptions:  # other libraries' words for programmers
        warnings.simplefilter("ignore")
    # OpenCV would print its own words about bad pictures, of which we tell with their place. Only
    # here, where the process is ours: a program that uses the library decides for itself.
    os.environ.setdefault("OPENCV_LOG_LEVEL", "SILENT")  # read when it is imported, which is later
    signal.signal(signal.SIGTERM, _terminate)
    app()


class _Terminated(KeyboardInterrupt):
    """Another program asks us to end: in order, so that nothing is left half done, as on Ctrl-C."""


def _terminate(*_: object) -> NoReturn:
    raise _Terminated


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"recordsmith {recordsmith.__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    """TFRecord datasets without TensorFlow: pack pictures, prove them right, look at them.

    Try `recordsmith demo`: the whole tour on pictures that it draws itself.

    Of any TFRecord file `recordsmith inspect FILE` says what is in it, and
    `recordsmith verify FILE` what is wrong with it.
    """


def _reporting(command: Callable[..., None]) -> Callable[..., None]:
    """Turn what may go wrong into one paragraph and an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as __main__ leaves it until here
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except RecordsmithError as error:
            words = in_options(str(error))
            if kwargs.get("json") and isinstance(error, SourceError):
                print_json({"error": words, "problems": [*map(in_options, error.problems)]})
            print_error(words + way_out(error, command.__name__, kwargs))
            is_defect = isinstance(error, (CorruptDataError, SourceError))
            raise typer.Exit(_DEFECTS if is_defect else _WRONG_COMMAND) from None
        except KeyboardInterrupt as stop:
            print_error("stopped")
            raise typer.Exit(_TERMINATED if isinstance(stop, _Terminated) else _STOPPED) from None
        except BrokenPipeError:
            _end_quietly()
        except OSError as error:
            print_error(f"cannot write the output: {error.strerror or error}")
            _end_quietly(_WRONG_COMMAND)

    return run


def _end_quietly(code: int = _PIPE_CLOSED) -> NoReturn:
    """Whoever read our output has seen enough, as in `recordsmith head PATH | head -3`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(code)


def _without_types(params: list[Any]) -> list[Any]:
    """The same, without `<bool>` beside flags and `<list[str]>` beside arguments in the help."""
    for param in params:
        if param.param_type_name == "argument" or getattr(param, "is_flag", False):
            param.display_type_rich = lambda **_: ""
    return params


class _Commands(TyperGroup):
    """All of them."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))


class _Command(TyperCommand):
    """One that says OUT where that is missing: of PATH... OUT, a single path is taken for OUT, and
    typer would ask for PATH.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if getattr(error.param, "name", None) == "paths":
                values, _, _ = self.make_parser(ctx).parse_args(args=given)
                if isinstance(values.get("out"), str):
                    ctx.fail(f"Missing argument 'OUT': {ctx.command_path} PATH... OUT")
            raise


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,  # a fault of ours is shown as Python shows it
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(_root)
for _panel, _commands in _COMMANDS.items():
    for _command in _commands:
        app.command(cls=_Command, rich_help_panel=_panel)(_reporting(_command))
