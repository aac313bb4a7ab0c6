"""`recordsmith layers`: features of all records in files of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import Json, argument
from recordsmith.support.errors import OptionError, option

if TYPE_CHECKING:
    from recordsmith.writing import LayerReport, LayersReport

_ACTIONS = ("add", "list", "remove")
_USAGE = (
    "Usage: `recordsmith layers add OUT TABLE --on KEY[=COLUMN] --name NAME`, `recordsmith layers "
    "remove OUT --name NAME`."
)


def layers(
    action: Annotated[str, argument("ACTION", "add, list or remove.")],
    out: Annotated[str, argument("OUT", "The folder of a dataset.")],
    options: Annotated[dict[str, Any], OptionsOf("add_layer", without="lock")],
    table: Annotated[
        str | None, argument("TABLE", "With add: a CSV, TSV, JSON Lines, Parquet or Arrow file.")
    ] = None,
    *,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The layer, and its folder.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="KEY[=COLUMN]",
            help="How a record or row finds its partner: a feature that both have. For rows also "
            "FEATURE=COLUMN, or position=COLUMN for numbers of records.",
        ),
    ] = None,
    no_lock: Annotated[
        bool,
        typer.Option(
            "--no-lock",
            help="For file systems without locks: make sure that no other job changes OUT.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """A layer has a file for each shard, in OUT/layers/NAME; the shards stay as they are. Whatever
    reads OUT sees its features in the records, and they hide those of the same names. `recordsmith
    reshard` writes them into the records.

    Example: `recordsmith layers add out rows.csv --on image/filename=file --name a`

    List: `recordsmith layers list out`

    Remove: `recordsmith layers remove out --name scores`
    """
    if action not in _ACTIONS:
        raise OptionError(f"unknown action {action!r}; expected add, list or remove", remedy=_USAGE)
    of_add = [*options, *(["on"] if on is not None else ())]
    if of_add and action != "add":
        raise OptionError(f"{option(of_add[0])} is for `recordsmith layers add`", option=of_add[0])
    if (action == "add") != (table is not None):
        raise OptionError(
            "missing argument TABLE" if table is None else f"unexpected argument: {table}",
            option="table",
            remedy=_USAGE,
        )
    if action == "list":
        from recordsmith.writing import list_layers

        found = list_layers(out)
        console.print_result(found, lambda: _print_layers(found), json=json)
        return
    if name is None or (on is None and action == "add"):
        missing = "name" if name is None else "on"
        raise OptionError(f"{option(missing)} is missing", option=missing, remedy=_USAGE)
    if table is None or on is None:
        report = rs.remove_layer(out, name, lock=not no_lock)
    else:
        with console.progress_bar("reading keys", speed=False) as progress:
            report = rs.add_layer(
                out, table, name=name, on=on, lock=not no_lock, **options, progress=progress
            )
    console.print_result(report, lambda: _print_layer(report, action), json=json)


def _print_layer(report: LayerReport, action: str) -> None:
    done = "added" if action == "add" else "removed"
    side = "to" if action == "add" else "from"
    folder = console.printable(str(report.folder))
    what = f"layer {report.name}: {', '.join(report.features)}"
    title = f"{done} {console.printable(what)} {side} {folder}"
    console.print_line(title, title=title)
    records = console.count(report.record_count, "record")
    lacking = f", {report.missing_count:,} of them without a value" if report.missing_count else ""
    size = f"  {console.size(report.size_bytes)}" if action == "add" else ""
    print(f"  {records}{lacking}{size}")
    console.print_list("notices", report.notices)


def _print_layers(report: LayersReport) -> None:
    if not report.layers:
        print(f"{console.printable(str(report.folder))} has no layers")
    for place, layer in enumerate(report.layers):
        above = {key: one["name"] for one in report.layers[place + 1 :] for key in one["features"]}
        features = [
            f"{key} (hidden by {above[key]})"
            if key in above
            else f"{key} (hides what was there before)"
            if key in layer["hidden"]
            else key
            for key in layer["features"]
        ]
        shards = f"{console.count(layer['shards'], 'shard')}, {console.size(layer['size_bytes'])}"
        print(console.printable(f"{layer['name']}  {shards}  {', '.join(features)}"))
