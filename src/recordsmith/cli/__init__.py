"""The command line: functions that parse, call public functions and print.

To add a command, write a function with its options in a module here and list it in `_PANELS`.
Modules are imported when their commands run.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import sys
import warnings
from functools import cache
from inspect import getdoc
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from recordsmith.cli import console
from recordsmith.cli.execution import executable, handle_signals
from recordsmith.cli.wording import QUOTE_CONDITION, is_part_of_condition
from recordsmith.support.explaining import LeftOutWarning
from recordsmith.support.words import similar_name

_PANELS = {
    "Create datasets": {
        "detect": "Show how `pack` reads a folder, and with which options.",
        "lint": "Check images, annotations and classes before packing them.",
        "forecast": "Forecast how large a dataset becomes.",
        "pack": "Pack images, masks, boxes or tables into TFRecord shards and verify them.",
        "append": "Add records to a dataset as new shards.",
        "demo": "Draw images of flowers and go through all steps with them.",
    },
    "Inspect and check any TFRecord files": {
        "inspect": "Print what a dataset contains: records, splits, features, classes, sizes.",
        "stats": "Print statistics of each feature, and likely problems.",
        "head": "Print the first records, or those that you choose.",
        "view": "View records in a browser: a gallery, each record, statistics.",
        "sheet": "Draw a preview of records: images with their classes, boxes and masks.",
        "verify": "Check every record, and the shards against their manifest (dataset.json).",
        "diff": "Compare the records of two datasets, in any order and any shards.",
    },
    "Repair and rewrite them": {
        "salvage": "Recover intact records from damaged shards into a new dataset.",
        "reshard": "Write records into new shards: merge, filter, shuffle, sample, split.",
        "edit": "Change features of a dataset, or remove and replace records in place.",
        "layers": "Give all records features of a table, without writing them again.",
        "recover": "Finish or undo what a killed command was changing in a dataset.",
        "history": "Print how a dataset was made and changed.",
    },
    "Use them elsewhere": {
        "export": "Write records as files of another format: images, annotations or tables.",
        "card": "Describe a dataset for the Hugging Face Hub and for catalogues (Croissant).",
        "query": "Run SQL over records, each of which is a row.",
    },
    "Advanced": {
        "run": "Write shards of a plan, on any machine that sees the source and the dataset.",
        "finish": "Complete the dataset of a plan whose tasks have run.",
        "normalisation": "Write the statistics with which training normalises features.",
        "schema": "Write what the records have in common as a JSON file of rules.",
        "index": "Write indexes, which make random access to records fast.",
        "bench": "Measure how fast a dataset loads, and what limits it.",
        "cache": "Show or empty the local cache of buckets and web servers.",
    },
}
"""What each command does, by panel of the help. Its function has the name of the command."""

COMMANDS = {name: summary for commands in _PANELS.values() for name, summary in commands.items()}

_MODULES = {
    command: module
    for module, commands in {
        "index": "cache",
        "pack": "detect run finish",
        "records": "export head sheet",
        "reports": "bench diff forecast inspect lint normalisation schema stats verify",
        "reshard": "append edit history recover salvage",
    }.items()
    for command in commands.split()
}
"""The modules here of commands that are not in one of their own name."""

_OTHER_NAMES = {
    name: command
    for command, names in {
        "diff": "compare",
        "export": "extract unpack",
        "head": "cat print",
        "inspect": "describe info list ls",
        "pack": "build convert create import write",
        "reshard": "filter merge sample shuffle split",
        "salvage": "fix repair",
        "sheet": "draw plot preview",
        "verify": "check validate",
        "view": "browse open serve show",
    }.items()
    for name in names.split()
}
"""The commands to suggest for names that other programs use."""

_INVALID_COMMAND = 2
_EXTRA = re.compile(r"extra arguments?(?:\(s\))? \((.*)\)", re.DOTALL)
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""The class of all errors in what was typed, in the copy of click that this typer uses."""


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
        warnings.simplefilter("default", LeftOutWarning)
        warnings.showwarning = lambda message, *_, **__: console.print_aside(f"notice: {message}")
        logging.getLogger().setLevel(logging.ERROR)
    # OpenCV logs bad images, which our errors report with their place. It reads this when imported.
    os.environ.setdefault("OPENCV_LOG_LEVEL", "SILENT")
    handle_signals()
    app()


def _show_version(is_requested: bool) -> None:
    if is_requested:
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


@cache
def load_command(name: str) -> Any:
    """Return the command of typer with its options, help and function."""
    module = importlib.import_module(f"{__name__}.{_MODULES.get(name, name)}")
    function = getattr(module, name)
    details, _, _ = (getdoc(function) or "").partition("\n\nArgs:\n")
    single = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    single.command(name, cls=_Command, help=f"{COMMANDS[name]}\n\n{details}")(
        executable(name, function)
    )
    return typer.main.get_command(single)


def _plain(params: list[Any]) -> list[Any]:
    """Show parameters as in the help of other tools, whatever the version of typer adds.

    `PATH...` in the usage; no types; the default at the end of the text.
    """
    for param in params:
        if param.param_type_name == "argument":
            usage = param.metavar
            if param.nargs != 1:
                usage += "..."
            param.get_usage_pieces = lambda _, usage=usage: [usage]
            param.display_type_rich = lambda **_: ""
        elif getattr(param, "is_flag", False):
            param.display_type_rich = lambda **_: ""
        if param.show_default and param.default not in (None, False) and param.help:
            param.help, param.show_default = f"{param.help} [default: {param.default}]", False
    return params


def _describe_usage(error: Any, context: Any, given: list[str]) -> str:
    """Return what is wrong with what was typed, and what to do."""
    called = "recordsmith" if context.parent is None else f"recordsmith {context.info_name}"
    remedy = f"`{called} --help` explains the command."
    message = error.format_message().rstrip(".")
    params = {
        name: param
        for param in context.command.params
        for name in param.opts
        if name.startswith("-")
    }
    name = getattr(error, "option_name", None)
    if name is not None and name not in params:
        similar = similar_name(name, (known for known in params if known.startswith("--")))
        remedy = f"Did you mean {similar}?" if similar else f"`{called} --help` lists the options."
        return f"{called} has no option {name}. {remedy}"
    if name is not None and not params[name].is_flag:
        return f"{name} needs a value: `{name} {params[name].metavar}`. {remedy}"
    extra = _EXTRA.search(message)
    if extra is not None:
        before = given[given.index(extra[1]) - 1] if extra[1] in given else ""
        name = before if before in params and params[before].is_flag else None
    if name is not None:
        return f"{name} takes no value. {remedy}"
    if extra is not None:
        remedy = QUOTE_CONDITION if is_part_of_condition(given) else remedy
        return f"unexpected argument: {extra[1]}. {remedy}"
    if message.startswith("Missing"):  # typer may take the only path for OUT
        usage = " ".join(context.command.collect_usage_pieces(context))
        remedy = f"Usage: `{called} {usage}`"
    return f"{message[:1].lower()}{message[1:]}. {remedy}"


class _PlainUsage:
    """A command or group that is shown plainly, and whose errors in what was typed are ours."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))  # type: ignore[misc]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)  # parsing changes it
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc, no-any-return]
        except _UsageError as error:
            console.print_error(_describe_usage(error, ctx, given))
            raise typer.Exit(_INVALID_COMMAND) from None


class _Commands(_PlainUsage, TyperGroup):
    """The group of all commands, each of which is loaded when it runs."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands as plain text: the panels of typer take twice as long."""
        formatter.write_usage("recordsmith", "COMMAND [OPTIONS] …")
        formatter.write(f"\n{getdoc(_root)}\n")
        for panel, commands in _PANELS.items():
            with formatter.section(panel):
                formatter.write_dl([*commands.items()])
        with formatter.section("Options"):
            formatter.write_dl([param.get_help_record(ctx) for param in self.get_params(ctx)])

    def list_commands(self, _ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        """Return a command with its summary alone, for completion."""
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:  # newer versions of typer print nothing here
            print(ctx.get_help())
            raise typer.Exit(_INVALID_COMMAND)
        return super().parse_args(ctx, args)

    def resolve_command(self, _ctx: Any, args: list[str]) -> Any:
        if args[0] not in COMMANDS:
            similar = _OTHER_NAMES.get(args[0]) or similar_name(args[0], COMMANDS)
            remedy = (
                f"Did you mean {similar}?"
                if similar
                else "`recordsmith --help` lists the commands."
            )
            console.print_error(f"recordsmith has no command {args[0]!r}. {remedy}")
            raise typer.Exit(_INVALID_COMMAND)
        return args[0], load_command(args[0]), args[1:]


class _Command(_PlainUsage, TyperCommand):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        required = [param for param in self.params if param.required]
        for param in required:
            param.required = False  # typer marks it twice; the usage line is enough
        try:
            super().format_help(ctx, formatter)
        finally:
            for param in required:
                param.required = True


app = typer.Typer(
    cls=_Commands,
    add_completion=True,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,  # bugs show a plain traceback
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(_root)
