# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Memory that a kernel allocated, as a Python object."""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.string cimport memset


cdef class Memory:
    """Bytes that a kernel allocated, as a writable buffer; freed with its last user."""

    def __dealloc__(self):
        release(&self.held)

    def __len__(self):
        return self.held.size

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.held.data, self.held.size, 0, flags)


cdef Memory take(growable_array *g):
    """Take the memory of `g`, trimmed to its size."""
    trim(g)
    return take_as_it_is(g)


cdef Memory take_as_it_is(growable_array *g):
    """Take the memory of `g` untrimmed: freed pieces of equal size are reused."""
    cdef Memory memory = Memory.__new__(Memory)
    memory.held = g[0]
    memset(g, 0, sizeof(growable_array))
    return memory
