"""Write the statistics of a dataset as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from recordsmith.drawing.html_page import cards, paragraphs, text
from recordsmith.examining.stats import StatsReport
from recordsmith.examining.stats.box_stats import BoxStats
from recordsmith.examining.stats.bytes_stats import BytesStats
from recordsmith.examining.stats.class_counts import ClassStats
from recordsmith.examining.stats.duplicates import DuplicateStats
from recordsmith.examining.stats.feature_stats import FeatureStats
from recordsmith.examining.stats.image_stats import ImageStats
from recordsmith.examining.stats.mask_stats import MaskStats
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
from recordsmith.words import count as counted
from recordsmith.words import size as size_text

_MOST_CLASSES = 200
_MOST_FEATURES = 500  # per section
_MOST_NAMED = 20  # features named in one finding
_MOST_OF_A_KIND = 20
_LONGEST_TEXT = 80
_STYLE = """
.feature { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 14px 20px; margin: 12px 0; }
.feature h3, .kind p { overflow-wrap: anywhere; }
.charts { display: flex; flex-wrap: wrap; gap: 24px; }
.scroll { overflow-x: auto; margin: 6px 0; }
.feature .scroll table { border: 0; }
dl.figures { display: flex; flex-wrap: wrap; gap: 6px 22px; margin: 8px 0 12px; font-size: 14px; }
dt { color: var(--quiet); }
dd { margin: 0; font-variant-numeric: tabular-nums; }
table.bars { width: auto; background: none; border: 0; margin: 4px 0 12px; }
table.bars td { border: 0; padding: 2px 14px 2px 0; }
td.number { overflow-wrap: normal; }
figure { margin: 6px 0; }
figcaption { font-size: 13px; color: var(--quiet); }
svg rect { fill: var(--bar); }
"""


def stats_page(report: StatsReport, title: str) -> tuple[str, str, Iterable[str]]:
    """Return the title of the page, its style and its parts."""
    return title, _STYLE, _page(report, title)


def _page(report: StatsReport, title: str) -> Iterable[str]:
    findings = len(report.findings)
    verdict = counted(findings, "finding") if findings else "no findings"
    yield (
        f"<header><h1>{_text(title)}</h1>"
        f'<p class="verdict {"note" if findings else "good"}">{verdict}</p></header>'
    )
    payloads = payloads_text(report) or "none"
    yield (
        f'<p class="quiet">{counted(report.record_count, "record")} ({payloads}) in '
        f"{counted(len(report.shards), 'shard')}, {report.size_bytes:,} bytes</p>"
    )
    figures = [
        (f"{report.record_count:,}", "records"),
        (f"{len(report.shards):,}", "shards"),
        (size_text(report.size_bytes), "read"),
        (f"{sum(map(len, report.sections.values())):,}", "features"),
    ]
    yield cards(figures)
    yield from _findings(report)
    yield from _splits(report)
    for key, classes in different_classes(report).items():
        yield from _classes(key, classes)
    for key, masks in report.masks.items():
        yield from _masks(key, masks)
    if report.boxes is not None:
        yield from _boxes(report.boxes)
    for section, features in report.sections.items():
        if features:
            what, _ = heading_of(section)
            yield f"<h2>{_text(what.replace('feature', 'features', 1).capitalize())}</h2>"
        for key, feature in islice(features.items(), _MOST_FEATURES):
            yield from _feature(key, feature, section)
        if len(features) > _MOST_FEATURES:
            more = counted(len(features) - _MOST_FEATURES, "more feature")
            yield f"<p>{paragraphs(f'and {more}, as `--json` has them')}</p>"
    for line in filter(None, (left_out_text(report), uncounted_text(report))):
        yield f"<p>{paragraphs(line, 2000)}</p>"
    yield from _duplicates(report.duplicates)


def _findings(report: StatsReport) -> Iterable[str]:
    if not report.findings:
        return
    yield '<h2>Findings</h2><div class="kinds">'
    for kind, features, more, words, _ in groups_of(report.findings, _MOST_NAMED, _MOST_OF_A_KIND):
        names = ", ".join(map(_text, features)) + (f" and {more:,} more" if more else "")
        about = f'<p class="quiet">{names}</p>' if names else ""
        yield (
            f'<article class="kind notice"><h3><code>{_text(kind)}</code></h3>{about}'
            f"<p>{paragraphs(words, 2000)}</p></article>"
        )
    yield "</div>"


def _splits(report: StatsReport) -> Iterable[str]:
    yield "<h2>Splits</h2>"
    rows = []
    for split, shards in report.splits.items():
        sizes = [shard.size_bytes for shard in shards]
        numbers = (sum(shard.record_count for shard in shards), len(shards), sum(sizes))
        rows.append((split, *(f"{n:,}" for n in (*numbers, min(sizes), max(sizes)))))
    heads = ("split", "records", "shards", "bytes", "smallest shard", "largest shard")
    yield _table(heads, rows)


def _classes(key: str, classes: ClassStats) -> Iterable[str]:
    ordered = classes.by_name()
    if not ordered:
        return
    yield f"<h2>{counted(len(ordered), 'class', 'classes')} in {_text(key)}</h2>"
    yield '<div class="charts">'
    for split in classes.splits:
        bars = [(name, counts.get(split, 0)) for name, counts in ordered[:_MOST_CLASSES]]
        yield f"<div><h3>{_text(split)}</h3>{_bar_rows(bars)}</div>"
    yield "</div>"
    if len(ordered) > _MOST_CLASSES:
        yield f'<p class="quiet">{len(ordered) - _MOST_CLASSES:,} more classes are rarer</p>'


def _masks(key: str, masks: MaskStats) -> Iterable[str]:
    ordered = sorted(masks.classes, key=lambda found: -found.pixels)
    yield f"<h2>{counted(len(ordered), 'class', 'classes')} of pixels in {_text(key)}</h2>"
    bars = [
        (f"{found}, in {counted(found.masks, 'mask')}", found.pixels, f"{share:.2%}")
        for found in ordered[:_MOST_CLASSES]
        for share in [found.pixels / masks.pixels]
    ]
    unreadable = f", {masks.unreadable:,} unreadable" if masks.unreadable else ""
    yield f'<p class="quiet">{_text(masks_text(masks))}{unreadable}</p>{_bar_rows(bars)}'
    if len(ordered) > _MOST_CLASSES:
        yield f'<p class="quiet">{len(ordered) - _MOST_CLASSES:,} more classes are rarer</p>'


def _boxes(boxes: BoxStats) -> Iterable[str]:
    yield f"<h2>{counted(boxes.count, 'box', 'boxes')}</h2>"
    median = _number(boxes.per_image.quantiles.get(0.5))
    sizes = sizes_text(boxes)
    yield (
        f'<p class="quiet">{span_text(boxes.per_image)} per record, median {median}'
        + ("" if sizes is None else f"; {_text(sizes, 200)}")
        + "</p>"
    )
    charts = [
        _histogram("boxes per record", boxes.per_image),
        _histogram("widths, as shares of the image", boxes.widths),
        _histogram("heights", boxes.heights),
        _histogram("areas", boxes.areas),
    ]
    yield f'<div class="charts">{"".join(charts)}</div>'


def _feature(key: str, feature: FeatureStats, section: str) -> Iterable[str]:
    yield f'<section class="feature"><h3>{_text(key)}</h3>'
    missing = f", missing in {feature.missing:,}" if feature.missing else ""
    having = heading_of(section)[1].removesuffix("s")
    yield (
        f'<p class="quiet">{feature.kind}, in {counted(feature.present, having)}{missing}; '
        f"{span_text(feature.lengths)} {'value' if feature.lengths.max == 1 else 'values'}"
        + ("" if feature.steps is None else f", {span_text(feature.steps)} steps")
        + f"; {feature.value_bytes:,} bytes</p>"
    )
    charts = []
    if feature.lengths.distinct > 1:
        charts.append(_histogram("values in a list", feature.lengths))
    for values in feature.values.values():
        if isinstance(values, NumberStats):
            charts.append(_histogram("from min to max", values))
        else:
            if values.sizes.distinct > 1:
                charts.append(_histogram("sizes in bytes", values.sizes))
            charts += _image_charts(values.images)
    if charts:
        yield f'<div class="charts">{"".join(charts)}</div>'
    for values in feature.values.values():
        if isinstance(values, NumberStats):
            yield _numbers(values)
        else:
            yield _bytes(values)
    yield "</section>"


def _numbers(values: NumberStats) -> str:
    rows = [
        ("distinct", distinct_text(values)),
        ("mean", number_text(values.mean)),
        ("std", number_text(values.std)),
        *((f"{100 * share:g}%", number_text(value)) for share, value in values.quantiles.items()),
        ("zero", f"{values.zero:,}"),
        ("negative", f"{values.negative:,}"),
        ("NaN", f"{values.nan:,}"),
        ("infinite", f"{values.infinite:,}"),
    ]
    each = (f"<div><dt>{_text(name)}</dt><dd>{_text(cell)}</dd></div>" for name, cell in rows)
    return f'<dl class="figures">{"".join(each)}</dl>' + _top(
        (_number(value), count) for value, count in values.top
    )


def _bytes(values: BytesStats) -> str:
    content = ", ".join(
        f"{count:,} {name}"
        for name, count in (
            ("text", values.text),
            ("raw", values.raw),
            ("images", values.image_count),
        )
        if count
    )
    found = f"<p>{distinct_text(values)} distinct; {content}</p>"
    if values.images is not None:
        return found
    return found + _top(
        (value.text if value.text is not None else f"0x{value.begins[:16].hex()}…", value.count)
        for value in values.top
    )


def _image_charts(images: ImageStats | None) -> list[str]:
    if images is None or not images.count:
        return []
    formats = [*images.formats.items(), *images.variants.items()]
    channels = [(counted(number, "channel"), count) for number, count in images.channels.items()]
    sizes = [(f"{width} x {height}", count) for width, height, count in images.sizes]
    often = [(size, count) for size, count in sizes if count > 1 or len(sizes) == 1]
    caption = "<figcaption>most frequent sizes</figcaption>"
    return [
        _histogram("widths", images.widths),
        _histogram("heights", images.heights),
        f"<figure>{_bar_rows([*formats, *channels])}</figure>",
        f"<figure>{_bar_rows(often)}{caption}</figure>" if often else "",
    ]


def _duplicates(every: Sequence[DuplicateStats]) -> Iterable[str]:
    found = [one for one in every if sum(one.within.values()) or one.shared]
    if found:
        yield "<h2>Duplicates</h2>"
    for one in found:
        what = "records" if one.feature is None else f"images of {one.feature}"
        about = "" if one.sampled == 1 else f", estimated from one in {one.sampled:,}"
        yield f"<h3>{_text(what)}{about}</h3>"
        rows = [(f"within {split}", f"{count:,}") for split, count in one.within.items()]
        rows += [(f"shared by {' and '.join(s.splits)}", f"{s.contents:,}") for s in one.shared]
        yield _table(("split", "duplicates"), rows)
        pairs = [*(pair for shared in one.shared for pair in shared.places), *one.places]
        yield _table(
            ("first", "duplicate"), [tuple(map(str, pair)) for pair in pairs], numbers=False
        )


def _top(values: Iterable[tuple[str, int]]) -> str:
    often = _frequent(list(values))
    return f'<p class="quiet">most frequent</p>{_bar_rows(often)}' if often else ""


def _frequent(values: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Values that occur more than once; none if all are equally frequent."""
    if len({count for _, count in values}) < 2:
        return []
    return [(value, count) for value, count in values if count > 1]


def _histogram(caption: str, numbers: NumberStats) -> str:
    """Bars from the smallest to the largest number."""
    most = max(numbers.histogram, default=0)
    if not most:
        return ""
    width = 300 / len(numbers.histogram)
    bars = []
    for place, count in enumerate(numbers.histogram):
        height = max(1.0, 90 * count / most) if count else 0.0
        low, high = numbers.edges[place], numbers.edges[place + 1]
        bars.append(
            f'<rect x="{place * width:.1f}" y="{90 - height:.1f}" width="{max(1, width - 1):.1f}" '
            f'height="{height:.1f}">'
            f"<title>{_number(low)} to {_number(high)}: {count:,}</title></rect>"
        )
    span = f"{number_text(numbers.min)} … {number_text(numbers.max)}"
    return (
        f'<figure><svg width="300" height="90" role="img" aria-label="{_text(caption)}">'
        f"{''.join(bars)}</svg><figcaption>{span}: {_text(caption)}</figcaption></figure>"
    )


def _bar_rows(bars: Sequence[tuple[str, int] | tuple[str, int, str]]) -> str:
    """A bar for each name, proportional to its count; some with another text than the count."""
    most = max((bar[1] for bar in bars), default=0) or 1
    rows = "".join(
        f'<tr><td>{_text(name)}</td><td class="number">{shown[0] if shown else f"{count:,}"}</td>'
        f'<td><svg width="240" height="12"><rect width="{240 * count / most:.1f}" height="12"/>'
        "</svg></td></tr>"
        for name, count, *shown in bars
    )
    return f'<table class="bars">{rows}</table>'


def _table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: bool = True,
) -> str:
    """A table; without `numbers`, all cells are text."""

    def form(place: int) -> str:
        return ' class="number"' if numbers and place else ""

    head = "".join(f"<th{form(place)}>{_text(cell)}</th>" for place, cell in enumerate(heads))
    body = "".join(
        "<tr>"
        + "".join(f"<td{form(place)}>{_text(cell, 400)}</td>" for place, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>' if rows else ""


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _text(given: str, most: int = _LONGEST_TEXT) -> str:
    return text(given, most)
