"""Documents that a job is given: plans, arrays of NumPy, names of shards, templates.

The invariant: any plan gives a PackPlan or an OptionError; any `.npy` bytes give values that are
the bytes behind their header, or a ValueError in words; any documents of TensorFlow Datasets give
features that are written as they were parsed, and shards inside their folder; any text is the name
of a shard or is not, and a template that is taken makes names of it that lead nowhere else.
"""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from harness import mutated, mutated_json

import recordsmith as rs
from recordsmith.dataset import NOT_AS_EXPECTED, parse_shard_name, shard_name
from recordsmith.dataset.tfds.features import parse_features
from recordsmith.dataset.tfds.folder import parse_info
from recordsmith.exporting.safe_names import safe_parts
from recordsmith.sources.archives.stored_array import npy_features


class Fuzz:
    watches_memory = False
    reached = ("plans", "refused", "arrays", "no arrays", "names", "templates", "features", "infos")

    def __init__(self, folder: Path) -> None:
        self.last = b""
        (folder / "in").mkdir()
        for name in ("a.png", "b.png"):
            (folder / "in" / name).write_bytes(b"not read")
        self.path = folder / "plan.jsonl"
        options = {"splits": {"train": 0.5, "test": 0.5}, "seed": 3}
        rs.plan(rs.ImageFiles(folder / "in"), folder / "out", **options).save(self.path)
        self.plan = self.path.read_bytes().splitlines()[0]
        self.arrays = []
        for array in (
            np.arange(6).reshape(2, 3),
            np.asfortranarray(np.ones((2, 2), np.float64)),
            np.zeros((0, 4), np.uint8),
            np.array(5, np.uint64),
            np.array([1.5], np.float16),
            np.array(["a"]),
        ):
            stream = io.BytesIO()
            np.save(stream, array)
            self.arrays.append(stream.getvalue())
        self.names = [
            b"train-00003-of-00128.tfrecord",
            b"a.tfrecord-00000-of-00001",
            b"x_{split}-{shard:05d}-of-{shards:05d}.tfrecord.gz",
            b"../../{split}/x",
            b"CON.txt",
        ]

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        choice = dice.randrange(4)
        if choice == 3:
            document = json.loads(self.plan)
            for _ in range(dice.choice((0, 1, 1, 2, 4))):
                document = mutated_json(document, dice)
            self.last = json.dumps(document).encode()
            if dice.random() < 0.2:
                self.last = mutated(self.plan, [self.plan], dice)
            self.path.write_bytes(self.last)
            try:
                rs.PackPlan.load(self.path)
                counts["plans"] += 1
            except rs.OptionError:
                counts["refused"] += 1
        elif choice == 0:
            self.last = mutated(dice.choice(self.arrays), self.arrays, dice)
            try:
                values = npy_features(self.last, "x")
            except ValueError:
                counts["no arrays"] += 1
                return
            assert values["x"].nbytes <= 8 * len(self.last)
            assert values["x"].dtype in (np.int64, np.float32)
            counts["arrays"] += 1
        elif choice == 1:
            self._tfds(dice, counts)
        else:
            self.last = mutated(dice.choice(self.names), self.names, dice)
            name = self.last.decode("utf-8", "surrogateescape")
            counts["names"] += parse_shard_name(name) is not None
            for part in safe_parts(name):
                assert part not in ("", ".", "..")
                assert not set(part) & set('/\\:\0*?"<>|')
                assert len(part.encode()) <= 255
            try:
                shard_name("train", 3, 8, template=name)
                counts["templates"] += 1
            except rs.OptionError:
                counts["no templates"] += 1

    def _tfds(self, dice: random.Random, counts: Counter[str]) -> None:
        parse: Any = dice.choice((parse_features, parse_info))
        document = FEATURES if parse is parse_features else INFO
        for _ in range(dice.choice((0, 1, 1, 2, 4))):
            document = mutated_json(document, dice)
        self.last = json.dumps(document).encode()
        try:
            found = parse(document)
        except NOT_AS_EXPECTED:
            counts["refused"] += 1
            return
        if parse is parse_info:
            for split in found.splits:
                for name in split.file_names(found.name):
                    assert not {"", ".", ".."} & set(name.split("/"))
            counts["infos"] += 1
        else:
            assert len({leaf.path for leaf in found}) == len(found)
            counts["features"] += 1


def _feature(module: str, name: str, **content: Any) -> dict[str, Any]:
    return {"pythonClassName": f"tensorflow_datasets.core.features.{module}.{name}", **content}


_SHAPE = {"shape": {"dimensions": ["-1", "3"]}, "dtype": "int32", "encoding": "zlib"}
_IMAGE = {"shape": {"dimensions": ["-1", "-1", "3"]}, "dtype": "uint8", "encodingFormat": "png"}
_ITEMS = {
    "image": _feature("image_feature", "Image", image=_IMAGE),
    "label": _feature("class_label_feature", "ClassLabel", classLabel={"numClasses": "3"}),
    "tensor": _feature("tensor_feature", "Tensor", tensor=_SHAPE),
    "text": _feature("text_feature", "Text", text={}),
    "old": {"type": "tensorflow_datasets.core.features.text_feature.Text", "content": {}},
}
_INNER = _feature("features_dict", "FeaturesDict", featuresDict={"features": _ITEMS})
FEATURES = _feature(
    "features_dict",
    "FeaturesDict",
    featuresDict={
        "features": _ITEMS
        | {
            "steps": _feature(
                "dataset_feature", "Dataset", sequence={"feature": _INNER, "length": "-1"}
            )
        }
    },
)
INFO = {
    "name": "mnist",
    "version": "3.0.1",
    "fileFormat": "tfrecord",
    "splits": [
        {
            "name": "train",
            "numBytes": "5",
            "shardLengths": ["2", "3"],
            "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
        },
        {"name": "test", "shardLengths": ["1"], "filepathTemplate": "{SPLIT}/{SHARD_INDEX}"},
    ],
    "supervisedKeys": {"tuple": {"items": [{"featureKey": "image"}, {"featureKey": "label"}]}},
}
