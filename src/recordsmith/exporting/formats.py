"""The formats of exports, and their exporters by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from recordsmith.errors import OptionError, option
from recordsmith.exporting.array_record import ArrayRecordFiles
from recordsmith.exporting.arrow_tables import ArrowTables
from recordsmith.exporting.class_folders import ClassFolders, ImagePairFiles
from recordsmith.exporting.coco import CocoFiles
from recordsmith.exporting.csv_tables import CsvTables
from recordsmith.exporting.export_writer import Exporter, PayloadExporter, TableExporter
from recordsmith.exporting.hugging_face import HuggingFaceTables
from recordsmith.exporting.npz import NpzFiles
from recordsmith.exporting.tfds import TfdsFiles
from recordsmith.exporting.voc import VocFiles
from recordsmith.exporting.webdataset import SHARD_SIZE_BYTES, WebDatasetShards
from recordsmith.exporting.yolo import YoloFiles

AnyExporter: TypeAlias = Exporter | TableExporter | PayloadExporter

_EXPORTERS: dict[str, Callable[[], AnyExporter]] = {
    "folder": ClassFolders,
    "pairs": ImagePairFiles,
    "voc": VocFiles,
    "coco": CocoFiles,
    "yolo": YoloFiles,
    "csv": CsvTables,
    "parquet": partial(ArrowTables, "parquet"),
    "feather": partial(ArrowTables, "feather"),
    "huggingface": HuggingFaceTables,
    "webdataset": WebDatasetShards,
    "tfds": TfdsFiles,
    "array-record": ArrayRecordFiles,
    "npz": NpzFiles,
}
FORMATS = tuple(_EXPORTERS)
_SHARDED = ("webdataset", "tfds", "array-record")
DIVISIBLE = (
    *("csv", "parquet", "feather", "huggingface"),
    *("webdataset", "tfds", "array-record", "npz"),
)
"""The formats whose exporters are Divisible."""


def make_exporter(name: str, shard_size_bytes: int | None = None) -> AnyExporter:
    """Return the exporter of a format.

    Raises:
        OptionError: the format is unknown, or has no files of a size.
        MissingExtraError: the package of the format is not installed.
    """
    if name not in _EXPORTERS:
        raise OptionError(option="format", value=name, expected=f"one of {', '.join(FORMATS)}")
    if name == "webdataset":
        return WebDatasetShards(SHARD_SIZE_BYTES if shard_size_bytes is None else shard_size_bytes)
    if name == "tfds":
        return TfdsFiles(shard_size_bytes)
    if name == "array-record":
        return ArrayRecordFiles(shard_size_bytes)
    if shard_size_bytes is not None:
        raise OptionError(
            f"{option('shard_size_bytes')} needs one of the formats {', '.join(_SHARDED)}, not "
            f"{option('format', name)}",
            option="shard_size_bytes",
            value=shard_size_bytes,
        )
    return _EXPORTERS[name]()
