"""`recordsmith inspect`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import WHICH, Json, Paths, one_or_all
from recordsmith.errors import OptionError, option

if TYPE_CHECKING:
    from recordsmith.examining import Inspection


_PAYLOADS = {  # payload -> singular and plural
    "Example": ("Example", "Examples"),
    "SequenceExample": ("SequenceExample", "SequenceExamples"),
    "ELWC": ("ranking list (ELWC)", "ranking lists (ELWC)"),
    "Event": ("TensorBoard event", "TensorBoard events"),
    "mixed": ("record", "records of several kinds"),
    "none": ("record", "records"),
    "other": ("record that is not an Example", "records that are not Examples"),
}

_SPLITS_SHOWN = 10


def inspect(
    paths: Paths,
    options: Annotated[dict[str, Any], OptionsOf("inspect", panels={WHICH: "split"})],
    *,
    reader: str | None = None,
    json: Json = False,
) -> None:
    """With --reader, prints Python code that reads the dataset with all its features.

    Example: `recordsmith inspect out`

    Python code: `recordsmith inspect out --reader torch > read_it.py`

    Args:
        reader: print Python code that reads the dataset: for tf, torch, dali or grain.
    """
    if reader is not None and json:
        raise OptionError(
            f"{option('reader')} and {option('json')} exclude each other",
            option="reader",
            remedy="Pass only one of them.",
        )
    if reader is not None:
        name: Any = reader
        with console.progress_bar("reading", of_bytes=True) as progress:
            code = rs.reader_code(one_or_all(paths), name, **options, progress=progress)
        console.print_code(code)
        return
    with console.progress_bar("reading", of_bytes=True) as progress:
        inspection = rs.inspect(one_or_all(paths), **options, progress=progress)
    console.print_result(inspection, lambda: print_inspection(inspection), json=json)


def print_inspection(inspection: Inspection) -> None:
    """Print the contents as tables."""
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
    if inspection.schema.omission is not None:
        print()
        console.print_line(f"{inspection.schema.omission}.")
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
        print()
        console.print_line("Read from dataset.json; run `recordsmith verify` to check the files.")


def _print_splits(inspection: Inspection) -> None:
    """Print a row per split, or per file if no file name contains a split, such as part-07."""
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
        tells_split(PurePath(shard.path).name, name)
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
    head = (title, "kind", "values per record", "records", "stored bytes")
    console.print_table(head, rows, optional=("stored bytes",))


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
