"""What a terminal and a page show of statistics: figures, tables, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from recordsmith.examining.shard_summaries import PAYLOADS, SECTIONS, span
from recordsmith.examining.stats.box_stats import COCO_SIDES, BoxStats
from recordsmith.examining.stats.class_counts import TEXT_OF_LABEL, ClassStats
from recordsmith.examining.stats.feature_stats import BytesSample, BytesStats, FeatureStats
from recordsmith.examining.stats.findings import group_findings
from recordsmith.examining.stats.image_stats import ImageStats
from recordsmith.examining.stats.mask_stats import MaskStats
from recordsmith.examining.stats.number_stats import NumberStats
from recordsmith.examining.stats.record_builder import MAX_FEATURES, MAX_LEFT_OUT
from recordsmith.reports import (
    Bar,
    Cell,
    Histogram,
    ReportContent,
    ReportTable,
)
from recordsmith.words import count as format_count
from recordsmith.words import size as format_size

if TYPE_CHECKING:
    from recordsmith.examining.stats.stats_report import StatsReport

_FOREIGN = ("ELWC", "Event", "other")
_LARGE = 10**10
_CLASS_ROWS = 30  # on a terminal
_NAME_WIDTH = 48
_TOP_SHOWN = 4


def stats_content(report: StatsReport) -> ReportContent:
    """Return what a terminal and a page show of statistics."""
    findings = len(report.findings)
    size = format_size(report.size_bytes)
    number = len(report.payloads)
    payloads = ", ".join(
        PAYLOADS[payload][n != 1] if number == 1 else format_count(n, *PAYLOADS[payload])
        for payload, n in report.payloads.items()
    )
    shards = format_count(len(report.shards), "shard")
    summary = f"{format_count(report.record_count, 'record')} in {shards}, {size}"
    return ReportContent(
        summary=f"{summary}: {payloads}" if payloads else summary,
        verdict=format_count(findings, "finding") if findings else "no findings",
        level="note" if findings else "good",
        figures=(
            (f"{report.record_count:,}", "records"),
            (f"{len(report.shards):,}", "shards"),
            (size, "read"),
            (f"{sum(map(len, report.sections.values())):,}", "features"),
        ),
        tables=[table for table in _tables(report) if table.rows],
        findings=[*group_findings(report.findings)],
        notes=[*_notes(report)],
    )


def _tables(report: StatsReport) -> Iterator[ReportTable]:
    yield report.splits_table()
    for section, features in report.sections.items():
        yield _features(section, features)
        yield _numbers(features)
        yield _bytes(features)
        for key, feature in features.items():
            values = feature.values.get("bytes")
            if isinstance(values, BytesStats) and values.images is not None:
                yield _images(key, values, values.images)
    counts = {key: _counts(classes) for key, classes in report.classes.items()}
    repeated = {  # texts that only repeat the names of the labels
        text for key, text in TEXT_OF_LABEL.items() if counts.get(key) == counts.get(text)
    }
    for key, classes in report.classes.items():
        if key not in repeated:
            yield _classes(key, classes)
    for key, masks in report.masks.items():
        yield _masks(key, masks)
    if report.boxes is not None:
        yield _boxes(report.boxes)


def _notes(report: StatsReport) -> Iterator[str]:
    if report.left_out:
        least = "at least " if report.left_out >= MAX_LEFT_OUT else ""
        have = "has" if report.left_out == 1 else "have"
        yield (
            f"{least}{format_count(report.left_out, 'more feature')} {have} no statistics: only "
            f"the first {MAX_FEATURES:,} get them. If feature names contain values, such as an id, "
            "store these in one feature with the same name in all records."
        )
    number = sum(report.payloads.get(payload, 0) for payload in _FOREIGN)
    if number:
        is_all = number == report.record_count
        records = "all records" if is_all else format_count(number, "record")
        are = "is not an Example" if number == 1 and not is_all else "are not Examples"
        yield f"{records} {are}: only sizes are shown. `recordsmith head` shows their contents"


def _features(section: str, features: Mapping[str, FeatureStats]) -> ReportTable:
    rows = []
    for key, feature in features.items():
        lengths = _span(feature.lengths)
        if feature.steps is not None:
            lengths = f"{_span(feature.steps)} steps of {lengths}"
        distinct = " + ".join(_distinct(values) for values in feature.values.values())
        present = "all" if not feature.missing else f"{feature.present:,}"
        size = format_size(feature.value_bytes)
        rows.append((key, feature.kind, present, lengths, distinct or "0", size))
    heads = (SECTIONS[section], "kind", "records", "values", "distinct", "total size")
    return ReportTable("", heads, rows, ("records", *heads[4:]), heads[-1:])


def _numbers(features: Mapping[str, FeatureStats]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    sizes = set()
    for key, feature in features.items():
        for values in feature.values.values():
            if not isinstance(values, NumberStats) or values.sample is None:
                continue
            sample = values.sample
            counts = {"NaN": values.nan, "infinite": values.infinite}
            odd = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
            numbers = (values.min, sample.median, values.max, values.mean, sample.std)
            bars = Histogram(sample.edges, sample.histogram)
            rows.append((key, *map(_number, numbers), bars, odd))
            sizes.add((sample.size, values.finite))
    heads = ("numbers", "min", "median", "max", "mean", "std", "from min to max", "not finite")
    return ReportTable(
        "",
        heads,
        rows,
        heads[1:6],
        (heads[6], heads[5]),
        () if any(row[7] for row in rows) else heads[7:],
        _sampled(sizes, "median, std and bars"),
    )


def _bytes(features: Mapping[str, FeatureStats]) -> ReportTable:
    rows = []
    sizes = set()
    for key, feature in features.items():
        values = feature.values.get("bytes")
        if not isinstance(values, BytesStats) or values.images is not None:
            continue
        sample = values.sample
        names = [
            (_short(repr(top.text) if top.text is not None else f"0x{top.begins[:8].hex()}…"), n)
            for top in sample.top
            for n in [top.count]
        ]
        mean = f"{values.sizes.mean or 0:,.1f}"
        low, high = (f"{size or 0:,}" for size in (values.sizes.min, values.sizes.max))
        rows.append((key, low, mean, high, _content(values), _top(names, sample)))
        sizes.add((sample.size, values.count))
    heads = ("bytes", "min size", "mean size", "max size", "content", "most frequent")
    return ReportTable(
        "", heads, rows, heads[1:4], heads[-1:], (), _sampled(sizes, "frequent values")
    )


def _sampled(sizes: set[tuple[int, int]], what: str) -> str:
    """Return a note if some samples do not have all values."""
    partial = [size for size, count in sizes if size < count]
    return f"{what}: from a sample of {max(partial):,} values of each feature" if partial else ""


def _top(values: Sequence[tuple[str, int]], sample: BytesSample) -> str:
    """Return the values that occur more than once; none if all are equally frequent."""
    if sample.distinct > 1 and len({count for _, count in values}) < 2:
        return ""
    often = [f"{name} {count / sample.size:.1%}" for name, count in values if count > 1]
    return ", ".join(often[:2])


def _images(key: str, values: BytesStats, images: ImageStats) -> ReportTable:
    formats = ", ".join(f"{count:,} {name}" for name, count in images.formats.items())
    channels = ", ".join(
        f"{count:,} with {format_count(number, 'channel')}"
        for number, count in images.channels.items()
    )
    often = [size for size in images.sizes if size.count > 1 or images.count == 1][:_TOP_SHOWN]
    sizes = ", ".join(f"{width} x {height} ({count:,})" for width, height, count in often)
    note = f"{formats or 'none with a valid header'}; {channels or 'unknown channels'}"
    note += f"; most frequent: {sizes}" if sizes else ""
    rows = [
        _spread("width", images.widths, _number),
        _spread("height", images.heights, _number),
        _spread("file size", values.sizes, format_size),
    ]
    return _spread_table(f"images in {_short(key)}", rows, note)


def _boxes(boxes: BoxStats) -> ReportTable:
    note = ""
    if boxes.small + boxes.medium + boxes.large:
        low, high = COCO_SIDES
        note = (
            f"{boxes.small:,} small (below {low} x {low} pixels), {boxes.medium:,} medium (below "
            f"{high} x {high}), {boxes.large:,} large"
        )
    rows = [
        _spread("boxes per record", boxes.per_image, _number),
        _spread("width (of the image)", boxes.widths, "{:.1%}".format),
        _spread("height", boxes.heights, "{:.1%}".format),
        _spread("area", boxes.areas, "{:.2%}".format),
    ]
    return _spread_table(format_count(boxes.count, "box", "boxes"), rows, note)


def _spread(name: str, numbers: NumberStats, show: Callable[[float], str]) -> tuple[Cell, ...]:
    sample = numbers.sample
    if sample is None or numbers.min is None or numbers.max is None:
        return name, "", "", "", ""
    shown = map(show, (numbers.min, sample.median, numbers.max))
    return name, *shown, Histogram(sample.edges, sample.histogram)


def _spread_table(title: str, rows: Sequence[Sequence[Cell]], note: str) -> ReportTable:
    heads = ("", "min", "median", "max", "from min to max")
    return ReportTable(title, heads, rows, heads[1:4], heads[4:], (), note)


def _counts(classes: ClassStats) -> dict[str, dict[int | str, int]]:
    return {
        split: {label.name or label.label: label.count for label in labels}
        for split, labels in classes.splits.items()
    }


def _classes(key: str, classes: ClassStats) -> ReportTable:
    splits = list(classes.splits)
    ordered = [(name, counts, sum(counts.values())) for name, counts in classes.by_name()]
    rows: list[tuple[Cell, ...]] = [
        (name, *(f"{counts.get(split, 0):,}" for split in splits), Bar(total / ordered[0][2]))
        for name, counts, total in ordered
    ]
    title = f"{format_count(len(ordered), 'class', 'classes')} in {_short(key)}"
    return ReportTable("", (title, *splits, ""), rows, splits, ("",), terminal_rows=_CLASS_ROWS)


def _masks(key: str, masks: MaskStats) -> ReportTable:
    ordered = sorted(masks.classes, key=lambda mask_class: -mask_class.pixels)
    rows = [
        (
            str(mask_class),
            f"{mask_class.pixels / masks.pixels:.2%}",
            f"{mask_class.masks:,}",
            Bar(mask_class.pixels / ordered[0].pixels),
        )
        for mask_class in ordered
    ]
    decoded = format_count(masks.count, "mask")
    if masks.sampled < masks.count:
        decoded = f"{masks.sampled:,} of {masks.count:,} masks, sampled"
    heads = (f"{decoded} in {_short(key)}", "pixels", "masks", "")
    note = f"{masks.unreadable:,} unreadable" if masks.unreadable else ""
    return ReportTable("", heads, rows, heads[1:3], ("",), (), note, _CLASS_ROWS)


def _distinct(values: NumberStats | BytesStats) -> str:
    """Return the number of different values in the sample; NaN and infinities are not counted."""
    distinct = 0 if values.sample is None else values.sample.distinct
    size = 0 if values.sample is None else values.sample.size
    finite = values.count if isinstance(values, BytesStats) else values.finite
    more = "" if size == finite else " or more"
    return f"{distinct:,}{more}{' finite' if finite < values.count else ''}"


def _span(numbers: NumberStats) -> str:
    return span(int(numbers.min or 0), int(numbers.max or 0))


def _number(value: float | None) -> str:
    """Format a number with few digits; whole ones with all, unless they are very large."""
    if value is None:
        return ""
    if isinstance(value, int) and abs(value) < _LARGE:
        return f"{value:,}"
    return f"{value:,.0f}" if 1000 <= abs(value) < _LARGE else f"{value:.4g}"


def _content(values: BytesStats) -> str:
    counts = {"text": values.text, "raw": values.raw, "image": values.image_count}
    there = {name: count for name, count in counts.items() if count}
    if len(there) == 1:
        return next(iter(there))
    return ", ".join(f"{count / values.count:.0%} {name}" for name, count in there.items())


def _short(text: str) -> str:
    return text if len(text) <= _NAME_WIDTH else text[: _NAME_WIDTH - 1] + "…"
