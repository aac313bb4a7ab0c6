"""Reports that are also written as an HTML page: their options, and what stands on top."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from recordsmith.errors import OptionError

Html: TypeAlias = Annotated[
    Path | None, typer.Option("--html", help="Write it as a page, too.", metavar="FILE")
]
OverwritePage: TypeAlias = Annotated[
    bool, typer.Option("--overwrite", help="Replace the page that is there.")
]


def check_html(path: Path | None, *, overwrite: bool) -> None:
    """Raise if a page is asked for that cannot be written: before the long work, not after it."""
    if path is None:
        if overwrite:
            raise OptionError("--overwrite is for the page of --html; name that as well")
        return
    from recordsmith.drawing.html_page import check_html_path  # NumPy only when needed

    check_html_path(path, overwrite=overwrite)


def title_of(paths: list[str]) -> str:
    """What stands on top of a page about these."""
    first = paths[0] if Path(paths[0]).name else Path(paths[0]).resolve().name or paths[0]
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1:,} more"
