"""An exporter of one's own: each split becomes files of JSON lines.

A job opens and closes the files, so it can divide them among the tasks of an engine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, BinaryIO

import recordsmith as rs
from recordsmith.exporting import EXPORTERS, ExportWriter, RecordFiles
from recordsmith.support.errors import OptionError


class JsonLines(RecordFiles):
    """Writes numbers; features of bytes are refused."""

    suffix = ".jsonl"

    def begin(self, dataset: rs.Dataset, out: ExportWriter) -> None:  # noqa: ARG002
        if any(feature.kind == "bytes" for feature in dataset.schema.features.values()):
            raise OptionError("JSON lines hold numbers only", option="format", value=self.format)

    def open(self, file: BinaryIO, split: str) -> None:  # noqa: ARG002
        self._file = file

    def add(self, record: dict[str, Any]) -> None:
        line = json.dumps({key: list(map(float, values)) for key, values in record.items()})
        self._file.write(line.encode() + b"\n")


EXPORTERS["jsonl"] = JsonLines


def main(folder: Path) -> None:
    """Pack rows, verify them, export them, and read what was written."""
    rows = rs.Rows({"x": [n, n / 2]} for n in range(100))
    rs.pack(rows, folder / "packed", splits={"train": 0.8, "test": 0.2}, shards=2)
    assert rs.verify(folder / "packed", deep=True).is_good
    report = rs.export(folder / "packed", folder / "exported", "jsonl")
    assert report.splits == {"train": 80, "test": 20}
    files = sorted((folder / "exported").glob("*.jsonl"))
    records = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert sorted(record["x"] for record in records) == [[n, n / 2] for n in range(100)]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
