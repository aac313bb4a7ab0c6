"""`recordsmith inspect`."""

from __future__ import annotations

from collections.abc import Mapping

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Path, Split

_PAYLOADS = {
    "Example": "Examples",
    "SequenceExample": "SequenceExamples",
    "ELWC": "ranking lists (ELWC)",
    "Event": "TensorBoard events",
    "mixed": "payloads of several kinds",
    "none": "records",
    "other": "records that are no Examples",
}


def inspect(path: Path, split: Split = None, json: Json = False) -> None:
    """Say what a dataset holds: records, splits, features, classes, sizes.

    Example: `recordsmith inspect out`
    """
    with console.progress_bar("reading", of_bytes=True) as progress:
        inspection = rs.inspect(path, split, progress=progress)
    if json:
        console.print_json(inspection.to_json())
    else:
        print_inspection(inspection)


def print_inspection(inspection: rs.Inspection) -> None:
    """What there is, as tables."""
    compression = inspection.compression
    print(
        console.bold(f"{inspection.records:,} {_PAYLOADS[inspection.schema.payload]}")
        + f" in {console.count(len(inspection.shards), 'shard')}, "
        f"{console.size(inspection.size_bytes)}, "
        + ("not compressed" if compression == "none" else f"compressed with {compression}")
    )
    print()
    console.print_table(
        ("split", "records", "shards", "size"),
        [
            (
                name,
                f"{sum(shard.records for shard in shards):,}",
                f"{len(shards):,}",
                console.size(sum(shard.size_bytes for shard in shards)),
            )
            for name, shards in inspection.splits.items()
        ],
        right="records shards size",
    )
    for section, features in inspection.schema.sections.items():
        print()
        _print_features(section, features, inspection.records)
    if inspection.class_names is not None:
        print()
        names = [f"{label} {name}" for label, name in enumerate(inspection.class_names)]
        shown = ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
        print(f"{console.count(len(names), 'class', 'classes')}: {console.printable(shown)}")


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
                console.size(feature.value_bytes / max(1, feature.present)),
            )
        )
    console.print_table((title, "kind", "values", "records", "size"), rows, right="size")


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
