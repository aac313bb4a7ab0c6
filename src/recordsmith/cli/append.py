"""`recordsmith append`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import Json, Paths, one_or_all
from recordsmith.cli.pack import print_detected, print_findings
from recordsmith.errors import OptionError, option
from recordsmith.stores import as_folder

if TYPE_CHECKING:
    from recordsmith.packing import PackReport
    from recordsmith.reshaping import AppendReport


def append(
    paths: Paths,
    out: str,
    options: Annotated[dict[str, Any], OptionsOf("append")],
    *,
    pack: bool = False,
    skip_errors: bool = False,
    no_lock: bool = False,
    json: Json = False,
) -> None:
    """Renumbers the shards of the split and updates schema, class names and manifest. If the
    command is interrupted, rerun it to finish. Files that were appended before are skipped.

    Example: `recordsmith append 'today/*.tfrecord' out --split train`

    Args:
        out: the dataset to add the records to.
        pack: PATH is data such as a folder of images: pack it first, with the options and class
            numbers of OUT.
        skip_errors: with --pack: skip samples that cannot be read and report them.
        no_lock: for file systems without locks: make sure that no other job changes OUT.
    """
    packed = None
    if pack:
        packed = _pack(paths, out, options.get("threads"), skip_errors=skip_errors, json=json)
    try:
        with console.progress_bar("appending", of_bytes=True, speed=False) as progress:
            report = rs.append(
                one_or_all(paths) if packed is None else packed.folder,
                out,
                lock=not no_lock,
                **options,
                progress=progress,
            )
    except rs.RecordsmithError:
        _delete(packed)
        raise
    _delete(packed)
    if json:
        document = report.to_json()
        if packed is not None:
            document["packed"] = packed.to_json()
        console.print_json(document)
        return
    if packed is not None:
        print_findings(packed)
    print_append_report(report)


def _delete(packed: PackReport | None) -> None:
    if packed is not None:
        from recordsmith.building import delete_dataset

        delete_dataset(packed.folder)


def _pack(
    paths: list[str], out: str, threads: int | None, *, skip_errors: bool, json: bool
) -> PackReport:
    """Pack data like a dataset, into a hidden folder of it."""
    from recordsmith.dataset.names import INTERNAL_FOLDER

    if len(paths) != 1:
        raise OptionError(
            f"{option('pack')} packs one folder or file",
            option="pack",
            value=paths,
            remedy="Append them one by one.",
        )
    detected = rs.detect(paths[0])
    reading = detected.reading
    is_one_folder = reading.options.keys() == {"images"} and reading.format == "files"
    if is_one_folder and rs.open(out).class_names:  # its name is that of a class
        detected = rs.detect(paths[0], "folder")
    listed = print_detected(detected, json=json)
    folder = as_folder(out) / INTERNAL_FOLDER / "packed"
    with console.progress_bar("packing") as progress:
        return rs.pack(
            listed,
            folder,
            like=out,
            skip_errors=skip_errors,
            overwrite=True,
            threads=threads,
            progress=progress,
        )


def print_append_report(report: AppendReport) -> None:
    """Print the summary of a job."""
    folder = console.printable(str(report.folder))
    what = console.count(report.appended_count, "record")
    if report.is_new:
        title = f"appended {what} to {folder}"
    else:
        done = f"nothing to do: these files were already appended to {folder}, {what}"
        title = f"{done}; use --again to append them once more"
    console.print_summary(title, report.splits)
    if report.renamed_count and report.is_new:
        print(f"  {console.count(report.renamed_count, 'shard')} renumbered")
    console.print_list("notices", report.notices)
