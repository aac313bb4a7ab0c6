/* XXH64, after its specification (xxhash's doc/xxhash_spec.md), with seed 0.
 *
 * A 64-bit hash that reads 32 bytes a step. Not secure: the author of a file can create values with
 * equal hashes.
 */
#ifndef RECORDSMITH_XXH64_H
#define RECORDSMITH_XXH64_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define XXH_P1 0x9E3779B185EBCA87ull
#define XXH_P2 0xC2B2AE3D27D4EB4Full
#define XXH_P3 0x165667B19E3779F9ull
#define XXH_P4 0x85EBCA77C2B2AE63ull
#define XXH_P5 0x27D4EB2F165667C5ull

static inline uint64_t xxh_rotate(uint64_t value, int by) { return value << by | value >> (64 - by); }

/* numbers lie in memory with their low byte first, whatever the machine */
static inline uint64_t xxh_read(const uint8_t *at, size_t size) {
    uint64_t value = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (size_t i = size; i > 0; i--) value = value << 8 | at[i - 1];
#else
    memcpy(&value, at, size);
#endif
    return value;
}

static inline uint64_t xxh_round(uint64_t lane, uint64_t word) {
    return xxh_rotate(lane + word * XXH_P2, 31) * XXH_P1;
}

static inline uint64_t xxh_join(uint64_t hash, uint64_t lane) {
    return (hash ^ xxh_round(0, lane)) * XXH_P1 + XXH_P4;
}

static uint64_t xxh64(const uint8_t *at, size_t size) {
    const uint8_t *end = at + size;
    uint64_t hash = XXH_P5;
    if (size >= 32) {
        uint64_t a = XXH_P1 + XXH_P2, b = XXH_P2, c = 0, d = 0ull - XXH_P1;
        for (; end - at >= 32; at += 32) {
            a = xxh_round(a, xxh_read(at, 8));
            b = xxh_round(b, xxh_read(at + 8, 8));
            c = xxh_round(c, xxh_read(at + 16, 8));
            d = xxh_round(d, xxh_read(at + 24, 8));
        }
        hash = xxh_rotate(a, 1) + xxh_rotate(b, 7) + xxh_rotate(c, 12) + xxh_rotate(d, 18);
        hash = xxh_join(xxh_join(xxh_join(xxh_join(hash, a), b), c), d);
    }
    hash += size;
    for (; end - at >= 8; at += 8)
        hash = xxh_rotate(hash ^ xxh_round(0, xxh_read(at, 8)), 27) * XXH_P1 + XXH_P4;
    if (end - at >= 4) {
        hash = xxh_rotate(hash ^ xxh_read(at, 4) * XXH_P1, 23) * XXH_P2 + XXH_P3;
        at += 4;
    }
    for (; at < end; at++) hash = xxh_rotate(hash ^ *at * XXH_P5, 11) * XXH_P1;
    hash = (hash ^ hash >> 33) * XXH_P2;
    hash = (hash ^ hash >> 29) * XXH_P3;
    return hash ^ hash >> 32;
}

#endif
