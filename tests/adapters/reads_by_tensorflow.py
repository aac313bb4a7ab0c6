"""Runs programs of `rs.reader_code` for TensorFlow, and holds all that their datasets give against
the records.

    python reads_by_tensorflow.py '["PATH", …]'
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf

import recordsmith as rs
from recordsmith.image import decode_mask


def main(paths: list[str]) -> None:
    for number, path in enumerate(paths):
        program = Path(f"reader{number}.py")
        program.write_text(rs.reader_code(path, "tf"), "utf-8")
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            variables = runpy.run_path(str(program))
        variables["source"] = program.read_text("utf-8")
        schema = rs.inspect(path).schema
        keys = {key for section in schema.sections.values() for key in section}
        told = {
            ast.literal_eval(line.rpartition(": ")[0]) for line in shown.getvalue().splitlines()
        }
        assert told, path
        assert told <= keys, path
        records = list(rs.open(path))
        check_examples(schema, variables, records)
        print(len(records), "records")


def check_examples(schema: Any, variables: dict[str, Any], records: list[Any]) -> None:
    dataset = variables["dataset"]
    if "tf.io.parse_example(" in variables["source"]:
        dataset = dataset.unbatch()
    examples = list(dataset)
    assert len(examples) == len(records) > 0
    for key, feature in schema.features.items():
        check_feature(
            key, feature, [example.get(key) for example in examples],
            [record.get(key) for record in records],
        )  # fmt: skip


def check_feature(key: str, feature: Any, read: list[Any], expected: list[Any]) -> None:
    """All rows of one feature."""
    if feature.kind in ("mixed", "none"):
        assert read == [None] * len(read), key
        return
    if feature.content == "image" and feature.max_length == 1 and read[0].dtype != tf.string:
        check_images(key, read, expected)
        return
    is_fixed = feature.max_length == feature.min_length
    default = {"bytes": b"", "int64": 0, "float": 0.0}[feature.kind]
    lacking = [default] * (feature.max_length if is_fixed else 0)
    for one, record in zip(read, expected, strict=True):
        values = listed(one)
        values = values if isinstance(values, list) else [values]
        assert values == list(lacking if record is None else record), key


def check_images(key: str, read: list[Any], expected: list[Any]) -> None:
    there = [number for number, data in enumerate(expected) if data is not None]
    assert all(read[n].shape == (0, 0, 3) for n in range(len(read)) if n not in there)
    with rs.ShardWriter("images.tfrecord", overwrite=True) as writer:
        for number in there:
            writer.write_example({"image": expected[number]})
    images = rs.Examples(rs.open("images.tfrecord"), {"it": rs.Image("image", fit="pad")})
    for at, number in enumerate(there):
        pixels = read[number].numpy()
        if pixels.shape[2] == 1:
            assert (pixels[:, :, 0] == decode_mask(expected[number][0])).all(), key
        else:
            assert (pixels == images[at]["it"]).all(), key


def listed(value: Any) -> Any:
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    value = value.numpy()
    return value if isinstance(value, bytes) else value.tolist()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
