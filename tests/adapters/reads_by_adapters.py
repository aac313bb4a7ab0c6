"""Runs programs of `rs.reader_code` for torch or grain, and holds all that their loaders give
against the records.

    python reads_by_adapters.py torch|grain '["PATH", …]'

The records of each file have a feature `id`: 0, 1, 2, …
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

import numpy as np

import recordsmith as rs


def main(reader: str, paths: list[str]) -> None:
    for number, path in enumerate(paths):
        program = Path(f"reader{number}.py")
        program.write_text(rs.reader_code(path, reader), "utf-8")  # type: ignore[arg-type]
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            variables = runpy.run_path(str(program))
        known = rs.inspect(path).schema.features
        features = variables["features"]
        told = {
            ast.literal_eval(line.rpartition(": ")[0]) for line in shown.getvalue().splitlines()
        }
        outputs = {name: feature.outputs(name) for name, feature in features.items()}
        assert told == {name for names in outputs.values() for name in names}
        readable = {key for key in known if known[key].kind != "none"}
        assert set(features) == readable
        is_batched = reader == "torch" or ".batch(" in program.read_text("utf-8")
        read = rows_of(loaded(reader, variables), is_batched)
        expected = [row_of(example, known) for example in rs.open(path)]
        order = read["id"]
        assert sorted(order) == list(range(len(expected)))
        for key, rows in read.items():
            if isinstance(features[key], (rs.Image, rs.Mask)):
                size = features[key].size or features[features[key].of].size
                assert np.shape(rows)[:3] == (len(expected), *size), key
            else:
                assert rows == [expected[at][key] for at in order], (path, key)
        print(len(expected), "records")


def loaded(reader: str, variables: dict[str, Any]) -> Any:
    if reader == "grain":
        return variables["loaded"]
    return sys.modules["recordsmith.torch"].batches(variables["loader"])


def rows_of(loaded: Any, is_batched: bool) -> dict[str, list[Any]]:
    """The rows of each entry, over all batches or examples."""
    rows: dict[str, list[Any]] = {}
    for batch in loaded:
        for key, value in batch.items():
            rows.setdefault(key, []).extend(plain(value) if is_batched else [plain(value)])
    return rows


def plain(value: Any) -> Any:
    """Lists of numbers and byte strings, whatever holds them."""
    if isinstance(value, tuple):  # ragged
        ends = zip(value.row_splits[:-1], value.row_splits[1:], strict=True)
        return [plain(value.values[start:stop]) for start, stop in ends]
    value = value.numpy() if hasattr(value, "numpy") else value
    value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.encode() if isinstance(value, str) else value


def row_of(example: Any, known: Any) -> dict[str, Any]:
    """What the declared features make of an example."""
    row = {}
    for key, feature in known.items():
        is_fixed = feature.min_length == feature.max_length
        default = b"" if feature.kind == "bytes" else 0
        values = plain(example.get(key, [default] * (feature.max_length if is_fixed else 0)))
        row[key] = values[0] if is_fixed and len(values) == 1 else values
    return row


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
