/* Convert rows of pixels to float32, by a table for each channel or by a factor and a shift.

   `step` and `plane` are the distances of pixels and of channels in `out`. They are constants for
   RGB and grey, so that the compiler unrolls the loop over channels. */

#ifndef RECORDSMITH_NORMALISING_H
#define RECORDSMITH_NORMALISING_H

#include <stddef.h>
#include <stdint.h>

#define CONVERT_ROWS(NAME, TYPE, VALUE)                                                    \
    static inline void NAME##_by(const TYPE *in, ptrdiff_t width, ptrdiff_t channels,      \
                                 const float *a, const float *b, float *__restrict out,    \
                                 ptrdiff_t step, ptrdiff_t plane)                          \
    {                                                                                      \
        (void)b;                                                                           \
        for (ptrdiff_t i = 0; i < width; i++)                                              \
            for (ptrdiff_t c = 0; c < channels; c++)                                       \
                out[i * step + c * plane] = VALUE;                                         \
    }                                                                                      \
    static void NAME(const TYPE *in, ptrdiff_t width, ptrdiff_t channels, const float *a,  \
                     const float *b, float *out, ptrdiff_t step, ptrdiff_t plane)          \
    {                                                                                      \
        if (channels == 3 && step == 1)                                                    \
            NAME##_by(in, width, 3, a, b, out, 1, plane);                                  \
        else if (channels == 3)                                                            \
            NAME##_by(in, width, 3, a, b, out, 3, 1);                                      \
        else if (channels == 1)                                                            \
            NAME##_by(in, width, 1, a, b, out, 1, 1);                                      \
        else                                                                               \
            NAME##_by(in, width, channels, a, b, out, step, plane);                        \
    }

CONVERT_ROWS(look_up_row, uint8_t, a[256 * c + in[i * channels + c]])
CONVERT_ROWS(scale_row_16, uint16_t, in[i * channels + c] * a[c] + b[c])
CONVERT_ROWS(scale_row_float, float, in[i * channels + c] * a[c] + b[c])

#endif
