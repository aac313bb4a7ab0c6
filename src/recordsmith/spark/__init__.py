"""Spark: reads and writes datasets as DataFrames. Needs pyspark and pyarrow.

    frame = spark.read.format("recordsmith").load("s3://bucket/flowers")
    frame.write.format("recordsmith").mode("append").save("out")

Spark finds the format itself, through the module `pyspark_recordsmith`.
"""

from recordsmith.support.errors import needs_extra

with needs_extra("spark", "pyspark"):
    import pyspark.sql.datasource  # noqa: F401

from recordsmith.spark.source import RecordsmithSource

__all__ = ["RecordsmithSource"]
