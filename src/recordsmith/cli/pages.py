"""Options and titles of reports that can be written as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from recordsmith.errors import OptionError, option

Html: TypeAlias = Annotated[
    Path | None,
    typer.Option("--html", help="Also write the report to an HTML page.", metavar="FILE"),
]
OverwritePage: TypeAlias = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing page.")
]


def check_html(path: Path | None, *, overwrite: bool) -> None:
    """Raise before the work begins if the page cannot be written."""
    if path is None:
        if overwrite:
            raise OptionError(f"{option('overwrite')} needs {option('html')}", option="overwrite")
        return
    from recordsmith.drawing.html_page import check_html_path  # NumPy only when needed

    check_html_path(path, overwrite=overwrite)


def title_of(paths: list[str]) -> str:
    """Return the title of a page about these paths."""
    first = paths[0] if Path(paths[0]).name else Path(paths[0]).resolve().name or paths[0]
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1:,} more"
