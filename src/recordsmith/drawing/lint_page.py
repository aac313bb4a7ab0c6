"""Write the findings of `lint` as one HTML file with small copies of the images."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from recordsmith.drawing.html_page import cards, paragraphs, text
from recordsmith.errors import DataError
from recordsmith.example.keys import MASK, OBJECT_TEXT
from recordsmith.image import Box, Pixels, decode_image, decode_mask
from recordsmith.image.drawing.overlay import blend_mask, draw_boxes, fit_to_tile
from recordsmith.linting import LintExample, LintFinding, LintReport, Severity
from recordsmith.linting.sample_images import boxes_of, first_of, image_in, values_of
from recordsmith.words import count as counted

_TILE = 200
_QUALITY = 80
_MOST_DRAWN = 24  # examples with images in one finding
_MOST_IMAGES = 400  # on the page: about 4 MB
_MOST_CLASSES = 200
_AT_FAULT = 10  # the colour of a box at fault: red
_OTHERS = 2  # of the other boxes: light blue
_STYLE = """
.finding { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  border-left: 4px solid var(--bad); padding: 14px 20px; margin: 12px 0; }
.finding.warning { border-left-color: var(--note); }
.finding.note { border-left-color: var(--unseen); }
.finding.warning .badge { background: var(--note-soft); color: var(--note); }
.finding.note .badge { background: var(--paper); color: var(--quiet); }
.finding li { overflow-wrap: anywhere; }
.examples { display: flex; flex-wrap: wrap; gap: 14px; margin: 10px 0; }
figure { margin: 0; width: 200px; }
figure.pair { width: 406px; }
.images { display: flex; gap: 6px; align-items: center; }
.images img { max-width: 200px; border-radius: 4px; }
figcaption { font-size: 12px; overflow-wrap: anywhere; }
.finding ul { margin: 6px 0; padding-left: 20px; font-size: 13px; }
"""


def lint_page(report: LintReport, title: str) -> tuple[str, str, Iterable[str]]:
    """Return the title of the page, its style and its parts."""
    return title, _STYLE, _page(report, title)


def _page(report: LintReport, title: str) -> Iterator[str]:
    errors, warnings = (
        counted(report.error_count, "error"),
        counted(report.warning_count, "warning"),
    )
    verdict, kind = f"{errors}, {warnings}", "bad" if report.error_count else "note"
    if report.is_clean:
        verdict, kind = "clean", "good"
    yield (
        f'<header><h1>{text(title)}</h1><p class="verdict {kind}">{verdict}</p></header>'
        '<p class="quiet">Boxes at fault are red.</p>'
    )
    figures = [
        (report.sample_count, "samples"),
        (report.image_count, "images decoded"),
        (report.error_count, "errors"),
        (report.warning_count, "warnings"),
        (report.note_count, "notes"),
    ]
    yield cards([(f"{number:,}", name) for number, name in figures])
    thumbnails = _Thumbnails(report)
    for found in report.findings:
        yield _finding(found, thumbnails)
    yield from _classes(report)


def _finding(found: LintFinding, thumbnails: _Thumbnails) -> str:
    drawn: list[str] = []
    rows: list[str] = []
    for example in found.examples:
        images: list[str] = []
        if len(drawn) < _MOST_DRAWN and found.severity is not Severity.NOTE:
            images = thumbnails.draw(example)
        if images:
            drawn.append(_figure(example, images))
        else:
            rows.append(f"<li>{text(example.describe(), 400)}</li>")
    if found.count > len(found.examples):
        rows.append(f"<li>and {found.count - len(found.examples):,} more</li>")
    return (
        f'<article class="finding {found.severity}"><h3><code>{found.check}</code>'
        f'<span class="badge">{found.severity}, {found.count:,}</span></h3>'
        f'<p>{paragraphs(found.meaning)}</p><p class="advice">{paragraphs(found.cure())}</p>'
        + (f'<div class="examples">{"".join(drawn)}</div>' if drawn else "")
        + (f"<ul>{''.join(rows)}</ul>" if rows else "")
        + "</article>"
    )


def _figure(example: LintExample, images: list[str]) -> str:
    pair = ' class="pair"' if len(images) > 1 else ""
    return (
        f'<figure{pair}><div class="images">{"".join(images)}</div>'
        f"<figcaption>{text(example.describe(), 300)}</figcaption></figure>"
    )


def _classes(report: LintReport) -> Iterator[str]:
    names = list(dict.fromkeys(name for of_it in report.classes.values() for name in of_it))
    if not names:
        return
    totals = {name: sum(of.get(name, 0) for of in report.classes.values()) for name in names}
    names.sort(key=lambda name: -totals[name])
    splits = list(report.classes)
    head = "".join(f'<th class="number">{text(split or "images")}</th>' for split in splits)
    rows = "".join(
        f"<tr><td>{text(name, 80)}</td>"
        + "".join(f'<td class="number">{report.classes[s].get(name, 0):,}</td>' for s in splits)
        + "</tr>"
        for name in names[:_MOST_CLASSES]
    )
    yield f"<h2>{counted(len(names), 'class', 'classes')}</h2>"
    yield f"<table><tr><th>class</th>{head}</tr>{rows}</table>"
    if len(names) > _MOST_CLASSES:
        yield f'<p class="quiet">{len(names) - _MOST_CLASSES:,} more classes are rarer</p>'


class _Thumbnails:
    """Draws the images of examples, at most _MOST_IMAGES."""

    def __init__(self, report: LintReport) -> None:
        self._report = report
        self._left = _MOST_IMAGES

    def draw(self, example: LintExample) -> list[str]:
        """The image of an example, and the other one of a pair; empty if there is none."""
        files = [file for file in (example.file, example.other) if file]
        if len(files) > self._left:
            return []
        images = [image for file in files if (image := self._image(file, example.box))]
        self._left -= len(images)
        return images

    def _image(self, file: str, box: Box | None) -> str:
        features = self._report.read_again(file)
        data = image_in(features)
        if data is None:
            return ""
        try:
            pixels = fit_to_tile(decode_image(data), _TILE)
        except DataError:
            return ""
        encoded = base64.b64encode(_jpeg(_with_annotations(pixels, features, box))).decode()
        return f'<img src="data:image/jpeg;base64,{encoded}" alt="{text(file, 100)}">'


def _with_annotations(pixels: Pixels, features: Mapping[str, Any], box: Box | None) -> Pixels:
    mask = first_of(features.get(MASK))
    if isinstance(mask, bytes):
        with suppress(DataError):
            pixels = blend_mask(pixels, decode_mask(mask))
    boxes = boxes_of(features)
    names = [_name(value) for value in values_of(features.get(OBJECT_TEXT))]
    texts = names if len(names) == len(boxes) else [""] * len(boxes)
    labels = [_OTHERS] * len(boxes)
    if box is not None and box in boxes:
        labels[boxes.index(box)] = _AT_FAULT
    elif box is not None:
        boxes, labels, texts = [*boxes, _ordered(box)], [*labels, _AT_FAULT], [*texts, ""]
    return draw_boxes(pixels, boxes, labels, texts) if boxes else pixels


def _name(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _ordered(box: Box) -> Box:
    """The box with minimum before maximum."""
    (top, bottom), (left, right) = sorted(box[::2]), sorted(box[1::2])
    return top, left, bottom, right


def _jpeg(pixels: Pixels) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=_QUALITY)
    return stream.getvalue()
