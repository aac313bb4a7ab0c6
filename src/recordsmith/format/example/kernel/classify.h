/* Classify a payload: Example, SequenceExample, ranking list, Event, or something else. */
#ifndef RECORDSMITH_CLASSIFY_H
#define RECORDSMITH_CLASSIFY_H

#include "message.h"

enum { PAYLOAD_OTHER = 0, PAYLOAD_EXAMPLE, PAYLOAD_SEQUENCE, PAYLOAD_ELWC, PAYLOAD_EVENT };

/* What a strict walk found: features that have a kind, map entries without a value, and unknown fields:
 * next to Features in an Example, in Features and map entries, and inside of a Feature. */
typedef struct {
    int kinds;
    int without_value;
    int odd_outside;
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
 * parser accepts others, and so does every reader here. */
static int check_map(span s, int lists, evidence *seen) {
    uint32_t tag;
    span inner;
    map_entry entry;
    while (s.at < s.end) {
        if (!read_tag(&s, &tag)) return 0;
        if (tag == (1 << 3 | DELIMITED)) {
            if (!read_delimited(&s, &inner) || !read_entry(inner, &entry, &seen->odd)) return 0;
            if (!entry.has_value) ++seen->without_value;
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
            ++seen->odd_outside;
            if (!skip_field(&s, tag, 0)) return 0;
        }
    }
    return 1;
}

/* Whether there is only what a writer of the message writes. */
static inline int is_plain(const evidence *seen) {
    return !seen->without_value && !seen->odd_outside && !seen->odd && !seen->odd_inside;
}

/* Whether there are only fields 1 and 2, delimited; `lists` counts those of field 2. */
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

/* Examples with at least one feature that has a kind, and nothing odd; with `later`, anything odd may
 * be there, as fields of a later version are. */
static int check_elwc(span s, int later) {
    evidence seen = {0};
    uint32_t tag;
    span inner;
    while (s.at < s.end) {
        if (!read_tag(&s, &tag)) return 0;
        if ((tag & 7) == DELIMITED && tag >> 3 <= 2) {
            if (!read_delimited(&s, &inner) || !check_example(inner, &seen)) return 0;
            if (!later && !is_plain(&seen)) return 0;
        } else if (!later || !skip_field(&s, tag, 0)) {
            return 0;
        }
    }
    return seen.kinds > 0;
}

/* Whether a payload without a single kind, whose Features hold map entries and nothing else, is an
 * Example all the same: it has Features, or no bytes at all, and is not a ranking list either. */
static int check_without_kinds(span s, const evidence *seen) {
    if (seen->odd) return 0;
    if (!seen->without_value && !seen->odd_outside) return 1;
    for (span rest = s; rest.at < rest.end;) {
        uint32_t tag;
        if (!read_tag(&rest, &tag)) return 0;
        if (tag == (1 << 3 | DELIMITED)) return !check_elwc(s, 1);
        if (!skip_field(&rest, tag, 0)) return 0;
    }
    return 0;
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

/* The rules of docs/reference/format.md: the nested messages differ, where a lenient parser takes each for an
 * Example. An empty payload is an Example without features. What speaks against an Example lies
 * around its features, where every reader passes, whichever features it reads. */
static inline int classify(span s) {
    evidence seen = {0};
    if (!begins_with_key(s) && check_elwc(s, 0)) return PAYLOAD_ELWC;
    if (check_sequence(s, &seen) && !seen.odd && !seen.odd_inside &&
        (!seen.without_value || !check_elwc(s, 1)))
        return PAYLOAD_SEQUENCE;
    seen = (evidence){0};
    if (check_example(s, &seen) && (seen.kinds || check_without_kinds(s, &seen)))
        return PAYLOAD_EXAMPLE;
    return check_event(s) ? PAYLOAD_EVENT : PAYLOAD_OTHER;
}

/* Whether a payload, if it is an Example at all, is one by its features alone: no other fields
 * around them, and no ranking list. What is left is to see that they are well-formed. */
static inline int may_be_plain_example(span s) {
    int lists = 0;
    return check_outside(s, &lists) && !lists && (begins_with_key(s) || !check_elwc(s, 0));
}

#endif
