"""Draws images in folders, pairs and boxes, and the records that they must become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..files import SIZE, Folder
from ..layout import Box, Record

WIDTH, HEIGHT = SIZE


def draw_images(
    root: Folder, path: str, items: Iterable[object], label: str | None = None, **options: Any
) -> list[Record]:
    return [Record(root.photo(path.format(item), **options), label) for item in items]


def draw_classes(
    root: Folder,
    path: str,
    names: Iterable[str],
    items: Sequence[object] = (1, 2, 3),
    **options: Any,
) -> list[Record]:
    """`path` has a place for the class, {0}, and one for the item, {1}."""
    return [
        Record(root.photo(path.format(name, item), **options), name)
        for name in names
        for item in items
    ]


def draw_pairs(
    root: Folder,
    image: str,
    mask: str,
    items: Iterable[object],
    values: Sequence[int] = (0, 1),
    **options: Any,
) -> list[Record]:
    return [
        Record(root.photo(image.format(item)), mask=root.mask(mask.format(item), values, **options))
        for item in items
    ]


def box_at(number: int, names: Sequence[str | None]) -> Box:
    """A box that is different for each number, and neither square nor centred."""
    left, top = 2 + number % 7, 1 + number % 5
    return (names[number % len(names)], left, top, left + 12 + number % 3, top + 7)


def draw_boxes(
    root: Folder, path: str, items: Iterable[object], names: Sequence[str | None], start: int = 0
) -> dict[str, Record]:
    """Images with one or two boxes, by their paths."""
    records = {}
    for number, item in enumerate(items, start):
        boxes = [box_at(number, names), *([box_at(number + 1, names)] if number % 2 else [])]
        records[path.format(item)] = Record(root.photo(path.format(item)), boxes=tuple(boxes))
    return records


def file_name(path: str) -> str:
    return path.rpartition("/")[2]


def file_stem(path: str) -> str:
    return file_name(path).partition(".")[0]


def box_sides(box: Box) -> tuple[float, float, float, float]:
    """x, y, width, height."""
    _, left, top, right, bottom = box
    return (left, top, right - left, bottom - top)


def coco_document(records: Mapping[str, Record], names: Sequence[str]) -> dict[str, object]:
    images: list[object] = []
    annotations: list[object] = []
    for number, (path, record) in enumerate(records.items(), 1):
        images.append(
            {"id": number, "file_name": file_name(path), "width": WIDTH, "height": HEIGHT}
        )
        annotations += [
            {
                "id": len(annotations) + count,
                "image_id": number,
                "category_id": names.index(str(box[0])) + 1,
                "bbox": box_sides(box),
                "area": box_sides(box)[2] * box_sides(box)[3],
                "iscrowd": 0,
            }
            for count, box in enumerate(record.boxes or (), 1)
        ]
    categories = [{"id": number, "name": name} for number, name in enumerate(names, 1)]
    return {"images": images, "annotations": annotations, "categories": categories}


def run_lengths(pixels: NDArray[np.bool_]) -> str:
    """Starts and lengths, counted from 1 down the columns."""
    edges = np.flatnonzero(np.diff(pixels.T.ravel(), prepend=False, append=False))
    starts, ends = edges[::2], edges[1::2]
    return " ".join(f"{start + 1} {end - start}" for start, end in zip(starts, ends, strict=True))
