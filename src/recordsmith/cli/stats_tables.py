"""Tables of statistics, for `recordsmith stats`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from recordsmith.cli import console
from recordsmith.cli.wording import how_to_show
from recordsmith.examining.stats.bytes_stats import BytesStats
from recordsmith.examining.stats.class_counts import ClassStats
from recordsmith.examining.stats.feature_stats import FeatureStats
from recordsmith.examining.stats.image_stats import ImageStats
from recordsmith.examining.stats.number_stats import NumberStats
from recordsmith.examining.stats.stats_text import (
    different_classes,
    distinct_text,
    groups_of,
    heading_of,
    left_out_text,
    masks_text,
    number_text,
    payloads_text,
    sizes_text,
    span_text,
    uncounted_text,
)

if TYPE_CHECKING:
    from recordsmith.examining.stats import StatsReport
    from recordsmith.examining.stats.box_stats import BoxStats
    from recordsmith.examining.stats.mask_stats import MaskStats


_BLOCKS = " ▁▂▃▄▅▆▇█"
_BAR = 24
_MOST_CLASSES = 30
_MOST_KEY = 32
_MOST_VALUE = 24
_MOST_FEATURES = 200  # in a table
_MOST_NAMED = 5  # features with the same finding
_MOST_OF_A_KIND = 5


def print_stats(report: StatsReport) -> None:
    """Print the tables; the findings come last."""
    payloads = payloads_text(report)
    print(
        console.bold(console.count(report.record_count, "record"))
        + f" in {console.count(len(report.shards), 'shard')}, "
        + console.size(report.size_bytes)
        + (f": {payloads}" if payloads else "")
    )
    _print_splits(report)
    for section, features in report.sections.items():
        if features:
            _print_section(section, features)
    for line in filter(None, (left_out_text(report), uncounted_text(report))):
        print()
        console.print_line(line)
    for key, classes in different_classes(report).items():
        _print_classes(key, classes)
    for key, masks in report.masks.items():
        _print_masks(key, masks)
    if report.boxes is not None:
        _print_boxes(report.boxes)
    _print_findings(report)


def _print_splits(report: StatsReport) -> None:
    print()
    rows = []
    splits = report.splits
    for split, shards in splits.items():
        sizes = [shard.size_bytes for shard in shards]
        rows.append(
            (
                split,
                f"{sum(shard.record_count for shard in shards):,}",
                f"{len(shards):,}",
                *map(console.size, (sum(sizes), min(sizes), max(sizes))),
            )
        )
    head = ("split", "records", "shards", "size", "smallest shard", "largest shard")
    shown = slice(None if any(len(shards) > 1 for shards in splits.values()) else -2)
    optional = ("smallest shard", "largest shard") if shown.stop is None else ()
    console.print_table(head[shown], [row[shown] for row in rows], head[1:], optional)


def _print_section(section: str, features: Mapping[str, FeatureStats]) -> None:
    title, counted = heading_of(section)
    print()
    rows = []
    for key, feature in islice(features.items(), _MOST_FEATURES):
        lengths = span_text(feature.lengths)
        if feature.steps is not None:
            lengths = f"{span_text(feature.steps)} steps of {lengths}"
        distinct = [distinct_text(values) for values in feature.values.values()]
        rows.append(
            (
                _short(key, _MOST_KEY),
                feature.kind,
                "all" if not feature.missing else f"{feature.present:,}",
                lengths,
                " + ".join(distinct) or "0",
                console.size(feature.value_bytes),
            )
        )
    head = (title, "kind", counted, "values", "distinct", "total size")
    right = (counted, "distinct", "total size")
    console.print_table(head, rows, right, optional=("total size",))
    more = len(features) - len(rows)
    if more > 0:
        print(f"  … and {console.count(more, 'more feature')} (all of them with --json)")
    shown = dict(islice(features.items(), _MOST_FEATURES))
    _print_numbers(shown)
    _print_bytes(shown)
    _print_images(shown)


def _print_numbers(features: Mapping[str, FeatureStats]) -> None:
    rows = []
    for key, feature in features.items():
        for values in feature.values.values():
            if not isinstance(values, NumberStats) or values.min is None:
                continue
            odd = [
                f"{count:,} {name}"
                for name, count in (("NaN", values.nan), ("infinite", values.infinite))
                if count
            ]
            rows.append(
                (
                    _short(key, _MOST_KEY),
                    number_text(values.min),
                    number_text(values.quantiles[0.5]),
                    number_text(values.max),
                    number_text(values.mean),
                    number_text(values.std),
                    _bars(values.histogram),
                    ", ".join(odd),
                )
            )
    if rows:
        print()
        console.print_table(
            ("numbers", "min", "median", "max", "mean", "std", "from min to max", ""),
            rows,
            right="min median max mean std",
            optional=("from min to max", "std"),
        )


def _print_bytes(features: Mapping[str, FeatureStats]) -> None:
    rows = []
    for key, feature in features.items():
        values = feature.values.get("bytes")
        if not isinstance(values, BytesStats) or values.images is not None:
            continue
        top = values.top[0] if values.top else None
        often = ""
        if top is not None and top.count > 1:
            text = repr(top.text) if top.text is not None else f"0x{top.begins[:8].hex()}…"
            often = f"{_short(text, _MOST_VALUE)} {top.count:,} times"
        mean = values.sizes.mean or 0
        rows.append(
            (
                _short(key, _MOST_KEY),
                f"{values.sizes.min or 0:,}",
                f"{mean:,.1f}",
                f"{values.sizes.max or 0:,}",
                _content(values),
                often,
            )
        )
    if rows:
        print()
        console.print_table(
            ("bytes", "min size", "mean size", "max size", "content", "most frequent"),
            rows,
            right=("min size", "mean size", "max size"),
            optional=("most frequent",),
        )


def _print_images(features: Mapping[str, FeatureStats]) -> None:
    for key, feature in features.items():
        values = feature.values.get("bytes")
        if not isinstance(values, BytesStats) or values.images is None:
            continue
        images = values.images
        print()
        print(console.bold(f"images in {console.printable(_short(key, _MOST_KEY))}"))
        formats = ", ".join(
            f"{count:,} {name}{_variants(images, name)}" for name, count in images.formats.items()
        )
        channels = ", ".join(
            f"{count:,} with {console.count(number, 'channel')}"
            for number, count in images.channels.items()
        )
        print(f"  {formats or 'none with a valid header'}; {channels or 'unknown channels'}")
        if not images.count:
            continue
        _print_spreads(
            ("width", images.widths, number_text),
            ("height", images.heights, number_text),
            ("file size", values.sizes, console.size),
        )
        often = [size for size in images.sizes if size.count > 1 or images.count == 1][:4]
        if often:
            sizes = ", ".join(f"{width}x{height} ({count:,})" for width, height, count in often)
            print(f"  most frequent: {sizes}")


def _variants(images: ImageStats, format_: str) -> str:
    """Return which of the images of a format are progressive, tiled, animated, …"""
    found = [
        f"{count:,} {name.removesuffix(format_).rstrip()}"
        for name, count in images.variants.items()
        if name.endswith(f" {format_}")
    ]
    return f" ({', '.join(found)})" if found else ""


def _print_classes(key: str, classes: ClassStats) -> None:
    splits = list(classes.splits)
    ordered = classes.by_name()
    if not ordered:
        return
    print()
    most = sum(ordered[0][1].values())
    rows = [
        (
            _short(name, _MOST_KEY),
            *(f"{counts.get(split, 0):,}" for split in splits),
            "█" * max(1, round(_BAR * sum(counts.values()) / most)),
        )
        for name, counts in ordered[:_MOST_CLASSES]
    ]
    title = f"{console.count(len(ordered), 'class', 'classes')} in {_short(key, _MOST_KEY)}"
    console.print_table((title, *splits, ""), rows, splits, optional=("",))
    if len(ordered) > _MOST_CLASSES:
        print(f"  … and {len(ordered) - _MOST_CLASSES:,} more (all of them with --json)")
    if classes.error:
        print(f"  approximate: a count may be up to {classes.error:,} too low")


def _print_masks(key: str, masks: MaskStats) -> None:
    title = f"{masks_text(masks)} in {_short(key, _MOST_KEY)}"
    ordered = sorted(masks.classes, key=lambda found: -found.pixels)
    rows = [
        (
            _short(str(found), _MOST_KEY),
            f"{found.pixels / masks.pixels:.2%}",
            f"{found.masks:,}",
            "█" * max(1, round(_BAR * found.pixels / ordered[0].pixels)),
        )
        for found in ordered[:_MOST_CLASSES]
    ]
    print()
    head = (title, "pixels", "masks", "")
    console.print_table(head, rows, ("pixels", "masks"), optional=("",))
    if len(ordered) > _MOST_CLASSES:
        print(f"  … and {len(ordered) - _MOST_CLASSES:,} more (all of them with --json)")


def _print_boxes(boxes: BoxStats) -> None:
    print()
    print(console.bold(console.count(boxes.count, "box", "boxes")))
    _print_spreads(
        ("boxes per record", boxes.per_image, number_text),
        ("width (of the image)", boxes.widths, "{:.1%}".format),
        ("height", boxes.heights, "{:.1%}".format),
        ("area", boxes.areas, "{:.2%}".format),
    )
    sizes = sizes_text(boxes)
    if sizes is not None:
        print(f"  {sizes}")


def _print_spreads(*rows: tuple[str, NumberStats, Callable[[float], str]]) -> None:
    console.print_table(
        ("  ", "min", "median", "max"),
        [(f"  {name}", *map(show, _spread(numbers))) for name, numbers, show in rows],
        right="min median max",
    )


def _print_findings(report: StatsReport) -> None:
    print()
    findings = report.findings
    if not findings:
        print(console.bold("no findings"))
        return
    print(console.bold(console.count(len(findings), "finding")))
    for group in groups_of(findings, _MOST_NAMED, _MOST_OF_A_KIND):
        names = ", ".join(_short(key, _MOST_KEY) for key in group.features)
        names += f" and {group.more:,} more" if group.more else ""
        about = f"{names}: " if names else ""
        console.print_line(f"{group.kind}: {about}{group.text}", "  ")
        for command in how_to_show((place.path, place.record) for place in group.places):
            console.print_line(command, "    ")


def _spread(numbers: NumberStats) -> Sequence[float]:
    return numbers.min or 0, numbers.quantiles.get(0.5, 0), numbers.max or 0


def _content(values: BytesStats) -> str:
    counts = {"text": values.text, "raw": values.raw, "image": values.image_count}
    there = {name: count for name, count in counts.items() if count}
    if len(there) == 1:
        return next(iter(there))
    return ", ".join(f"{count / values.count:.0%} {name}" for name, count in there.items())


def _bars(histogram: Sequence[int]) -> str:
    most = max(histogram, default=0)
    return "".join(
        _BLOCKS[-(-count * (len(_BLOCKS) - 1) // most) if count else 0] for count in histogram
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
