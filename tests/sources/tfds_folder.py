"""Folders as TensorFlow Datasets prepares them, written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import recordsmith as rs


def document_of(type_: str, module: str, **content: Any) -> dict[str, Any]:
    return {"pythonClassName": f"tensorflow_datasets.core.features.{module}.{type_}", **content}


def image_feature() -> dict[str, Any]:
    shape = {"dimensions": ["-1", "-1", "3"]}
    return document_of("Image", "image_feature", image={"shape": shape, "dtype": "uint8"})


def text_feature() -> dict[str, Any]:
    return document_of("Text", "text_feature", text={})


def tensor_feature(dtype: str, shape: list[int], encoding: str = "none") -> dict[str, Any]:
    dimensions = {"dimensions": list(map(str, shape))}
    content = {"shape": dimensions, "dtype": dtype, "encoding": encoding}
    return document_of("Tensor", "tensor_feature", tensor=content)


def features_dict(features: dict[str, Any]) -> dict[str, Any]:
    return document_of("FeaturesDict", "features_dict", featuresDict={"features": features})


def steps_feature(step: dict[str, Any]) -> dict[str, Any]:
    content = {"feature": features_dict(step), "length": "-1"}
    return document_of("Dataset", "dataset_feature", sequence=content)


def info_of(count: int) -> dict[str, Any]:
    split = {"name": "train", "shardLengths": [str(count)], "numBytes": "1"}
    return {"name": "x", "version": "1.0.0", "splits": [split]}


def write_by_hand(folder: Path, features: dict[str, Any], records: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True)
    (folder / "features.json").write_text(json.dumps(features_dict(features)))
    (folder / "dataset_info.json").write_text(json.dumps(info_of(len(records))))
    with rs.ShardWriter(folder / "x-train.tfrecord-00000-of-00001") as writer:
        for record in records:
            writer.write_example(record)
    return folder
