/* SipHash-1-3, after its authors' description (SipHash: a fast short-input PRF), with a key.
 *
 * For tables of names from files: without the key, a file cannot contain names chosen to share a
 * slot. As fast for short names as a hash without a key that goes byte by byte.
 */
#ifndef RECORDSMITH_SIPHASH_H
#define RECORDSMITH_SIPHASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    uint64_t a, b, c, d;
} sip_state;

static inline uint64_t sip_rotate(uint64_t value, int by) { return value << by | value >> (64 - by); }

static inline void sip_round(sip_state *s) {
    s->a += s->b;
    s->b = sip_rotate(s->b, 13) ^ s->a;
    s->a = sip_rotate(s->a, 32);
    s->c += s->d;
    s->d = sip_rotate(s->d, 16) ^ s->c;
    s->a += s->d;
    s->d = sip_rotate(s->d, 21) ^ s->a;
    s->c += s->b;
    s->b = sip_rotate(s->b, 17) ^ s->c;
    s->c = sip_rotate(s->c, 32);
}

/* the numbers of a machine: hashes are not kept, so their order of bytes does not matter */
static inline uint64_t siphash(const uint64_t key[2], const uint8_t *at, size_t size) {
    sip_state s = {key[0] ^ 0x736F6D6570736575ull, key[1] ^ 0x646F72616E646F6Dull,
                   key[0] ^ 0x6C7967656E657261ull, key[1] ^ 0x7465646279746573ull};
    uint64_t last = (uint64_t)size << 56, word;
    size_t i = 0;
    for (; size - i >= 8; i += 8) {
        memcpy(&word, at + i, 8);
        s.d ^= word;
        sip_round(&s);
        s.a ^= word;
    }
    for (int by = 0; i < size; i++, by += 8) last |= (uint64_t)at[i] << by;
    s.d ^= last;
    sip_round(&s);
    s.a ^= last;
    s.c ^= 0xFF;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

#endif
