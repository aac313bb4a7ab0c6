"""`recordsmith.sheet`: some examples of a dataset on one page, as a picture file.

Chooses positions, reads these records, and draws each into its tile: mask, boxes, class. What
cannot be decoded gets a tile that says why. Only the records on the page are decoded.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from recordsmith.dataset import Dataset, dataset_of, parse_shard_name
from recordsmith.drawing.picture_page import TILE, check_page, write_page
from recordsmith.drawing.scene import Scene, SceneReader
from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.example import Schema, SchemaSurvey, SequenceExample, decode_payload
from recordsmith.files import PathLike, as_path
from recordsmith.image.overlay import (
    blend_mask,
    colour_of,
    draw_boxes,
    fit_to_tile,
    message_tile,
)

_LEGEND_MOST = 60


@dataclass
class SheetReport:
    """What `sheet` drew.

    path: the picture file; height, width: its size in pixels.
    record_count: how many records the dataset has.
    positions: of the examples on the sheet, in order.
    problems: examples whose picture cannot be shown, with the reason.
    """

    path: Path
    height: int
    width: int
    record_count: int
    positions: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict of everything above; record_count is called records."""
        return {
            "path": str(self.path),
            "height": self.height,
            "width": self.width,
            "records": self.record_count,
            "positions": self.positions,
            "problems": self.problems,
        }


def sheet(
    dataset: Dataset | PathLike | Sequence[PathLike],
    out: PathLike,
    *,
    split: str | None = None,
    count: int = 30,
    columns: int = 6,
    seed: int | None = None,
    overwrite: bool = False,
) -> SheetReport:
    """Draw examples of a dataset on one page: pictures with classes, boxes and masks.

    Args:
        dataset: a path, or several, as `open` takes them; or a Dataset.
        out: the picture file; its name ends in .png or .jpg.
        split: only this split of the path.
        count: how many examples, spread evenly over the dataset; all, if it has fewer.
        columns: how many in a row.
        seed: draw examples at random instead; the same seed gives the same ones.
        overwrite: replace a file that is there.

    Returns:
        What was drawn. An example that is damaged, or whose picture cannot be decoded, has a tile
        that says so.

    Raises:
        OptionError: an argument is wrong; there are no pictures in the examples.
        CorruptDataError: the frames of a shard are damaged.
        FileAccessError: a file cannot be read or written.
    """
    path = as_path(out)
    check_page(path, count, columns, overwrite=overwrite)
    opened = dataset_of(dataset, split)
    total = len(opened)
    if not total:
        raise OptionError("the dataset has no records, so there is nothing to draw")
    positions = _choose(total, count, seed)
    records = _read(opened, positions)
    reader = _reader(opened, [record for record in records if isinstance(record, bytes)])
    report = SheetReport(path, 0, 0, total, positions)
    page = _draw(opened, reader, records, report, columns, _order(total, positions, split, seed))
    report.height, report.width = page.height, page.width
    write_page(page, path, overwrite=overwrite)
    return report


def _choose(total: int, count: int, seed: int | None) -> list[int]:
    """Positions: one from each of equal parts of the dataset, or all at random.

    Not the middle of each part: even steps meet the same class again and again where classes take
    turns.
    """
    if count >= total:
        return list(range(total))
    if seed is not None:
        return sorted(random.Random(seed).sample(range(total), count))  # noqa: S311
    dice = random.Random(0)  # noqa: S311 - the same page every time
    ends = [total * number // count for number in range(count + 1)]
    return [dice.randrange(start, stop) for start, stop in pairwise(ends)]


def _read(dataset: Dataset, positions: Sequence[int]) -> list[bytes | CorruptDataError]:
    """The records at positions; in order where shards are compressed."""
    if any(shard.compression != "none" for shard in dataset.shards):
        wanted = set(positions)
        found: list[bytes | CorruptDataError] = []
        for position, record in enumerate(dataset.records()):
            if position in wanted:
                found.append(record)
            if len(found) == len(wanted):
                break
        return found
    records: list[bytes | CorruptDataError] = []
    for position in positions:
        try:
            records.append(dataset.read_record(position))
        except CorruptDataError as error:
            records.append(error)
    return records


def _reader(dataset: Dataset, records: Sequence[bytes]) -> SceneReader:
    """What the records on the page have: asking them costs no pass over the dataset."""
    lengths = np.array([len(record) for record in records], np.int64)
    survey = SchemaSurvey()
    survey.update(b"".join(records), np.cumsum(lengths) - lengths, lengths)
    schema = survey.finish()
    reader = SceneReader(schema.features, dataset.class_names)
    if reader.picture_key is None and records:
        raise OptionError(_no_pictures(schema))
    return reader


def _no_pictures(schema: Schema) -> str:
    if schema.payload not in ("Example", "mixed"):
        kind = "no Examples" if schema.payload == "other" else f"{schema.payload}, not Examples"
        return f"the records are {kind}, so they have no pictures to draw"
    names = ", ".join(sorted(schema.features)[:8]) or "no features"
    return (
        "the examples have no pictures: expected image/encoded, or another feature of bytes that "
        f"holds pictures, or raw pixels with height and width beside them; found {names}"
        + ("" if schema.remark is None else f"; {schema.remark}")
    )


# -- drawing -------------------------------------------------------------------------------------


def _draw(
    dataset: Dataset,
    reader: SceneReader,
    records: Sequence[bytes | CorruptDataError],
    report: SheetReport,
    columns: int,
    subtitle: str,
) -> Any:
    from recordsmith.image.contact_sheet import Tile, contact_sheet

    tiles = []
    legend: Counter[tuple[int, str]] = Counter()
    for position, record in zip(report.positions, records, strict=True):
        name, caption, colour = "", "", None
        try:
            if isinstance(record, CorruptDataError):
                raise record
            example = decode_payload(record)
            if isinstance(example, SequenceExample):
                raise _no_example()
            name = _tail(reader.name(example))
            scene = reader.read(example)
        except CorruptDataError as error:
            report.problems.append(f"position {position}: {error}")
            pixels = message_tile(TILE, "cannot be shown", error.detail)
        else:
            pixels = _draw_scene(scene)
            caption, colour = _caption(scene)
            legend.update(_classes(scene, dataset.class_names))
        words = [word for word in (caption, name, f"#{position:,}") if word]
        tiles.append(Tile(pixels, words[0], "  ".join(reversed(words[1:])), colour))
    common = sorted(key for key, _ in legend.most_common(_LEGEND_MOST))
    named = [(colour_of(label), text) for label, text in common]
    if reader.mask_key is None and len(named) == 1:
        named = []  # the tags say it already
    return contact_sheet(
        tiles,
        title=_title(dataset),
        subtitle=subtitle,
        legend=named,
        columns=min(columns, len(tiles)),
        tile=TILE,
    )


def _draw_scene(scene: Scene) -> Any:
    """A scene at the size of its tile: what is drawn over it stays sharp."""
    pixels = fit_to_tile(scene.pixels, TILE)
    if scene.mask is not None:
        pixels = blend_mask(pixels, scene.mask)
    if scene.boxes:
        pixels = draw_boxes(pixels, scene.boxes, scene.box_labels, scene.box_texts)
    return pixels


def _caption(scene: Scene) -> tuple[str, tuple[int, int, int] | None]:
    """(what the picture shows, the colour of its class)."""
    if scene.text:
        return scene.text, None if scene.label is None else colour_of(scene.label)
    if scene.boxes:
        counts = Counter(text or "object" for text in scene.box_texts)
        return ", ".join(
            text if count == 1 else f"{text} ({count})" for text, count in counts.most_common()
        ), None
    return "", None


def _classes(scene: Scene, class_names: Sequence[str | None] | None) -> set[tuple[int, str]]:
    """What the colours over a picture mean."""
    found = {
        (label, text) for label, text in zip(scene.box_labels, scene.box_texts, strict=True) if text
    }
    if scene.mask is not None and not scene.boxes:
        names = class_names if class_names is not None and scene.label is None else ()
        for label in np.unique(scene.mask).tolist():
            if label not in (0, 255):
                name = names[label] if label < len(names) else None
                found.add((label, name or str(label)))
    return found


# -- words and files -----------------------------------------------------------------------------


def _title(dataset: Dataset) -> str:
    """The name of the file, or of the folder whose shards these are."""
    path = dataset.shards[0].path.absolute()
    is_alone = len(dataset.shards) == 1 and parse_shard_name(path.name) is None
    return path.name if is_alone else path.parent.name or path.name


def _order(total: int, positions: Sequence[int], split: str | None, seed: int | None) -> str:
    of = f"{total:,} record{'s' * (total != 1)}" + ("" if split is None else f" of {split}")
    if len(positions) == total:
        return f"all {of}" if total > 1 else of
    how = "evenly spread" if seed is None else f"at random, seed {seed}"
    return f"{len(positions):,} of {of}, {how}"


def _tail(name: str) -> str:
    """The last part of a path."""
    return name.replace("\\", "/").rpartition("/")[2]


def _no_example() -> CorruptDataError:
    return CorruptDataError(Defect.NOT_AN_EXAMPLE, "it is a SequenceExample, no Example")
