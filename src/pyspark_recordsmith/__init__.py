"""Makes the format `recordsmith` known to Spark, which imports every module `pyspark_*`."""

from recordsmith.spark import RecordsmithSource as DefaultSource

__all__ = ["DefaultSource"]
