"""Are these shards what they should be? Bytes, records, contents, and what lies beside them."""

from recordsmith.examining.verification.dataset_check import verify
from recordsmith.examining.verification.report import ShardFindings, VerifyReport

__all__ = [
    "ShardFindings",
    "VerifyReport",
    "verify",
]
