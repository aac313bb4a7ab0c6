"""`recordsmith inspect`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Paths, Split, Threads, one_or_all
from recordsmith.cli.pages import Html, OverwritePage, check_html, title_of
from recordsmith.errors import OptionError

_PAYLOADS = {  # payload -> what one is called, and several
    "Example": ("Example", "Examples"),
    "SequenceExample": ("SequenceExample", "SequenceExamples"),
    "ELWC": ("ranking list (ELWC)", "ranking lists (ELWC)"),
    "Event": ("TensorBoard event", "TensorBoard events"),
    "mixed": ("record", "records of several kinds"),
    "none": ("record", "records"),
    "other": ("record that is no Example", "records that are no Examples"),
}

_FIELDS_SHOWN = 40
_SPLITS_SHOWN = 10


def inspect(
    paths: Paths,
    split: Split = None,
    reader: Annotated[
        str | None,
        typer.Option(
            help="Print instead a program that reads these files: tf, torch, dali or grain.",
            metavar="NAME",
        ),
    ] = None,
    stats: Annotated[
        bool,
        typer.Option(
            "--stats",
            help="Read every record: ranges, distinct values, classes, pictures, duplicates.",
        ),
    ] = False,
    html: Html = None,
    overwrite: OverwritePage = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Say what a dataset holds: records, splits, features, classes, sizes.

    With --stats, read every record and print figures of each feature, and what is wrong with them.

    With --reader, print a program that reads it, with every feature declared, to be pasted.

    Example: `recordsmith inspect out`

    Figures: `recordsmith inspect out --stats --html stats.html`

    A program: `recordsmith inspect out --reader torch > read_it.py`
    """
    if not stats and (html is not None or threads is not None or overwrite):
        raise OptionError("--html, --overwrite and --threads are for --stats; say --stats as well")
    if reader is not None and (json or stats):
        other = "--json a document" if json else "--stats figures"
        raise OptionError(f"--reader prints a program, {other}; expected one of them")
    if stats:
        check_html(html, overwrite=overwrite)
        with console.progress_bar("reading", of_bytes=True) as progress:
            statistics = rs.statistics(one_or_all(paths), split, threads=threads, progress=progress)
        if html is not None:
            rs.draw_statistics(statistics, html, title=title_of(paths), overwrite=overwrite)
        if json:
            console.print_json(statistics.to_json())
        else:
            from recordsmith.cli.statistics import print_statistics  # NumPy only when needed

            print_statistics(statistics)
        return
    with console.progress_bar("reading", of_bytes=True) as progress:
        if reader is not None:
            name: Any = reader
            code = rs.reader_code(one_or_all(paths), name, split, progress=progress)
        else:
            inspection = rs.inspect(one_or_all(paths), split, progress=progress)
    if reader is not None:
        console.print_code(code)
    elif json:
        console.print_json(inspection.to_json())
    else:
        print_inspection(inspection)


def print_inspection(inspection: rs.Inspection) -> None:
    """What there is, as tables."""
    compression = inspection.compression
    print(
        console.bold(console.count(inspection.record_count, *_PAYLOADS[inspection.schema.payload]))
        + f" in {console.count(len(inspection.shards), 'shard')}, "
        f"{console.size(inspection.size_bytes)}, "
        + ("not compressed" if compression == "none" else f"compressed with {compression}")
    )
    print()
    _print_splits(inspection)
    for section, features in inspection.schema.sections.items():
        if not features:
            continue
        print()
        _print_features(section, features, inspection.record_count)
    if inspection.schema.remark is not None:
        print()
        console.print_line(f"{inspection.schema.remark}.")
    _print_other_fields(inspection)
    if inspection.class_names is not None:
        print()
        names = [
            f"{label} {name}"
            for label, name in enumerate(inspection.class_names)
            if name is not None
        ]
        shown = ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
        console.print_line(f"{console.count(len(names), 'class', 'classes')}: {shown}")
    if inspection.from_manifest:
        print("\nThis is what its manifest says; `recordsmith verify` proves it.")


def _print_splits(inspection: rs.Inspection) -> None:
    """A row for each; where no name tells a split, as part-07 does not, they are called files."""
    from recordsmith.dataset import tells_split  # NumPy only when needed

    rows = [
        (
            name,
            f"{sum(shard.record_count for shard in shards):,}",
            f"{len(shards):,}",
            console.size(sum(shard.size_bytes for shard in shards)),
        )
        for name, shards in inspection.splits.items()
    ]
    are_files = not inspection.from_manifest and not any(
        tells_split(Path(shard.path).name, name)
        for name, shards in inspection.splits.items()
        for shard in shards
    )
    console.print_table(
        ("file" if are_files else "split", "records", "shards", "size"),
        rows[:_SPLITS_SHOWN],
        right="records shards size",
    )
    if len(rows) > _SPLITS_SHOWN:
        print(console.and_more(len(rows) - _SPLITS_SHOWN, len(rows), _SPLITS_SHOWN))


def _print_features(section: str, features: Mapping[str, rs.FeatureSchema], records: int) -> None:
    is_list = section == "feature_lists"
    title = {"features": "feature", "feature_lists": "feature list"}.get(section, section)
    rows = []
    for key, feature in features.items():
        values = _span(feature.min_length, feature.max_length)
        if is_list and feature.min_steps is not None and feature.max_steps is not None:
            values = f"{_span(feature.min_steps, feature.max_steps)} steps of {values}"
        rows.append(
            (
                key,
                feature.kind + (f" ({feature.content})" if feature.content else ""),
                values,
                "all" if feature.present == records else f"{feature.present:,}",
                f"{feature.value_bytes / max(1, feature.present):,.0f}",
            )
        )
    console.print_table((title, "kind", "values", "records", "bytes each"), rows)


def _print_other_fields(inspection: rs.Inspection) -> None:
    """What records are that are no Examples, as far as their bytes tell."""
    found = inspection.other_fields
    if found is None or not found.record_count:
        return
    print()
    number, messages = found.record_count, found.message_count
    if number == 1:
        told = f"The record that is no Example is {'a' if messages else 'no'} protobuf message"
    else:
        are = console.count(messages, "is a protobuf message", "are protobuf messages")
        told = f"Of the first {number:,} records that are no Examples, {are}"
    told += " of unknown type" if messages else ""
    console.print_line(f"{told}; `recordsmith head` shows what is there.")
    if not messages:
        return
    rows = [
        (
            str(field.number),
            ", ".join(field.wire_types),
            ", ".join(field.contents),
            f"{field.present:,}",
            f"{field.count / field.present:,.1f}",
        )
        for field in found.fields[:_FIELDS_SHOWN]
    ]
    console.print_table(("field", "wire type", "seems to be", "records", "times each"), rows)
    if len(found.fields) > _FIELDS_SHOWN:
        print(f"… and {len(found.fields) - _FIELDS_SHOWN:,} more fields")


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
