"""Arguments and options of a command, made from its function and from those that it calls.

A parameter becomes an option with its name and type. Its help is what the docstring says about it:
for the functions that it calls, the first sentence. A command states only what differs.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, NamedTuple

import typer

import recordsmith as rs
from recordsmith.cli import parsing
from recordsmith.cli.wording import option_in_shell

_ENTRY = re.compile(r"(\w+(?:, \w+)*): (.*)")
_DEFAULT = re.compile(r"[;.] None (?:for ([^.;]+)|to detect (?:it|them))")
_SENTENCE_END = re.compile(r"(?<=[.\]])\s+(?=[A-Z])")
_STARTS_WITH_VALUE = re.compile(r"[\w-]+(?:,|:| \()")
_NAME = re.compile(r"`(\w+)`")


class Form(NamedTuple):
    """How a value is typed, where that differs from its type in Python.

    metavar: shown for the value in the help.
    parse: converts the text, or the list of texts of an option that may be repeated; called with
        the name of the option for errors.
    example: a value as it is typed, for the help.
    help: replaces what the docstring says.
    flag: the value that the option stands for, which then takes none.
    is_list: whether the option may be repeated.
    """

    metavar: str | None = None
    parse: Callable[[Any, str], Any] | None = None
    example: str = ""
    help: str = ""
    flag: Any = None
    is_list: bool = False


def _parse_engine(text: str, _name: str) -> Any:
    from recordsmith.engines import parse_engine  # only when needed

    return parse_engine(text)


FORMS: Mapping[str, Form] = {
    "add": Form(
        "KEY=VALUE",
        parsing.parse_values,
        help="Add a feature to all records: a number, text, or a list such as [1,2]. A number in "
        'quotes, "3", is text. May be repeated.',
        is_list=True,
    ),
    "allow_host": Form("HOST", is_list=True),
    "background": Form("COLOUR", parsing.parse_colour, "white, black or #rrggbb"),
    "cast": Form(
        "KEY=KIND",
        partial(parsing.parse_pairs, expected="KEY=int64 or KEY=float"),
        help="Change the kind of a feature to int64 or float, where no number changes. May be "
        "repeated.",
        is_list=True,
    ),
    "checks": Form("CHECK,…", parsing.parse_name_lists, is_list=True),
    "drop": Form("KEY", is_list=True),
    "features": Form(
        "FEATURE=COLUMN",
        parsing.parse_columns,
        help="Take this column as a feature; COLUMN alone keeps its name. May be repeated. "
        "[default: all columns but the key]",
        is_list=True,
    ),
    "findings": Form("FILE"),
    "engine": Form(
        "ENGINE",
        _parse_engine,
        help="What runs the job: processes:4, or a cluster: ray:auto, spark:MASTER, "
        "beam:RUNNER. [default: threads of this process]",
    ),
    "ignore": Form("CHECK", is_list=True),
    "keys": Form(
        "NAMES",
        parsing.parse_keys,
        help="Names of features: new names as OLD=NEW,… (OLD= drops one); or a preset: slim "
        "(standard names; only image, format, label, height, width), raw-pairs (image_raw, "
        "mask_raw, height, width), rows-cols (image, label, filename, rows, cols, channels), "
        "label-text-encoded (label, text, encoded). [default: image/encoded, image/class/label "
        "and other standard names]",
    ),
    "leave_out": Form("PATH", is_list=True),
    "numbers_of": Form("KEY", is_list=True),
    "only": Form("CHECK", is_list=True),
    "orientation": Form(
        flag="apply", help="Rotate images, masks and boxes by the EXIF orientation."
    ),
    "qualities": Form("N,…", parsing.parse_optional_numbers),
    "recode": Form(
        "KEY=FILE",
        partial(parsing.parse_pairs, expected="KEY=FILE"),
        help="Replace values by a CSV file with the columns old, new and optionally name. May be "
        "repeated.",
        is_list=True,
    ),
    "rename": Form("OLD=NEW", parsing.parse_pairs, is_list=True),
    "on": Form("KEY[=COLUMN]"),
    "reason": Form("TEXT"),
    "replace": Form("FILE"),
    "resplit": Form("NAMES", parsing.parse_names),
    "set": Form(
        "FEATURE=FILE:COLUMN",
        partial(parsing.parse_pairs, expected="FEATURE=FILE:COLUMN"),
        help="Set a feature to the values of a column of a table: CSV, JSON Lines, Parquet. May be "
        "repeated.",
        is_list=True,
    ),
    "sample": Form("SHARE", parsing.parse_share, "10% or 0.1"),
    "shard_size_bytes": Form("SIZE", parsing.parse_size),
    "shards": Form("N", parsing.parse_counts, "8 or train=8,validation=2"),
    "shorter_sides": Form("N,…", parsing.parse_optional_numbers),
    "size": Form("SIZE", parsing.parse_pixels, "224 or 192x256"),
    "where": Form("CONDITION"),
    "without": Form("POSITIONS", parsing.parse_without),
    "together": Form("@FILE"),
    "splits": Form("NAME=SHARE,…", parsing.parse_shares, "train=0.8,test=0.2"),
    "groups": Form("FILE"),
}
"""How values are typed, by the name of the parameter."""

_MINIMUMS = {"batch_size": 1, "columns": 1, "sample_count": 10, "skip_errors": 0, "threads": 1}
_WITHOUT_OPTION = frozenset({"progress", "on_update", "image_options", "edits"})


@dataclass(frozen=True)
class OptionsOf:
    """Annotates a parameter of a command: a dict of the options of a function that were typed.

    of: the functions in `recordsmith`, or classes whose attributes are options, with spaces between
        them; `module:name` for those that are not public.
    panel: the heading of the options in the help.
    panels: of some of them, by their names.
    without: parameters that are no options of this command.
    formats: a function that returns the formats which an option is for, as `module:name`. The help
        begins with them.
    """

    of: str
    panel: str | None = None
    panels: Mapping[str, str] = field(default_factory=dict)
    without: str = ""
    formats: str = ""

    @property
    def panel_of(self) -> dict[str, str]:
        """The headings by option."""
        return {name: panel for panel, names in self.panels.items() for name in names.split()}

    def prefix(self, name: str) -> str:
        """The formats that an option is for; empty if it is for all."""
        known = _function(self.formats)(name) if self.formats else ()
        return f"{', '.join(known)}: " if known else ""

    def parameters(self, declared: frozenset[str]) -> Iterator[inspect.Parameter]:
        """Yield the options as parameters for typer, except those that the command declares."""
        functions = list(map(_function, self.of.split()))
        texts = {name: text for called in functions for name, text in _described(called).items()}
        hidden = {*declared, *_WITHOUT_OPTION, *self.without.split()}
        for parameter in (option for function in functions for option in _parameters(function)):
            name = parameter.name
            kind = _type_of(parameter)
            if name in hidden or kind is None:
                continue
            hidden.add(name)  # an option of several functions
            form = FORMS.get(name, Form())
            info = typer.Option(
                option_in_shell(name, None),
                help=form.help
                or _help(self.prefix(name) + texts.get(name, ""), parameter.default, form, texts),
                metavar=None if kind is bool else form.metavar or _metavar(name, kind),
                rich_help_panel=self.panel_of.get(name, self.panel),
                min=_MINIMUMS.get(name) if kind is int else None,
                show_default=False,
            )
            default = False if kind is bool else None
            yield parameter.replace(
                kind=inspect.Parameter.KEYWORD_ONLY,
                annotation=Annotated[kind if kind is bool else kind | None, info],
                default=default,
            )


def expand(command: Callable[..., None]) -> tuple[inspect.Signature, Callable[..., None]]:
    """Return the signature of a command with all options, and the command to call with them."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, frozenset[str]] = {}
    declared = frozenset(signature.parameters)
    texts, panels = _described(command), dict[str, str]()
    parameters: list[inspect.Parameter] = []
    formats = OptionsOf("")
    for name, parameter in signature.parameters.items():
        (info, *_) = getattr(parameter.annotation, "__metadata__", (None,))
        if isinstance(info, OptionsOf):
            options = list(info.parameters(declared))
            groups[name] = frozenset(option.name for option in options)
            panels |= info.panel_of
            parameters += options
            formats = info if info.formats else formats
        elif info is None:
            parameters.append(_declared(parameter, texts[name], panels.get(name)))
        else:
            if prefix := formats.prefix(name):
                info = copy(info)
                info.help = prefix + info.help
                kind = parameter.annotation.__origin__
                parameter = parameter.replace(annotation=Annotated[kind, info])  # noqa: PLW2901
            parameters.append(parameter)
    numbers: dict[str, tuple[type[int | float], int | None]] = {}
    parameters = [_as_text(parameter, numbers) for parameter in parameters]

    def call(**given: Any) -> None:
        values: dict[str, Any] = {name: {} for name in groups}
        for name, text in given.items():
            value = text
            if name in numbers and text is not None:
                value = parsing.parse_number(text, name, *numbers[name])
            group = next((group for group, names in groups.items() if name in names), None)
            if group is None:
                values[name] = value
            elif value is not None and value is not False and value != []:
                values[group][name] = _converted(name, value)
        command(**values)

    ordered = [p for p in parameters if p.default is p.empty and p.kind is not p.KEYWORD_ONLY]
    ordered += [p.replace(kind=p.KEYWORD_ONLY) for p in parameters if p.default is not p.empty]
    return signature.replace(parameters=ordered), call


def _as_text(parameter: inspect.Parameter, numbers: dict[str, Any]) -> inspect.Parameter:
    """Note type and minimum of a number, and return it as text, for messages that are ours."""
    annotated, info = parameter.annotation.__origin__, copy(parameter.annotation.__metadata__[0])
    for kind in (int, float):
        if annotated in (kind, kind | None):
            numbers[parameter.name] = kind, info.min
            info.min = None
            return parameter.replace(annotation=Annotated[str | None, info])
    return parameter


def _metavar(name: str, kind: Any) -> str:
    """Return what stands for a value in the help: N, or the last word of the name: SPLIT."""
    return "N" if kind in (int, float) else name.rpartition("_")[2].upper()


def _declared(parameter: inspect.Parameter, text: str, panel: str | None) -> inspect.Parameter:
    """Return a parameter of a command with its help: an option if it is given by keyword."""
    name, text = parameter.name, text[:1].upper() + text[1:]
    info: Any
    if parameter.kind is parameter.KEYWORD_ONLY:
        info = typer.Option(
            option_in_shell(name, None),
            help=text,
            metavar=None
            if parameter.annotation is bool
            else _metavar(name, int if "int" in str(parameter.annotation) else str),
            rich_help_panel=panel,
            show_default=False,
        )
    else:
        shown = name.upper() if parameter.default in (parameter.empty, ()) else f"[{name.upper()}]"
        info = typer.Argument(help=text, metavar=shown, show_default=False)
    return parameter.replace(annotation=Annotated[parameter.annotation, info])


def _converted(name: str, value: Any) -> Any:
    form = FORMS.get(name, Form())
    if form.flag is not None:
        return form.flag
    return value if form.parse is None else form.parse(value, name)


def _function(name: str) -> Any:
    module, _, name = name.rpartition(":")
    home = importlib.import_module(f"recordsmith.{module}") if module else rs
    return getattr(home, name)


def _parameters(function: Any) -> list[inspect.Parameter]:
    """Return the parameters of a function that may be options, or the items of a TypedDict."""
    if hasattr(function, "__total__"):
        kinds = inspect.get_annotations(function)
        flags = {name for name, kind in kinds.items() if "bool" in str(kind)}
        return [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=False if name in flags else None,
                annotation=kind,
            )
            for name, kind in kinds.items()
        ]
    parameters = inspect.signature(function).parameters.values()
    return [option for option in parameters if option.default is not option.empty]


def _type_of(parameter: inspect.Parameter) -> Any:
    """Return the type of the option; None if the command must declare it, such as negations."""
    form = FORMS.get(parameter.name)
    if form is not None:
        return bool if form.flag is not None else list[str] if form.is_list else str
    annotation = getattr(parameter.annotation, "__forward_arg__", parameter.annotation)
    if annotation.startswith("bool"):
        return bool if parameter.default is False else None
    for kind in (int, float):
        if annotation.removesuffix(" | None") == kind.__name__:
            return kind
    return str


def _described(function: Any) -> dict[str, str]:
    """Return the text of each parameter in a docstring."""
    _, _, section = (inspect.getdoc(function) or "").partition(
        "\nAttributes:\n" if inspect.isclass(function) else "\nArgs:\n"
    )
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line and not line.startswith(" "):
            break
        match = _ENTRY.fullmatch(line.strip()) if line.startswith("    ") else None
        if match is not None and not line.startswith("     "):
            names = match[1].split(", ")
            texts |= dict.fromkeys(names, match[2])
        else:
            texts |= {name: f"{texts[name]} {line.strip()}" for name in names}
    return texts


def _help(text: str, default: Any, form: Form, known: Mapping[str, str]) -> str:
    """Return the first sentence of a docstring about an option, as help for those who type it."""
    if default is None or default is False or default == ():
        match = _DEFAULT.search(text)
        shown = (match[1] or "detected") if match else ""
    else:
        value = ",".join(map(str, default)) if isinstance(default, tuple) else default
        shown = value if isinstance(value, str) else f"{value:,g}" if value < 1e5 else f"{value:,}"
    text = _DEFAULT.sub("", text)
    sentence = _SENTENCE_END.split(text)[0].strip().removesuffix(".")
    sentence = _NAME.sub(
        lambda name: option_in_shell(name[1], None) if name[1] in known else name[0], sentence
    )
    if not _STARTS_WITH_VALUE.match(sentence):
        sentence = sentence[:1].upper() + sentence[1:]
    example = f", such as {form.example}" if form.example else ""
    repeated = " May be repeated." if form.is_list else ""
    end = f" [default: {shown}]" if shown else ""
    return f"{sentence}{example}.{repeated}{end}".replace('"', "'")
