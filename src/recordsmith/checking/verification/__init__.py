"""Verifies shards: their bytes, records and contents, and the files that describe them."""

from recordsmith.checking.verification.verify import verify
from recordsmith.checking.verification.verify_report import ShardFindings, VerifyReport

__all__ = [
    "ShardFindings",
    "VerifyReport",
    "verify",
]
