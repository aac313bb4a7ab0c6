"""What recordsmith promises with NumPy and msgspec alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

OTHERS = (
    "cv2 PIL simplejpeg typer rich jinja2 markupsafe pyarrow obstore fsspec pandas polars duckdb"
)


def test_the_core_works_alone() -> None:
    process = subprocess.run(
        [sys.executable, Path(__file__).with_name("core_alone.py")],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"HIDDEN_LIBRARIES": OTHERS},
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stdout.count("passed") == 7
