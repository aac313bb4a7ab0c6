"""ArrayRecord, which Grain reads at random: `grain.sources.ArrayRecordDataSource(files)`.

    <split>-00000-of-00001.array_record, …

Payloads are unchanged, of any type. Needs the package array_record.
"""

from __future__ import annotations

import os
import shutil
from typing import BinaryIO

from recordsmith.dataset import Dataset
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.exporter import RecordFiles
from recordsmith.stores import ScratchFolder
from recordsmith.support.errors import needs_extra

_ONE_RECORD_PER_GROUP = "group_size:1"  # a group is decompressed whole to read one of its records


class ArrayRecordFiles(RecordFiles):
    """Writes ArrayRecord files: the library writes to local paths, so each is copied."""

    suffix = ".array_record"
    has_payloads = True

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        with needs_extra("array-record", "array_record"):
            from array_record.python import array_record_module
        self._make_writer = array_record_module.ArrayRecordWriter
        self._folder = ScratchFolder()
        self._path = os.path.join(self._folder.path, "records")

    def open(self, file: BinaryIO, split: str) -> None:
        self._file = file
        self._writer = self._make_writer(self._path, _ONE_RECORD_PER_GROUP)

    def add(self, record: bytes) -> None:
        self._writer.write(record)

    def close(self) -> None:
        self._writer.close()
        with open(self._path, "rb") as records:
            shutil.copyfileobj(records, self._file)
        os.remove(self._path)
