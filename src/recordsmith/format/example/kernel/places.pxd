# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""The positions of many payloads in a buffer."""

from libc.stdint cimport int64_t


cdef inline bint spans_fit(
    Py_ssize_t size, const int64_t[::1] starts, const int64_t[::1] lengths
) noexcept nogil:
    cdef Py_ssize_t i
    if starts.shape[0] != lengths.shape[0]:
        return False
    for i in range(starts.shape[0]):
        if starts[i] < 0 or lengths[i] < 0 or starts[i] > size or lengths[i] > size - starts[i]:
            return False
    return True
