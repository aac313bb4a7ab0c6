# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Cut smaller JPEGs out of larger ones, without decoding them."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t

cdef extern from "cutting.h" nogil:
    int CUT_DONE
    ctypedef struct jpeg_header:
        pass
    ctypedef struct jpeg_cut:
        int top, left, height, width
        size_t head_size, body_size
    int cut_measure(const uint8_t *data, size_t size, int top, int left, int height, int width,
                    int divisor, jpeg_header *header, jpeg_cut *cut)
    void cut_write(const uint8_t *data, size_t size, const jpeg_header *header,
                   const jpeg_cut *cut, uint8_t *out)

cdef Py_ssize_t MANY_BYTES = 1 << 18  # from here on other threads run meanwhile


def cut_jpeg(const uint8_t[::1] data not None, int top, int left, int height, int width,
             int divisor):
    """Cut out the part of a JPEG that a window needs: (file, top, left, height, width).

    Returns None if the file cannot be cut, or the cut would save next to nothing.
    """
    cdef jpeg_header header
    cdef jpeg_cut cut
    cdef Py_ssize_t size = data.shape[0]
    cdef const uint8_t *start
    cdef uint8_t *target
    cdef int code
    if size < 4:
        return None
    start = &data[0]
    if size < MANY_BYTES:
        code = cut_measure(start, size, top, left, height, width, divisor, &header, &cut)
    else:
        with nogil:
            code = cut_measure(start, size, top, left, height, width, divisor, &header, &cut)
    if code != CUT_DONE:
        return None
    file = PyBytes_FromStringAndSize(NULL, cut.head_size + cut.body_size + 2)
    target = <uint8_t *>PyBytes_AS_STRING(file)
    if cut.body_size < <size_t>MANY_BYTES:
        cut_write(start, size, &header, &cut, target)
    else:
        with nogil:
            cut_write(start, size, &header, &cut, target)
    return file, cut.top, cut.left, cut.height, cut.width
