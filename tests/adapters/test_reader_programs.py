"""Programs of `rs.reader_code` read what they were written for: each runs in a process of its own,
and gives what recordsmith reads.

That of DALI is run by tests/peers/read_by_dali.py, where DALI is installed.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

from .conftest import Run

TENSORFLOW = """\
import contextlib, io, json, pathlib, runpy, sys
import tensorflow as tf
import recordsmith as rs
from recordsmith.image import decode_mask

def run(number, code):
    file = pathlib.Path(f"reader{number}.py")
    file.write_text(code, "utf-8")
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        variables = runpy.run_path(str(file))
    return variables, shown.getvalue()

def listed(value):
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    value = value.numpy()
    return value if isinstance(value, bytes) else value.tolist()

def flat(value):
    value = listed(value)
    return value if isinstance(value, list) else [value]

def check_values(features, read, expected, where):
    for key, feature in features.items():
        if feature.kind in ("mixed", "none"):
            assert key not in read, where
            continue
        if feature.content == "image" and feature.max_length == 1:
            check_picture(read[key].numpy(), expected.get(key), where)
            continue
        default = {"bytes": b"", "int64": 0, "float": 0.0}[feature.kind]
        lacking = [default] * (feature.max_length if feature.min_length == feature.max_length else 0)
        wanted = list(expected.get(key, lacking))
        assert flat(read[key]) == wanted, (where, key)

def check_picture(pixels, data, where):
    if isinstance(pixels, bytes):  # not decoded
        assert pixels == data[0], where
    elif data is None:
        assert pixels.shape == (0, 0, 3), where
    elif pixels.shape[2] == 1:
        assert (pixels[:, :, 0] == decode_mask(data[0])).all(), where
    else:
        with rs.ShardWriter("picture.tfrecord", overwrite=True) as writer:
            writer.write_example({"image": data[0]})
        pictures = rs.Examples(rs.open("picture.tfrecord"), {"image": rs.Image("image", fit="pad")})
        assert (pixels == pictures[0]["image"]).all(), where

for number, path in enumerate(json.loads(sys.argv[1])):
    code = rs.reader_code(path, "tf")
    schema = rs.inspect(path).schema
    variables, shown = run(number, code)
    records = list(rs.open(path))
    count = 0
    if schema.payload == "SequenceExample":
        for (context, sequences), expected in zip(variables["dataset"], records, strict=True):
            count += 1
            if not isinstance(expected, rs.SequenceExample):
                expected = rs.SequenceExample(expected, {})
            check_values(schema.sections["context"], context, expected.context, path)
            for key, feature in schema.sections["feature_lists"].items():
                wanted = [list(step) for step in expected.feature_lists.get(key, [])]
                if feature.max_length == feature.min_length == 1:
                    wanted = [value for step in wanted for value in step]
                assert listed(sequences[key]) == wanted, (path, key)
    else:
        dataset = variables["dataset"]
        if "decode" not in variables:
            dataset = dataset.unbatch()
        for example, expected in zip(dataset, records, strict=True):
            count += 1
            check_values(schema.features, example, expected, path)
    assert count == len(records) > 0
    told = [line.partition(": ")[0] for line in shown.splitlines()]
    keys = {key for section in schema.sections.values() for key in section}
    assert told and {eval(name) for name in told} <= keys, (path, told)
    print(count, "records")
"""


def write_odd_files(folder: Path, pictures: Any) -> list[Path]:
    """Examples and SequenceExamples with everything that can be odd about them."""
    from PIL import Image

    folder = folder / "a folder [b] 'c' \\n"
    folder.mkdir()
    values, looks, steps = folder / "values.tfrecord", folder / "looks.tfrecord.gz", folder / "s"
    with rs.ShardWriter(values) as writer:
        for number in range(5):
            example: dict[str, Any] = {
                "\"]; import os; os.abort() #": number,
                "größe\n'": [0.5, float(number)],
                "ragged": [b"x" * at for at in range(number)],
                "missing everywhere but here": [] if number else [7],
            }
            if number % 2:
                example |= {"sometimes": 1.5, "pair": [1, 2], "note": "x"}
            writer.write_example(example)
    with rs.ShardWriter(looks, compression="gzip") as writer:
        for number in range(4):
            grey = Image.new("L", (8, 6), number * 60)
            deep = Image.new("I;16", (8, 6), number * 9999)
            example = {
                "image/encoded": pictures.jpeg(number, height=8 + number),
                "mask": pictures.encode(grey, "PNG"),
                "deep_mask": pictures.encode(deep, "PNG"),
                "palette_mask": pictures.encode(Image.new("P", (8, 6), number), "PNG"),
                "gif": pictures.encode(Image.new("RGB", (8, 6), (9, 9, number)), "GIF"),
                "bmp": pictures.encode(Image.new("RGB", (8, 6), (9, 9, number)), "BMP"),
                "tiff": pictures.encode(Image.new("RGB", (8, 6), (9, 9, number)), "TIFF"),
                "two": [pictures.jpeg(1), pictures.jpeg(2)],
            }
            if number != 2:
                example["thumbnail"] = pictures.jpeg(number)
            writer.write_example(example)
    with rs.ShardWriter(steps) as writer:
        for number in range(4):
            lists: dict[str, Any] = {
                "step": [[1]] * number,
                "pair": [[0.5, 1.0]] * 2,
                "ragged": [list(range(at)) for at in range(number)],
            }
            if number:
                lists |= {"lack": [["x"]], "ragged lack": [[1] * number]}
            writer.write(rs.encode_sequence_example({"name": "n", "numbers": [1] * number}, lists))
    frames = folder / "frames"
    with rs.ShardWriter(frames) as writer:
        writer.write(rs.encode_sequence_example({}, {"word": [["a"]], "none": []}))
    return [values, looks, steps, frames]


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skips where one is missing; imports none."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


@needs("tensorflow")
def test_tensorflow(run_program: Run, packed: Path, tmp_path: Path, pictures: Any) -> None:
    paths = [f"{packed}/*.tfrecord", *map(str, write_odd_files(tmp_path, pictures))]
    shown = run_program(TENSORFLOW, json.dumps(paths))
    assert shown.splitlines() == [f"{count} records" for count in (60, 5, 4, 4, 1)]


@needs("tensorflow")
def test_tensorflow_reads_what_others_wrote(run_program: Run, shared_data: Path) -> None:
    zoo = shared_data / "zoo"
    rows = [json.loads(line) for line in (zoo / "expected.jsonl").read_text().splitlines()]
    chosen = [
        row
        for row in rows
        if row["payload"] in ("Example", "SequenceExample") and row["records"] < 5000
    ]
    assert len(chosen) > 12
    shown = run_program(TENSORFLOW, json.dumps([str(zoo / row["file"]) for row in chosen]))
    assert shown.splitlines() == [f"{row['records']} records" for row in chosen]
