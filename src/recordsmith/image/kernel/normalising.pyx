# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Convert pixels to float32 with a scale for each channel, in either layout, in one pass."""

from libc.stdint cimport uint8_t, uint16_t

cdef extern from "normalising.h" nogil:
    void look_up_row(const uint8_t *, ptrdiff_t, ptrdiff_t, const float *, const float *, float *,
                     ptrdiff_t, ptrdiff_t)
    void scale_row_16(const uint16_t *, ptrdiff_t, ptrdiff_t, const float *, const float *, float *,
                      ptrdiff_t, ptrdiff_t)
    void scale_row_float(const float *, ptrdiff_t, ptrdiff_t, const float *, const float *, float *,
                         ptrdiff_t, ptrdiff_t)

ctypedef fused Level:
    uint8_t
    uint16_t
    float


cdef bint _is_dense(ptrdiff_t width, ptrdiff_t channels, ptrdiff_t size, ptrdiff_t step,
                    ptrdiff_t channel_step):
    """Whether the values of a row follow each other; strides of axes of length 1 mean nothing."""
    return (width < 2 or step == channels * size) and (channels < 2 or channel_step == size)


def normalise(const Level[:, :, :] pixels not None, const float[:, ::1] factors not None,
              const float[::1] shifts not None, float[:, :, :] out not None, bint is_planar):
    """Write level * factors[channel, 0] + shifts[channel] for each level, or
    factors[channel, level] for levels of 8 bits.

    pixels: (height, width, channels); out: the same, or (channels, height, width) if planar. The
    rows of both are contiguous, and any distance apart.
    """
    cdef ptrdiff_t height = pixels.shape[0], width = pixels.shape[1], channels = pixels.shape[2]
    cdef ptrdiff_t row, step, plane
    cdef const void *source
    cdef const float *a
    cdef const float *b
    cdef float *target
    if is_planar:
        fits = (out.shape[0], out.shape[1], out.shape[2]) == (channels, height, width)
        step, plane = 1, out.strides[0] // <ptrdiff_t>sizeof(float)
        fits = fits and _is_dense(width, 1, sizeof(float), out.strides[2], out.strides[2])
    else:
        fits = (out.shape[0], out.shape[1], out.shape[2]) == (height, width, channels)
        step, plane = channels, 1
        fits = fits and _is_dense(width, channels, sizeof(float), out.strides[1], out.strides[2])
    if not fits or not _is_dense(width, channels, sizeof(Level), pixels.strides[1],
                                 pixels.strides[2]):
        raise IndexError("out has another shape, or a row is not contiguous")
    if (
        factors.shape[0] != channels or shifts.shape[0] != channels
        or factors.shape[1] != (256 if sizeof(Level) == 1 else 1)
    ):
        raise IndexError("factors and shifts do not match the channels")
    if height == 0 or width == 0 or channels == 0:
        return
    a, b = &factors[0, 0], &shifts[0]
    with nogil:
        for row in range(height):
            source = &pixels[row, 0, 0]
            target = &out[0, row, 0] if is_planar else &out[row, 0, 0]
            if sizeof(Level) == 1:
                look_up_row(<const uint8_t *>source, width, channels, a, b, target, step, plane)
            elif sizeof(Level) == 2:
                scale_row_16(<const uint16_t *>source, width, channels, a, b, target, step, plane)
            else:
                scale_row_float(<const float *>source, width, channels, a, b, target, step, plane)
