"""What is in these files, is it right, what differs? Reads everything, changes nothing."""

from recordsmith.examining.dataset_statistics import Statistics, statistics
from recordsmith.examining.diff_report import DiffReport
from recordsmith.examining.difference import diff
from recordsmith.examining.inspection import Inspection, ShardSummary, inspect
from recordsmith.examining.rules import FeatureRule
from recordsmith.examining.schema_file import SchemaFile, schema
from recordsmith.examining.verification import verify
from recordsmith.examining.verify_report import ShardFindings, VerifyReport

__all__ = [
    "DiffReport",
    "FeatureRule",
    "Inspection",
    "SchemaFile",
    "ShardFindings",
    "ShardSummary",
    "Statistics",
    "VerifyReport",
    "diff",
    "inspect",
    "schema",
    "statistics",
    "verify",
]
