"""Compares two datasets by content, independent of record order and shards."""

from recordsmith.checking.diff.diff_report import DiffReport
from recordsmith.checking.diff.difference import diff

__all__ = [
    "DiffReport",
    "diff",
]
