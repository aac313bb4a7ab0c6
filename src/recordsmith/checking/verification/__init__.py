"""Verifies shards: their bytes, records and contents, and the files that describe them."""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # `__init__.pyi` has the same for type checkers
    __name__,
    {
        "dataset_check": "verify",
        "verify_report": "ShardFindings VerifyReport",
    },
)
