"""`recordsmith diff`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import EngineName, Json, Split, Threads
from recordsmith.cli.wording import how_to_show
from recordsmith.engines import parse_engine
from recordsmith.words import first_of

if TYPE_CHECKING:
    from recordsmith.examining.diff import DiffReport
    from recordsmith.examining.diff.comparing import RecordPlace


_SHOWN = 10
_FEATURES_SHOWN = 20


def diff(
    a: Annotated[
        str,
        typer.Argument(
            help="A TFRecord file, a folder, or a quoted pattern such as 'data/*.tfrecord'.",
            metavar="A",
            show_default=False,
        ),
    ],
    b: Annotated[
        str, typer.Argument(help="The dataset to compare it with.", metavar="B", show_default=False)
    ],
    by: Annotated[
        str | None,
        typer.Option(
            help="The feature that identifies records, such as id. [default: detected]",
            metavar="KEY",
        ),
    ] = None,
    split: Split = None,
    engine: EngineName = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Compare the records of two datasets, in any order and any shards.

    Exits with 1 if they differ.

    Example: `recordsmith diff out old`

    By a feature: `recordsmith diff a.tfrecord b.tfrecord --by id`
    """
    with console.progress_bar("comparing", of_bytes=True, again="reading what differs") as progress:
        on = parse_engine(engine)
        report = rs.diff(a, b, split=split, by=by, engine=on, threads=threads, progress=progress)
    if json:
        console.print_json(report.to_json())
    else:
        print_diff_report(report)
    if not report.is_equal:
        raise typer.Exit(1)


def print_diff_report(report: DiffReport) -> None:
    """Print whether the datasets are equal, and what differs."""
    same = console.count(report.same_count, "record")
    if report.is_equal:
        print(f"{console.bold('equal')}: the same {same}")
    else:
        print(f"{console.bold('different')}: {_headline(report)}")
    _print_notes(report)
    if report.moved_count:
        console.print_list(
            f"{console.count(report.moved_count, 'record')} in another split",
            [f"{move.a} -> {move.b}: {move.record_count:,}" for move in report.moves],
            _SHOWN,
        )
    console.print_list(
        "features of the datasets",
        [
            f"{(change.feature or repr('')) if change.section else 'payload'}"
            f"{_of_section(change.section)}: "
            f"{'' if change.what in ('feature', 'payload') else change.what + ' '}"
            f"{_arrow(change.a, change.b, 'missing')}"
            for change in report.schema
        ],
        _FEATURES_SHOWN,
    )
    for reason in report.uncompared:
        console.print_line(f"note: {reason}", "  ")
    if report.class_names_differ:
        console.print_list("class names", _differing_names(*report.class_names), _SHOWN)
    _print_changes(report)
    for side, count, listed in (
        ("A", report.left_only_count, report.left_only),
        ("B", report.right_only_count, report.right_only),
    ):
        console.print_list(
            f"{console.count(count, 'record')} only in {side}",
            [_place(record.place) + (f": {record.key}" if record.key else "") for record in listed],
            _SHOWN,
            number=count,
        )
        _print_commands(record.place for record in listed)


def _print_commands(places: Iterable[RecordPlace]) -> None:
    for line in how_to_show((place.path, place.record) for place in places)[:1]:
        console.print_line(line, "  ")


def _headline(report: DiffReport) -> str:
    parts = [f"{console.count(report.same_count, 'record')} in both"]
    if report.changed_count:
        parts.append(f"{report.changed_count:,} changed")
    if report.left_only_count:
        parts.append(f"{report.left_only_count:,} only in A")
    if report.right_only_count:
        parts.append(f"{report.right_only_count:,} only in B")
    if report.moved_count:
        parts.append(f"{report.moved_count:,} in another split")
    return ", ".join(parts)


def _print_notes(report: DiffReport) -> None:
    """Print what may differ between equal datasets."""
    for name, side in (("A", report.a), ("B", report.b)):
        splits = [f"{split} {count:,}" for split, count in side.splits.items()]
        compression = side.compression
        console.print_line(
            f"{name}: {console.count(side.record_count, 'record')} "
            f"({first_of(splits, _SHOWN)}) in {console.count(side.shard_count, 'shard')}, "
            f"{console.size(side.size_bytes)}, "
            + ("not compressed" if compression == "none" else f"compressed with {compression}"),
            "  ",
        )
    in_other_bytes = report.same_count - report.same_bytes_count
    if in_other_bytes:
        print(
            f"  {in_other_bytes:,} of the same records have other bytes: another order of "
            "features, or another packing of lists"
        )
    if not report.is_same_order:
        print("  the same records are in another order")
    if report.moves and not report.splits_are_comparable:
        print("  the splits have other names")
    a, b = report.class_names
    if (a is None) != (b is None) and not report.class_names_differ:
        print(f"  only {'B' if a is None else 'A'} has class names")


def _print_changes(report: DiffReport) -> None:
    if report.changed_features:
        among = (
            f"the first {report.compared_count:,} changed records"
            if report.compared_count < report.changed_count
            else console.count(report.changed_count, "changed record")
        )
        console.print_list(
            f"features that differ in {among}"
            + (f", matched by {report.by}" if report.by is not None else ""),
            [f"{name}: in {count:,}" for name, count in report.changed_features.items()],
            _FEATURES_SHOWN,
        )
    lines = []
    for change in report.changes[:_SHOWN]:
        lines.append(f"{change.key or 'a record'}  ({_place(change.a, 2)}; {_place(change.b, 2)})")
        lines += [
            f"  {feature.feature}{_of_section(feature.section)}: "
            f"{_arrow(feature.a, feature.b, 'missing')}"
            for feature in change.features[:_FEATURES_SHOWN]
        ]
    if lines:
        print(f"{console.count(report.changed_count, 'changed record')}:")
        for line in lines:
            console.print_line(line, "  ")
        left_out = report.changed_count - min(_SHOWN, len(report.changes))
        if left_out:
            listed = len(report.changes)
            print(f"  {console.and_more(left_out, listed, _SHOWN, report.changed_count)}")
        _print_commands(change.a for change in report.changes)
        _print_commands(change.b for change in report.changes)
    if report.shared_key_count:
        print(
            f"  {report.shared_key_count:,} more may be changed records, but share "
            f"their {console.printable(report.by or '')} with other records"
        )
    if report.by is None and report.left_only_count and report.right_only_count:
        console.print_line(
            "Records that differ in several features are listed as only in A and only in B: no "
            "feature identifies them. Name one with `--by KEY`."
        )


def _place(place: RecordPlace, of_line: int = 1) -> str:
    """A file and a position in it; `of_line`: how many of these are in the line."""
    return f"{console.fitting_path(place.path, 32, of_line)}, record {place.record}"


def _arrow(a: str | None, b: str | None, none: str) -> str:
    return console.printable(f"{none if a is None else a} -> {none if b is None else b}")


def _of_section(section: str) -> str:
    return {"": "", "features": ""}.get(section, f" ({section})")


def _differing_names(a: Sequence[str | None] | None, b: Sequence[str | None] | None) -> list[str]:
    if a is None or b is None:
        return [f"only {'B' if a is None else 'A'} has them"]
    pairs = zip_longest(a, b)
    return [
        f"{label}: {_arrow(one, other, 'none')}"
        for label, (one, other) in enumerate(pairs)
        if one != other
    ]
