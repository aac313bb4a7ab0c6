"""Random polygons, drawn by recordsmith and by pycocotools: prints how many differ.

With --annotations also every segmentation of a COCO file, such as instances_val2017.json.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from shared import option_parser

from recordsmith.sources.boxes.regions import rasterize

KINDS = ("inside", "around", "whole", "half", "tenths", "repeated", "far", "round")


def polygon(generator: np.random.Generator, kind: str, height: int, width: int) -> list[float]:
    count = int(generator.integers(3, generator.choice([5, 12, 60])))
    points: Any = generator.random((count, 2)) * [width, height]
    if kind == "around":
        points = points * 3 - [width, height]
    elif kind in ("whole", "half", "tenths"):
        steps = {"whole": 1, "half": 2, "tenths": 10}[kind]
        points = np.round(points * steps) / steps
    elif kind == "repeated":
        points = np.repeat(points, 2, axis=0)
        points[-1] = points[0]
    elif kind == "far":
        scale = 10.0 ** generator.integers(0, 4, (count, 1))
        points = np.clip(points * scale * generator.choice([-1, 1], (count, 2)), -1e6, 1e6)
    elif kind == "round":
        angles = np.sort(generator.random(count)) * 2 * np.pi
        directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        points = np.round((directions + 1) * [width / 2, height / 2], 2)
    return points.ravel().tolist()  # type: ignore[no-any-return]


def main() -> int:
    parser = option_parser(__doc__, 5_000, "segmentations to draw")
    parser.add_argument("--annotations", type=Path, default=None, help="a COCO JSON file")
    options = parser.parse_args()
    from pycocotools import mask as coco

    generator = np.random.default_rng(options.seed)
    warnings.simplefilter("ignore", DeprecationWarning)  # of pycocotools with NumPy 2
    drawn: Counter[str] = Counter()
    different: Counter[str] = Counter()

    def compare(kind: str, segmentation: Any, height: int, width: int) -> None:
        regions = coco.frPyObjects(segmentation, height, width)
        expected = coco.decode(coco.merge(regions) if isinstance(regions, list) else regions)
        drawn[kind] += 1
        if not np.array_equal(rasterize(segmentation, height, width), expected):
            different[kind] += 1
            print(f"seed {options.seed}: {segmentation} in {height} x {width}", file=sys.stderr)

    for number in range(options.count):
        kind = KINDS[number % len(KINDS)]
        height, width = map(int, generator.integers(1, generator.choice([8, 40, 300]), 2))
        count = generator.integers(1, 4)
        compare(
            kind, [polygon(generator, kind, height, width) for _ in range(count)], height, width
        )
    if options.annotations is not None:
        document = json.loads(options.annotations.read_text())
        sizes = {image["id"]: (image["height"], image["width"]) for image in document["images"]}
        for annotation in document["annotations"]:
            region, size = annotation["segmentation"], sizes[annotation["image_id"]]
            compare("real" if isinstance(region, list) else "runs", region, *size)
    print("polygons  drawn  different")
    for kind in drawn:
        print(f"{kind:8}  {drawn[kind]:5}  {different[kind]:9}")
    return int(any(different.values()))


if __name__ == "__main__":
    sys.exit(main())
