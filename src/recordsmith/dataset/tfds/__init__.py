"""TensorFlow Datasets folders: their documents, and their records in both directions."""

from recordsmith.dataset.tfds.describing import (
    TfdsImages,
    describe_records,
    make_documents,
)
from recordsmith.dataset.tfds.description import TfdsDescription
from recordsmith.dataset.tfds.features import Leaf, TfdsFeature, parse_features
from recordsmith.dataset.tfds.folder import (
    FEATURES_NAME,
    INFO_NAME,
    LABELS_SUFFIX,
    TEMPLATE,
    TfdsInfo,
    TfdsSplit,
    class_names_in,
    find_tfds_folder,
    is_tfds_folder,
    other_versions,
    parse_info,
    read_class_names,
    read_description,
    read_features,
    read_info,
)
from recordsmith.dataset.tfds.reading import kinds_of, read_record
from recordsmith.dataset.tfds.roles import BOXES, standard_keys
from recordsmith.dataset.tfds.steps import cut_steps, with_any_length
from recordsmith.dataset.tfds.writing import RecordConverter

__all__ = [
    "BOXES",
    "FEATURES_NAME",
    "INFO_NAME",
    "LABELS_SUFFIX",
    "TEMPLATE",
    "Leaf",
    "RecordConverter",
    "TfdsDescription",
    "TfdsFeature",
    "TfdsImages",
    "TfdsInfo",
    "TfdsSplit",
    "class_names_in",
    "cut_steps",
    "describe_records",
    "find_tfds_folder",
    "is_tfds_folder",
    "kinds_of",
    "make_documents",
    "other_versions",
    "parse_features",
    "parse_info",
    "read_class_names",
    "read_description",
    "read_features",
    "read_info",
    "read_record",
    "standard_keys",
    "with_any_length",
]
