"""`recordsmith cache`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from recordsmith.cli import console
from recordsmith.cli.options import Json
from recordsmith.errors import OptionError
from recordsmith.stores.location import as_folder, is_url

if TYPE_CHECKING:
    from recordsmith.stores.cache import CacheReport


def cache(
    folder: Annotated[
        str | None,
        typer.Argument(
            help="A cache folder. [default: RECORDSMITH_CACHE, or ~/.cache/recordsmith]",
            metavar="[FOLDER]",
            show_default=False,
        ),
    ] = None,
    clear: Annotated[
        bool,
        typer.Option("--clear", help="Remove all cached data and indexes; both are only copies."),
    ] = False,
    json: Json = False,
) -> None:
    """Datasets that are opened with a cache keep what they read there, so that the next epoch or
    job does not download it again. Indexes of shards in folders that cannot be written lie there,
    too.

    Example: `recordsmith cache --clear`
    """
    from recordsmith.stores.cache import inspect_cache
    from recordsmith.stores.remote import read_settings

    if folder is not None:
        _check_folder(folder)
    report = inspect_cache(folder or read_settings().cache, clear=clear)
    console.print_result(report, lambda: _print_report(report), json=json)


def _check_folder(path: str) -> None:
    """Check a folder that was typed.

    Raises:
        OptionError: it is a URL or a file, or does not exist.
    """
    if is_url(path):
        raise OptionError(f"{path} is a URL", value=path, expected="a local cache folder")
    if not as_folder(os.path.expanduser(path)).is_folder():
        raise OptionError(f"there is no folder {path}", value=path, expected="a cache folder")


def _print_report(report: CacheReport) -> None:
    """Print what a cache folder contains."""
    size = console.size(report.size_bytes)
    limit = "" if report.limit_bytes is None else f" of at most {console.size(report.limit_bytes)}"
    done = console.bold("emptied") + ", " if report.is_cleared else ""
    console.print_path(report.folder)
    print(f"  {done}{size} on disk{limit}")
    if report.object_count:
        objects = console.count(report.object_count, "object")
        print(f"  {console.size(report.cached_bytes)} of {objects}")
        print(f"  used between {report.first_used} and {report.last_used}")
    if report.index_count:
        indexes = console.count(report.index_count, "index", "indexes")
        print(f"  {indexes}, {console.size(report.index_bytes)}")
