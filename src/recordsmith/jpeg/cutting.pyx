# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Cut smaller JPEGs out of larger ones, without decoding them."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t

from recordsmith.jpeg.bytes_object cimport new_bytes, shortened, start_of_bytes

cdef extern from "cutting.h" nogil:
    ctypedef struct jpeg_header:
        int mcu_height, mcu_width
    ctypedef struct jpeg_cut:
        int top, left, height, width, way
        int64_t cost, first_interval
        size_t body
    int CUT_LOWER_ROWS
    int jpeg_read_header(const uint8_t *data, size_t size, jpeg_header *header)
    int cut_plan(const jpeg_header *header, int top, int left, int height, int width, int divisor,
                 jpeg_cut *cut)
    size_t cut_measure(const uint8_t *data, size_t size, int top, int left, int height, int width,
                       int divisor, int64_t known, size_t known_at, jpeg_header *header,
                       jpeg_cut *cut)
    size_t cut_write(const uint8_t *data, size_t size, const jpeg_header *header,
                     const jpeg_cut *cut, uint8_t *out, size_t room)

cdef size_t MANY_BYTES = 1 << 18  # from here on other threads run meanwhile


def cut_cost(const uint8_t[::1] data not None, int top, int left, int height, int width):
    """The time to cut out a window of a JPEG and decode it: that of decoding so many pixels.

    Returns None as `cut_jpeg` does.
    """
    cdef jpeg_header header
    cdef jpeg_cut cut
    if data.shape[0] < 4 or not jpeg_read_header(&data[0], data.shape[0], &header):
        return None
    if not cut_plan(&header, top, left, height, width, 1, &cut):
        return None
    return cut.cost * header.mcu_height * header.mcu_width // 50


def cut_jpeg(const uint8_t[::1] data not None, int top, int left, int height, int width,
             int divisor, interval=(0, 0)):
    """Cut out the part of a JPEG that a window needs: (file, top, left, height, width, interval).

    interval: that of a cut further above in the same file, to find those of this one sooner.
    Returns None if the file cannot be cut, or the cut would save next to nothing.
    """
    cdef jpeg_header header
    cdef jpeg_cut cut
    cdef size_t size = data.shape[0], room, written
    cdef const uint8_t *start
    cdef uint8_t *target
    cdef PyObject *file
    cdef int64_t known = interval[0]
    cdef size_t known_at = interval[1]
    if size < 4:
        return None
    start = &data[0]
    if size < MANY_BYTES:
        room = cut_measure(start, size, top, left, height, width, divisor, known, known_at,
                           &header, &cut)
    else:
        with nogil:
            room = cut_measure(start, size, top, left, height, width, divisor, known, known_at,
                               &header, &cut)
    if not room:
        return None
    file = new_bytes(NULL, room)
    target = <uint8_t *>start_of_bytes(file)
    if room < MANY_BYTES and cut.way < CUT_LOWER_ROWS:
        written = cut_write(start, size, &header, &cut, target, room)
    else:
        with nogil:
            written = cut_write(start, size, &header, &cut, target, room)
    result = shortened(file, written)
    if not written:
        return None
    return (result, cut.top, cut.left, cut.height, cut.width, (cut.first_interval, cut.body))
