"""ArrayRecord, which Grain reads at random: `grain.sources.ArrayRecordDataSource(files)`.

    <split>-00000-of-00001.array_record, …

Payloads are unchanged, of any type. Needs the package array_record.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import Any

from recordsmith.dataset import Dataset
from recordsmith.errors import MissingExtraError
from recordsmith.exporting.export_writer import ExportWriter, PayloadExporter
from recordsmith.exporting.record_shards import RecordFiles, name_files, numbered_names
from recordsmith.stores.local.scratch import ScratchFolder

_ONE_RECORD_PER_GROUP = "group_size:1"  # a group is decompressed whole to read one of its records


class ArrayRecordFiles(PayloadExporter):
    """Writes ArrayRecord files."""

    def __init__(self, shard_size_bytes: int | None = None) -> None:
        self._shard_size_bytes = shard_size_bytes
        try:
            from array_record.python import array_record_module
        except ImportError:
            raise MissingExtraError("array-record", "array_record") from None
        self._open = array_record_module.ArrayRecordWriter

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        named = name_files(dataset, self._shard_size_bytes, out, self.part_names)
        self._splits = {
            split: _Files(out, names, count, self._open) for split, (names, count) in named.items()
        }

    def part_names(self, split: str, count: int) -> Sequence[str]:
        return numbered_names(split, count, ".array_record")

    def add(self, payload: bytes, split: str) -> None:
        self._splits[split].add(payload)

    def finish(self) -> None:
        for files in self._splits.values():
            files.finish()


class _Files(RecordFiles):
    """Writes the files of one split: the library writes to local paths, so each is copied."""

    def __init__(
        self, out: ExportWriter, names: Sequence[str], record_count: int, make_writer: Any
    ) -> None:
        super().__init__(names, record_count)
        self._out = out
        self._make_writer = make_writer
        self._folder = ScratchFolder()
        self._path = os.path.join(self._folder.path, "records")

    def begin(self, name: str) -> None:
        self._writer = self._make_writer(self._path, _ONE_RECORD_PER_GROUP)

    def write(self, payload: bytes) -> None:
        self._writer.write(payload)

    def end(self, name: str) -> None:
        self._writer.close()
        with open(self._path, "rb") as file, self._out.opened(name) as copy:
            shutil.copyfileobj(file, copy)
        os.remove(self._path)
