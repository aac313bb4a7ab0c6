"""Many shards as one sequence: names, index, manifest, random access, verification.

Knows where records are and what they hold, never where samples came from.
"""

from recordsmith.dataset.dataset import Dataset
from recordsmith.dataset.inspection import Inspection, ShardSummary, inspect
from recordsmith.dataset.manifest import (
    LABELS_NAME,
    MANIFEST_NAME,
    Manifest,
    ShardEntry,
    read_manifest,
    write_labels,
)
from recordsmith.dataset.names import parse_shard_name, shard_name
from recordsmith.dataset.opening import open  # noqa: A004 - named as users say it
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.verification import VerifyReport, verify
from recordsmith.dataset.writer import ShardWriter

__all__ = [
    "LABELS_NAME",
    "MANIFEST_NAME",
    "Dataset",
    "Inspection",
    "Manifest",
    "Shard",
    "ShardEntry",
    "ShardSummary",
    "ShardWriter",
    "VerifyReport",
    "inspect",
    "open",
    "parse_shard_name",
    "read_manifest",
    "shard_name",
    "verify",
    "write_labels",
]
