"""What is in these files, and is it right? Reads everything, changes nothing."""

from recordsmith.examining.inspection import Inspection, ShardSummary, inspect
from recordsmith.examining.rules import FeatureRule
from recordsmith.examining.schema_file import SchemaFile, schema
from recordsmith.examining.verification import verify
from recordsmith.examining.verify_report import ShardFindings, VerifyReport

__all__ = [
    "FeatureRule",
    "Inspection",
    "SchemaFile",
    "ShardFindings",
    "ShardSummary",
    "VerifyReport",
    "inspect",
    "schema",
    "verify",
]
