"""Small annotated datasets, written without recordsmith."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs

Box = tuple[str, float, float, float, float]
"""Class, xmin, ymin, xmax, ymax."""


def image(path: Path, size: tuple[int, int] = (40, 20), orientation: int | None = None) -> bytes:
    """A small image with noise in it, so that two are never alike."""
    kind = {".png": "PNG"}.get(path.suffix.lower(), "JPEG")
    seed = sum(str(path.name).encode())
    pixels = bytes((seed * 31 + at * at * 7) % 251 for at in range(3 * size[0] * size[1]))
    exif = Image.Exif()
    if orientation is not None:
        exif[0x0112] = orientation
    out = io.BytesIO()
    Image.frombytes("RGB", size, pixels).save(out, kind, exif=exif)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(out.getvalue())
    return out.getvalue()


def voc_xml(
    boxes: Iterable[Box],
    filename: str | None,
    size: tuple[float, float] | None = (40, 20),
    *,
    inside: str = "",
) -> str:
    """An annotation as labelImg writes it; the first object begins in line 12."""
    told = "" if filename is None else f"<filename>{filename}</filename>"
    width, height = ("", "") if size is None else size
    lines = [
        "<annotation>",
        "\t<folder>x</folder>",
        f"\t{told}",
        "\t<source><database>Unknown</database></source>",
        "\t<size>",
        f"\t\t<width>{width}</width>",
        f"\t\t<height>{height}</height>",
        "\t\t<depth>3</depth>",
        "\t</size>",
        "\t<segmented>0</segmented>",
        f"\t{inside}",
    ]
    for name, *corners in boxes:
        sides = zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True)
        lines += [
            "\t<object>",
            f"\t\t<name>{name}</name>",
            "\t\t<pose>Left</pose>",
            "\t\t<truncated>1</truncated>",
            "\t\t<difficult>0</difficult>",
            "\t\t<bndbox>" + "".join(f"<{s}>{value}</{s}>" for s, value in sides) + "</bndbox>",
            "\t</object>",
        ]
    return "\n".join([*lines, "</annotation>"])


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def voc(
    root: Path,
    samples: Mapping[str, Sequence[Box]],
    *,
    annotations: str = "Annotations",
    images: str = "JPEGImages",
    **options: Any,
) -> Path:
    """An image and an XML file for each name, such as `a` or `train/a`."""
    for name, boxes in samples.items():
        image(root / images / f"{name}.jpg")
        filename = f"{Path(name).name}.jpg"
        write(root / annotations / f"{name}.xml", voc_xml(boxes, filename, **options))
    return root


def coco(
    path: Path,
    images: Mapping[str, Sequence[Any]],
    categories: Mapping[int, str],
    *,
    size: tuple[int, int] | None = (40, 20),
) -> Path:
    """A JSON file: the annotations of each image, without their ids."""
    entries, annotations = [], []
    for image_id, (name, objects) in enumerate(images.items(), 100):
        image: dict[str, Any] = {"id": image_id, "file_name": name}
        if size is not None:
            image |= {"width": size[0], "height": size[1]}
        entries.append(image)
        annotations += [
            {"id": len(annotations) + number, "image_id": image_id, **item}
            for number, item in enumerate(objects, 1)
        ]
    document = {
        "info": {"year": 2017},
        "licenses": [],
        "images": entries,
        "annotations": annotations,
        "categories": [{"id": key, "name": name} for key, name in categories.items()],
    }
    return write(path, json.dumps(document, indent=1))


CAT = "cat,4,5,14,15"
BOX = (0.25, 0.1, 0.75, 0.35)
"""CAT as ymin, xmin, ymax, xmax of an image of 40 x 20."""

CSV_HEADER = "filename,width,height,class,xmin,ymin,xmax,ymax\n"
CSV_ROWS = "".join(f"{name}.jpg,40,20,{CAT}\n" for name in "abcd")
OPEN_IMAGES = "ImageID,LabelName,XMin,XMax,YMin,YMax,IsTruncated,IsGroupOf\n"


def csv_boxes(
    root: Path, rows: str = CSV_ROWS, header: str = CSV_HEADER, images: str = "abcd"
) -> Path:
    """A table of boxes, and images."""
    for name in images:
        image(root / "images" / f"{name}.jpg")
    write(root / "boxes.csv", header + rows)
    return root


UPRIGHT = [(4, 5), (14, 5), (14, 15), (4, 15)]
TILTED = [(20, 2), (30, 7), (25, 17), (15, 12)]
"""Corners of rectangles."""

STAIRS = np.tril(np.ones((6, 9), bool))
"""The pixels of a mask."""


def shape_of(*points: tuple[float, float], kind: str = "polygon", label: Any = "cat") -> Any:
    """A shape in a file of LabelMe."""
    return {"label": label, "shape_type": kind, "points": [list(point) for point in points]}


def png_text(pixels: Any, mode: str | None = None) -> str:
    """A PNG in Base64, as LabelMe stores masks."""
    out = io.BytesIO()
    drawn = Image.fromarray(pixels)
    (drawn.convert(mode) if mode else drawn).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


def labelme(root: Path, *shapes: Any, name: str = "a", **more: Any) -> Path:
    """An image and LabelMe's file next to it."""
    path = root / f"{name}.jpg"
    document = {"version": "5", "shapes": shapes, "imagePath": path.name, "imageData": None}
    image(path)
    write(path.with_suffix(".json"), json.dumps(document | more))
    return root


def cvat(root: Path, shapes: str = "", images: str = "abcd", values: str = "") -> Path:
    """CVAT's XML with the same shapes in each of its images; the first image is in line 2."""
    elements = []
    for name in images:
        image(root / "images" / f"{name}.jpg")
        elements.append(f'<image id="7{name}" name="{name}.jpg" {values}>{shapes}</image>')
    write(root / "annotations.xml", f"<annotations>\n<version/>{''.join(elements)}</annotations>")
    return root


# -- what is read ----------------------------------------------------------------------------------


def read(source: Any, number: int = 0) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The features of a sample of a source or a listing, and what was noted."""
    listing = source.list_samples() if hasattr(source, "list_samples") else source
    notes: list[tuple[str, str]] = []
    content = listing.reader.read(listing.samples[number], lambda *note: notes.append(note))
    return dict(content), notes


def problems_of(source: Any, number: int = 0) -> tuple[str, ...]:
    """The problems of a sample that cannot be read."""
    with pytest.raises(rs.SourceError) as caught:
        read(source, number)
    return caught.value.problems


def boxes_of(features: Mapping[str, Any]) -> list[tuple[float, ...]]:
    """ymin, xmin, ymax, xmax of each object."""
    sides = [features[f"image/object/bbox/{side}"] for side in ("ymin", "xmin", "ymax", "xmax")]
    return [tuple(round(value, 6) for value in box) for box in zip(*sides, strict=True)]


def corners_of(features: Mapping[str, Any]) -> list[list[float]]:
    """x, y of the four corners of each object."""
    sides = [features[f"image/object/corner/{side}"] for side in "xy"]
    return np.transpose(sides).round(6).reshape(-1, 8).tolist()


def mask_of(data: bytes) -> Any:
    with Image.open(io.BytesIO(data)) as found:
        return np.array(found)


def overlap(mask: Any, corners: Any) -> float:
    """The shared part of a mask and of the pixels whose middles lie in a convex polygon."""
    y, x = np.mgrid[: mask.shape[0], : mask.shape[1]] + 0.5
    edges = zip(corners, [*corners[1:], corners[0]], strict=True)
    sides = [(x2 - x1) * (y - y1) > (y2 - y1) * (x - x1) for (x1, y1), (x2, y2) in edges]
    inside = np.all(sides, axis=0)
    return float((inside & (mask > 0)).sum() / (inside | (mask > 0)).sum())
