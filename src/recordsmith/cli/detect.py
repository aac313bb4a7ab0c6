"""`recordsmith detect`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.detected import options_in_shell
from recordsmith.cli.options import Json
from recordsmith.cli.source_options import takes_source_options


@takes_source_options
def detect(
    source: Annotated[
        str,
        typer.Argument(
            help="The folder or file that you want to pack.", metavar="SOURCE", show_default=False
        ),
    ],
    source_options: dict[str, Any],
    json: Json = False,
) -> None:
    """Show how `pack` reads a folder, and with which options.

    Lists the samples and opens some files, but packs nothing. If several readings fit, prints the
    options that choose each of them; `detect` and `pack` take the same ones.

    Example: `recordsmith detect photos`
    """
    document = rs.detect(source, **source_options).to_json()
    if json:
        console.print_json(document)
        return
    number = console.count(document["count"], document["noun"].removesuffix("s"))
    print(f"{console.printable(document['what'])}: {number}")
    print(f"  {console.printable(options_in_shell(document['format'], document['options']))}")
    if document["splits"]:
        print(f"  splits: {console.printable(', '.join(document['splits']))}")
    if document["hint"]:
        console.print_line(f"hint: {document['hint']}", "  ")
    console.print_list("not read", document["left_out"])
    console.print_list("notices", document["notices"])
    others = [
        f"{each['what']}: {options_in_shell(each['format'], each['options'])}"
        for each in document["alternatives"]
        if each["strength"] != "possible"
    ]
    console.print_list("other readings", others)
