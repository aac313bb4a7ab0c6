# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Growing memory in C, passed to Python."""

from libc.stdint cimport int64_t, uint8_t

cdef extern from "growing.h" nogil:
    ctypedef struct growing:
        uint8_t *data
        size_t size
        size_t capacity
    void trim(growing *g)
    void release(growing *g)
    int push_int64(growing *g, int64_t value)
    int push_bytes(growing *g, const void *data, size_t size)


cdef class Memory:
    cdef growing held


cdef Memory take(growing *g)
cdef Memory take_as_it_is(growing *g)
