"""Generates programs that read a dataset in TensorFlow or DALI."""

from recordsmith.exporting.readers.programs import READERS, reader_code

__all__ = ["READERS", "reader_code"]
