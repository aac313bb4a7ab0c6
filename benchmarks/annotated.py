"""Datasets with masks, boxes and tables, in the layouts that people have; real-sized, drawn.

Photographs of 500 by 375 pixels, as in PASCAL VOC. The datasets link to the same files.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drawing import Box, Painter

WIDTH, HEIGHT = 500, 375
_NAMES = (
    "aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike "
    "person pottedplant sheep sofa train tvmonitor"
)
CLASSES = tuple(_NAMES.split())
TABLE_COLUMNS = ("id", "user", "clicked", "price", "ratio", "height", "city", "remark")
"""Three of whole numbers, three of fractions, two of text."""

_CITIES = ("Berlin", "Bogotá", "Kampala", "Kyōto", "Lagos", "Lima", "Oslo", "Pune")
_ROWS_AT_A_TIME = 10_000


def draw_photographs(path: Path, count: int, *, progressive: bool = False) -> None:
    """JPEG files 000000.jpg, 000001.jpg, …"""
    path.mkdir(parents=True)
    painter = Painter(3, WIDTH, HEIGHT)
    for number in range(count):
        (path / f"{number:06d}.jpg").write_bytes(painter.draw(progressive=progressive))


def draw_camera(
    path: Path, count: int, width: int, height: int, *, grain: tuple[float, float], quality: int
) -> None:
    """JPEG files as cameras write them, in a folder for each of five classes."""
    painter = Painter(5, width, height, grain=grain, quality=quality)
    for number in range(count):
        folder = path / CLASSES[number % 5]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:06d}.jpg").write_bytes(painter.draw())


def make_pngs(path: Path, photographs: Path, count: int) -> None:
    """The first photographs as PNG files."""
    from PIL import Image

    path.mkdir(parents=True)
    for image in sorted(photographs.iterdir())[:count]:
        with Image.open(image) as opened:
            opened.save(path / f"{image.stem}.png")


def make_pairs(path: Path, photographs: Path) -> None:
    """PASCAL VOC's folders of images and palette masks."""
    images = _linked(path / "JPEGImages", photographs)
    masks = path / "SegmentationClass"
    masks.mkdir()
    painter = Painter(4, WIDTH, HEIGHT)
    for image in images:
        (masks / f"{image.stem}.png").write_bytes(painter.draw_mask(len(CLASSES)))


def make_voc(path: Path, photographs: Path) -> None:
    """PASCAL VOC's folders of images and XML."""
    images = _linked(path / "JPEGImages", photographs)
    annotations = path / "Annotations"
    annotations.mkdir()
    for image, objects in zip(images, _objects(), strict=False):
        text = "".join(_VOC_OBJECT.format(name, *box) for name, box in objects)
        (annotations / f"{image.stem}.xml").write_text(_VOC.format(image.name, text))


def make_coco(path: Path, photographs: Path, keypoint_count: int = 0) -> None:
    """COCO's folders, with one JSON file that also has the outline of each object."""
    image_paths = _linked(path / "train2017", photographs)
    images: list[Any] = []
    annotations: list[Any] = []
    for number, (image, objects) in enumerate(zip(image_paths, _objects(), strict=False)):
        images.append({"id": number, "file_name": image.name, "width": WIDTH, "height": HEIGHT})
        for name, (left, top, right, bottom) in objects:
            across, down = right - left, bottom - top
            outline = [left, top, right, top, right, bottom, left, bottom, left, top + down / 2]
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": CLASSES.index(name) + 1,
                    "segmentation": [outline * 4],  # outlines have about twenty points
                    "area": across * down,
                    "bbox": [left, top, across, down],
                    "iscrowd": 0,
                }
            )
            if keypoint_count:
                points = [
                    [
                        round(left + across * n / keypoint_count),
                        round(top + down / (n + 1)),
                        n % 2 + 1,
                    ]
                    for n in range(keypoint_count)
                ]
                annotations[-1]["keypoints"] = [value for point in points for value in point]
                annotations[-1]["num_keypoints"] = keypoint_count
    names = [f"point {number}" for number in range(keypoint_count)]
    more = {"keypoints": names, "skeleton": [[1, 2]]} if names else {}
    categories = [{"id": number, "name": name, **more} for number, name in enumerate(CLASSES, 1)]
    document = {"images": images, "annotations": annotations, "categories": categories}
    (path / "annotations").mkdir()
    (path / "annotations" / "instances_train2017.json").write_text(json.dumps(document))


def make_yolo(path: Path, photographs: Path) -> None:
    """Ultralytics' folders."""
    images = _linked(path / "images" / "train", photographs)
    labels = path / "labels" / "train"
    labels.mkdir(parents=True)
    for image, objects in zip(images, _objects(), strict=False):
        lines = []
        for name, (left, top, right, bottom) in objects:
            x, y = (left + right) / 2 / WIDTH, (top + bottom) / 2 / HEIGHT
            across, down = (right - left) / WIDTH, (bottom - top) / HEIGHT
            lines.append(f"{CLASSES.index(name)} {x:.6f} {y:.6f} {across:.6f} {down:.6f}\n")
        (labels / f"{image.stem}.txt").write_text("".join(lines))
    names = "".join(f"  {number}: {name}\n" for number, name in enumerate(CLASSES))
    (path / "data.yaml").write_text(f"path: .\ntrain: images/train\nnames:\n{names}")


def make_csv(path: Path, row_count: int) -> None:
    """A table with a line of names and `row_count` rows."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(TABLE_COLUMNS)
        for columns in _table(row_count):
            text = io.StringIO()
            csv.writer(text).writerows(zip(*columns, strict=True))
            file.write(text.getvalue())


def make_json(path: Path, row_count: int) -> None:
    """The same table as JSON Lines."""
    with open(path, "w", encoding="utf-8") as file:
        for columns in _table(row_count):
            file.writelines(
                json.dumps(dict(zip(TABLE_COLUMNS, row, strict=True))) + "\n"
                for row in zip(*columns, strict=True)
            )


def make_parquet(path: Path, row_count: int) -> None:
    """The same table as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = [pa.table(dict(zip(TABLE_COLUMNS, part, strict=True))) for part in _table(row_count)]
    pq.write_table(pa.concat_tables(tables), path)


def _linked(path: Path, photographs: Path) -> list[Path]:
    """The photographs in another folder, as links to the same files."""
    path.mkdir(parents=True)
    images = sorted(photographs.iterdir())
    for image in images:
        os.link(image, path / image.name)
    return images


def _objects() -> Iterator[list[tuple[str, Box]]]:
    """Class and box of each object, image by image; about three an image, as in VOC."""
    painter = Painter(5, WIDTH, HEIGHT)
    number = 0
    while True:
        objects = []
        for box in painter.boxes(1, 5):
            objects.append((CLASSES[number % len(CLASSES)], box))
            number += 1
        yield objects


def _table(row_count: int) -> Iterator[list[list[Any]]]:
    """The columns of some rows at a time."""
    import numpy as np

    rng = np.random.default_rng(6)
    for start in range(0, row_count, _ROWS_AT_A_TIME):
        rows = min(_ROWS_AT_A_TIME, row_count - start)
        cities = [_CITIES[number] for number in rng.integers(0, len(_CITIES), rows).tolist()]
        yield [
            list(range(start, start + rows)),
            rng.integers(0, 1 << 31, rows).tolist(),
            rng.integers(0, 2, rows).tolist(),
            rng.uniform(1, 1000, rows).round(2).tolist(),
            rng.uniform(0, 1, rows).round(6).tolist(),
            rng.normal(170, 10, rows).round(1).tolist(),
            cities,
            [f"{city}, row {number}" for number, city in enumerate(cities, start)],
        ]


_VOC_OBJECT = """\
	<object>
		<name>{}</name>
		<pose>Unspecified</pose>
		<truncated>0</truncated>
		<difficult>0</difficult>
		<bndbox>
			<xmin>{}</xmin>
			<ymin>{}</ymin>
			<xmax>{}</xmax>
			<ymax>{}</ymax>
		</bndbox>
	</object>
"""
_VOC = f"""\
<annotation>
	<folder>drawn</folder>
	<filename>{{}}</filename>
	<source>
		<database>drawn</database>
		<annotation>drawn</annotation>
		<image>drawn</image>
	</source>
	<size>
		<width>{WIDTH}</width>
		<height>{HEIGHT}</height>
		<depth>3</depth>
	</size>
	<segmented>0</segmented>
{{}}</annotation>
"""
