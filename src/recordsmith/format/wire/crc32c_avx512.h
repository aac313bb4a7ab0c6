/* CRC-32C by carry-less multiplication of 64 bytes at a time: AVX-512 with VPCLMULQDQ, which
 * servers have had since 2019 (Intel Ice Lake) and 2022 (AMD Zen 4).
 *
 * Bytes are a polynomial over GF(2), and their checksum what is left of it modulo that of the CRC.
 * A part of it may be moved over the bytes behind it, if it is multiplied by x to the power of
 * their bits, modulo the CRC's polynomial; 16 bytes so multiplied are 16 bytes again. So 256 bytes
 * are folded onto the next 256 for as long as there are any, the last 256 onto the last 16 of them,
 * and the checksum of these is two instructions. Source of the method: V. Gopal et al., "Fast CRC
 * computation for generic polynomials using the PCLMULQDQ instruction", Intel, 2009.
 *
 * Zeros ahead of a message change nothing but for the register it starts with: so up to 256 bytes
 * are loaded as if they were the end of 256, whatever their number, without a branch that the
 * processor could guess wrong; most records are as short.
 *
 * A part of crc32c.h, which includes it.
 */
#if defined(CRC32C_X86) && defined(__GNUC__) && (defined(__clang__) || __GNUC__ >= 10)
#define CRC32C_AVX512 1
#include <immintrin.h>
#define CRC32C_AVX512_TARGET \
    __attribute__((target(CRC32C_X86_FEATURES ",bmi2,avx512f,avx512bw,avx512vl,vpclmulqdq")))
#define CRC32C_BLOCK 256 /* bytes: four registers */

/* Pairs of factors, for the first and the last 8 of 16 bytes: */
static uint64_t crc32c_to_next[8];    /* over the 256 bytes of a block */
static uint64_t crc32c_to_end[4][8];  /* each 16 bytes of a block over those behind them */
static uint32_t crc32c_start[CRC32C_BLOCK + 1]; /* the register ~0 after so many zeros */

/* x to the power n modulo the polynomial; a product of reflected numbers is one bit short. */
static uint64_t crc32c_power(int n) {
    uint32_t c = 0x80000000u;
    for (; n > 0; n--) c = (c >> 1) ^ (c & 1 ? CRC32C_POLYNOMIAL : 0);
    for (; n < 0; n++) c = c >> 31 ? ((c ^ CRC32C_POLYNOMIAL) << 1) | 1 : c << 1;
    return (uint64_t)c << 1;
}

static void crc32c_fill_factors(uint64_t pair[2], int bytes) {
    pair[0] = crc32c_power(8 * bytes + 32);
    pair[1] = crc32c_power(8 * bytes - 32);
}

static void crc32c_avx512_init(void) {
    uint32_t c = ~0u;
    for (int size = 0; size <= CRC32C_BLOCK; size++) {
        crc32c_start[size] = c;
        c = crc32c_table[0][c & 255] ^ (c >> 8);
    }
    for (int i = 0; i < 4; i++) {
        crc32c_fill_factors(crc32c_to_next + 2 * i, CRC32C_BLOCK);
        for (int j = 0; j < 4; j++)
            crc32c_fill_factors(crc32c_to_end[i] + 2 * j, CRC32C_BLOCK - 16 - 64 * i - 16 * j);
    }
}

/* 16-byte pieces, each moved on by what the factors say. */
CRC32C_AVX512_TARGET static inline __m512i crc32c_fold(__m512i pieces, __m512i factors) {
    return _mm512_xor_si512(_mm512_clmulepi64_epi128(pieces, factors, 0x00),
                            _mm512_clmulepi64_epi128(pieces, factors, 0x11));
}

/* The register after a block. */
CRC32C_AVX512_TARGET static inline uint32_t crc32c_of_block(__m512i a, __m512i b, __m512i c,
                                                            __m512i d) {
    __m512i all = _mm512_xor_si512(
        _mm512_xor_si512(crc32c_fold(a, _mm512_loadu_si512(crc32c_to_end[0])),
                         crc32c_fold(b, _mm512_loadu_si512(crc32c_to_end[1]))),
        _mm512_xor_si512(crc32c_fold(c, _mm512_loadu_si512(crc32c_to_end[2])),
                         crc32c_fold(d, _mm512_loadu_si512(crc32c_to_end[3]))));
    __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    __m128i last =
        _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    uint64_t c64 = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(last));
    return (uint32_t)_mm_crc32_u64(c64, (uint64_t)_mm_extract_epi64(last, 1));
}

/* The 64 bytes from `before` bytes before `end`, zeros for those that are not of the last `size`;
 * what is masked is not read. */
CRC32C_AVX512_TARGET static inline __m512i crc32c_tail(const uint8_t *end, int before, int size) {
    int zeros = before > size ? before - size : 0; /* at most 255; from 64 on all */
    return _mm512_maskz_loadu_epi8(~_bzhi_u64(~0ull, (unsigned)zeros), end - before);
}

/* The register after a message of 1 to 256 bytes. */
CRC32C_AVX512_TARGET static inline uint32_t crc32c_of_few(const uint8_t *p, size_t size) {
    const uint8_t *end = p + size;
    int n = (int)size;
    return crc32c_start[size] ^ crc32c_of_block(crc32c_tail(end, 256, n), crc32c_tail(end, 192, n),
                                                crc32c_tail(end, 128, n), crc32c_tail(end, 64, n));
}

CRC32C_AVX512_TARGET static uint32_t crc32c_avx512(uint32_t crc, const uint8_t *p, size_t size) {
    if (size <= 8 || (crc && size < 2 * CRC32C_BLOCK)) return crc32c_hardware(crc, p, size);
    if (size <= CRC32C_BLOCK) return ~crc32c_of_few(p, size);
    /* The odd bytes first, then whole blocks; at least one. */
    size_t odd = size % CRC32C_BLOCK;
    uint32_t c = crc || !odd ? ~crc32c_hardware(crc, p, odd) : crc32c_of_few(p, odd);
    const uint8_t *end = p + size;
    __m512i factors = _mm512_loadu_si512(crc32c_to_next);
    p += odd;
    __m512i a = _mm512_xor_si512(_mm512_loadu_si512(p),
                                 _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)c)));
    __m512i b = _mm512_loadu_si512(p + 64);
    __m512i d = _mm512_loadu_si512(p + 128);
    __m512i e = _mm512_loadu_si512(p + 192);
    for (p += CRC32C_BLOCK; p < end; p += CRC32C_BLOCK) {
        a = _mm512_xor_si512(crc32c_fold(a, factors), _mm512_loadu_si512(p));
        b = _mm512_xor_si512(crc32c_fold(b, factors), _mm512_loadu_si512(p + 64));
        d = _mm512_xor_si512(crc32c_fold(d, factors), _mm512_loadu_si512(p + 128));
        e = _mm512_xor_si512(crc32c_fold(e, factors), _mm512_loadu_si512(p + 192));
    }
    return ~crc32c_of_block(a, b, d, e);
}

static int crc32c_has_avx512(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("vpclmulqdq");
}
#endif
