"""`recordsmith.save_html`: a report as an HTML page, by a template of jinja2.

A page loads and runs nothing: its style is inline, and a policy in its head forbids the rest. All
text from files (names, values, details) must pass through `text`.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from html import escape
from typing import Any, Protocol, runtime_checkable

import numpy as np

from recordsmith.checking import LintExample, LintReport, VerifyReport, boxes_of, image_in
from recordsmith.format.example.feature_values import first_bytes, object_values, values_of
from recordsmith.format.example.keys import KEYPOINT, MASK, OBJECT_TEXT
from recordsmith.image import Box, Pixels, decode_image, decode_mask
from recordsmith.stores import Location, PlaceLike, as_location, write_document
from recordsmith.support.errors import DataError, OptionError
from recordsmith.support.reports import (
    Bar,
    Cell,
    Example,
    ReportContent,
    SourceLocation,
    Strip,
    show_commands,
)
from recordsmith.support.words import printable
from recordsmith.viewing.drawing.scene import Scene, draw_scene, text_of

_ROWS_SHOWN = 500
_DRAWN_EXAMPLES = 24  # of one finding
_LONGEST_CELL = 800
_THUMBNAIL = 200
_QUALITY = 80
_MAX_IMAGES = 400  # on the page: about 4 MB
_AT_FAULT = 10  # the colour of a box at fault: red
_OTHERS = 2  # of the other boxes: light blue
_MAX_MARKS = 240  # in a strip; more would not be distinguishable

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --quiet: #667085; --paper: #f6f7f9;
  --card: #ffffff; --line: #e3e6eb; --good: #157049; --good-soft: #d9f2e6; --bad: #bb2731;
  --bad-soft: #fbdedf; --note: #8a5a10; --note-soft: #fbefd5;
  --bar: #4a7fb5; --unseen: #b4bac4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --quiet: #98a2b3; --paper: #14171c;
  --card: #1d2229; --line: #2d343e; --good: #3fc48c; --good-soft: #17392c; --bad: #ff6b70;
  --bad-soft: #4a2023; --note: #e0a94a; --note-soft: #3f3216;
  --bar: #6ea3d8; --unseen: #5b6370; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 32px 24px 64px; }
header { display: flex; gap: 16px; align-items: center; flex-wrap: wrap; }
h1 { font-size: 26px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 40px 0 8px; }
h3 { font-size: 15px; margin: 0 0 6px; display: flex; gap: 8px; align-items: center; }
p { margin: 0 0 6px; }
a { color: inherit; }
code { font: 13px/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.quiet { color: var(--quiet); }
.verdict { margin: 0; padding: 3px 14px; border-radius: 999px; font-weight: 600; }
.verdict.good { background: var(--good-soft); color: var(--good); }
.verdict.bad { background: var(--bad-soft); color: var(--bad); }
.verdict.note { background: var(--note-soft); color: var(--note); }
.cards { display: flex; gap: 12px; flex-wrap: wrap; margin: 16px 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 12px 20px; min-width: 130px; }
.card b { display: block; font-size: 22px; font-variant-numeric: tabular-nums; }
.card span { color: var(--quiet); font-size: 13px; }
.unchecked { padding-left: 20px; color: var(--note); }
.kinds { display: grid; grid-template-columns: repeat(auto-fill, minmax(320px, 1fr)); gap: 12px; }
.kind { background: var(--card); border: 1px solid var(--line); border-left: 4px solid var(--bad);
  border-radius: 10px; padding: 12px 16px; overflow-wrap: anywhere; }
.kind p { font-size: 14px; }
.advice { color: var(--quiet); }
.badge { background: var(--bad-soft); color: var(--bad); border-radius: 999px; padding: 0 9px;
  font-size: 13px; }
table { width: 100%; border-collapse: collapse; background: var(--card); font-size: 14px;
  border: 1px solid var(--line); }
th { text-align: left; color: var(--quiet); font-weight: 500; }
th, td { padding: 6px 10px; border-bottom: 1px solid var(--line); vertical-align: top; }
td { overflow-wrap: anywhere; }
td:not(.number) { min-width: 90px; }
td:first-child:not(.number) { min-width: 150px; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.scroll { overflow-x: auto; margin: 6px 0 24px; }
td svg { display: block; }
svg rect { fill: var(--bar); }
.kind.quiet { color: var(--ink); border-left-color: var(--unseen); }
.kind.quiet .badge { background: var(--paper); color: var(--quiet); }
.kind.note { border-left-color: var(--note); }
.kind.note .badge { background: var(--note-soft); color: var(--note); }
.kind.wide { grid-column: 1 / -1; }
.kind ul { margin: 6px 0; padding-left: 20px; font-size: 13px; }
.examples { display: flex; flex-wrap: wrap; gap: 14px; margin: 10px 0; }
figure { margin: 0; width: 200px; }
figure.pair { width: 406px; }
.images { display: flex; gap: 6px; align-items: center; }
.images img { max-width: 200px; border-radius: 4px; }
figcaption { font-size: 12px; overflow-wrap: anywhere; }
svg .good { fill: var(--good); opacity: .45; }
svg .bad { fill: var(--bad-soft); }
svg .mark { fill: var(--bad); }
svg .skipped { fill: var(--unseen); }
"""

_TEMPLATE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title | text }}</title><style>{{ style }}</style></head><body><main>
<header><h1>{{ title | text }}</h1>
<p class="verdict {{ content.level }}">{{ content.verdict | text }}</p></header>
<p class="quiet">{{ content.summary | prose }}</p>
<section class="cards">
{% for value, name in content.figures %}
<div class="card"><b>{{ value | text }}</b><span>{{ name | text }}</span></div>
{% endfor %}
</section>
{% if content.notes %}
<ul class="unchecked">{% for note in content.notes %}<li>{{ note | prose }}</li>{% endfor %}</ul>
{% endif %}
{% if content.findings %}
<h2>Findings</h2>
<div class="kinds">
{% for finding in content.findings %}
{% set figures, lines = finding.examples | drawn %}
<article class="kind {{ finding.level }}{% if finding.examples %} wide{% endif %}">
<h3><code>{{ finding.kind | text }}</code>
{% if finding.count %}
<span class="badge">{% if finding.severity %}{{ finding.severity | text }}, {% endif -%}
{{ "{:,}".format(finding.count) }}</span>
{% endif %}
</h3>
{% if finding.about %}<p class="quiet">{{ finding.about | text }}</p>{% endif %}
<p>{{ finding.text | prose }}</p>
{% if finding.cure %}<p class="advice">{{ finding.cure | prose }}</p>{% endif %}
{% if figures %}
<div class="examples">
{% for example, images in figures %}
<figure{% if images | length > 1 %} class="pair"{% endif %}><div class="images">
{% for image in images %}
<img src="data:image/jpeg;base64,{{ image }}" alt="{{ example.text | text }}">
{% endfor %}
</div><figcaption>{{ example.text | text }}</figcaption></figure>
{% endfor %}
</div>
{% endif %}
{% if lines %}
<ul>
{% for example in lines %}<li>{{ example | line }}</li>{% endfor %}
{% if finding.examples and finding.count > finding.examples | length %}
<li>and {{ "{:,}".format(finding.count - finding.examples | length) }} more</li>
{% endif %}
</ul>
{% endif %}
{% for command in finding.places | commands %}
<p class="advice">show it: <code>{{ command | text }}</code></p>
{% endfor %}
</article>
{% endfor %}
</div>
{% endif %}
{% for table in content.tables %}
{% if table.title %}<h2>{{ table.title | text }}</h2>{% endif %}
<div class="scroll"><table><thead><tr>
{% for head in table.heads %}
<th{% if head in table.numbers %} class="number"{% endif %}>{{ head | text }}</th>
{% endfor %}
</tr></thead><tbody>
{% for row in table.rows[:rows_shown] %}
<tr>
{%- for cell in row -%}
<td{% if table.heads[loop.index0] in table.numbers %} class="number"{% endif %}>
{{- cell | cell -}}
</td>
{%- endfor -%}
</tr>
{% endfor %}
</tbody></table>
{% set more = table.more + [table.rows | length - rows_shown, 0] | max %}
{% if more %}<p class="quiet">and {{ "{:,}".format(more) }} more</p>{% endif %}
{% if table.note %}<p class="quiet">{{ table.note | prose }}</p>{% endif %}
</div>
{% endfor %}
</main></body></html>
"""


@runtime_checkable
class ShownReport(Protocol):
    """A report that describes what it shows."""

    def content(self) -> ReportContent:
        """Return what a terminal and a page show."""
        ...


def save_html(
    report: VerifyReport | LintReport | ShownReport,
    out: PlaceLike,
    *,
    title: str | None = None,
    overwrite: bool = False,
) -> Location:
    """Write a report as one self-contained HTML page.

    Args:
        report: the result of `stats`, `verify`, `diff`, `lint` or `forecast`. The page of `lint`
            has small copies of images, which are read again.
        out: the file, with the suffix .html or .htm.
        title: the heading, such as the folder of the dataset.
        overwrite: replace an existing file.

    Returns:
        The location of the file.

    Raises:
        OptionError: the report is of another kind, the suffix is not .html or .htm, or the file
            already exists.
        FileAccessError: the file cannot be written.

    Example:
        rs.save_html(rs.stats("out"), "stats.html")
    """
    path = as_location(out)
    check_html_path(path, overwrite=overwrite)
    if isinstance(report, VerifyReport):
        content = report.content()
        title = f"{title or 'Verification'}: {content.verdict}"
    elif isinstance(report, LintReport):
        title, content = title or "Source", report.content(_Thumbnails(report).draw)
    elif isinstance(report, ShownReport):
        title, content = title or "Report", report.content()
    else:
        raise OptionError(
            option="report",
            value=report,
            expected="the result of recordsmith.stats, verify, diff, lint or forecast",
        )
    page = content_page(content, title)
    write_document(path, page.encode("utf-8", "backslashreplace"), overwrite=overwrite)
    return path


def check_html_path(path: Location, *, overwrite: bool) -> None:
    """Raise OptionError if the suffix is not .html or .htm, or as `check_target` does."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise OptionError(option="out", value=str(path), expected="a file name ending in .html")
    path.check_target(overwrite=overwrite)


def content_page(
    content: ReportContent, title: str, link: Callable[[SourceLocation], str | None] | None = None
) -> str:
    """Return the page of a report; `link` returns the address that shows a record, if any."""
    from recordsmith.support.libraries import jinja2, markupsafe

    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    filters: dict[str, Callable[..., str]] = {
        "text": lambda value: text(value, 400),
        "prose": lambda value: paragraphs(value, 2000),
        "cell": _cell,
        "line": lambda example: _linked(
            paragraphs(example.text, 2000), link and example.place and link(example.place)
        ),
    }
    for name, function in filters.items():  # all of them escape text
        environment.filters[name] = lambda value, f=function: markupsafe.Markup(f(value))
    environment.filters["drawn"] = _drawn
    environment.filters["commands"] = show_commands if link is None else lambda _: []
    template = environment.from_string(_TEMPLATE)
    style = markupsafe.Markup(STYLE)
    page: str = template.render(content=content, title=title, style=style, rows_shown=_ROWS_SHOWN)
    return page


def _drawn(examples: Sequence[Example]) -> tuple[list[tuple[Example, list[str]]], list[Example]]:
    """Draw the first examples that have images; return them in base64, and the other examples."""
    figures: list[tuple[Example, list[str]]] = []
    lines = []
    for example in examples:
        can_draw = example.draw is not None and len(figures) < _DRAWN_EXAMPLES
        images = example.draw() if can_draw and example.draw else ()
        if images:
            figures.append((example, [base64.b64encode(image).decode() for image in images]))
        else:
            lines.append(example)
    return figures, lines


def _linked(shown: str, address: str | None) -> str:
    return f'<a href="{escape(address, quote=True)}">{shown}</a>' if address else shown


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return paragraphs(cell, _LONGEST_CELL)
    if isinstance(cell, Bar):
        return f'<svg width="240" height="12">{_rect(0, 0, 240 * cell.share, 12)}</svg>'
    if isinstance(cell, Strip):
        return _strip(cell)
    most, width = max(cell.counts, default=0) or 1, 160 / max(1, len(cell.counts))
    bars = ""
    for number, count in enumerate(cell.counts):
        height = max(1.0, 36 * count / most) if count else 0.0
        low, high = cell.edges[number], cell.edges[number + 1]
        tip = f"{low:.6g} to {high:.6g}: {count:,}"
        bars += _rect(number * width, 36 - height, max(1, width - 1), height, tip)
    return f'<svg width="160" height="36" role="img">{bars}</svg>'


def _strip(strip: Strip) -> str:
    tips: dict[int, list[str]] = {}
    for place, tip in strip.marks:
        tips.setdefault(min(_MAX_MARKS - 1, int(place * _MAX_MARKS)), []).append(tip)
    marks = _rect(0, 0, 480, 14, kind="mark" if strip.is_whole else strip.level)
    if strip.skipped_from < 1:
        start = 480 * strip.skipped_from
        marks += _rect(start, 0, 480 - start, 14, "skipped", "skipped")
    for number, of_mark in sorted(tips.items()):
        more = f" and {len(of_mark) - 1:,} more" if len(of_mark) > 1 else ""
        marks += _rect(480 * number / _MAX_MARKS, 0, 3, 14, of_mark[0] + more, "mark")
    return f'<svg width="480" height="14" role="img">{marks}</svg>'


def _rect(x: float, y: float, width: float, height: float, tip: str = "", kind: str = "") -> str:
    title = f"<title>{text(tip)}</title>" if tip else ""
    of_class = f' class="{kind}"' if kind else ""
    return (
        f'<rect{of_class} x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">'
        f"{title}</rect>"
    )


class _Thumbnails:
    """Draws the images of examples, at most _MAX_IMAGES."""

    def __init__(self, report: LintReport) -> None:
        self._report = report
        self._left = _MAX_IMAGES

    def draw(self, example: LintExample) -> Sequence[bytes]:
        """Return the image of an example, and the other one of a pair, as JPEG files."""
        files = [file for file in (example.file, example.other) if file]
        if len(files) > self._left:
            return []
        images = [image for file in files if (image := self._image(file, example.box))]
        self._left -= len(images)
        return images

    def _image(self, file: str, box: Box | None) -> bytes:
        features = self._report.read_again(file)
        data = image_in(features)
        if data is None:
            return b""
        try:
            pixels = decode_image(data)
        except DataError:
            return b""
        from recordsmith.support.libraries import Image

        stream = io.BytesIO()
        image = Image.fromarray(draw_scene(_scene(pixels, features, box), _THUMBNAIL))
        image.save(stream, "JPEG", quality=_QUALITY)
        return stream.getvalue()


def _scene(pixels: Pixels, features: Mapping[str, Any], box: Box | None) -> Scene:
    """The annotations of a sample, with the box at fault in its own colour."""
    boxes = boxes_of(features)
    names = [text_of(value) for value in values_of(features.get(OBJECT_TEXT))]
    texts = names if len(names) == len(boxes) else [""] * len(boxes)
    scene = Scene(pixels, None, boxes, [_OTHERS] * len(boxes), texts)
    points = object_values(features, KEYPOINT, len(boxes))
    if points is not None and points.size and (box is None or box in boxes):
        scene.points = np.nan_to_num(points).clip(-1, 2)
    mask = first_bytes(features, MASK)
    if mask is not None:
        with suppress(DataError):
            scene.mask = decode_mask(mask)
    if box is not None and box in boxes:
        scene.box_labels[boxes.index(box)] = _AT_FAULT
    elif box is not None:
        (top, bottom), (left, right) = sorted(box[::2]), sorted(box[1::2])
        scene.boxes.append((top, left, bottom, right))
        scene.box_labels.append(_AT_FAULT)
        scene.box_texts.append("")
    return scene


def paragraphs(sentences: str, most: int = 1500) -> str:
    """Escape our own sentences, and show parts in backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", text(sentences, most))


def text(untrusted: str, most: int = 1500) -> str:
    """Escape untrusted text for HTML, shorten it, and make control characters visible."""
    cut = untrusted if len(untrusted) <= most else f"{untrusted[: most - 1]}…"
    return escape(printable(cut), quote=True)
