"""Programs of `rs.reader_code` read what they were written for: each runs in a process of its own,
and gives what recordsmith reads.

What DALI and the `tfrecord` package read needs environments of their own; where these are not,
the programs reads_by_dali.py and reads_by_tfrecord_package.py can be run by themselves.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

Run = Callable[..., str]


def program(name: str) -> str:
    return (Path(__file__).parent / name).read_text("utf-8")


def write_odd_files(folder: Path, images: Any) -> list[Path]:
    """Examples with everything that can be odd about them."""
    from PIL import Image

    folder = folder / "a folder [b] 'c' \\n"
    folder.mkdir()
    values, looks = folder / "values.tfrecord", folder / "looks.tfrecord.gz"
    with rs.ShardWriter(values) as writer:
        for number in range(5):
            example: dict[str, Any] = {
                "id": number,
                '"]; import os; os.abort() #': number,
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
                "image/encoded": images.jpeg(number, height=8 + number),
                "mask": images.encode(grey, "PNG"),
                "deep_mask": images.encode(deep, "PNG"),
                "palette_mask": images.encode(Image.new("P", (8, 6), number), "PNG"),
                "gif": images.encode(Image.new("RGB", (8, 6), (9, 9, number)), "GIF"),
                "bmp": images.encode(Image.new("RGB", (8, 6), (9, 9, number)), "BMP"),
                "tiff": images.encode(Image.new("RGB", (8, 6), (9, 9, number)), "TIFF"),
                "two": [images.jpeg(1), images.jpeg(2)],
            }
            if number != 2:
                example["thumbnail"] = images.jpeg(number)
            writer.write_example(example)
    return [values, looks]


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skips where one is missing; imports none."""
    missing = [name for name in packages if not _is_installed(name)]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


@pytest.mark.slow
@needs("tensorflow")
def test_tensorflow(run_program: Run, packed: Path, tmp_path: Path, images: Any) -> None:
    paths = [f"{packed}/*.tfrecord", *map(str, write_odd_files(tmp_path, images))]
    shown = run_program(program("reads_by_tensorflow.py"), json.dumps(paths))
    assert shown.splitlines() == [f"{count} records" for count in (60, 5, 4)]


@needs("tensorflow")
def test_tensorflow_reads_what_others_wrote(run_program: Run, shared_data: Path) -> None:
    zoo = shared_data / "zoo"
    rows = [json.loads(line) for line in (zoo / "expected.jsonl").read_text().splitlines()]
    chosen = [row for row in rows if row["payload"] == "Example" and row["records"] < 5000]
    assert len(chosen) > 12
    shown = run_program(
        program("reads_by_tensorflow.py"), json.dumps([str(zoo / row["file"]) for row in chosen])
    )
    assert shown.splitlines() == [f"{row['records']} records" for row in chosen]


@needs("nvidia.dali")
def test_dali(run_program: Run) -> None:
    assert run_program(program("reads_by_dali.py")).startswith("good: ")


@needs("tfrecord")
def test_the_tfrecord_package_reads_by_the_index(run_program: Run) -> None:
    assert run_program(program("reads_by_tfrecord_package.py")).startswith("good: ")
