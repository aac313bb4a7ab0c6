"""Images with masks and with boxes, in four layouts, into one shard for training.

Next to recordsmith: reading the same files and doing nothing with them; and what users write by
hand, with the parser that guides show, `tf.train.Example` and `TFRecordWriter`. The peers shuffle
with a seed and sync their file. recordsmith also checks every box and mask, reads the shard back
and proves its checksums, and writes an index, a manifest and a label map: that is in its figure.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from annotated import CLASSES
from case import OURS, Case, Peer, Task
from cases.pack import jpeg_size, packing_task
from cases.write import sync
from inputs import Inputs

BY_HAND = "by hand, tf.train.Example"
READING = "reading the files"
Objects = list[tuple[str, tuple[float, float, float, float]]]
"""Class, and xmin, ymin, xmax, ymax in pixels, of each object of an image."""


def _recordsmith(kind: str, root_name: str) -> Callable[[Inputs], Task]:
    def prepare(inputs: Inputs) -> Task:
        import recordsmith as rs

        pack, source = rs.pack, getattr(rs, kind)
        root = inputs.path(root_name)

        def run(out: Path) -> None:
            pack(source(root), out, shards=1)

        out = inputs.out(f"recordsmith-{root_name}")
        return packing_task(out, inputs.photograph_count, run)

    return prepare


def _reading(root_name: str) -> Callable[[Inputs], Task]:
    """All files, images and annotations, in the order of their names."""

    def prepare(inputs: Inputs) -> Task:
        root = inputs.path(root_name)

        def run() -> int:
            return sum(len(path.read_bytes()) for path in sorted(root.rglob("*.*")))

        return Task(run, inputs.photograph_count)

    return prepare


# -- by hand -------------------------------------------------------------------------------------


def _by_hand(root_name: str, examples: Callable[[Any, Path], Iterator[Any]]) -> Any:
    """`examples` yields messages in the order in which they are written."""

    def prepare(inputs: Inputs) -> Task:
        import tensorflow as tf

        root = inputs.path(root_name)

        def run(out: Path) -> None:
            path = out / "train.tfrecord"
            with tf.io.TFRecordWriter(str(path)) as writer:
                for message in examples(tf.train, root):
                    writer.write(message.SerializeToString())
            sync(path)

        return packing_task(inputs.out(f"by-hand-{root_name}"), inputs.photograph_count, run)

    return prepare


def _example(train: Any, features: dict[str, Any]) -> Any:
    """An Example of bytes, ints, and lists of bytes, ints or floats."""
    return train.Example(
        features=train.Features(
            feature={key: _feature(train, value) for key, value in features.items()}
        )
    )


def _feature(train: Any, value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    if isinstance(values[0], bytes):
        return train.Feature(bytes_list=train.BytesList(value=values))
    if isinstance(values[0], float):
        return train.Feature(float_list=train.FloatList(value=values))
    return train.Feature(int64_list=train.Int64List(value=values))


def _shuffled(paths: Any) -> list[Path]:
    found = sorted(paths)
    random.Random(0).shuffle(found)
    return found


def _pairs(train: Any, root: Path) -> Iterator[Any]:
    for image in _shuffled((root / "JPEGImages").iterdir()):
        data = image.read_bytes()
        height, width = jpeg_size(data)
        mask = (root / "SegmentationClass" / f"{image.stem}.png").read_bytes()
        yield _example(
            train,
            {
                "image/encoded": data,
                "image/filename": image.name.encode(),
                "image/format": b"jpeg",
                "image/height": height,
                "image/width": width,
                "image/segmentation/class/encoded": mask,
                "image/segmentation/class/format": b"png",
            },
        )


def _with_boxes(
    train: Any, image: Path, size: tuple[int, int], objects: Objects, **more: list[Any]
) -> Any:
    height, width = size
    name = image.name.encode()
    boxes = [box for _, box in objects]
    features = {
        "image/encoded": image.read_bytes(),
        "image/filename": name,
        "image/source_id": name,
        "image/format": b"jpeg",
        "image/height": height,
        "image/width": width,
        "image/object/bbox/xmin": [box[0] / width for box in boxes],
        "image/object/bbox/ymin": [box[1] / height for box in boxes],
        "image/object/bbox/xmax": [box[2] / width for box in boxes],
        "image/object/bbox/ymax": [box[3] / height for box in boxes],
        "image/object/class/text": [name.encode() for name, _ in objects],
        "image/object/class/label": [CLASSES.index(name) + 1 for name, _ in objects],
    }
    features |= {f"image/object/{key}": values for key, values in more.items()}
    return _example(train, features)


def _voc(train: Any, root: Path) -> Iterator[Any]:
    for path in _shuffled((root / "Annotations").iterdir()):
        tree: Any = ET.parse(path).getroot()
        size = int(tree.find("size/height").text), int(tree.find("size/width").text)
        found = tree.findall("object")
        objects: Objects = []
        for item in found:
            box = item.find("bndbox")
            sides = (float(box.find(side).text) for side in ("xmin", "ymin", "xmax", "ymax"))
            objects.append((item.find("name").text, tuple(sides)))  # type: ignore[arg-type]
        yield _with_boxes(
            train,
            root / "JPEGImages" / tree.find("filename").text,
            size,
            objects,
            difficult=[int(item.find("difficult").text) for item in found],
            truncated=[int(item.find("truncated").text) for item in found],
            view=[item.find("pose").text.encode() for item in found],
        )


def _coco(train: Any, root: Path) -> Iterator[Any]:
    document = json.loads((root / "annotations" / "instances_train2017.json").read_bytes())
    names = {category["id"]: category["name"] for category in document["categories"]}
    by_image: dict[int, list[Any]] = {}
    for annotation in document["annotations"]:
        by_image.setdefault(annotation["image_id"], []).append(annotation)
    images = document["images"]
    random.Random(0).shuffle(images)
    for image in images:
        found = by_image.get(image["id"], [])
        objects: Objects = []
        for annotation in found:
            x, y, across, down = annotation["bbox"]
            objects.append((names[annotation["category_id"]], (x, y, x + across, y + down)))
        yield _with_boxes(
            train,
            root / "train2017" / image["file_name"],
            (image["height"], image["width"]),
            objects,
            is_crowd=[annotation["iscrowd"] for annotation in found],
            area=[float(annotation["area"]) for annotation in found],
        )


def _yolo(train: Any, root: Path) -> Iterator[Any]:
    for image in _shuffled((root / "images" / "train").iterdir()):
        height, width = jpeg_size(image.read_bytes())
        objects: Objects = []
        for line in (root / "labels" / "train" / f"{image.stem}.txt").read_text().splitlines():
            number, *numbers = line.split()
            x, y, across, down = map(float, numbers)
            xmin, xmax = (x - across / 2) * width, (x + across / 2) * width
            ymin, ymax = (y - down / 2) * height, (y + down / 2) * height
            objects.append((CLASSES[int(number)], (xmin, ymin, xmax, ymax)))
        yield _with_boxes(train, image, (height, width), objects)


def _case(
    name: str,
    title: str,
    what: str,
    kind: str,
    root_name: str,
    examples: Callable[[Any, Path], Iterator[Any]],
) -> Case:
    return Case(
        name=name,
        title=title,
        what=f"JPEG files of 500 by 375 pixels with {what}, into one shard, synced at the end.",
        unit="image",
        peers=(
            Peer(OURS, _recordsmith(kind, root_name)),
            Peer(BY_HAND, _by_hand(root_name, examples)),
            Peer(READING, _reading(root_name)),
        ),
        inputs=(root_name,),
    )


CASES = (
    _case(
        "pairs", "Pack masks", "palette PNG masks of the same names", "ImagePairs", "pairs", _pairs
    ),
    _case(
        "boxes", "Pack boxes of VOC", "an XML file each, about three objects", "Voc", "voc", _voc
    ),
    _case(
        "coco",
        "Pack boxes of COCO",
        "one JSON file for all, about three objects an image with their outlines",
        "Coco",
        "coco",
        _coco,
    ),
    Case(
        name="coco-keypoints",
        title="Pack keypoints of COCO",
        what="The same with 17 keypoints for each object.",
        unit="image",
        peers=(
            Peer(OURS, _recordsmith("Coco", "coco-keypoints")),
            Peer("recordsmith, boxes alone", _recordsmith("Coco", "coco"), at_most=1.2),
        ),
        inputs=("coco", "coco-keypoints"),
    ),
    _case(
        "yolo", "Pack boxes of YOLO", "a text file each, about three objects", "Yolo", "yolo", _yolo
    ),
)
