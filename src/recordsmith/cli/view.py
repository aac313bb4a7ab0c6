"""`recordsmith view`."""

from __future__ import annotations

import gc
import webbrowser
from contextlib import suppress
from typing import Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import At, Paths, Split, Where, one_or_all
from recordsmith.cli.parsing import names_findings, parse_positions
from recordsmith.cli.records import chosen_records


def view(
    paths: Paths,
    options: Annotated[dict[str, Any], OptionsOf("view", without="token")],
    *,
    split: Split = None,
    at: At = None,
    where: Where = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Serves a page for this machine until Ctrl-C; its address has a secret token. Reads only what
    is on the screen, and changes nothing.

    Example: `recordsmith view out`

    Filter: `recordsmith view out --where 'image/class/label == 3'`
    """
    if at is not None:
        is_found = names_findings(at)
        positions = (
            list(chosen_records(one_or_all(paths), split, at, None).positions)
            if is_found
            else parse_positions(at)
        )
        options["at"] = positions[0] if len(positions) == 1 else positions
    if where is not None:
        options["where"] = where
    gc.disable()  # the imports take an eighth less time
    try:
        viewer = rs.view(one_or_all(paths), split, **options)
    finally:
        gc.freeze()
        gc.enable()
    from recordsmith.viewing import redirecting_file

    with viewer, redirecting_file(viewer.url) as address, suppress(KeyboardInterrupt):
        print(viewer.url, flush=True)
        console.print_hint("Ctrl-C ends the viewer")
        if browser:
            webbrowser.open(address)  # not the token: other users can read command lines
        viewer.wait()
