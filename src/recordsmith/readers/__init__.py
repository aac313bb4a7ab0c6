"""Generates programs that read a dataset in TensorFlow, PyTorch, DALI or grain."""

from recordsmith.readers.programs import READERS, reader_code

__all__ = ["READERS", "reader_code"]
