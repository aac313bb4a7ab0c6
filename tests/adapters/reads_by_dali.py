"""DALI reads by the text files of `rs.index`, with the programs of `rs.reader_code`, what the
records hold.

    python tests/adapters/reads_by_dali.py

Wants recordsmith and NVIDIA DALI (`nvidia-dali-cuda120`), which needs no GPU for this. The tests
run it where DALI is installed; it is too large for every environment.
"""

from __future__ import annotations

import io
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import recordsmith as rs
from recordsmith.image import decode_image, decode_mask

COUNT = 40


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "a folder [b] 'c' \\n"
        folder.mkdir()
        write_records(folder)
        rs.index(folder, format="dali")
        program = Path(name) / "reader.py"
        code = rs.reader_code(folder, "dali")
        program.write_text(code, "utf-8")
        done = subprocess.run(
            [sys.executable, program], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == 8, done.stdout
        check(runpy.run_path(str(program)), list(rs.open(folder)))
    print(f"good: DALI reads {COUNT} records as they are")


def write_records(folder: Path) -> None:
    """Records in two shards, each with its number as `id`."""
    for shard in range(2):
        with rs.ShardWriter(folder / f"{shard}.tfrecord") as writer:
            for number in range(shard, COUNT, 2):
                example: dict[str, Any] = {
                    "id": number,
                    "größe\n\"]'": 0.5 * number,
                    "box": [0.25, 0.5, float(number)],
                    "ragged": list(range(number % 5)),
                    "ragged floats": [0.5] * (number % 3),
                    "text": f"number {number}",
                    "image": encoded(Image.new("RGB", (9 + number % 3, 7), (number, 9, 200))),
                    "mask": encoded(Image.new("L", (9, 7), number)),
                    "several texts": ["a", "b"],  # which DALI cannot read
                }
                if number % 3:
                    example["sometimes"] = 7  # where it is not, DALI would give anything
                writer.write_example(example)


def encoded(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def check(variables: dict[str, Any], records: list[Any]) -> None:
    """Two epochs and more: every record is seen, and each time it is as it was written."""
    keys = list(variables["features"])
    assert {*keys} == {*records[0]} - {"several texts", "sometimes"}
    by_id = {int(record["id"][0]): record for record in records}
    seen: set[int] = set()
    for _ in range(2 + 2 * COUNT // 32):
        batch = dict(zip(keys, variables["batches"].run(), strict=True))
        for row in range(len(batch["id"])):
            values = {key: np.asarray(column.at(row)) for key, column in batch.items()}
            number = int(values["id"])
            seen.add(number)
            for key, value in values.items():
                expected = by_id[number][key]
                if key == "image":
                    assert (value == decode_image(expected[0])).all()
                elif key == "mask":
                    assert (value[:, :, 0] == decode_mask(expected[0])).all()
                elif key == "text":
                    assert value.tobytes() == expected[0]
                else:
                    assert value.reshape(-1).tolist() == list(expected), (key, value, expected)
    assert seen == {*by_id}


if __name__ == "__main__":
    main()
