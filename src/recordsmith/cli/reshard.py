"""`recordsmith reshard`, `edit` and `upgrade`: rewrite a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import SHARDS, WHICH, Json, Out, Paths, one_or_all
from recordsmith.errors import OptionError, option

if TYPE_CHECKING:
    from recordsmith.reshaping import ReshardReport

_PANELS = {
    WHICH: "split where sample take",
    "Order and splits": "shuffle seed splits",
    "What changes": "drop rename add recode",
    SHARDS: "shards shard_size_bytes shard_names compression",
}


def reshard(
    paths: Paths,
    out: Out,
    options: Annotated[dict[str, Any], OptionsOf("reshard", panels=_PANELS)],
    json: Json = False,
) -> None:
    """Verifies checksums and copies records byte for byte, with class names and label map. If
    the job is interrupted, rerun it to resume; until then, every command refuses OUT as unfinished.

    Example: `recordsmith reshard out smaller --shard-size 100MB`

    Merge: `recordsmith reshard first second 'more/*.tfrecord' merged`

    Filter: `recordsmith reshard out daisies --where 'image/class/text == "daisy"'`

    Shuffle: `recordsmith reshard out shuffled --shuffle --seed 1 --shards 16`

    Sample: `recordsmith reshard out tenth --sample 10%`

    Split: `recordsmith reshard out halves --splits train=0.5,test=0.5`

    Tile: `recordsmith reshard out tiled --tiles`
    """
    split = options.get("split")
    if split is not None and "splits" not in options and "=" in split:
        raise OptionError(
            option="split",
            value=split,
            expected="the name of one split to read",
            remedy=f"Draw new splits with {option('splits', split)}.",
        )
    with console.progress_bar("resharding", of_bytes=True, speed=False) as progress:
        report = rs.reshard(one_or_all(paths), out, **options, progress=progress)
    console.print_result(report, lambda: _print_report(report), json=json)


def edit(
    paths: Paths,
    out: Out,
    options: Annotated[dict[str, Any], OptionsOf("edit", panels=_PANELS)],
    json: Json = False,
) -> None:
    """Records keep their order and shards; unchanged parts are copied byte for byte. Class names
    follow recoded labels.

    Example: `recordsmith edit out smaller --drop 'image/object/*'`

    Rename: `recordsmith edit out renamed --rename image/class/label=label`

    Add: `recordsmith edit out dated --add year=2024 --add 'camera="7D"'`

    Recode: `recordsmith edit out merged --recode image/class/label=labels.csv`
    """
    with console.progress_bar("editing", of_bytes=True, speed=False) as progress:
        report = rs.edit(one_or_all(paths), out, **options, progress=progress)
    console.print_result(report, lambda: _print_report(report), json=json)


def _print_report(report: ReshardReport) -> None:
    """Print the summary of a job."""
    what = console.count(report.record_count, "record")
    if report.records_in != report.record_count:
        what += f" of {report.records_in:,}"
    console.print_written(report, "wrote", what)
    console.print_list("notices", report.notices)


def upgrade(
    folder: str,
) -> None:
    """Reads and changes only `dataset.json`, no shards.

    Example: `recordsmith upgrade out`

    Args:
        folder: the folder of the dataset.
    """
    from recordsmith.dataset import upgrade_manifest

    is_upgraded = upgrade_manifest(folder)
    done = "converted the manifest" if is_upgraded else "nothing to do: the manifest is up to date"
    print(f"{console.printable(folder)}: {done}")
