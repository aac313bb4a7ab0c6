# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Write JPEGs again with another restart interval, without decoding them."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t

from recordsmith.jpeg.bytes_object cimport new_bytes, shortened, start_of_bytes

cdef extern from "tiling.h" nogil:
    int TILING_DONE, TILING_UNSUPPORTED, TILING_DAMAGED, TILING_TOO_LARGE, TILING_NO_CODE
    int TILING_LEFT_OVER
    ctypedef struct jpeg_header:
        int height, width, mcu_height, mcu_width, mcus_down, mcus_across, restart_interval
    int jpeg_read_header(const uint8_t *data, size_t size, jpeg_header *header)
    int jpeg_is_usual(const jpeg_header *header)
    size_t tiling_room(size_t size)
    int tiling_write(const uint8_t *data, size_t size, int interval, uint8_t *out,
                     size_t *out_size)

DONE, UNSUPPORTED, DAMAGED, TOO_LARGE, NO_CODE, LEFT_OVER = (
    TILING_DONE, TILING_UNSUPPORTED, TILING_DAMAGED, TILING_TOO_LARGE, TILING_NO_CODE,
    TILING_LEFT_OVER,
)


def read_mcus(const uint8_t[::1] data not None):
    """The MCUs of a JPEG: (MCU height, MCU width, rows, columns, restart interval).

    Returns None if its kind is not supported.
    """
    cdef jpeg_header header
    if data.shape[0] < 4 or not jpeg_read_header(&data[0], data.shape[0], &header):
        return None
    return (header.mcu_height, header.mcu_width, header.mcus_down, header.mcus_across,
            header.restart_interval)


def can_be_cut(const uint8_t[::1] data not None):
    """Whether parts of a JPEG can be decoded alone, if it has intervals."""
    cdef jpeg_header header
    if data.shape[0] < 4 or not jpeg_read_header(&data[0], data.shape[0], &header):
        return False
    return bool(jpeg_is_usual(&header))


def with_interval(const uint8_t[::1] data not None, int interval):
    """Write a JPEG again with another restart interval: (code, file).

    interval: in MCUs, 1 to 65,535, or 0 for none.
    The file is empty unless the code is DONE. Uses no more than twice the memory of `data`, plus a
    few kilobytes.
    """
    cdef size_t size = data.shape[0], written = 0
    cdef const uint8_t *start
    cdef uint8_t *target
    cdef PyObject *file
    cdef int code
    if not 0 <= interval <= 65535:
        raise ValueError("a restart interval has 16 bits")
    if size < 4:
        return TILING_UNSUPPORTED, b""
    start = &data[0]
    file = new_bytes(NULL, tiling_room(size))
    target = <uint8_t *>start_of_bytes(file)
    with nogil:
        code = tiling_write(start, size, interval, target, &written)
    return code, shortened(file, written)
