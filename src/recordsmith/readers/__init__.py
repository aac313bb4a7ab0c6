"""Code that reads the files at hand, in TensorFlow, PyTorch, DALI or grain, ready to be pasted.

One module for each, with a function from a `Description` to a program. What comes out of a file, a
key or the name of a class, stands there as a literal or in a comment, so that it never becomes
code. Knows nothing of how batches are made.
"""

from recordsmith.readers.reader_code import READERS, reader_code

__all__ = ["READERS", "reader_code"]
