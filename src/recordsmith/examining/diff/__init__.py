"""Compares two datasets by content, independent of record order and shards."""

from recordsmith.examining.diff.diff_report import DiffReport
from recordsmith.examining.diff.difference import diff

__all__ = [
    "DiffReport",
    "diff",
]
