"""The messages of errors, which Spark would show below long tracebacks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from recordsmith.errors import RecordsmithError


@contextmanager
def without_traceback() -> Iterator[None]:
    """Let Spark show only the message of an error of recordsmith that leaves the block.

    Sets what Spark's own setting `spark.sql.execution.pyspark.udf.hideTraceback.enabled` sets, in
    this Python worker only: Spark ends it after the error.
    """
    try:
        yield
    except RecordsmithError:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
