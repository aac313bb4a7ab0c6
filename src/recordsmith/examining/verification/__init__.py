"""Verifies shards: their bytes, records and contents, and the files that describe them."""

from recordsmith.examining.verification.verify import verify
from recordsmith.examining.verification.verify_report import ShardFindings, VerifyReport

__all__ = [
    "ShardFindings",
    "VerifyReport",
    "verify",
]
