"""Generates programs that read a dataset in TensorFlow, PyTorch, DALI or grain."""

from recordsmith.exporting.readers.programs import READERS, reader_code

__all__ = ["READERS", "reader_code"]
