"""Examines datasets without changing them: statistics, verification, diff and inspection.

Also reads and writes schema files.
"""

from recordsmith.examining.inspection import Inspection, inspect
from recordsmith.examining.normalisation_file import Normalisation, normalisation
from recordsmith.examining.rules import FeatureRule
from recordsmith.examining.schema_file import SchemaFile, schema
from recordsmith.examining.shard_summaries import ShardSummary

__all__ = [
    "FeatureRule",
    "Inspection",
    "Normalisation",
    "SchemaFile",
    "ShardSummary",
    "inspect",
    "normalisation",
    "schema",
]
