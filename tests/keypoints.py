"""Small datasets with random keypoints: folders in COCO's format."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from recordsmith.dataset import KeypointClasses, keypoint_classes_to_json

NAMES = ("nose", "left eye", "right eye", "ü: tail", "left paw")


def random_coco(root: Path, seed: int = 0, **category: Any) -> dict[str, Any]:
    """Write 1 to 3 images with objects of up to three classes, and return the document.

    `category`: replaces values of the first class.
    """
    rng = np.random.default_rng(seed)
    (root / "annotations").mkdir(parents=True)
    (root / "train").mkdir()
    counts = [int(rng.integers(2, 6)), int(rng.integers(1, 6)), 0][: rng.integers(1, 4)]
    categories: list[dict[str, Any]] = [{"id": n, "name": f"c{n}"} for n in range(1, 4)]
    for known, count in zip(categories, counts, strict=False):
        if count:
            pairs = rng.integers(1, count + 1, (int(rng.integers(0, 4)), 2)).tolist()
            known |= {"keypoints": [*NAMES[:count]], "skeleton": pairs}
    categories[0] |= category
    images, annotations = [], []
    for number in range(1, int(rng.integers(2, 5))):
        width, height = rng.integers(5, 700, 2).tolist()
        stream = io.BytesIO()
        Image.new("L", (width, height), number).save(stream, "PNG")
        (root / f"train/{number}.png").write_bytes(stream.getvalue())
        images.append(
            {"id": number, "file_name": f"{number}.png", "width": width, "height": height}
        )
        for _ in range(int(rng.integers(number == 1, 5))):
            known = categories[int(rng.integers(3))] if annotations else categories[0]
            sides = rng.uniform([0, 0, 0.1, 0.1], 0.5) * (width, height, width, height)
            item = {"image_id": number, "category_id": known["id"], "bbox": sides.tolist()}
            points = rng.random((len(known.get("keypoints", ())), 3)) * (width, height, 2.99)
            points = np.floor(points * (scale := [10.0 ** rng.integers(0, 9)] * 2 + [1])) / scale
            points[points[:, 2] == 0] = 0
            points[: not annotations, 2] = 2
            if len(points) and (not annotations or rng.random() < 0.9):
                item["keypoints"] = points.ravel().tolist()
                item["num_keypoints"] = int(np.count_nonzero(points[:, 2]))
            annotations.append({"id": len(annotations) + 1, "area": 1, "iscrowd": 0} | item)
    document = {"images": images, "annotations": annotations, "categories": categories}
    (root / "annotations/instances_train.json").write_text(json.dumps(document))
    return document


def set_keypoint_classes(folder: Path, classes: KeypointClasses) -> None:
    """Replace what the manifest of a dataset has on keypoints."""
    path = folder / "dataset.json"
    document = json.loads(path.read_text())
    document["keypoint_classes"] = keypoint_classes_to_json(classes)
    path.write_text(json.dumps(document))
