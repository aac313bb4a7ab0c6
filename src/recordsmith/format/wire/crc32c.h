/* CRC-32C (Castagnoli): the checksum of every TFRecord frame.
 *
 * crc32c(crc, data, size) continues a finished CRC over more bytes; start with 0.
 * The fastest implementation that this processor has is chosen once, by crc32c_init():
 *   AVX-512 with VPCLMULQDQ (x86-64; see crc32c_avx512.h), 64 bytes a step,
 *   SSE4.2 (x86-64) or the CRC extension (AArch64), three interleaved streams,
 *   else a table, eight bytes a step.
 *
 * Why three streams: the instruction takes 8 bytes and 3 cycles, but a new one can
 * start every cycle. Three independent streams over neighbouring blocks keep it busy; their
 * checksums are joined by shifting one over the length of the next block, which is a linear map
 * and so four table look-ups.
 *
 * Polynomial: RFC 3720 appendix B.4, reflected 0x82F63B78.
 */
#ifndef RECORDSMITH_CRC32C_H
#define RECORDSMITH_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) || defined(_M_X64)
#define CRC32C_X86 1
#include <nmmintrin.h>
#if defined(_MSC_VER)
#include <intrin.h>
#define CRC32C_TARGET
#elif defined(__clang__) && __clang_major__ >= 14
#define CRC32C_X86_FEATURES "sse4.2,crc32" /* two features there, one elsewhere */
#else
#define CRC32C_X86_FEATURES "sse4.2"
#endif
#if defined(CRC32C_X86_FEATURES)
#define CRC32C_TARGET __attribute__((target(CRC32C_X86_FEATURES)))
#endif
#elif defined(__aarch64__) && !defined(_MSC_VER)
#define CRC32C_ARM 1
#if defined(__linux__)
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#endif
#if defined(__clang__)
#define CRC32C_TARGET __attribute__((target("crc")))
#else
#define CRC32C_TARGET __attribute__((target("+crc")))
#endif
#include <arm_acle.h>
#endif

#define CRC32C_POLYNOMIAL 0x82F63B78u
#define CRC32C_LONG 1024 /* bytes a stream takes at a time while much is left */
#define CRC32C_SHORT 64  /* and when little is left */

static uint32_t crc32c_table[8][256];
static uint32_t crc32c_shift_long[4][256];
static uint32_t crc32c_shift_short[4][256];

/* Little-endian load on any machine; compilers make one instruction of it. */
static inline uint64_t crc32c_load64(const uint8_t *p) {
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
           (uint64_t)p[7] << 56;
}

/* Eight bytes a step through eight tables, each the previous one after a zero byte. */
static uint32_t crc32c_portable(uint32_t crc, const uint8_t *p, size_t size) {
    uint32_t c = ~crc;
    while (size >= 8) {
        uint64_t x = crc32c_load64(p) ^ c;
        c = crc32c_table[7][x & 255] ^ crc32c_table[6][(x >> 8) & 255] ^
            crc32c_table[5][(x >> 16) & 255] ^ crc32c_table[4][(x >> 24) & 255] ^
            crc32c_table[3][(x >> 32) & 255] ^ crc32c_table[2][(x >> 40) & 255] ^
            crc32c_table[1][(x >> 48) & 255] ^ crc32c_table[0][x >> 56];
        p += 8;
        size -= 8;
    }
    while (size--) c = crc32c_table[0][(c ^ *p++) & 255] ^ (c >> 8);
    return ~c;
}

/* The register after as many zero bytes as the table was made for. */
static inline uint32_t crc32c_shift(uint32_t table[4][256], uint32_t c) {
    return table[0][c & 255] ^ table[1][(c >> 8) & 255] ^ table[2][(c >> 16) & 255] ^
           table[3][c >> 24];
}

#if defined(CRC32C_X86)
#define CRC32C_STEP_WORD(c, word) ((uint32_t)_mm_crc32_u64((c), (word)))
#define CRC32C_STEP1(c, p) (_mm_crc32_u8((c), *(p)))
#elif defined(CRC32C_ARM)
#define CRC32C_STEP_WORD(c, word) (__crc32cd((c), (word)))
#define CRC32C_STEP1(c, p) (__crc32cb((c), *(p)))
#endif
#define CRC32C_STEP8(c, p) CRC32C_STEP_WORD(c, crc32c_load64(p))

#if defined(__GNUC__)
#define CRC32C_PREFETCH(p) __builtin_prefetch(p)
#else
#define CRC32C_PREFETCH(p)
#endif

#if defined(CRC32C_TARGET)
/* Process 3 * block bytes at a time while enough are left. */
CRC32C_TARGET static inline uint32_t crc32c_three_streams(uint32_t c, const uint8_t **data,
                                                          size_t *size, size_t block,
                                                          uint32_t table[4][256]) {
    const uint8_t *p = *data;
    while (*size >= 3 * block) {
        uint32_t c1 = 0, c2 = 0;
        const uint8_t *end = p + block;
        do {
            if (block == CRC32C_LONG && (p - *data) % 64 == 0) {
                CRC32C_PREFETCH(p + 3 * block);
                CRC32C_PREFETCH(p + 4 * block);
                CRC32C_PREFETCH(p + 5 * block);
            }
            c = CRC32C_STEP8(c, p);
            c1 = CRC32C_STEP8(c1, p + block);
            c2 = CRC32C_STEP8(c2, p + 2 * block);
            p += 8;
        } while (p < end);
        c = crc32c_shift(table, c) ^ c1;
        c = crc32c_shift(table, c) ^ c2;
        p += 2 * block;
        *size -= 3 * block;
    }
    *data = p;
    return c;
}

CRC32C_TARGET static uint32_t crc32c_hardware(uint32_t crc, const uint8_t *p, size_t size) {
    uint32_t c = ~crc;
    size_t whole = size;
    c = crc32c_three_streams(c, &p, &size, CRC32C_LONG, crc32c_shift_long);
    c = crc32c_three_streams(c, &p, &size, CRC32C_SHORT, crc32c_shift_short);
    if (!size) return ~c;
    if (size < 8 && whole < 8) {
        while (size--) c = CRC32C_STEP1(c, p++);
        return ~c;
    }
    while (size >= 8) {
        c = CRC32C_STEP8(c, p);
        p += 8;
        size -= 8;
    }
    /* The last 1 to 7 bytes in one step, as the processor mispredicts a loop over them
     * where records differ in length: moved to the end of a word of zeros, which a register of
     * zero passes unchanged. The rest of the register is added afterwards. */
    if (size) {
        unsigned bits = 8 * (unsigned)size;
        uint64_t last = crc32c_load64(p + size - 8) >> (64 - bits);
        uint64_t word = (last ^ c) << (64 - bits);
        c = CRC32C_STEP_WORD(0, word) ^ (uint32_t)((uint64_t)c >> bits);
    }
    return ~c;
}

static int crc32c_has_hardware(void) {
#if defined(CRC32C_X86) && defined(_MSC_VER)
    int registers[4];
    __cpuid(registers, 1);
    return (registers[2] >> 20) & 1;
#elif defined(CRC32C_X86)
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2") != 0;
#elif defined(__APPLE__)
    return 1; /* every 64-bit Apple processor that runs Python has it */
#elif defined(__linux__)
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#else
    return 0;
#endif
}
#endif

#include "crc32c_avx512.h"

/* Register after `zeros` zero bytes, for each value of each of its four bytes. */
static void crc32c_fill_shift(uint32_t table[4][256], size_t zeros) {
    for (int byte = 0; byte < 4; byte++) {
        uint32_t bit[8];
        for (int i = 0; i < 8; i++) {
            uint32_t c = 1u << (8 * byte + i);
            for (size_t n = 0; n < zeros; n++) c = crc32c_table[0][c & 255] ^ (c >> 8);
            bit[i] = c;
        }
        for (int value = 0; value < 256; value++) {
            uint32_t c = 0;
            for (int i = 0; i < 8; i++)
                if (value >> i & 1) c ^= bit[i];
            table[byte][value] = c;
        }
    }
}

typedef uint32_t (*crc32c_function)(uint32_t, const uint8_t *, size_t);
static crc32c_function crc32c = crc32c_portable;
static crc32c_function crc32c_implementations[3] = {crc32c_portable}; /* those that this processor has */
static int crc32c_implementation_count = 1;

static void crc32c_add_implementation(crc32c_function way) {
    crc32c_implementations[crc32c_implementation_count++] = crc32c = way;
}

/* Fill the tables and choose; call once, before any other. The fastest comes last. */
static void crc32c_init(void) {
    for (int value = 0; value < 256; value++) {
        uint32_t c = (uint32_t)value;
        for (int i = 0; i < 8; i++) c = (c >> 1) ^ (c & 1 ? CRC32C_POLYNOMIAL : 0);
        crc32c_table[0][value] = c;
    }
    for (int value = 0; value < 256; value++)
        for (int i = 1; i < 8; i++) {
            uint32_t c = crc32c_table[i - 1][value];
            crc32c_table[i][value] = crc32c_table[0][c & 255] ^ (c >> 8);
        }
    crc32c_fill_shift(crc32c_shift_long, CRC32C_LONG);
    crc32c_fill_shift(crc32c_shift_short, CRC32C_SHORT);
#if defined(CRC32C_TARGET)
    if (crc32c_has_hardware()) crc32c_add_implementation(crc32c_hardware);
#endif
#if defined(CRC32C_AVX512)
    if (crc32c_has_avx512()) {
        crc32c_avx512_init();
        crc32c_add_implementation(crc32c_avx512);
    }
#endif
}

/* TFRecord stores checksums rotated and offset, so that a CRC over bytes that hold CRCs stays
 * good. Source: tensorflow/core/lib/hash/crc32c.h, Mask(). */
static inline uint32_t crc32c_mask(uint32_t crc) {
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

#endif
