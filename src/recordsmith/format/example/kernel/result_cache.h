/* A cache of results by byte strings, a hash table that its user keeps small.
 *
 * The bytes come from files, which cannot choose colliding ones without the secret.
 */
#ifndef RECORDSMITH_RESULT_CACHE_H
#define RECORDSMITH_RESULT_CACHE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "siphash.h"

/* `number` and `given`, stored after `asked` in one piece of memory, are the result. */
typedef struct {
    uint8_t *asked;
    size_t size;
    const uint8_t *given;
    size_t given_size;
    uint64_t hash;
    int number;
    int next; /* the entry that followed this one last time */
} cached_result;

typedef struct {
    cached_result *held;
    int *slots; /* open addressing: an index of `held`, or -1 */
    size_t slot_count;
    int count;
    int capacity;
} result_cache;

static inline int is_result_for(const cached_result *a, const uint8_t *asked, size_t size) {
    return a->size == size && !memcmp(a->asked, asked, size);
}

/* Return the index in `held`, or -1. */
static inline int find_result(const result_cache *all, const uint64_t secret[2], const uint8_t *asked,
                              size_t size) {
    if (!all->count) return -1;
    uint64_t hash = siphash(secret, asked, size);
    for (size_t slot = hash & (all->slot_count - 1);; slot = (slot + 1) & (all->slot_count - 1)) {
        int place = all->slots[slot];
        if (place < 0) return -1;
        if (all->held[place].hash == hash && is_result_for(&all->held[place], asked, size))
            return place;
    }
}

static void fill_slot(result_cache *all, int place) {
    size_t slot = all->held[place].hash & (all->slot_count - 1);
    while (all->slots[slot] >= 0) slot = (slot + 1) & (all->slot_count - 1);
    all->slots[slot] = place;
}

/* Make room for one more, with half of the slots free. */
static int reserve_result(result_cache *all) {
    if (all->count == all->capacity) {
        int capacity = 2 * all->capacity + 8;
        cached_result *held = (cached_result *)realloc(all->held, (size_t)capacity * sizeof(cached_result));
        if (!held) return 0;
        all->held = held;
        all->capacity = capacity;
    }
    if (2 * ((size_t)all->count + 1) > all->slot_count) {
        size_t slot_count = all->slot_count ? 2 * all->slot_count : 16;
        int *slots = (int *)malloc(slot_count * sizeof(int));
        if (!slots) return 0;
        free(all->slots);
        all->slots = slots;
        all->slot_count = slot_count;
        for (size_t slot = 0; slot < slot_count; slot++) slots[slot] = -1;
        for (int place = 0; place < all->count; place++) fill_slot(all, place);
    }
    return 1;
}

/* Cache a result for a new key; return its index, or -1 when out of memory. */
static int cache_result(result_cache *all, const uint64_t secret[2], const uint8_t *asked, size_t size,
                       const uint8_t *given, size_t given_size, int number) {
    if (size > SIZE_MAX / 4 || given_size > SIZE_MAX / 4 || !reserve_result(all)) return -1;
    uint8_t *memory = (uint8_t *)malloc(size + given_size + 1);
    if (!memory) return -1;
    if (size) memcpy(memory, asked, size);
    if (given_size) memcpy(memory + size, given, given_size);
    cached_result kept = {memory, size, memory + size, given_size, siphash(secret, asked, size), number, 0};
    all->held[all->count] = kept;
    fill_slot(all, all->count);
    return all->count++;
}

static void release_results(result_cache *all) {
    for (int place = 0; place < all->count; place++) free(all->held[place].asked);
    free(all->held);
    free(all->slots);
    memset(all, 0, sizeof(*all));
}

#endif
