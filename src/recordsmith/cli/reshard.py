"""`recordsmith reshard`, `edit`, `append` and `salvage`: rewrite, extend or repair a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import SHARDS, WHICH, At, Json, Out, Paths, argument, one_or_all
from recordsmith.cli.records import chosen_records
from recordsmith.support.errors import OptionError, option

if TYPE_CHECKING:
    from recordsmith.writing import (
        AppendReport,
        EditReport,
        HistoryReport,
        ReshardReport,
        SalvagedShard,
        SalvageReport,
    )

_PANELS = {
    WHICH: "split where without checks keep sample take",
    "Order and splits": "shuffle seed splits",
    "What changes": "drop rename add recode cast set on on_name allow_missing",
    SHARDS: "shards shard_size_bytes shard_names compression",
    "In place": "replace reason time allow_empty again",
}

_IN_PLACE = "In place"
_OF_EDIT_IN_PLACE = "without where replace on checks keep reason time allow_empty again"
_OF_BOTH = "where on threads"
_Dataset: TypeAlias = Annotated[str, argument("OUT", "The folder of the dataset.")]

_FIELDS = {
    "length": "its length",
    "length-crc": "the checksum of its length",
    "payload-crc": "the checksum of its payload",
}
_MAX_SHARDS = 20


def reshard(
    paths: Paths,
    out: Out,
    options: Annotated[dict[str, Any], OptionsOf("reshard", panels=_PANELS)],
    *,
    at: At = None,
    json: Json = False,
) -> None:
    """Verifies checksums and copies records byte for byte, with class names and label map. If
    the job is interrupted, rerun it to resume; until then, every command refuses OUT as unfinished.

    Example: `recordsmith reshard out smaller --shard-size 100MB`

    Merge: `recordsmith reshard first second 'more/*.tfrecord' merged`

    Filter: `recordsmith reshard out daisies --where 'image/class/text == "daisy"'`

    Selected records: `recordsmith reshard out few --at 143,9`

    Without duplicates: `recordsmith reshard out unique --without @findings.jsonl`

    Shuffle: `recordsmith reshard out shuffled --shuffle --seed 1 --shards 16`

    Sample: `recordsmith reshard out tenth --sample 10%`

    Split: `recordsmith reshard out halves --splits train=0.5,test=0.5`
    """
    split = options.get("split")
    if split is not None and "splits" not in options and "=" in split:
        raise OptionError(
            option="split",
            value=split,
            expected="the name of one split to read",
            remedy=f"Draw new splits with {option('splits', split)}.",
        )
    records: Any = one_or_all(paths)
    if at is not None and "without" in options:
        raise OptionError(
            f"{option('at')} and {option('without')} exclude each other",
            option="at",
            remedy="Pass only one of them.",
        )
    if at is not None:
        options.pop("split", None)
        records = chosen_records(records, split, at, options.get("where")).dataset
    with console.progress_bar("resharding", of_bytes=True, speed=False) as progress:
        report = rs.reshard(records, out, **options, progress=progress)
    console.print_result(report, lambda: _print_report(report), json=json)


def edit(
    options: Annotated[
        dict[str, Any], OptionsOf("edit edit_in_place", panels=_PANELS, without="lock")
    ],
    paths: Annotated[
        list[str] | None,
        argument("PATH", "TFRecord files, folders, or quoted patterns; none with --in-place."),
    ] = None,
    out: Annotated[
        str, argument("OUT", "The folder of the new dataset; with --in-place, the dataset.")
    ] = "",
    *,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Change OUT itself.", rich_help_panel=_IN_PLACE)
    ] = False,
    no_lock: Annotated[
        bool,
        typer.Option(
            "--no-lock",
            help="For file systems without locks: make sure that no other job changes OUT.",
            rich_help_panel=_IN_PLACE,
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Records keep their order and shards; unchanged parts are copied byte for byte. Class names
    follow recoded labels.

    Example: `recordsmith edit out smaller --drop 'image/object/*'`

    Rename: `recordsmith edit out renamed --rename image/class/label=label`

    Add: `recordsmith edit out dated --add year=2024 --add 'camera="7D"'`

    Recode: `recordsmith edit out merged --recode image/class/label=labels.csv`

    Cast: `recordsmith edit out whole --cast image/height=int64`

    Set: `recordsmith edit out new --set score=rows.csv:score --on id`

    Remove: `recordsmith edit out --in-place --without @findings.jsonl`

    Replace: `recordsmith edit out --in-place --replace new --on image/filename`
    """
    known = _OF_EDIT_IN_PLACE.split() if in_place else []
    foreign = [name for name in options if (name in _OF_EDIT_IN_PLACE.split()) != in_place]
    foreign = [name for name in foreign if name not in _OF_BOTH.split()]
    if foreign:
        raise OptionError(
            f"{option(foreign[0])} {'does not work' if in_place else 'works only'} with "
            f"{option('in_place', True)}",
            option=foreign[0],
            value=options[foreign[0]],
            remedy=f"With it, pass one of {', '.join(option(name) for name in known[:3])}."
            if in_place
            else "",
        )
    if in_place:
        if paths:
            raise OptionError(
                f"{option('in_place', True)} changes one dataset, and {1 + len(paths)} paths are "
                "given",
                option="paths",
                value=paths,
                remedy="Pass only the folder of the dataset.",
            )
        with console.progress_bar("editing", of_bytes=True, speed=False) as progress:
            changed = rs.edit_in_place(out, lock=not no_lock, **options, progress=progress)
        console.print_result(changed, lambda: _print_changed(changed), json=json)
        return
    if not paths:
        raise OptionError(
            f"missing argument {'OUT' if out else 'PATH'}",
            option="out",
            remedy=f"Name the folder of the new dataset after {out or 'the files'}, or pass "
            f"{option('in_place', True)} to change {out or 'it'} itself.",
        )
    with console.progress_bar("editing", of_bytes=True, speed=False) as progress:
        report = rs.edit(one_or_all(paths), out, **options, progress=progress)
    console.print_result(report, lambda: _print_report(report), json=json)


def _print_changed(report: EditReport) -> None:
    counts = {"removed": report.removed_count, "replaced": report.replaced_count}
    done = [f"{what} {console.count(count, 'record')}" for what, count in counts.items() if count]
    folder = console.printable(str(report.folder))
    title = f"{' and '.join(done)} in {folder}" if done else f"nothing to change in {folder}"
    if done and not report.is_new:
        title = f"nothing to do: this command has {title}; use --again to do it once more"
    console.print_summary(title, report.splits)
    if report.rewritten_count and report.is_new:
        print(
            f"  {report.rewritten_count:,} of {console.count(report.shard_count, 'shard')} written"
        )
    console.print_list("notices", report.notices)


def recover(folder: _Dataset, *, no_lock: bool = False, json: Json = False) -> None:
    """For `append` and `edit --in-place`. If all new shards were written, the change is finished;
    otherwise what was written is removed, and the dataset is as it was.

    Example: `recordsmith recover out`

    Args:
        no_lock: for file systems without locks: make sure that no other job changes the dataset.
    """
    report = rs.recover(folder, lock=not no_lock)
    texts = {
        "finished": "finished the interrupted change of",
        "undone": "removed what an interrupted change had written in",
        "nothing": "nothing to do: no change was interrupted in",
    }
    what = console.count(report.record_count, "record")
    title = f"{texts[report.outcome]} {console.printable(str(report.folder))}, {what}"
    console.print_result(report, lambda: console.print_summary(title, {}), json=json)


def history(folder: _Dataset, *, json: Json = False) -> None:
    """Each line is a job: what it did with how many records and shards, why, and the digest of the
    dataset afterwards.

    Example: `recordsmith history out`
    """
    report = rs.history(folder)
    console.print_result(report, lambda: _print_history(report), json=json)


def _print_history(report: HistoryReport) -> None:
    for change in report.changes:
        counts = [
            f"{word} {change[word]:,}" for word in ("records", "removed", "replaced", "shards")
            if isinstance(change.get(word), int) and change[word]
        ]  # fmt: skip
        texts = [str(change[word]) for word in ("time", "reason") if word in change]
        digest = f"digest {change['after']}" if "after" in change else ""
        layer = f"{change['layer']}: {', '.join(change['features'])}" if "layer" in change else ""
        layer += f" from {change['table']} on {change['on']}" if "table" in change else ""
        parts = [str(change.get("command", "?")), layer, ", ".join(counts), *texts, digest]
        print(console.printable("  ".join(filter(None, parts))))


def _print_report(report: ReshardReport) -> None:
    what = console.count(report.record_count, "record")
    if report.records_in != report.record_count:
        what += f" of {report.records_in:,}"
    console.print_written(report, "wrote", what)
    console.print_list("notices", report.notices)


def append(
    paths: Paths,
    out: str,
    options: Annotated[dict[str, Any], OptionsOf("append")],
    *,
    no_lock: bool = False,
    json: Json = False,
) -> None:
    """Renumbers the shards of the split and updates schema, class names and manifest. If the
    command is interrupted, rerun it to finish. Files that were appended before are skipped. Other
    data is packed first, with `recordsmith pack --like OUT`.

    Example: `recordsmith append 'today/*.tfrecord' out --split train`

    Args:
        out: the dataset to add the records to.
        no_lock: for file systems without locks: make sure that no other job changes OUT.
    """
    with console.progress_bar("appending", of_bytes=True, speed=False) as progress:
        report = rs.append(one_or_all(paths), out, lock=not no_lock, **options, progress=progress)
    console.print_result(report, lambda: _print_append_report(report), json=json)


def _print_append_report(report: AppendReport) -> None:
    folder = console.printable(str(report.folder))
    what = console.count(report.appended_count, "record")
    title = f"appended {what} to {folder}"
    if not report.is_new:
        done = f"nothing to do: these files were already appended to {folder}, {what}"
        title = f"{done}; use --again to append them once more"
    console.print_summary(title, report.splits)
    if report.renamed_count and report.is_new:
        print(f"  {console.count(report.renamed_count, 'shard')} renumbered")
    console.print_list("notices", report.notices)


def salvage(
    paths: Paths,
    out: Out,
    options: Annotated[dict[str, Any], OptionsOf("salvage", panels={WHICH: "split"})],
    json: Json = False,
) -> None:
    """Never writes to PATH. Recovers every record whose checksums match, anywhere in its file.
    Fixes and reports single flipped bits in lengths and checksums.

    Exits with 0 if nothing was lost, otherwise with 1.

    Example: `recordsmith salvage damaged rescued`
    """
    with console.progress_bar("salvaging", of_bytes=True) as progress:
        report = rs.salvage(one_or_all(paths), out, **options, progress=progress)
    console.print_result(report, lambda: _print_salvage_report(report), json=json)
    if not report.is_complete:
        raise typer.Exit(1)


def _print_salvage_report(report: SalvageReport) -> None:
    of_all = "" if report.expected_count is None else f" of {report.expected_count:,}"
    what = f"{report.record_count:,}{of_all} records"
    folder = console.printable(str(report.folder))
    title = f"recovered {what} into {folder}"
    console.print_line(title, title=title)
    lost = [shard for shard in report.shards if not shard.is_complete or shard.repair_count]
    for shard in lost[:_MAX_SHARDS]:
        _print_shard(shard)
    if len(lost) > _MAX_SHARDS:
        print(f"  … and {len(lost) - _MAX_SHARDS:,} more shards (all of them with --json)")
    whole = len(report.shards) - len(lost)
    if whole:
        print(f"  {console.count(whole, 'shard')} without defects")
    console.print_list("missing", report.missing)
    console.print_list("notices", report.notices)


def _print_shard(shard: SalvagedShard) -> None:
    if shard.file is None:
        console.print_line(f"{shard.path}: skipped, {shard.problem}", "  ")
        return
    of_all = "" if shard.expected_count is None else f" of {shard.expected_count:,}"
    where = ", in the decompressed data" if shard.compression != "none" else ""
    console.print_line(f"{shard.path}: {shard.record_count:,}{of_all} records{where}", "  ")
    ranges = [f"bytes {lost.start:,} to {lost.stop:,}: {lost.defect}" for lost in shard.lost]
    title = f"lost, {console.size(shard.lost_bytes)}"
    console.print_list(title, ranges, number=shard.lost_count, indent="    ")
    breaks = [f"bytes {lost.start:,} to {lost.stop:,}: {lost.defect}" for lost in shard.breaks]
    console.print_list("cannot be read or decompressed", breaks, indent="    ")
    repairs = [
        f"byte {repair.offset:,}, bit {repair.bit}, in {_FIELDS[repair.field]}"
        for repair in shard.repairs
    ]
    console.print_list("repaired", repairs, number=shard.repair_count, indent="    ")
