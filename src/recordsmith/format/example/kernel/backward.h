/* The protobuf wire format of tf.train.Example, written back to front.
 *
 * Protobuf stores the length before the content. Writing from the end, the length is known when it
 * is needed, and nothing is measured twice.
 */
#ifndef RECORDSMITH_BACKWARD_H
#define RECORDSMITH_BACKWARD_H

#include "message.h"

/* The bytes are [at, base + capacity). Borrowed memory is not freed when it becomes too small. */
typedef struct {
    uint8_t *base;
    uint8_t *at;
    size_t capacity;
    int is_borrowed;
} backward;

static inline size_t written(const backward *b) {
    return (size_t)(b->base + b->capacity - b->at);
}

static inline int make_room(backward *b, size_t extra) {
    if (extra <= (size_t)(b->at - b->base)) return 1;
    size_t used = written(b);
    size_t capacity = b->capacity * 2 > used + extra ? b->capacity * 2 : used + extra;
    uint8_t *base = (uint8_t *)malloc(capacity);
    if (!base) return 0;
    if (used) memcpy(base + capacity - used, b->at, used);
    if (!b->is_borrowed) free(b->base);
    b->is_borrowed = 0;
    b->base = base;
    b->capacity = capacity;
    b->at = base + capacity - used;
    return 1;
}

/* The put functions need reserved room: 10 bytes for a varint, the size for bytes. */
static inline void put_varint(backward *b, uint64_t value) {
    if (value < 128) {
        *--b->at = (uint8_t)value;
        return;
    }
    int size = 1;
    for (uint64_t rest = value >> 7; rest; rest >>= 7) size++;
    uint8_t *p = b->at -= size;
    while (value >= 128) {
        *p++ = (uint8_t)(value | 128);
        value >>= 7;
    }
    *p = (uint8_t)value;
}

static inline void put_bytes(backward *b, const void *data, size_t size) {
    b->at -= size;
    if (size) memcpy(b->at, data, size);
}

/* Length and tag of what was written since `mark` (a value of written()). */
static inline void put_delimited(backward *b, int field, size_t mark) {
    put_varint(b, written(b) - mark);
    *--b->at = (uint8_t)(field << 3 | DELIMITED);
}

/* Write values, last to first, and reserve room. Return 0 when out of memory. */
static inline int put_int64s(backward *b, const uint8_t *values, size_t count) {
    uint64_t value;
    if (count > SIZE_MAX / 10 - 16 || !make_room(b, 10 * count + 64)) return 0;
    while (count--) {
        memcpy(&value, values + 8 * count, 8);
        put_varint(b, value);
    }
    return 1;
}

static inline int put_floats(backward *b, const uint8_t *values, size_t count) {
    if (!make_room(b, 4 * count + 64)) return 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    while (count--)
        for (int i = 0; i < 4; i++) *--b->at = values[4 * count + i];
#else
    put_bytes(b, values, 4 * count);
#endif
    return 1;
}

static inline int put_bytes_value(backward *b, const void *data, size_t size) {
    if (!make_room(b, size + 64)) return 0;
    size_t mark = written(b);
    put_bytes(b, data, size);
    put_delimited(b, 1, mark);
    return 1;
}

/* Around the values written since `mark`: list, Feature, map entry with its key. */
static inline int put_feature_entry(backward *b, size_t mark, int kind, const void *key,
                                    size_t key_size) {
    if (!make_room(b, key_size + 80)) return 0;
    if (kind == KIND_FLOAT || kind == KIND_INT64) {
        if (written(b) != mark) put_delimited(b, 1, mark); /* packed; nothing if empty */
    }
    if (kind != KIND_NONE) put_delimited(b, kind, mark);
    put_delimited(b, 2, mark);
    size_t key_mark = written(b);
    put_bytes(b, key, key_size);
    put_delimited(b, 1, key_mark);
    put_delimited(b, 1, mark);
    return 1;
}

#endif
