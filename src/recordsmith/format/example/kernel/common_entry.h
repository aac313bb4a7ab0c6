/* Fast readers of the most common features and entries, for surveys and edits.
 *
 * They return KIND_NONE for all others, well-formed or not, which message.h must walk.
 */
#ifndef RECORDSMITH_COMMON_ENTRY_H
#define RECORDSMITH_COMMON_ENTRY_H

#include "message.h"

/* memcmp(a, b, size) == 0; the size of a key is not known, and a call takes longer. */
ALWAYS_INLINE int are_same(const uint8_t *a, const uint8_t *b, size_t size) {
    uint64_t one = 0, other = 0;
    for (; size > 8; size -= 8, a += 8, b += 8) {
        memcpy(&one, a, 8);
        memcpy(&other, b, 8);
        if (one != other) return 0;
    }
    if (size >= 4) { /* the first four and the last four overlap */
        uint32_t head_1, head_2, tail_1, tail_2;
        memcpy(&head_1, a, 4);
        memcpy(&head_2, b, 4);
        memcpy(&tail_1, a + size - 4, 4);
        memcpy(&tail_2, b + size - 4, 4);
        return head_1 == head_2 && tail_1 == tail_2;
    }
    while (size--)
        if (a[size] != b[size]) return 0;
    return 1;
}

/* Count the varints of a short packed list; -1 if one may be too long: see are_varints. */
ALWAYS_INLINE int64_t count_short_varints(const uint8_t *p, const uint8_t *end) {
    const uint64_t tops = 0x8080808080808080ull;
    int64_t count = 0;
    uint64_t word;
    for (; end - p >= 8; p += 8) {
        memcpy(&word, p, 8);
        word = ~word & tops; /* the bytes that end one */
        /* with one in each half, none has more than 7 bytes, or with those behind it 10 */
        if (!(uint32_t)word || !(word >> 32)) return -1;
        count += (int64_t)((word >> 7) * 0x0101010101010101ull >> 56);
    }
    for (; p < end; p++) count += *p < 128;
    return end[-1] < 128 ? count : -1;
}

/* The kind of the Feature in [p, stop), if it is one list and nothing else, its length in one byte.
 * `items` is the list message, which is not checked. */
ALWAYS_INLINE int read_common_list(const uint8_t *p, const uint8_t *stop, span *items) {
    if (stop - p < 2 || (p[0] & 7) != DELIMITED || p[1] >= 128 || p + 2 + p[1] != stop)
        return KIND_NONE;
    int kind = p[0] >> 3;
    if (kind < KIND_BYTES || kind > KIND_INT64) return KIND_NONE;
    items->at = p + 2;
    items->end = stop;
    return kind;
}

/* The same, of numbers only if they are packed and well-formed; `count` is not set for bytes. */
ALWAYS_INLINE int read_common_feature(const uint8_t *p, const uint8_t *stop, span *items,
                                     uint64_t *count) {
    int kind = read_common_list(p, stop, items);
    if (kind == KIND_BYTES || kind == KIND_NONE) return kind;
    p = items->at;
    if (stop - p < 3 || p[0] != (1 << 3 | DELIMITED) || p + 2 + p[1] != stop) return KIND_NONE;
    int64_t found = kind == KIND_INT64 ? count_short_varints(p + 2, stop)
                                       : (p[1] % 4 ? -1 : p[1] / 4);
    if (found < 0) return KIND_NONE;
    *count = (uint64_t)found;
    return kind;
}

/* The Feature of the next entry of Features, if it has the expected key and its length is one byte;
 * NULL otherwise. It ends where the entry ends. */
ALWAYS_INLINE const uint8_t *common_value(span features, const uint8_t *key, size_t key_size,
                                          const uint8_t **stop) {
    const uint8_t *p = features.at;
    size_t left = (size_t)(features.end - p);
    if (key_size >= 128 || left < key_size + 8) return NULL;
    if (p[0] != (1 << 3 | DELIMITED) || p[2] != (1 << 3 | DELIMITED) || p[3] != key_size)
        return NULL;
    const uint8_t *value = p + 4 + key_size;
    *stop = p + 2 + p[1];
    if (p[1] >= 128 || p[1] + 2u > left || !are_same(key, p + 4, key_size)) return NULL;
    /* the value is as long as what is left of the entry, and so below 128, too */
    return value[0] == (2 << 3 | DELIMITED) && value + 2 + value[1] == *stop ? value + 2 : NULL;
}

/* read_common_feature of the next entry of Features, if it has the expected key and its length is
 * one byte too. The rest stays in `features`. */
ALWAYS_INLINE int read_common_entry(span *features, const uint8_t *key, size_t key_size, span *items,
                                   uint64_t *count) {
    const uint8_t *stop, *value = common_value(*features, key, key_size, &stop);
    if (value == NULL) return KIND_NONE;
    int kind = read_common_feature(value, stop, items, count);
    if (kind != KIND_NONE) features->at = stop;
    return kind;
}

/* The list of the next entry of Features, under the same conditions, if it is of this kind. */
ALWAYS_INLINE int read_common_entry_of_kind(span *features, const uint8_t *key, size_t key_size,
                                           int kind, span *items) {
    const uint8_t *stop, *value = common_value(*features, key, key_size, &stop);
    if (value == NULL || read_common_list(value, stop, items) != kind) return 0;
    features->at = stop;
    return 1;
}

#endif
