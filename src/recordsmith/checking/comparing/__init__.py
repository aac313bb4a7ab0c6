"""Compares two datasets by content, independent of record order and shards."""

from recordsmith.checking.comparing.diff_report import DiffReport
from recordsmith.checking.comparing.difference import diff

__all__ = [
    "DiffReport",
    "diff",
]
