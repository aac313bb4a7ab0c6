"""What is in these files, is it right, what differs? Reads everything, changes nothing.

Three questions, three packages: `statistics`, `verification`, `diff`. Beside them stands what more
than one of them asks: a short look at everything (`inspection`), and schemas as files.
"""

from recordsmith.examining.inspection import Inspection, inspect
from recordsmith.examining.rules import FeatureRule
from recordsmith.examining.schema_file import SchemaFile, schema
from recordsmith.examining.shard_summaries import ShardSummary

__all__ = [
    "FeatureRule",
    "Inspection",
    "SchemaFile",
    "ShardSummary",
    "inspect",
    "schema",
]
