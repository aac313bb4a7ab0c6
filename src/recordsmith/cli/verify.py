"""`recordsmith verify`."""

from __future__ import annotations

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Paths, Split, Threads, one_or_all


def verify(paths: Paths, split: Split = None, threads: Threads = None, json: Json = False) -> None:
    """Check every record of every shard, and the shards against their manifest.

    Exits with 1 and the list of defects if something is wrong.

    Example: `recordsmith verify out`
    """
    with console.progress_bar("verifying", of_bytes=True) as progress:
        report = rs.verify(one_or_all(paths), split, threads=threads, progress=progress)
    if json:
        console.print_json(report.to_json())
    else:
        print_verify_report(report)
    if not report.is_good:
        raise typer.Exit(1)


def print_verify_report(report: rs.VerifyReport) -> None:
    """What was found, and each defect in a line."""
    read = (
        f"{console.count(report.record_count, 'intact record')} in "
        f"{console.count(report.shard_count, 'shard')}, {console.size(report.size_bytes)}"
    )
    if report.is_good:
        print(f"{console.bold('good')}: {read}; every checksum is right")
        return
    print(f"{console.bold(console.count(report.defect_count, 'defect'))}; {read}")
    for defect in report.defects:
        print(f"  {console.printable(str(defect))}")
    if report.defect_count > len(report.defects):
        print(f"  … and {report.defect_count - len(report.defects):,} more")
