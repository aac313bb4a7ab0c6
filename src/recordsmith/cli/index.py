"""`recordsmith index`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import WHICH, Json, Paths, one_or_all

if TYPE_CHECKING:
    from recordsmith.dataset import IndexReport


_LISTED = 10


def index(
    paths: Paths,
    options: Annotated[dict[str, Any], OptionsOf("index", panels={WHICH: "split"})],
    json: Json = False,
) -> None:
    """recordsmith builds its own indexes when it first needs them; this builds them in advance.

    Example: `recordsmith index out --format dali`
    """
    with console.progress_bar("indexing", of_bytes=True, speed=False) as progress:
        report = rs.index(one_or_all(paths), **options, progress=progress)
    console.print_result(report, lambda: _print_report(report), json=json)


def _print_report(report: IndexReport) -> None:
    """Print what was written."""
    of = (
        f"{console.count(report.record_count, 'record')} in "
        f"{console.count(len(report.files), 'shard')}"
    )
    old_count = len(report.files) - report.new_count
    if report.new_count:
        done = console.bold(f"wrote {console.count(report.new_count, 'index', 'indexes')}")
        print(f"{done}, of {of}" + (f"; {old_count:,} were up to date" if old_count else ""))
    else:
        print(f"{console.bold('nothing to do')}: the indexes of {of} are up to date")
    for file in report.files[:_LISTED]:
        console.print_path(file.path, "  ")
    if len(report.files) > _LISTED:
        count = len(report.files)
        print(f"  {console.and_more(count - _LISTED, count, _LISTED)}")
