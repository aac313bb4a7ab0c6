"""Apache Beam: pipelines that read and write datasets. Needs apache-beam and pyarrow.

    import apache_beam as beam
    from recordsmith.beam import ReadBatches, WriteDataset

    with beam.Pipeline() as pipeline:
        batches = pipeline | ReadBatches("in", columns=["image/encoded", "image/class/label"])
        batches | WriteDataset("out")

Runners divide the shards of a dataset into ranges of records, also while they are read.
"""

from recordsmith.support.errors import needs_extra

with needs_extra("beam", "apache_beam", "pyarrow"):
    from recordsmith.beam.reading import ReadBatches, ReadExamples
    from recordsmith.beam.writing import WriteDataset

__all__ = ["ReadBatches", "ReadExamples", "WriteDataset"]
