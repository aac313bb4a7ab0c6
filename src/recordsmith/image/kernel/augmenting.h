/* Mix images, and change their colours, in blocks of pixels that stay in the cache.

   The definitions of the colours are those of torchvision for uint8: each step clamps to 0..255 and
   truncates. Nothing here branches on pixels, so that compilers vectorize all loops. */

#ifndef RECORDSMITH_AUGMENTING_H
#define RECORDSMITH_AUGMENTING_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#define HAS_AVX2 1
#define INLINED static inline __attribute__((always_inline))
#else
#define HAS_AVX2 0
#define INLINED static inline
#endif

#define MIX(NAME, IN, OUT, VALUE)                                                          \
    static void NAME(const IN *a, const IN *b, float share, OUT *__restrict out, ptrdiff_t n) \
    {                                                                                      \
        const float rest = 1.0f - share;                                                   \
        for (ptrdiff_t i = 0; i < n; i++) {                                                \
            const float x = (float)a[i] * share + (float)b[i] * rest;                      \
            out[i] = VALUE;                                                                \
        }                                                                                  \
    }

MIX(mix_levels, uint8_t, uint8_t, (uint8_t)(int)(x + 0.5f))
MIX(mix_levels_to_float, uint8_t, float, x)
MIX(mix_floats, float, float, x)

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE };
#define BLOCK 256

typedef struct {
    float r[BLOCK], g[BLOCK], b[BLOCK];
} Planes;

INLINED float smaller(float x, float y) { return x < y ? x : y; }
INLINED float larger(float x, float y) { return x > y ? x : y; }
/* Bounds of integers, as GCC makes branches of those of floats. Factors are limited to fit. */
INLINED float truncated(float x)
{
    const int level = (int)x, above = level > 0 ? level : 0;
    return (float)(above < 255 ? above : 255);
}
INLINED float grey(float r, float g, float b)
{
    return (float)(int)(r * 0.2989f + g * 0.587f + b * 0.114f);
}

/* In two loops each, which compilers vectorize even without instructions that shuffle bytes. */
INLINED void load_block(const uint8_t *in, ptrdiff_t n, Planes *p)
{
    float levels[3 * BLOCK] = {0};
    for (ptrdiff_t i = 0; i < 3 * n; i++)
        levels[i] = in[i];
    for (ptrdiff_t i = 0; i < BLOCK; i++) {
        p->r[i] = levels[3 * i];
        p->g[i] = levels[3 * i + 1];
        p->b[i] = levels[3 * i + 2];
    }
}

INLINED void store_block(const Planes *p, ptrdiff_t n, uint8_t *out)
{
    float levels[3 * BLOCK];
    for (ptrdiff_t i = 0; i < BLOCK; i++) {
        levels[3 * i] = p->r[i];
        levels[3 * i + 1] = p->g[i];
        levels[3 * i + 2] = p->b[i];
    }
    for (ptrdiff_t i = 0; i < 3 * n; i++)
        out[i] = (uint8_t)(int)levels[i];
}

/* x * factor + shift; for the brightness the shift is 0, for the contrast a share of the mean. */
INLINED void scale_block(Planes *p, float factor, float shift)
{
    for (ptrdiff_t i = 0; i < BLOCK; i++) {
        p->r[i] = truncated(p->r[i] * factor + shift);
        p->g[i] = truncated(p->g[i] * factor + shift);
        p->b[i] = truncated(p->b[i] * factor + shift);
    }
}

INLINED void saturate_block(Planes *p, float factor, float rest)
{
    for (ptrdiff_t i = 0; i < BLOCK; i++) {
        const float shift = grey(p->r[i], p->g[i], p->b[i]) * rest;
        p->r[i] = truncated(p->r[i] * factor + shift);
        p->g[i] = truncated(p->g[i] * factor + shift);
        p->b[i] = truncated(p->b[i] * factor + shift);
    }
}

/* A channel is the lowest one plus a share of the range, which depends on the hue. Hues are in sixths
   of the circle, here times the range, which saves the division. */
INLINED void turn_block(Planes *p, float turn)
{
    const float to_level = 255.999f / 255.0f; /* as torchvision converts float to uint8 */
    for (ptrdiff_t i = 0; i < BLOCK; i++) {
        const float r = p->r[i], g = p->g[i], b = p->b[i];
        const float high = larger(r, larger(g, b)), low = smaller(r, smaller(g, b));
        const float range = high - low, circle = 6.0f * range;
        const float other = high == g ? b - r : r - g;
        const float other_turn = high == g ? turn + 2.0f : turn + 4.0f;
        float hue = (high == r ? g - b : other) + range * (high == r ? turn : other_turn);
        hue = hue < 0.0f ? hue + circle : hue;
        hue = hue >= circle ? hue - circle : hue;
        const float of_red = fabsf(hue - 3.0f * range) - range;
        const float of_green = 2.0f * range - fabsf(hue - 2.0f * range);
        const float of_blue = 2.0f * range - fabsf(hue - 4.0f * range);
        p->r[i] = (float)(int)((low + smaller(larger(of_red, 0.0f), range)) * to_level);
        p->g[i] = (float)(int)((low + smaller(larger(of_green, 0.0f), range)) * to_level);
        p->b[i] = (float)(int)((low + smaller(larger(of_blue, 0.0f), range)) * to_level);
    }
}

INLINED int64_t grey_sum(const Planes *p, ptrdiff_t n)
{
    int32_t sum = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        sum += (int32_t)(p->r[i] * 0.2989f + p->g[i] * 0.587f + p->b[i] * 0.114f);
    return sum;
}

/* Apply steps to each block of pixels. Returns the sum of the grey levels if `is_summing`. */
INLINED int64_t change_pixels(const uint8_t *in, uint8_t *out, ptrdiff_t pixels, const int8_t *steps,
                             int count, const double *factors, double mean, int is_summing)
{
    Planes planes = {{0}, {0}, {0}};
    int64_t sum = 0;
    for (ptrdiff_t begin = 0; begin < pixels; begin += BLOCK) {
        const ptrdiff_t n = pixels - begin < BLOCK ? pixels - begin : BLOCK;
        load_block(in + 3 * begin, n, &planes);
        for (int i = 0; i < count; i++) {
            const double factor = factors[steps[i]];
            if (steps[i] == BRIGHTNESS)
                scale_block(&planes, (float)factor, 0.0f);
            else if (steps[i] == CONTRAST)
                scale_block(&planes, (float)factor, (float)mean * (float)(1.0 - factor));
            else if (steps[i] == SATURATION)
                saturate_block(&planes, (float)factor, (float)(1.0 - factor));
            else
                turn_block(&planes, (float)(6.0 * factor));
        }
        if (is_summing)
            sum += grey_sum(&planes, n);
        if (count > 0)
            store_block(&planes, n, out + 3 * begin);
    }
    return sum;
}

/* Contrast needs the mean of what the steps before it made: they run first, and then the others. */
INLINED void jitter_with(const uint8_t *in, uint8_t *out, ptrdiff_t pixels, const int8_t *steps,
                         int count, const double *factors)
{
    int before = 0;
    double mean = 0.0;
    while (before < count && steps[before] != CONTRAST)
        before++;
    if (before < count) {
        mean = (double)change_pixels(in, out, pixels, steps, before, factors, 0.0, 1) / (double)pixels;
        in = before > 0 ? out : in;
        steps += before;
        count -= before;
    }
    change_pixels(in, out, pixels, steps, count, factors, mean, 0);
}

#if HAS_AVX2
__attribute__((target("avx2"))) static void jitter_avx2(const uint8_t *in, uint8_t *out,
                                                        ptrdiff_t pixels, const int8_t *steps,
                                                        int count, const double *factors)
{
    jitter_with(in, out, pixels, steps, count, factors);
}
#endif

/* The results are the same with and without AVX2, which takes less than half of the time. */
static void jitter_image(const uint8_t *in, uint8_t *out, ptrdiff_t pixels, const int8_t *steps,
                         int count, const double *factors)
{
#if HAS_AVX2
    if (__builtin_cpu_supports("avx2")) {
        jitter_avx2(in, out, pixels, steps, count, factors);
        return;
    }
#endif
    jitter_with(in, out, pixels, steps, count, factors);
}

#endif
