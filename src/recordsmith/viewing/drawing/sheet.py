"""`recordsmith.sheet`: preview examples of a dataset on one page, as an image file or as HTML.

Draws each example into a tile with mask, boxes and class. Examples that cannot be decoded get a
tile with the reason. Only the records on the page are decoded.
"""

from __future__ import annotations

import base64
import io
import random
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from recordsmith.dataset import Dataset, Faults, Paths, dataset_of, parse_shard_name, records_of
from recordsmith.format.example import SchemaSurvey, SequenceExample, decode_payload
from recordsmith.image import Colour, encode_jpeg, label_colour, message_tile
from recordsmith.stores import Location, PlaceLike, as_location, write_document
from recordsmith.support.errors import DataError, NotAnExampleError, OptionError
from recordsmith.support.problems import Problems
from recordsmith.support.summaries import Report
from recordsmith.support.words import first_of
from recordsmith.viewing.drawing.scene import Scene, SceneReader, draw_scene

if TYPE_CHECKING:
    from recordsmith.image import Tile

TILE = 288
"""The side of a tile in pixels."""

_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
_HTML = (".html", ".htm")
_HTML_QUALITY = 80
_MAX_HTML = 1000  # about 20 MB
_MAX_SIDE = 65_000  # a JPEG cannot have more
_MAX_LEGEND = 60


@dataclass(repr=False)
class SheetReport(Report):
    """What `sheet` drew.

    Attributes:
        path: the file.
        height, width: its size in pixels; 0 for HTML.
        record_count: the number of records of the dataset.
        positions: the positions of the examples, in order.
        problems: examples whose image cannot be shown, with the reason; equal reasons are one line.
        problem_count: the number of these examples.
        mask_problems: why masks of drawn images are not drawn.
    """

    path: Location
    height: int
    width: int
    record_count: int
    positions: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    mask_problems: list[str] = field(default_factory=list)


def sheet(
    dataset: Dataset | Paths,
    out: PlaceLike,
    *,
    split: str | None = None,
    count: int = 30,
    columns: int = 6,
    seed: int | None = None,
    overwrite: bool = False,
) -> SheetReport:
    """Draw examples of a dataset on one page: images with classes, boxes and masks.

    Args:
        dataset: a path or several, as for `open`; or a Dataset.
        out: the file: an image with the suffix .png or .jpg, or a page with .html, which shows an
            image for each example and fits any screen.
        split: draw only this split of the path.
        count: the number of examples, spread evenly over the dataset.
        columns: records per row.
        seed: select random examples instead; the same seed selects the same ones.
        overwrite: replace an existing file.

    Returns:
        A report of what was drawn. A damaged example has a tile with the reason.

    Raises:
        OptionError: an argument is invalid, or the examples have no images.
        CorruptDataError: the frames of a shard are damaged.
        FileAccessError: a file cannot be read or written.

    Example:
        rs.sheet("out", "sheet.png", count=12)
    """
    path = as_location(out)
    check_page(path, count, columns, overwrite=overwrite, suffixes=[*_FORMATS, *_HTML])
    opened = dataset_of(dataset, split)
    total = len(opened)
    if not total:
        raise OptionError("the dataset has no records to draw")
    if path.suffix.lower() in _HTML and min(count, total) > _MAX_HTML:
        raise OptionError(option="count", value=count, expected=f"at most {_MAX_HTML} on a page")
    check_fits(min(count, total), columns)
    from recordsmith.image import contact_sheet

    report = SheetReport(path, 0, 0, total, _choose(total, count, seed))
    tiles, legend = _draw(opened, report)
    title, subtitle = _title(opened), _order(total, report.positions, split, seed)
    if path.suffix.lower() in _HTML:
        page = _html_page(tiles, title, subtitle)
        write_document(path, page.encode("utf-8", "backslashreplace"), overwrite=overwrite)
        return report
    image = contact_sheet(
        tiles,
        title=title,
        subtitle=subtitle,
        legend=legend,
        columns=min(columns, len(tiles)),
        tile=TILE,
    )
    report.height, report.width = image.height, image.width
    write_page(image, path, overwrite=overwrite)
    return report


def _choose(total: int, count: int, seed: int | None) -> list[int]:
    """Choose a random position from each of `count` equal parts, or from the whole dataset.

    Even steps would select the same class repeatedly if classes alternate.
    """
    if count >= total:
        return list(range(total))
    if seed is not None:
        return sorted(random.Random(seed).sample(range(total), count))  # noqa: S311
    dice = random.Random(0)  # noqa: S311 - the same page every time
    ends = [total * number // count for number in range(count + 1)]
    return [dice.randrange(start, stop) for start, stop in pairwise(ends)]


def _read(dataset: Dataset, positions: Sequence[int]) -> list[bytes | DataError]:
    """The records at positions; compressed shards are read sequentially."""
    selected = records_of(dataset)
    if selected.compressed_shard() is not None:
        needed = set(positions)
        payloads: list[bytes | DataError] = []
        for position, record in enumerate(dataset.records()):
            if position in needed:
                payloads.append(record)
            if len(payloads) == len(needed):
                break
        return payloads
    faults: Faults = {}
    with suppress(DataError):  # an index cannot be built: only some records are readable
        read = selected.read_records(np.array(positions, np.int64), faults=faults)
        return [faults.get(row) or read[row] for row in range(len(positions))]
    records: list[bytes | DataError] = []
    for position in positions:
        try:
            records.append(selected.read_record(position))
        except DataError as error:
            records.append(error)
    return records


def _reader(dataset: Dataset, records: Sequence[bytes]) -> SceneReader:
    """A reader for the features of the records on the page, without reading the dataset."""
    lengths = np.array([len(record) for record in records], np.int64)
    survey = SchemaSurvey()
    survey.update(b"".join(records), np.cumsum(lengths) - lengths, lengths)
    schema = survey.finish()
    reader = SceneReader(schema.features, dataset.class_names, dataset.view.keypoint_classes)
    if reader.image_key is None and records:
        if schema.payload not in ("Example", "mixed"):
            raise NotAnExampleError(schema.payload, "Examples with images")
        names = first_of(sorted(schema.features), 8) or "no features"
        raise OptionError(
            "the examples have no images: expected image/encoded, another bytes feature with "
            f"images, or raw pixels with height and width; found {names}"
        )
    return reader


def draw_tiles(
    dataset: Dataset | Paths, *, split: str | None, count: int, seed: int | None
) -> list[Tile]:
    """Return the tiles that a sheet with these options has."""
    opened = dataset_of(dataset, split)
    total = len(opened)
    if not total:
        raise OptionError("the dataset has no records to draw")
    report = SheetReport(as_location("terminal"), 0, 0, total, _choose(total, count, seed))
    return _draw(opened, report)[0]


def _draw(dataset: Dataset, report: SheetReport) -> tuple[list[Tile], list[tuple[Colour, str]]]:
    """Return a tile for each record, and the colours of the classes."""
    from recordsmith.image import Tile

    records = _read(dataset, report.positions)
    reader = _reader(dataset, [record for record in records if isinstance(record, bytes)])
    tiles = []
    problems, mask_problems = Problems(), Problems(filter(None, [reader.mask_problem]))
    legend: Counter[tuple[int, str]] = Counter()
    for position, record in zip(report.positions, records, strict=True):
        name, caption, colour = "", "", None
        try:
            if isinstance(record, DataError):
                raise record
            example = decode_payload(record)
            if isinstance(example, SequenceExample):
                raise NotAnExampleError("SequenceExample")
            name = PurePosixPath(reader.name(example).replace("\\", "/")).name
            scene = reader.read(example)
        except DataError as error:
            problems.add(str(error), f"position {position}")
            pixels = message_tile(TILE, "cannot be shown", error.detail)
        else:
            pixels = draw_scene(scene, TILE)
            caption, colour = caption_of(scene)
            legend.update(_classes(scene, dataset.class_names))
            if scene.mask_problem:
                mask_problems.add(scene.mask_problem, f"position {position}")
        lines = [line for line in (caption, name, f"#{position:,}") if line]
        tiles.append(Tile(pixels, lines[0], "  ".join(reversed(lines[1:])), colour))
    report.problems, report.problem_count = problems.first, problems.count
    report.mask_problems = mask_problems.first
    common = sorted(key for key, _ in legend.most_common(_MAX_LEGEND))
    named = [(label_colour(label), text) for label, text in common]
    if reader.mask_key is None and len(named) == 1:
        named = []  # the tags show it already
    return tiles, named


def _html_page(tiles: Sequence[Tile], title: str, subtitle: str) -> str:
    """Return a page that loads and runs nothing."""
    from recordsmith.viewing.drawing.report_page import STYLE, text  # needs more than an image

    figures = []
    for tile in tiles:
        image = base64.b64encode(encode_jpeg(tile.pixels, quality=_HTML_QUALITY)).decode()
        figures.append(
            f'<figure><div class="images"><img src="data:image/jpeg;base64,{image}" '
            f'alt="{text(tile.caption, 200)}"></div><figcaption>{text(tile.caption, 200)}<br>'
            f'<span class="quiet">{text(tile.detail, 200)}</span></figcaption></figure>'
        )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title, 200)}</title><style>{STYLE}</style></head><body><main>\n"
        f'<h1>{text(title, 200)}</h1><p class="quiet">{text(subtitle, 400)}</p>\n'
        f'<div class="examples">\n{chr(10).join(figures)}\n</div></main></body></html>\n'
    )


def caption_of(scene: Scene) -> tuple[str, tuple[int, int, int] | None]:
    """Return what is written below a tile, and the colour of the class."""
    if scene.text:
        return scene.text, None if scene.label is None else label_colour(scene.label)
    if scene.boxes:
        counts = Counter(text or "object" for text in scene.box_texts)
        return ", ".join(
            text if count == 1 else f"{text} ({count})" for text, count in counts.most_common()
        ), None
    return "", None


def _classes(scene: Scene, class_names: Sequence[str | None] | None) -> set[tuple[int, str]]:
    classes = {
        (label, text) for label, text in zip(scene.box_labels, scene.box_texts, strict=True) if text
    }
    if scene.mask is not None and not scene.boxes:
        names = class_names if class_names is not None and scene.label is None else ()
        for label in np.unique(scene.mask).tolist():
            if label not in (0, 255):
                name = names[label] if label < len(names) else None
                classes.add((label, name or str(label)))
    return classes


def _title(dataset: Dataset) -> str:
    """The name of the file, or of the folder with the shards."""
    location = dataset.shards[0].location
    is_alone = len(dataset.shards) == 1 and parse_shard_name(location.name) is None
    return location.name if is_alone else location.parent.name or location.name


def _order(total: int, positions: Sequence[int], split: str | None, seed: int | None) -> str:
    of = f"{total:,} record{'s' * (total != 1)}" + ("" if split is None else f" of {split}")
    if len(positions) == total:
        return f"all {of}" if total > 1 else of
    how = "evenly spread" if seed is None else f"at random, seed {seed}"
    return f"{len(positions):,} of {of}, {how}"


def check_page(
    path: Location,
    count: int,
    columns: int,
    *,
    overwrite: bool,
    suffixes: Collection[str] = _FORMATS,
) -> None:
    """Raise OptionError if a page of `count` tiles cannot be written to a path."""
    if path.suffix.lower() not in suffixes:
        raise OptionError(
            option="out",
            value=str(path),
            expected="a file name ending in .png or .jpg"
            + (", or .html" if len(suffixes) > len(_FORMATS) else ""),
        )
    for name, value in (("count", count), ("columns", columns)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise OptionError(option=name, value=value, expected="a positive integer")
    most = _MAX_SIDE // (TILE * 3 // 2)
    if columns > most:
        raise OptionError(option="columns", value=columns, expected=f"at most {most}")
    path.check_target(overwrite=overwrite)


def check_fits(count: int, columns: int) -> None:
    """Raise OptionError if `count` tiles are too many for one page."""
    most = _MAX_SIDE // (TILE * 3 // 2) * columns
    if count > most:
        raise OptionError(
            option="count", value=count, expected=f"at most {most} with {columns} columns"
        )


def write_page(page: Any, path: Location, *, overwrite: bool) -> None:
    stream = io.BytesIO()
    page.save(stream, _FORMATS[path.suffix.lower()], quality=92)
    write_document(path, stream.getvalue(), overwrite=overwrite)
