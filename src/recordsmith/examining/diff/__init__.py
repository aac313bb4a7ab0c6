"""What differs between two datasets? Told by content, whatever the order and the shards."""

from recordsmith.examining.diff.difference import diff
from recordsmith.examining.diff.report import DiffReport

__all__ = [
    "DiffReport",
    "diff",
]
