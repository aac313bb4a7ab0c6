"""What is in these files, and is it right? Reads everything, changes nothing."""

from recordsmith.examining.dataset_statistics import Statistics, statistics
from recordsmith.examining.inspection import Inspection, ShardSummary, inspect
from recordsmith.examining.verification import VerifyReport, verify

__all__ = [
    "Inspection",
    "ShardSummary",
    "Statistics",
    "VerifyReport",
    "inspect",
    "statistics",
    "verify",
]
