/* Read and check the protobuf wire format, as far as tf.train.Example needs it.
 *
 * Readers work on spans, [at, end), and read no byte outside them. They return 1 for good and 0
 * for malformed. Messages, from tensorflow/core/example/{example,feature}.proto:
 *
 *   Example         { Features features = 1 }
 *   SequenceExample { Features context = 1; FeatureLists feature_lists = 2 }
 *   Features        { map<string, Feature> feature = 1 }
 *   FeatureLists    { map<string, FeatureList> feature_list = 1 }
 *   FeatureList     { repeated Feature feature = 1 }
 *   Feature         { oneof kind { BytesList = 1; FloatList = 2; Int64List = 3 } }
 *   BytesList       { repeated bytes value = 1 }      FloatList, Int64List: packed or not
 *
 * and from tensorflow_serving's input.proto, which TensorFlow Ranking uses:
 *   ExampleListWithContext (ELWC) { repeated Example examples = 1; Example context = 2 }
 *
 * A map is a repeated message of key = 1 and value = 2.
 */
#ifndef RECORDSMITH_MESSAGE_H
#define RECORDSMITH_MESSAGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, DELIMITED = 2, GROUP_START = 3, GROUP_END = 4, FIXED32 = 5 };
enum { KIND_NONE = 0, KIND_BYTES = 1, KIND_FLOAT = 2, KIND_INT64 = 3 };

#define GROUP_DEPTH 100 /* as protobuf: deeper nesting is refused */

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
} span;

/* For short functions that run for each field: compilers do not inline them by themselves. */
#if defined(__GNUC__)
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE static inline
#endif

static int read_long_varint(span *s, uint64_t *value) {
    uint64_t v = 0;
    const uint8_t *p = s->at;
    for (int shift = 0; shift < 70; shift += 7) {
        if (p == s->end) return 0;
        uint8_t byte = *p++;
        v |= (uint64_t)(byte & 127) << (shift & 63); /* of the tenth byte one bit counts */
        if (shift == 63) v = (v & ~(1ull << 63)) | ((uint64_t)(byte & 1) << 63);
        if (byte < 128) {
            s->at = p;
            *value = v;
            return 1;
        }
    }
    return 0;
}

ALWAYS_INLINE int read_varint(span *s, uint64_t *value) {
    if (s->at < s->end && *s->at < 128) {
        *value = *s->at++;
        return 1;
    }
    return read_long_varint(s, value);
}

/* A tag is a 32-bit varint of at most five bytes; field numbers begin at 1. */
static int read_long_tag(span *s, uint32_t *tag) {
    const uint8_t *first = s->at;
    uint64_t value;
    if (!read_long_varint(s, &value) || value > UINT32_MAX || s->at - first > 5) return 0;
    *tag = (uint32_t)value;
    return value >= 8;
}

ALWAYS_INLINE int read_tag(span *s, uint32_t *tag) {
    if (s->at < s->end && *s->at < 128) {
        *tag = *s->at++;
        return *tag >= 8;
    }
    return read_long_tag(s, tag);
}

ALWAYS_INLINE int read_delimited(span *s, span *inner) {
    uint64_t size;
    if (!read_varint(s, &size) || size > (uint64_t)(s->end - s->at)) return 0;
    inner->at = s->at;
    inner->end = s->at += size;
    return 1;
}

static int skip_field(span *s, uint32_t tag, int depth) {
    uint64_t value;
    span inner;
    uint32_t next;
    switch (tag & 7) {
    case VARINT: return read_varint(s, &value);
    case FIXED64:
        if (s->end - s->at < 8) return 0;
        s->at += 8;
        return 1;
    case DELIMITED: return read_delimited(s, &inner);
    case FIXED32:
        if (s->end - s->at < 4) return 0;
        s->at += 4;
        return 1;
    case GROUP_START:
        if (depth >= GROUP_DEPTH) return 0;
        for (;;) {
            if (!read_tag(s, &next)) return 0;
            if ((next & 7) == GROUP_END) return next >> 3 == tag >> 3;
            if (!skip_field(s, next, depth + 1)) return 0;
        }
    default: return 0; /* an end without a start, or wire types that do not exist */
    }
}

typedef struct {
    span key;
    span value;
    int has_value;
} map_entry;

/* Like read_entry, for any entry. */
static int read_any_entry(span s, map_entry *entry, int *odd) {
    int has_key = 0;
    uint32_t tag;
    entry->key.at = entry->key.end = entry->value.at = entry->value.end = s.end;
    entry->has_value = 0;
    while (s.at < s.end) {
        if (!read_tag(&s, &tag)) return 0;
        if (tag == (1 << 3 | DELIMITED)) {
            if (has_key++ || !read_delimited(&s, &entry->key)) return 0;
        } else if (tag == (2 << 3 | DELIMITED)) {
            if (entry->has_value++ || !read_delimited(&s, &entry->value)) return 0;
        } else {
            ++*odd;
            if (!skip_field(&s, tag, 0)) return 0;
        }
    }
    return 1;
}

/* Key and value of a map entry, in any order, each at most once. `odd` counts unknown fields.
 * Inlined: passing a span that was just written is slow. */
ALWAYS_INLINE int read_entry(span s, map_entry *entry, int *odd) {
    const uint8_t *p = s.at;
    if (s.end - p >= 4 && p[0] == (1 << 3 | DELIMITED) && p[1] <= s.end - p - 4 && p[1] < 128) {
        const uint8_t *value = p + 2 + p[1];
        if (value[0] == (2 << 3 | DELIMITED) && value[1] == s.end - value - 2 && value[1] < 128) {
            /* the common case: key and value, both short */
            entry->key.at = p + 2;
            entry->key.end = value;
            entry->value.at = value + 2;
            entry->value.end = s.end;
            entry->has_value = 1;
            return 1;
        }
    }
    return read_any_entry(s, entry, odd);
}

/* The next list message of `kind` among a Feature's fields: 1, or 0 at the end. The fields were
 * walked by read_feature already, so they are well-formed. */
static inline int next_list(span *values, int kind, span *list) {
    uint32_t tag;
    while (values->at < values->end) {
        if (!read_tag(values, &tag)) return 0;
        if (tag == ((uint32_t)kind << 3 | DELIMITED)) return read_delimited(values, list);
        if (!skip_field(values, tag, 0)) return 0;
    }
    return 0;
}

/* How many bytes end a varint: those without the top bit. */
static inline uint64_t count_varint_ends(const uint8_t *p, const uint8_t *end) {
    uint64_t count = 0, word;
    for (; end - p >= 8; p += 8) {
        memcpy(&word, p, 8);
        count += (~word >> 7 & 0x0101010101010101ull) * 0x0101010101010101ull >> 56;
    }
    for (; p < end; p++) count += *p < 128;
    return count;
}

/* Whether a packed list is varints, each whole and of ten bytes at most. */
static inline int are_varints(span s) {
    uint8_t long_one = 0;
    const uint8_t *p = s.at;
    if (p == s.end) return 1;
    if (s.end[-1] >= 128) return 0;
    for (ptrdiff_t i = 0, stop = s.end - p - 10; i < stop; i++) /* many at once, by the compiler */
        long_one |= p[i] & p[i + 1] & p[i + 2] & p[i + 3] & p[i + 4] & p[i + 5] & p[i + 6] &
                    p[i + 7] & p[i + 8] & p[i + 9];
    return long_one < 128;
}

/* Count the values of one list message; `odd` counts unknown fields. */
static int count_values(span list, int kind, uint64_t *count, int *odd) {
    uint32_t tag;
    span inner;
    uint64_t value;
    while (list.at < list.end) {
        if (!read_tag(&list, &tag)) return 0;
        if (tag == (1 << 3 | DELIMITED)) {
            if (!read_delimited(&list, &inner)) return 0;
            if (kind == KIND_BYTES) {
                ++*count;
            } else if (kind == KIND_FLOAT) {
                if ((inner.end - inner.at) % 4) return 0;
                *count += (uint64_t)(inner.end - inner.at) / 4;
            } else {
                if (!are_varints(inner)) return 0;
                *count += count_varint_ends(inner.at, inner.end);
            }
        } else if (kind == KIND_INT64 && tag == (1 << 3 | VARINT)) {
            if (!read_varint(&list, &value)) return 0;
            ++*count;
        } else if (kind == KIND_FLOAT && tag == (1 << 3 | FIXED32)) {
            if (list.end - list.at < 4) return 0;
            list.at += 4;
            ++*count;
        } else {
            ++*odd;
            if (!skip_field(&list, tag, 0)) return 0;
        }
    }
    return 1;
}

/* Whether all lists of `kind` in a Feature are well-formed, where their values are not wanted. */
static int check_lists(span values, int kind) {
    span list;
    uint64_t count = 0;
    int odd = 0;
    while (next_list(&values, kind, &list))
        if (!count_values(list, kind, &count, &odd)) return 0;
    return 1;
}

/* Which kind a Feature has. As in protobuf the last of a oneof wins, and neighbours of one kind
 * are merged: `values` spans the fields from the first that counts. What does not count must be
 * well-formed all the same. */
static inline int read_feature(span s, int *kind, span *values, int *odd) {
    uint32_t tag;
    span list;
    *kind = KIND_NONE;
    *values = s;
    while (s.at < s.end) {
        const uint8_t *field = s.at;
        if (!read_tag(&s, &tag)) return 0;
        if ((tag & 7) == DELIMITED && tag >> 3 <= KIND_INT64) {
            if (!read_delimited(&s, &list)) return 0;
            if ((int)(tag >> 3) != *kind) {
                span dropped = {values->at, field};
                if (*kind != KIND_NONE && !check_lists(dropped, *kind)) return 0;
                *kind = (int)(tag >> 3);
                values->at = field;
            }
        } else {
            ++*odd;
            if (!skip_field(&s, tag, 0)) return 0;
        }
    }
    return 1;
}

#endif
