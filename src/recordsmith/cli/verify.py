"""`recordsmith verify`."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Paths, Split, Threads, one_or_all
from recordsmith.cli.pages import Html, OverwritePage, check_html, title_of
from recordsmith.errors import Defect
from recordsmith.words import first_of

_EXAMPLES = 3  # records that are shown of those with the same defect in the same feature
_POSITIONS = 10
_LOST_WAY = (Defect.LENGTH_CRC, Defect.BROKEN_COMPRESSION)  # what lies behind cannot be reached
_MOST_PATHS = 3  # that are repeated in a command to be copied


def verify(
    paths: Paths,
    split: Split = None,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Look into the records too: every payload, and every picture, decoded whole.",
        ),
    ] = False,
    schema: Annotated[
        str | None,
        typer.Option(
            help="Hold each record against this file, as `recordsmith schema` writes them.",
            metavar="FILE",
        ),
    ] = None,
    html: Html = None,
    overwrite: OverwritePage = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Check every record of every shard, and the shards against their manifest.

    Exits with 1 and the list of defects if something is wrong.

    Example: `recordsmith verify out --deep`

    By rules: `recordsmith verify new --schema schema.json`
    """
    check_html(html, overwrite=overwrite)
    with console.progress_bar("verifying", of_bytes=True) as progress:
        report = rs.verify(
            one_or_all(paths),
            split,
            deep=deep,
            schema=schema,
            threads=threads,
            progress=progress,
        )
    if html is not None:
        rs.draw_verify_report(report, html, title=title_of(paths), overwrite=overwrite)
    if json:
        console.print_json(report.to_json())
    else:
        print_verify_report(report, schema=schema, paths=paths)
    if not report.is_good:
        raise typer.Exit(1)


def print_verify_report(
    report: rs.VerifyReport, *, schema: str | None = None, paths: Sequence[str] = ()
) -> None:
    """What was found, each defect in a line, and in words what they mean.

    Args:
        report: of a verification.
        schema: the rules that the records were held against.
        paths: what was verified, as the user typed it.
    """
    intact = console.count(report.record_count, "intact record")
    if report.expected_record_count not in (None, report.record_count):
        intact = f"{report.record_count:,} intact of {report.expected_record_count:,} records"
    read = (
        f"{intact} in "
        f"{console.count(report.shard_count, 'shard')}, {console.size(report.size_bytes)}"
    )
    if report.picture_count:
        read += f", {console.count(report.picture_count, 'picture')} decoded"
    if report.is_good:
        all_was_seen = report.is_deep and not report.remarks
        also = ", and so is what the records hold" if all_was_seen else ""
        if schema is not None:
            also += f"; every record keeps the rules of {schema}"
        console.print_line(f"good: {read}; every checksum is right{also}", title="good")
    else:
        defects = console.count(report.defect_count, "defect")
        if any(error.defect in _LOST_WAY for error in report.defects):
            read += "; what lies behind the damage was not looked at"
        console.print_line(f"{defects}; {read}", title=defects)
    _print_defects(report)
    if report.defect_count > len(report.defects):
        print(f"  … and {report.defect_count - len(report.defects):,} more")
    for notice in report.notices:
        console.print_line(f"not condemned: {notice}", "  ")
    for remark in [*_of_compression(report), *report.remarks]:
        console.print_line(f"to know: {remark}", "  ")
    typed = shlex.join(paths) if 0 < len(paths) <= _MOST_PATHS else "PATH"
    salvage = f"`recordsmith salvage {typed} OUT`"
    explanations = report.to_json()["explanations"]
    for name, words in explanations.items():
        print()
        console.print_line(f"{name}: {words['meaning']}", title=name)
        console.print_line(words["advice"].replace("`recordsmith salvage`", salvage), "  ")


def _of_compression(report: rs.VerifyReport) -> Iterator[str]:
    """What TensorFlow must be told: without it, it takes good files for damaged ones."""
    counts = Counter(shard.compression for shard in report.shards)
    for name in ("gzip", "zlib"):
        if counts[name]:
            which = "the file is"
            if report.shard_count > 1:
                which = f"{counts[name]:,} of {report.shard_count:,} files are"
            yield (
                f"{which} compressed with {name}: TensorFlow reads that only with "
                f'`compression_type="{name.upper()}"`, and says "corrupted record at 0" without'
            )


def _print_defects(report: rs.VerifyReport) -> None:
    """A line for each; of many records of a shard that have one defect in one feature a few."""
    untold = set(report.compressions)  # files of which it is not said yet what their bytes count
    groups: dict[object, list[rs.CorruptDataError]] = {}
    for error in report.defects:
        has_many = error.feature is not None and error.position is not None
        same = (error.path, error.defect, error.feature) if has_many else id(error)
        groups.setdefault(same, []).append(error)
    for group in groups.values():
        # as many lines as a group of one more would take
        shown = len(group) if len(group) <= _EXAMPLES + 1 else _EXAMPLES
        for error in group[:shown]:
            console.print_line(str(error), "  ")
            if error.offset is not None and error.path in untold:
                untold.remove(error.path)
                print("    (the bytes of this file are counted in its decompressed data)")
        if shown < len(group):
            rest = [error.position for error in group[shown:]]
            positions = [f"{position:,}" for position in dict.fromkeys(rest)]
            line = f"{group[0].defect} of {group[0].feature!r} "
            if len(positions) == len(rest):
                line += f"in {len(positions):,} more records"
            else:  # of several Examples of a ranking list
                line += f"{len(rest):,} more times, in {console.count(len(positions), 'record')}"
            line += f": {first_of(positions, _POSITIONS)}"
            console.print_line(f"… {line}", "    ")
