"""What TensorFlow reads from TFRecord files, in a process of its own.

The pins of TensorFlow and of an engine may fight: the variable RECORDSMITH_TENSORFLOW_PYTHON names
the Python of an environment that has TensorFlow.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

_PROGRAM = """
import json, sys
import tensorflow as tf
rows = []
for record in tf.data.TFRecordDataset(sys.argv[1:]).as_numpy_iterator():
    row = {}
    for key, feature in tf.train.Example.FromString(record).features.feature.items():
        kind = feature.WhichOneof("kind")
        values = getattr(feature, kind).value
        row[key] = [value.hex() if kind == "bytes_list" else value for value in values]
    rows.append(row)
print(json.dumps(rows))
"""


def tensorflow_rows(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Return the features of each record, sorted by key; bytes as hexadecimal digits."""
    done = _run(_PROGRAM, *map(str, sorted(files)))
    return [dict(sorted(row.items())) for row in json.loads(done.splitlines()[-1])]


@functools.cache
def _python() -> str:
    python = os.environ.get("RECORDSMITH_TENSORFLOW_PYTHON", sys.executable)
    found = "import importlib.util as u; print(u.find_spec('tensorflow') is not None)"
    if subprocess.check_output([python, "-c", found], text=True).strip() != "True":
        pytest.skip("TensorFlow is not installed: see RECORDSMITH_TENSORFLOW_PYTHON")
    return python


def _run(program: str, *arguments: str) -> str:
    variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [_python(), "-c", program, *arguments],
        env=variables,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
