/* The protobuf wire format as far as tf.train.Example needs it: read, check, write.
 *
 * Reading goes over spans, [at, end), and looks at no byte outside of one. Every reader answers
 * 1 for good and 0 for malformed. Messages, from tensorflow/core/example/{example,feature}.proto:
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
enum { PAYLOAD_OTHER = 0, PAYLOAD_EXAMPLE, PAYLOAD_SEQUENCE, PAYLOAD_ELWC, PAYLOAD_EVENT };
enum { CONTENT_RAW = 0, CONTENT_TEXT = 1, CONTENT_IMAGE = 2 };

#define GROUP_DEPTH 100 /* as protobuf: deeper nesting is refused */

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
} span;

/* For what is a few instructions and runs for each field: compilers count the calls, and decline. */
#if defined(__GNUC__)
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE static inline
#endif

/* ---- reading ---------------------------------------------------------------------------- */

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

typedef struct {
    span key;
    span value;
    int has_value;
} map_entry;

/* The same as read_entry, for any entry. */
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
 * Inlined: a span that was just written is slow to be passed on. */
ALWAYS_INLINE int read_entry(span s, map_entry *entry, int *odd) {
    const uint8_t *p = s.at;
    if (s.end - p >= 4 && p[0] == (1 << 3 | DELIMITED) && p[1] <= s.end - p - 4 && p[1] < 128) {
        const uint8_t *value = p + 2 + p[1];
        if (value[0] == (2 << 3 | DELIMITED) && value[1] == s.end - value - 2 && value[1] < 128) {
            /* as nearly all are: key, value, and both short */
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

/* How many numbers there are in a list message that is one short packed field and nothing else, as
 * nearly all are; -1 for any other, which count_values has to walk. */
ALWAYS_INLINE int64_t count_packed(span list, int kind) {
    const uint8_t *p = list.at;
    if (list.end - p < 3 || p[0] != (1 << 3 | DELIMITED) || p[1] >= 128) return -1;
    if (p[1] != list.end - p - 2) return -1;
    if (kind == KIND_FLOAT) return p[1] % 4 ? -1 : p[1] / 4;
    list.at = p + 2;
    return are_varints(list) ? (int64_t)count_varint_ends(list.at, list.end) : -1;
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

/* The kind and the list of a Feature that is one list and nothing else, as nearly all are;
 * KIND_NONE for any other, which read_feature has to walk. */
ALWAYS_INLINE int read_plain_feature(span s, span *list) {
    if (s.at == s.end || (*s.at & 7) != DELIMITED || *s.at >> 3 > KIND_INT64) return KIND_NONE;
    int kind = *s.at++ >> 3;
    return read_delimited(&s, list) && s.at == s.end ? kind : KIND_NONE;
}

/* How many varints a short packed list has; -1 if one may be too long, which are_varints tells. */
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

/* The next entry of Features, if it is one as nearly all are: the key that is expected, then one
 * list, numbers packed, each length in one byte. Answers its kind; KIND_NONE for any other, which
 * read_entry has to look at. `items` is the list message; `count` is not set for bytes. */
ALWAYS_INLINE int read_usual_entry(span *features, const uint8_t *key, size_t key_size, span *items,
                                   uint64_t *count) {
    const uint8_t *p = features->at;
    size_t left = (size_t)(features->end - p);
    if (key_size >= 128 || left < key_size + 8) return KIND_NONE;
    if (p[0] != (1 << 3 | DELIMITED) || p[2] != (1 << 3 | DELIMITED) || p[3] != key_size)
        return KIND_NONE;
    const uint8_t *value = p + 4 + key_size, *stop = p + 2 + p[1];
    if (p[1] >= 128 || p[1] + 2u > left || !are_same(key, p + 4, key_size)) return KIND_NONE;
    /* the last two are as long as what is left of the entry, and so below 128, too */
    if (value[0] != (2 << 3 | DELIMITED) || value + 2 + value[1] != stop ||
        value + 4 + value[3] != stop)
        return KIND_NONE;
    int kind = value[2] >> 3;
    if ((value[2] & 7) != DELIMITED || kind < KIND_BYTES || kind > KIND_INT64) return KIND_NONE;
    items->at = value += 4;
    items->end = stop;
    if (kind != KIND_BYTES) {
        if (stop - value < 3 || value[0] != (1 << 3 | DELIMITED) || value + 2 + value[1] != stop)
            return KIND_NONE;
        int64_t found = kind == KIND_INT64 ? count_short_varints(value + 2, stop)
                                           : (value[1] % 4 ? -1 : value[1] / 4);
        if (found < 0) return KIND_NONE;
        *count = (uint64_t)found;
    }
    features->at = stop;
    return kind;
}

/* ---- what a payload is ------------------------------------------------------------------- */

/* RFC 3629: no overlong forms, no surrogates, nothing past U+10FFFF. */
static int is_utf8(const uint8_t *p, const uint8_t *end) {
    while (p < end) {
        uint8_t a = *p++;
        int more;
        uint8_t low = 0x80, high = 0xBF;
        if (a < 0x80) continue;
        if (a >= 0xC2 && a <= 0xDF) more = 1;
        else if (a >= 0xE0 && a <= 0xEF) {
            more = 2;
            if (a == 0xE0) low = 0xA0;
            if (a == 0xED) high = 0x9F;
        } else if (a >= 0xF0 && a <= 0xF4) {
            more = 3;
            if (a == 0xF0) low = 0x90;
            if (a == 0xF4) high = 0x8F;
        } else return 0;
        if (end - p < more || *p < low || *p > high) return 0;
        for (int i = 1; i < more; i++)
            if ((p[i] & 0xC0) != 0x80) return 0;
        p += more;
    }
    return 1;
}

static int content_of(span value) {
    const uint8_t *p = value.at;
    size_t size = (size_t)(value.end - value.at);
    if (size >= 12 && (!memcmp(p, "\xff\xd8\xff", 3) || !memcmp(p, "\x89PNG\r\n\x1a\n", 8) ||
                       !memcmp(p, "GIF87a", 6) || !memcmp(p, "GIF89a", 6) ||
                       (!memcmp(p, "RIFF", 4) && !memcmp(p + 8, "WEBP", 4)) ||
                       !memcmp(p, "II*\0", 4) || !memcmp(p, "MM\0*", 4) ||
                       (!memcmp(p, "BM", 2) && !memcmp(p + 6, "\0\0\0\0", 4))))
        return CONTENT_IMAGE;
    const uint8_t *beyond_ascii = NULL;
    while (p < value.end) {
        if (value.end - p >= 8) {
            /* the top bit of a byte is set in one of the three if the first that is not plain
             * lies there: beyond ASCII, 127, or below the space */
            uint64_t word, ones = 0x0101010101010101ull;
            memcpy(&word, p, 8);
            if (!((word | (word + ones) | (word - 32 * ones)) & 128 * ones)) {
                p += 8;
                continue;
            }
        }
        const uint8_t *stop = value.end - p >= 8 ? p + 8 : value.end;
        for (; p < stop; p++) {
            if (*p == 127 || (*p < 32 && *p != '\t' && *p != '\n' && *p != '\r'))
                return CONTENT_RAW;
            if (*p >= 128 && !beyond_ascii) beyond_ascii = p;
        }
    }
    return !beyond_ascii || is_utf8(beyond_ascii, value.end) ? CONTENT_TEXT : CONTENT_RAW;
}

/* What a strict walk saw: features that have a kind, and things that no writer of the message
 * would put there, around features and inside of them. */
typedef struct {
    int kinds;
    int odd;
    int odd_inside;
} evidence;

static int check_feature(span s, evidence *seen) {
    int kind;
    span values, list;
    uint64_t count = 0;
    if (!read_feature(s, &kind, &values, &seen->odd_inside)) return 0;
    while (next_list(&values, kind, &list))
        if (!count_values(list, kind, &count, &seen->odd_inside)) return 0;
    seen->kinds += kind != KIND_NONE;
    return 1;
}

static int check_feature_list(span s, evidence *seen) {
    uint32_t tag;
    span inner;
    while (s.at < s.end) {
        if (!read_tag(&s, &tag)) return 0;
        if (tag == (1 << 3 | DELIMITED)) {
            if (!read_delimited(&s, &inner) || !check_feature(inner, seen)) return 0;
        } else {
            ++seen->odd;
            if (!skip_field(&s, tag, 0)) return 0;
        }
    }
    return 1;
}

/* A Features message, or with `lists` a FeatureLists message. Keys should be UTF-8; TensorFlow's
 * parser does not mind if they are not, and no reader here does. */
static int check_map(span s, int lists, evidence *seen) {
    uint32_t tag;
    span inner;
    map_entry entry;
    while (s.at < s.end) {
        if (!read_tag(&s, &tag)) return 0;
        if (tag == (1 << 3 | DELIMITED)) {
            if (!read_delimited(&s, &inner) || !read_entry(inner, &entry, &seen->odd)) return 0;
            if (!entry.has_value) ++seen->odd;
            if (!(lists ? check_feature_list(entry.value, seen) : check_feature(entry.value, seen)))
                return 0;
        } else {
            ++seen->odd;
            if (!skip_field(&s, tag, 0)) return 0;
        }
    }
    return 1;
}

/* An Example: features and nothing in field 2, where other messages have theirs. */
static int check_example(span s, evidence *seen) {
    uint32_t tag;
    span inner;
    while (s.at < s.end) {
        if (!read_tag(&s, &tag)) return 0;
        if (tag == (1 << 3 | DELIMITED)) {
            if (!read_delimited(&s, &inner) || !check_map(inner, 0, seen)) return 0;
        } else {
            if (tag >> 3 <= 2) return 0;
            ++seen->odd;
            if (!skip_field(&s, tag, 0)) return 0;
        }
    }
    return 1;
}

/* Whether there is nothing but fields 1 and 2, delimited; `lists` counts those of field 2. */
static inline int check_outside(span s, int *lists) {
    uint32_t tag;
    span inner;
    while (s.at < s.end) {
        if (!read_tag(&s, &tag) || (tag & 7) != DELIMITED || tag >> 3 > 2) return 0;
        if (!read_delimited(&s, &inner)) return 0;
        *lists += tag >> 3 == 2;
    }
    return 1;
}

static int check_sequence(span s, evidence *seen) {
    uint32_t tag;
    span inner;
    int lists = 0;
    if (!check_outside(s, &lists) || !lists) return 0;
    while (s.at < s.end) {
        if (!read_tag(&s, &tag) || !read_delimited(&s, &inner)) return 0;
        if (!check_map(inner, tag >> 3 == 2, seen)) return 0;
    }
    return 1;
}

/* Whether a payload begins as Features in an Example do: with a map entry that has a key. Where a
 * ranking list has a field, the key has a letter. */
ALWAYS_INLINE int begins_with_key(span s) {
    for (int depth = 0; depth < 3; depth++) {
        span inner;
        if (s.at == s.end || *s.at++ != (1 << 3 | DELIMITED)) return 0;
        if (!read_delimited(&s, &inner)) return 0;
        s = inner;
    }
    return s.at < s.end && *s.at < 128 && *s.at != (1 << 3 | DELIMITED) &&
           *s.at != (2 << 3 | DELIMITED);
}

/* Nothing odd, and at least one feature that has a kind. */
static int check_elwc(span s, evidence *seen) {
    uint32_t tag;
    span inner;
    if (begins_with_key(s)) return 0;
    while (s.at < s.end) {
        if (!read_tag(&s, &tag) || (tag & 7) != DELIMITED || tag >> 3 > 2) return 0;
        if (!read_delimited(&s, &inner) || !check_example(inner, seen)) return 0;
        if (seen->odd || seen->odd_inside) return 0;
    }
    return seen->kinds > 0;
}

/* tensorflow/core/util/event.proto: wall_time first, then only fields that an Event has. */
static int check_event(span s) {
    uint32_t tag;
    if (s.at == s.end || *s.at != (1 << 3 | FIXED64)) return 0;
    while (s.at < s.end) {
        if (!read_tag(&s, &tag) || tag >> 3 > 10 || !skip_field(&s, tag, 0)) return 0;
        int expected = tag >> 3 == 1 ? FIXED64 : tag >> 3 == 2 ? VARINT : DELIMITED;
        if ((int)(tag & 7) != expected) return 0;
    }
    return 1;
}

/* Strict: the nested messages tell them apart, where a lenient parser would take each for an
 * Example. An empty payload is an Example without features. What speaks against an Example lies
 * around its features, where every reader passes, whichever features it reads. */
static int classify(span s) {
    evidence seen = {0, 0, 0};
    if (check_elwc(s, &seen)) return PAYLOAD_ELWC;
    seen = (evidence){0, 0, 0};
    if (check_sequence(s, &seen) && !seen.odd && !seen.odd_inside) return PAYLOAD_SEQUENCE;
    seen = (evidence){0, 0, 0};
    if (check_example(s, &seen) && (seen.kinds || !seen.odd)) return PAYLOAD_EXAMPLE;
    return check_event(s) ? PAYLOAD_EVENT : PAYLOAD_OTHER;
}

/* Whether a payload, if it is an Example at all, is one by its features alone: no other fields
 * around them, and no ranking list. What is left is to see that they are well-formed. */
static inline int may_be_plain_example(span s) {
    evidence seen = {0, 0, 0};
    int lists = 0;
    return check_outside(s, &lists) && !lists && !check_elwc(s, &seen);
}

/* ---- growing memory ---------------------------------------------------------------------- */

/* From malloc, whatever its size. Large pages (mmap and MADV_HUGEPAGE) halve the cost of memory
 * that is touched for the first time, but on a virtual machine whose host lends memory lazily they
 * can cost twice as much: the system takes them from where nothing was before. */
typedef struct {
    uint8_t *data;
    size_t size;
    size_t capacity;
} growing;

static inline int reserve(growing *g, size_t extra) {
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

/* Give back what is not used; the bytes stay. */
static void trim(growing *g) {
    uint8_t *data = (uint8_t *)realloc(g->data, g->size ? g->size : 1);
    if (data) g->data = data;
}

static void release(growing *g) {
    free(g->data);
    memset(g, 0, sizeof(*g));
}

static inline int push_int64(growing *g, int64_t value) {
    if (!reserve(g, 8)) return 0;
    memcpy(g->data + g->size, &value, 8);
    g->size += 8;
    return 1;
}

static inline int push_bytes(growing *g, const void *data, size_t size) {
    if (!reserve(g, size)) return 0;
    if (size) memcpy(g->data + g->size, data, size);
    g->size += size;
    return 1;
}

/* Append the values of one list message: int64 and float32 in machine order, bytes end to end
 * with the end of each in `ends`; or of bytes, if there is an `origin`, two int64: where each
 * begins and ends, from there on. Answers 1, 0 malformed, -1 out of memory. */
static int append_values(span list, int kind, const uint8_t *origin, growing *values,
                         growing *ends, int64_t *count) {
    uint32_t tag;
    span inner;
    uint64_t value;
    while (list.at < list.end) {
        if (!read_tag(&list, &tag)) return 0;
        if (tag == (1 << 3 | DELIMITED)) {
            if (!read_delimited(&list, &inner)) return 0;
            size_t size = (size_t)(inner.end - inner.at);
            if (kind == KIND_BYTES && origin != NULL) {
                if (!push_int64(values, inner.at - origin)) return -1;
                if (!push_int64(values, inner.end - origin)) return -1;
                ++*count;
            } else if (kind == KIND_BYTES) {
                if (!push_bytes(values, inner.at, size)) return -1;
                if (!push_int64(ends, (int64_t)values->size)) return -1;
                ++*count;
            } else if (kind == KIND_FLOAT) {
                if (size % 4) return 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
                for (size_t i = 0; i < size; i += 4) {
                    uint8_t swapped[4] = {inner.at[i + 3], inner.at[i + 2], inner.at[i + 1],
                                          inner.at[i]};
                    if (!push_bytes(values, swapped, 4)) return -1;
                }
#else
                if (!push_bytes(values, inner.at, size)) return -1;
#endif
                *count += (int64_t)(size / 4);
            } else {
                /* every byte may be a value: room for all, then no check in the loop */
                if (!reserve(values, 8 * size)) return -1;
                uint8_t *out = values->data + values->size;
                while (inner.at < inner.end) {
                    if (!read_varint(&inner, &value)) return 0;
                    memcpy(out, &value, 8);
                    out += 8;
                }
                *count += (out - (values->data + values->size)) / 8;
                values->size = (size_t)(out - values->data);
            }
        } else if (kind == KIND_INT64 && tag == (1 << 3 | VARINT)) {
            if (!read_varint(&list, &value)) return 0;
            if (!push_int64(values, (int64_t)value)) return -1;
            ++*count;
        } else if (kind == KIND_FLOAT && tag == (1 << 3 | FIXED32)) {
            if (list.end - list.at < 4) return 0;
            uint32_t bits = list.at[0] | (uint32_t)list.at[1] << 8 | (uint32_t)list.at[2] << 16 |
                            (uint32_t)list.at[3] << 24;
            if (!push_bytes(values, &bits, 4)) return -1;
            list.at += 4;
            ++*count;
        } else if (!skip_field(&list, tag, 0)) {
            return 0;
        }
    }
    return 1;
}

/* ---- writing, back to front --------------------------------------------------------------- */

/* Protobuf puts the length before the content. Written from the end, the content is there when
 * its length is asked for, and nothing is measured twice. The bytes are [at, base + capacity). */
typedef struct {
    uint8_t *base;
    uint8_t *at;
    size_t capacity;
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
    free(b->base);
    b->base = base;
    b->capacity = capacity;
    b->at = base + capacity - used;
    return 1;
}

/* The put functions need room made: 10 bytes for a varint, the size for bytes. */
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

/* Values, last to first, each with room made. Answers 0 when out of memory. */
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
        if (written(b) != mark) put_delimited(b, 1, mark); /* packed; nothing where empty */
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
