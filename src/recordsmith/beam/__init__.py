"""Apache Beam: pipelines that read and write datasets. Needs apache-beam and pyarrow.

    import apache_beam as beam
    from recordsmith.beam import ReadBatches, WriteDataset

    with beam.Pipeline() as pipeline:
        batches = pipeline | ReadBatches("in", columns=["image/encoded", "image/class/label"])
        batches | WriteDataset("out")

Runners divide the shards of a dataset into ranges of records, also while they are read.
"""

try:
    from recordsmith.beam.reading import ReadBatches, ReadExamples
    from recordsmith.beam.writing import WriteDataset
except ModuleNotFoundError as error:
    from recordsmith.support.errors import MissingExtraError

    if error.name is None or error.name.partition(".")[0] not in ("apache_beam", "pyarrow"):
        raise
    raise MissingExtraError("beam", error.name) from error

__all__ = ["ReadBatches", "ReadExamples", "WriteDataset"]
