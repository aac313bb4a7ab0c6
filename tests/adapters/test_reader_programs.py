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
                if feature.kind == "none":
                    assert key not in sequences, path
                    continue
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


LOADED = """\
import contextlib, io, json, pathlib, runpy, sys
import numpy as np
import recordsmith as rs

def plain(value):
    if isinstance(value, tuple):  # ragged
        rows = zip(value.row_splits[:-1], value.row_splits[1:])
        return [list(map(plain, value.values[start:stop])) for start, stop in rows]
    if hasattr(value, "numpy"):
        value = value.numpy()
    return value.tolist() if isinstance(value, np.ndarray) else value

def as_bytes(value):
    if isinstance(value, (list, np.ndarray)):
        return [as_bytes(one) for one in value]
    return value.encode() if isinstance(value, str) else value

reader = sys.argv[1]
for number, path in enumerate(json.loads(sys.argv[2])):
    file = pathlib.Path(f"reader{number}.py")
    file.write_text(rs.reader_code(path, reader), "utf-8")
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        variables = runpy.run_path(str(file))
    schema, features = rs.inspect(path).schema, variables["features"]
    told = {eval(line.rpartition(": ")[0]) for line in shown.getvalue().splitlines()}
    assert told == set(features) == {k for k, f in schema.features.items() if f.kind != "none"}
    read = {key: [] for key in features}
    count = 0
    loaded = variables.get("loaded")
    if loaded is None:
        loaded = sys.modules["recordsmith.torch"].batches(variables["loader"])
    for batch in loaded:
        is_batch = reader == "torch" or ".batch(" in file.read_text("utf-8")
        for key, value in batch.items():
            read[key] += list(plain(value) if is_batch else [plain(value)])
    expected = {key: [] for key in features}
    for example in rs.open(path):
        count += 1
        for key, feature in schema.features.items():
            if key in features:
                is_fixed = feature.min_length == feature.max_length
                lacking = [b"" if feature.kind == "bytes" else 0] * feature.max_length * is_fixed
                values = as_bytes(plain(example.get(key, lacking)))
                expected[key].append(values[0] if is_fixed and len(values) == 1 else values)
    order = list(map(expected["id"].index, read["id"]))
    assert sorted(order) == list(range(count)) and count
    for key, rows in expected.items():
        if isinstance(features[key], (rs.Image, rs.Mask)):
            assert np.shape(read[key])[:3] == (count, *features[key].size or (9, 9)), key
        else:
            assert as_bytes(read[key]) == [rows[at] for at in order], (path, key)
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
                "id": number,
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
                "id": number,
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


@needs("torch")
def test_torch(run_program: Run, packed: Path, tmp_path: Path, pictures: Any) -> None:
    values, looks, *_ = write_odd_files(tmp_path, pictures)
    shown = run_program(LOADED, "torch", json.dumps([str(values), str(looks)]))
    assert shown.splitlines() == ["5 records", "4 records"]


@needs("grain")
def test_grain(run_program: Run, packed: Path, tmp_path: Path, pictures: Any) -> None:
    values, *_ = write_odd_files(tmp_path, pictures)
    stacked = tmp_path / "stacked.tfrecord"
    with rs.ShardWriter(stacked) as writer:
        for number in range(5):
            example = {"id": number, "picture": pictures.jpeg(number), "name": f"name {number}"}
            writer.write_example(example | {"box": [0.5, 1.0]})
    assert ".batch(32)" in rs.reader_code(stacked, "grain")
    shown = run_program(LOADED, "grain", json.dumps([str(values), str(stacked)]))
    assert shown.splitlines() == ["5 records", "5 records"]
