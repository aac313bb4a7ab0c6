"""Generates programs that read a dataset in TensorFlow, PyTorch, DALI or grain.

`programs` has a template for each framework. Text from files is always a literal or a comment, so
that it cannot become code.
"""

from recordsmith.readers.programs import READERS, reader_code

__all__ = ["READERS", "reader_code"]
