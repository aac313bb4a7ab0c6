"""TFRecord datasets without TensorFlow: pack, verify, preview and load.

    import recordsmith as rs

    rs.pack(rs.ImageFolder("flowers"), "out", splits={"train": 0.7, "validation": 0.3}, shards=2)
    dataset = rs.open("out", split="train")

Names are imported on first use, so that importing this package is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recordsmith.dataset import (
        Dataset,
        IndexReport,
        ShardWriter,
        index,
        open,  # noqa: A004 - named as users say it
    )
    from recordsmith.drawing import (
        SheetReport,
        draw_batch,
        draw_stats,
        draw_verify_report,
        sheet,
    )
    from recordsmith.errors import (
        CorruptDataError,
        Defect,
        FileAccessError,
        FunctionError,
        MissingExtraError,
        OptionError,
        RecordsmithError,
        SourceError,
    )
    from recordsmith.examining import FeatureRule, Inspection, SchemaFile, inspect, schema
    from recordsmith.examining.diff import DiffReport, diff
    from recordsmith.examining.stats import StatsReport, stats
    from recordsmith.examining.verification import VerifyReport, verify
    from recordsmith.example import (
        BytesArray,
        FeatureSchema,
        FeatureSpec,
        MessageDecoder,
        RaggedArray,
        RawField,
        Schema,
        SequenceExample,
        classify,
        decode_example,
        decode_fields,
        decode_sequence_example,
        encode_example,
        encode_sequence_example,
    )
    from recordsmith.exporting import ExportReport, export
    from recordsmith.image import ImageOptions
    from recordsmith.loading import (
        BlockShuffle,
        Boxes,
        BucketBySize,
        BufferShuffle,
        Bytes,
        EntrySpec,
        Examples,
        Image,
        Loader,
        LoaderStats,
        Mask,
        Mix,
        Padded,
        Position,
        Ragged,
        Raw,
        Scalar,
        Tensor,
        Text,
    )
    from recordsmith.measuring import BenchReport, bench
    from recordsmith.packing import PackPlan, PackReport, pack, plan
    from recordsmith.readers import reader_code
    from recordsmith.reshaping import (
        AppendReport,
        Edits,
        ReshardReport,
        SalvagedShard,
        SalvageReport,
        append,
        edit,
        reshard,
        salvage,
    )
    from recordsmith.sources import (
        Coco,
        ImageFiles,
        ImageFolder,
        ImagePairs,
        Rows,
        Shards,
        Table,
        Voc,
        WebDataset,
        Yolo,
    )
    from recordsmith.wire import read_records

__version__ = "0.1.0"

_HOMES = {
    "recordsmith.dataset": (
        "Dataset",
        "IndexReport",
        "ShardWriter",
        "index",
        "open",
    ),
    "recordsmith.drawing": (
        "SheetReport",
        "draw_batch",
        "draw_stats",
        "draw_verify_report",
        "sheet",
    ),
    "recordsmith.errors": (
        "CorruptDataError",
        "Defect",
        "FileAccessError",
        "FunctionError",
        "MissingExtraError",
        "OptionError",
        "RecordsmithError",
        "SourceError",
    ),
    "recordsmith.examining": (
        "FeatureRule",
        "Inspection",
        "SchemaFile",
        "inspect",
        "schema",
    ),
    "recordsmith.examining.diff": (
        "DiffReport",
        "diff",
    ),
    "recordsmith.examining.stats": (
        "StatsReport",
        "stats",
    ),
    "recordsmith.examining.verification": (
        "VerifyReport",
        "verify",
    ),
    "recordsmith.example": (
        "BytesArray",
        "FeatureSchema",
        "FeatureSpec",
        "MessageDecoder",
        "RaggedArray",
        "RawField",
        "Schema",
        "SequenceExample",
        "classify",
        "decode_example",
        "decode_fields",
        "decode_sequence_example",
        "encode_example",
        "encode_sequence_example",
    ),
    "recordsmith.exporting": (
        "ExportReport",
        "export",
    ),
    "recordsmith.image": ("ImageOptions",),
    "recordsmith.loading": (
        "BlockShuffle",
        "Boxes",
        "BucketBySize",
        "BufferShuffle",
        "Bytes",
        "EntrySpec",
        "Examples",
        "Image",
        "Loader",
        "LoaderStats",
        "Mask",
        "Mix",
        "Padded",
        "Position",
        "Ragged",
        "Raw",
        "Scalar",
        "Tensor",
        "Text",
    ),
    "recordsmith.measuring": (
        "BenchReport",
        "bench",
    ),
    "recordsmith.packing": (
        "PackPlan",
        "PackReport",
        "pack",
        "plan",
    ),
    "recordsmith.readers": ("reader_code",),
    "recordsmith.reshaping": (
        "AppendReport",
        "Edits",
        "ReshardReport",
        "SalvageReport",
        "SalvagedShard",
        "append",
        "edit",
        "reshard",
        "salvage",
    ),
    "recordsmith.sources": (
        "Coco",
        "ImageFiles",
        "ImageFolder",
        "ImagePairs",
        "Rows",
        "Shards",
        "Table",
        "Voc",
        "WebDataset",
        "Yolo",
    ),
    "recordsmith.wire": ("read_records",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AppendReport",
    "BenchReport",
    "BlockShuffle",
    "Boxes",
    "BucketBySize",
    "BufferShuffle",
    "Bytes",
    "BytesArray",
    "Coco",
    "CorruptDataError",
    "Dataset",
    "Defect",
    "DiffReport",
    "Edits",
    "EntrySpec",
    "Examples",
    "ExportReport",
    "FeatureRule",
    "FeatureSchema",
    "FeatureSpec",
    "FileAccessError",
    "FunctionError",
    "Image",
    "ImageFiles",
    "ImageFolder",
    "ImageOptions",
    "ImagePairs",
    "IndexReport",
    "Inspection",
    "Loader",
    "LoaderStats",
    "Mask",
    "MessageDecoder",
    "MissingExtraError",
    "Mix",
    "OptionError",
    "PackPlan",
    "PackReport",
    "Padded",
    "Position",
    "Ragged",
    "RaggedArray",
    "Raw",
    "RawField",
    "RecordsmithError",
    "ReshardReport",
    "Rows",
    "SalvageReport",
    "SalvagedShard",
    "Scalar",
    "Schema",
    "SchemaFile",
    "SequenceExample",
    "ShardWriter",
    "Shards",
    "SheetReport",
    "SourceError",
    "StatsReport",
    "Table",
    "Tensor",
    "Text",
    "VerifyReport",
    "Voc",
    "WebDataset",
    "Yolo",
    "__version__",
    "append",
    "bench",
    "classify",
    "decode_example",
    "decode_fields",
    "decode_sequence_example",
    "diff",
    "draw_batch",
    "draw_stats",
    "draw_verify_report",
    "edit",
    "encode_example",
    "encode_sequence_example",
    "export",
    "index",
    "inspect",
    "open",
    "pack",
    "plan",
    "read_records",
    "reader_code",
    "reshard",
    "salvage",
    "schema",
    "sheet",
    "stats",
    "verify",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
