# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Growing memory in C, passed to Python."""

from libc.stdint cimport int64_t, uint8_t

cdef extern from "growable_array.h" nogil:
    ctypedef struct growable_array:
        uint8_t *data
        size_t size
        size_t capacity
    void trim(growable_array *g)
    void release(growable_array *g)
    int push_int64(growable_array *g, int64_t value)
    int push_bytes(growable_array *g, const void *data, size_t size)


cdef class Memory:
    cdef growable_array held


cdef Memory take(growable_array *g)
cdef Memory take_as_it_is(growable_array *g)
