"""Examines datasets without changing them: statistics, verification, diff and inspection.

Also reads and writes schema files.
"""

from recordsmith.checking.class_rules import (
    ClassCounts,
    are_drawn_for_viewing,
    find_imbalance,
    find_missing_classes,
    is_one_hot,
)
from recordsmith.checking.inspection import Inspection, inspect
from recordsmith.checking.normalisation_file import Normalisation, normalisation
from recordsmith.checking.rules import FeatureRule
from recordsmith.checking.schema_file import SchemaFile, schema
from recordsmith.checking.shard_summaries import ShardSummary

__all__ = [
    "ClassCounts",
    "FeatureRule",
    "Inspection",
    "Normalisation",
    "SchemaFile",
    "ShardSummary",
    "are_drawn_for_viewing",
    "find_imbalance",
    "find_missing_classes",
    "inspect",
    "is_one_hot",
    "normalisation",
    "schema",
]
