"""Compares two datasets by content, independent of record order and shards."""

from recordsmith.examining.diff.difference import diff
from recordsmith.examining.diff.report import DiffReport

__all__ = [
    "DiffReport",
    "diff",
]
