"""TFRecord datasets without TensorFlow: pack, verify, preview and load.

    import recordsmith as rs

    rs.pack(rs.ImageFolder("flowers"), "out", splits={"train": 0.7, "validation": 0.3}, shards=2)
    dataset = rs.open("out", split="train")

Names are imported on first use, so that importing this package is fast.
"""

from __future__ import annotations

import importlib
from typing import Any

from recordsmith.support.lazy import lazy_names

__version__ = "0.1.0"

# `__init__.pyi` has the same names for type checkers
_HOMES = {
    "checking": "diff inspect lint normalisation schema stats verify",
    "dataset": "Dataset ShardWriter index open",
    "exporting": "card export reader_code",
    "format.example": (
        "BytesArray FeatureSchema FeatureSpec RaggedArray Schema SequenceExample "
        "classify decode_example decode_sequence_example encode_example "
        "encode_sequence_example"
    ),
    "format.wire": "read_records",
    "image": "ImageOptions tile_image untile",
    "loading": (
        "BlockShuffle Boxes BucketBySize ByClass Bytes ColorJitter Cutmix Episodes "
        "Examples Image Keypoints Label Loader Mask Mix Mixup MultiHot Normalise OneHot Packed "
        "Padded Patches Position Present Ragged RandomErasing Raw Scalar Serialized Stack "
        "Steps Tensor Text Weighted bench"
    ),
    "sources": (
        "Arrays CaptionedImages Coco CreateML CsvBoxes Cvat Detection Dota HuggingFace ImageFiles "
        "ImageFolder ImageLabels ImagePairs Kitti LabelMe LabelStudio LeRobot Rows "
        "SegmentAnything Shards Table Tfds Via Voc WebDataset Yolo detect"
    ),
    "stores": "remote",
    "support.errors": (
        "CorruptDataError DataError Defect FileAccessError FunctionError "
        "MissingExtraError NotAnExampleError OptionError RecordsmithError SourceError"
    ),
    "viewing": "draw_batch save_html sheet view",
    "writing": (
        "Edits PackPlan add_layer append edit edit_in_place finish forecast history pack plan "
        "recover remove_layer reshard run salvage"
    ),
}
_MODULES = ("engines",)
_get, __dir__, __all__ = lazy_names(__name__, _HOMES)
__all__ += [*_MODULES, "__version__"]  # noqa: PLE0604 - all are strings

_USED_INSTEAD = {
    "DataLoader": "Use rs.Loader.",
    "TFRecordDataset": "Use rs.open.",
    "from_folder": "Use rs.pack.",
    "load": "Use rs.open.",
    "load_dataset": "Use rs.open.",
    "query": "Use recordsmith.duckdb.query.",
    "read": "Use rs.open.",
}
_OPTIONAL = "beam duckdb grain jax keras lightning polars ray spark tensorflow torch"


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in __all__:
        return _get(name)
    problem = f"module {__name__!r} has no attribute {name!r}{_remedy(name)}"
    raise AttributeError(problem, name=name)  # without `obj`, Python suggests no second name


def _remedy(name: str) -> str:
    """Return what to do instead of using a name that this package does not have."""
    if name.startswith("_"):  # programs ask for many of these
        return ""
    if name in _OPTIONAL.split():
        return f". Import it: import {__name__}.{name}"
    from recordsmith.support.words import did_you_mean

    remedy = _USED_INSTEAD.get(name) or did_you_mean(name, __all__)
    return f". {remedy}" if remedy else ""
