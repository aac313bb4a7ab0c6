/* Memory that grows at its end. */
#ifndef RECORDSMITH_GROWABLE_ARRAY_H
#define RECORDSMITH_GROWABLE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* From malloc, whatever its size. Large pages (mmap and MADV_HUGEPAGE) halve the cost of memory
 * that is touched for the first time, but on a virtual machine whose host lends memory lazily they
 * can cost twice as much: the system takes them from memory that was never used. */
typedef struct {
    uint8_t *data;
    size_t size;
    size_t capacity;
} growable_array;

static inline int reserve(growable_array *g, size_t extra) {
    if (extra <= g->capacity - g->size) return 1;
    if (extra > SIZE_MAX / 4) return 0;
    size_t capacity = g->capacity * 2 > g->size + extra ? g->capacity * 2 : g->size + extra;
    if (capacity < 64) capacity = 64;
    uint8_t *data = (uint8_t *)realloc(g->data, capacity);
    if (!data) return 0;
    g->data = data;
    g->capacity = capacity;
    return 1;
}

/* Release unused memory; the bytes stay. */
static inline void trim(growable_array *g) {
    uint8_t *data = (uint8_t *)realloc(g->data, g->size ? g->size : 1);
    if (data) g->data = data;
}

static inline void release(growable_array *g) {
    free(g->data);
    memset(g, 0, sizeof(*g));
}

static inline int push_int64(growable_array *g, int64_t value) {
    if (!reserve(g, 8)) return 0;
    memcpy(g->data + g->size, &value, 8);
    g->size += 8;
    return 1;
}

static inline int push_bytes(growable_array *g, const void *data, size_t size) {
    if (!reserve(g, size)) return 0;
    if (size) memcpy(g->data + g->size, data, size);
    g->size += size;
    return 1;
}

#endif
