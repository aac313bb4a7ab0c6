"""`recordsmith index` and `cache`: files that make reading faster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import WHICH, Json, Paths, one_or_all
from recordsmith.support.errors import OptionError

if TYPE_CHECKING:
    from recordsmith.dataset import IndexReport
    from recordsmith.stores import CacheReport

_MAX_FILES = 10


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
    console.print_result(report, lambda: _print_index_report(report), json=json)


def _print_index_report(report: IndexReport) -> None:
    shards = console.count(len(report.files), "shard")
    of = f"{console.count(report.record_count, 'record')} in {shards}"
    old_count = len(report.files) - report.new_count
    if report.new_count:
        done = console.bold(f"wrote {console.count(report.new_count, 'index', 'indexes')}")
        print(f"{done}, of {of}" + (f"; {old_count:,} were up to date" if old_count else ""))
    else:
        print(f"{console.bold('nothing to do')}: the indexes of {of} are up to date")
    for file in report.files[:_MAX_FILES]:
        console.print_path(file.path, "  ")
    if len(report.files) > _MAX_FILES:
        count = len(report.files)
        print(f"  {console.and_more(count - _MAX_FILES, count, _MAX_FILES)}")


def cache(folder: str | None = None, *, clear: bool = False, json: Json = False) -> None:
    """Datasets that are opened with a cache keep what they read there, so that the next epoch or
    job does not download it again. Indexes of shards in folders that cannot be written lie there,
    too.

    Example: `recordsmith cache --clear`

    Args:
        folder: a cache folder. [default: RECORDSMITH_CACHE, or ~/.cache/recordsmith]
        clear: remove all cached data and indexes; both are only copies.
    """
    from recordsmith.stores import as_folder, inspect_cache, is_url, read_settings

    if folder is not None:
        if is_url(folder):
            raise OptionError(f"{folder} is a URL", value=folder, expected="a local cache folder")
        if not as_folder(os.path.expanduser(folder)).is_folder():
            raise OptionError(
                f"there is no folder {folder}", value=folder, expected="a cache folder"
            )
    report = inspect_cache(folder or read_settings().cache, clear=clear)
    console.print_result(report, lambda: _print_cache_report(report), json=json)


def _print_cache_report(report: CacheReport) -> None:
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
