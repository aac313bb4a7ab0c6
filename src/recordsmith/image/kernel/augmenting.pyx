# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Mix the images of a batch, and change their colours, without the interpreter lock."""

from libc.stdint cimport int8_t, uint8_t

cdef extern from "augmenting.h" nogil:
    void mix_levels(const uint8_t *, const uint8_t *, float, uint8_t *, ptrdiff_t)
    void mix_levels_to_float(const uint8_t *, const uint8_t *, float, float *, ptrdiff_t)
    void mix_floats(const float *, const float *, float, float *, ptrdiff_t)
    void jitter_image(const uint8_t *, uint8_t *, ptrdiff_t, const int8_t *, int, const double *)

ctypedef fused Level:
    uint8_t
    float

ctypedef fused Mixed:
    uint8_t
    float


def mix(const Level[:, ::1] images not None, float share, Mixed[:, ::1] out not None):
    """Write share * image + (1 - share) * the image before it, the last one for the first.

    images and out: (batch, values). Levels are rounded to nearest if `out` is uint8.
    """
    cdef ptrdiff_t count = images.shape[0], size = images.shape[1], row, partner
    if out.shape[0] != count or out.shape[1] != size:
        raise IndexError("out has another shape")
    if sizeof(Level) > sizeof(Mixed):
        raise TypeError("float images are mixed to float")
    if count == 0 or size == 0:
        return
    with nogil:
        for row in range(count):
            partner = row - 1 if row else count - 1
            if Level is uint8_t and Mixed is uint8_t:
                mix_levels(&images[row, 0], &images[partner, 0], share, &out[row, 0], size)
            elif Level is uint8_t:
                mix_levels_to_float(&images[row, 0], &images[partner, 0], share, &out[row, 0],
                                    size)
            elif Mixed is float:
                mix_floats(&images[row, 0], &images[partner, 0], share, &out[row, 0], size)


def jitter(const uint8_t[:, :, ::1] images not None, const int8_t[:, ::1] steps not None,
           const double[:, ::1] factors not None, uint8_t[:, :, ::1] out not None):
    """Change colours: brightness 0, contrast 1, saturation 2, hue 3, in the order of `steps`.

    images and out: (batch, pixels, 3). steps: (batch, steps). factors: (batch, 4); that of the hue
    is from -0.5 to 0.5.
    """
    cdef ptrdiff_t count = images.shape[0], pixels = images.shape[1], row
    cdef int step_count = <int>steps.shape[1]
    if images.shape[2] != 3 or (out.shape[0], out.shape[1], out.shape[2]) != (count, pixels, 3):
        raise IndexError("images have no three channels, or out has another shape")
    if steps.shape[0] != count or factors.shape[0] != count or factors.shape[1] != 4:
        raise IndexError("steps and factors do not match the images")
    for row in range(count):
        for step in range(step_count):
            if not 0 <= steps[row, step] < 4:
                raise IndexError("steps are 0 to 3")
    if count == 0 or pixels == 0 or step_count == 0:
        out[:] = images
        return
    with nogil:
        for row in range(count):
            jitter_image(&images[row, 0, 0], &out[row, 0, 0], pixels, &steps[row, 0], step_count,
                         &factors[row, 0])
