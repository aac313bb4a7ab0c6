/* What a good C programmer writes for one known schema: records of a TFRecord file into arrays.
 *
 * The file is read in blocks of one MiB. Both checksums of each record are checked. A feature is
 * looked for first behind the one that was found last: the columns are given in the order that the
 * writer used. Every length is compared with what is left. Any damage, unknown key or missing
 * feature ends it with a negative result.
 *
 * CRC-32C: the processor's instruction on three streams at a time, where the compiler has it
 * (-march=native), else a table, one byte a step.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SSE4_2__) && defined(__x86_64__)
#include <nmmintrin.h>
#define CRC_WORD(c, word) ((uint32_t)_mm_crc32_u64((c), (word)))
#define CRC_BYTE(c, byte) _mm_crc32_u8((c), (byte))
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define CRC_WORD(c, word) __crc32cd((c), (word))
#define CRC_BYTE(c, byte) __crc32cb((c), (byte))
#endif

enum { BYTES = 1, FLOAT = 2, INT64 = 3 };
enum { BLOCK = 1 << 20, LEVELS = 3 };

struct column {
    const char *key;
    int64_t key_size;
    int64_t kind;
    int64_t with_ends; /* whether rows differ in length */
    uint8_t *data;     /* bytes, float or int64_t, end to end */
    int64_t size;      /* bytes in data */
    int64_t capacity;
    int64_t *ends; /* for each row where it ends, in values (bytes: in bytes) */
    int64_t row_count;
    int64_t row_capacity;
};

/* -- checksum ---------------------------------------------------------------------------------- */

static uint32_t byte_table[256];
static const size_t level_bytes[LEVELS] = {1024, 128, 32}; /* of one stream */
static uint32_t move_table[LEVELS][4][256];                /* over as many zero bytes */

static void fill_tables(void) {
    for (uint32_t value = 0; value < 256; value++) {
        uint32_t c = value;
        for (int bit = 0; bit < 8; bit++) c = c & 1 ? c >> 1 ^ 0x82F63B78u : c >> 1;
        byte_table[value] = c;
    }
    for (int level = 0; level < LEVELS; level++)
        for (int place = 0; place < 4; place++)
            for (uint32_t value = 0; value < 256; value++) {
                uint32_t c = value << 8 * place;
                for (size_t n = 0; n < level_bytes[level]; n++) c = c >> 8 ^ byte_table[c & 255];
                move_table[level][place][value] = c;
            }
}

#ifdef CRC_WORD
static inline uint64_t word_at(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

static inline uint32_t move_on(int level, uint32_t c) {
    return move_table[level][0][c & 255] ^ move_table[level][1][c >> 8 & 255] ^
           move_table[level][2][c >> 16 & 255] ^ move_table[level][3][c >> 24];
}

static uint32_t checksum(const uint8_t *p, size_t size) {
    uint32_t a = 0xFFFFFFFFu;
    for (int level = 0; level < LEVELS; level++) {
        size_t stream = level_bytes[level];
        while (size >= 3 * stream) {
            uint32_t b = 0, c = 0;
            for (size_t n = 0; n < stream; n += 8) {
                a = CRC_WORD(a, word_at(p + n));
                b = CRC_WORD(b, word_at(p + stream + n));
                c = CRC_WORD(c, word_at(p + 2 * stream + n));
            }
            a = move_on(level, move_on(level, a) ^ b) ^ c;
            p += 3 * stream;
            size -= 3 * stream;
        }
    }
    for (; size >= 8; size -= 8, p += 8) a = CRC_WORD(a, word_at(p));
    for (; size; size--) a = CRC_BYTE(a, *p++);
    return ~a;
}
#else
static uint32_t checksum(const uint8_t *p, size_t size) {
    uint32_t c = 0xFFFFFFFFu;
    while (size--) c = c >> 8 ^ byte_table[(c ^ *p++) & 255];
    return ~c;
}
#endif

static inline int is_intact(const uint8_t *p, size_t size, const uint8_t *stored) {
    uint32_t expected, c = checksum(p, size);
    memcpy(&expected, stored, 4);
    return expected == (c >> 15 | c << 17) + 0xA282EAD8u;
}

/* -- protobuf ---------------------------------------------------------------------------------- */

static inline const uint8_t *get_varint(const uint8_t *p, const uint8_t *end, uint64_t *value) {
    if (p < end && *p < 0x80) {
        *value = *p;
        return p + 1;
    }
    uint64_t sum = 0;
    for (int shift = 0; p < end && shift < 64; shift += 7) {
        sum |= (uint64_t)(*p & 0x7F) << shift;
        if (*p++ < 0x80) {
            *value = sum;
            return p;
        }
    }
    return NULL;
}

/* Expects a field with a length; returns where its bytes begin, and in *stop where they end. */
static inline const uint8_t *enter(const uint8_t *p, const uint8_t *end, int *field,
                                   const uint8_t **stop) {
    uint64_t length;
    if (p >= end || (*p & 7) != 2 || *p >= 0x80) return NULL;
    *field = *p++ >> 3;
    p = get_varint(p, end, &length);
    if (!p || length > (uint64_t)(end - p)) return NULL;
    *stop = p + length;
    return p;
}

static inline void make_room(struct column *column, int64_t more) {
    if (column->size + more > column->capacity) {
        column->capacity = 2 * (column->size + more) + 4096;
        column->data = realloc(column->data, (size_t)column->capacity);
    }
}

static int add_numbers(struct column *column, const uint8_t *p, const uint8_t *end) {
    if (column->kind == FLOAT) {
        if ((end - p) % 4) return 0;
        make_room(column, end - p);
        memcpy(column->data + column->size, p, (size_t)(end - p));
        column->size += end - p;
        return 1;
    }
    make_room(column, 8 * (end - p)); /* a number takes at least a byte */
    int64_t *out = (int64_t *)(column->data + column->size);
    while (p < end) {
        uint64_t value;
        p = get_varint(p, end, &value);
        if (!p) return 0;
        *out++ = (int64_t)value;
    }
    column->size = (uint8_t *)out - column->data;
    return 1;
}

/* The Feature at p: its list, and the list's packed values, or its byte strings. */
static int add_feature(struct column *column, const uint8_t *p, const uint8_t *end) {
    const uint8_t *list_end, *stop;
    int field;
    p = enter(p, end, &field, &list_end);
    if (!p || field != column->kind || list_end != end) return 0;
    while (p < end) {
        p = enter(p, end, &field, &stop);
        if (!p || field != 1) return 0;
        if (column->kind == BYTES) {
            make_room(column, stop - p);
            memcpy(column->data + column->size, p, (size_t)(stop - p));
            column->size += stop - p;
        } else if (!add_numbers(column, p, stop)) {
            return 0;
        }
        p = stop;
    }
    return 1;
}

static int add_example(struct column *columns, int count, const uint8_t *p, const uint8_t *end) {
    const uint8_t *stop, *key, *key_end, *value, *value_end;
    int field, next = 0, found = 0;
    p = enter(p, end, &field, &stop);
    if (!p || field != 1 || stop != end) return 0;
    for (; p < end; p = stop) {
        p = enter(p, end, &field, &stop);
        if (!p || field != 1) return 0;
        key = enter(p, stop, &field, &key_end);
        if (!key || field != 1) return 0;
        value = enter(key_end, stop, &field, &value_end);
        if (!value || field != 2 || value_end != stop) return 0;
        struct column *column = NULL;
        for (int tries = 0; tries < count && !column; tries++) {
            struct column *candidate = &columns[next];
            if (candidate->key_size == key_end - key &&
                !memcmp(candidate->key, key, (size_t)candidate->key_size))
                column = candidate;
            next = next + 1 < count ? next + 1 : 0;
        }
        if (!column || !add_feature(column, value, stop)) return 0;
        if (column->with_ends) {
            if (column->row_count == column->row_capacity) {
                column->row_capacity = 2 * column->row_capacity + 1024;
                column->ends = realloc(column->ends, 8 * (size_t)column->row_capacity);
            }
            int64_t width = column->kind == INT64 ? 8 : column->kind == FLOAT ? 4 : 1;
            column->ends[column->row_count] = column->size / width;
        }
        column->row_count++;
        found++;
    }
    return found == count;
}

/* -- file -------------------------------------------------------------------------------------- */

/* Fills the columns; returns how many records there were, or a negative number. */
int64_t read_columns(const char *path, struct column *columns, int64_t count) {
    if (!byte_table[1]) fill_tables();
    int file = open(path, O_RDONLY);
    size_t capacity = BLOCK, filled = 0;
    uint8_t *buffer = malloc(capacity);
    int64_t records = 0, answer = -1;
    while (file >= 0) {
        ssize_t got = read(file, buffer + filled, capacity - filled);
        if (got < 0) break;
        if (got == 0) {
            if (filled == 0) answer = records;
            break;
        }
        filled += (size_t)got;
        size_t at = 0;
        while (filled - at >= 16) {
            uint64_t length;
            memcpy(&length, buffer + at, 8);
            if (!is_intact(buffer + at, 8, buffer + at + 8)) goto end;
            if (length > filled - at - 16) {
                if (length + 16 > capacity) {
                    capacity = (size_t)length + 16;
                    buffer = realloc(buffer, capacity);
                }
                break;
            }
            const uint8_t *payload = buffer + at + 12;
            if (!is_intact(payload, length, payload + length)) goto end;
            if (!add_example(columns, (int)count, payload, payload + length)) goto end;
            at += 16 + length;
            records++;
        }
        memmove(buffer, buffer + at, filled - at);
        filled -= at;
    }
end:
    free(buffer);
    if (file >= 0) close(file);
    return answer;
}

void free_columns(struct column *columns, int64_t count) {
    for (int64_t n = 0; n < count; n++) {
        free(columns[n].data);
        free(columns[n].ends);
    }
}
