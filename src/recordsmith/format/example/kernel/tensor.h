/* Recognise serialised tensors: TensorProto messages with a dtype, a shape, and then exactly as many
 * values as the shape has. serialized_tensor.py reads them, and also fields in another order.
 *
 *   TensorProto      { DataType dtype = 1; TensorShapeProto tensor_shape = 2;
 *                      bytes tensor_content = 4; one list of values for each kind of dtype }
 *   TensorShapeProto { repeated Dim dim = 2 }      Dim { int64 size = 1 }
 */
#ifndef RECORDSMITH_TENSOR_H
#define RECORDSMITH_TENSOR_H

#include "message.h"

enum { TENSOR_NONE = 0, TENSOR_OTHER = -1, TENSOR_MIXED = -2, TENSOR_SIDES = 6 };

/* dtype: the number of a DataType; NONE without values, OTHER if one is no tensor, MIXED.
 * rank: -1 if it differs, or is above TENSOR_SIDES. sides: -1 if they differ. */
typedef struct {
    int dtype;
    int rank;
    int64_t sides[TENSOR_SIDES];
} tensor_type;

/* Of each DataType: the bytes of a value in tensor_content, the field of a list of values, and the
 * bytes of a value in it, 0 for varints. */
static const struct { uint8_t size, field, listed; } TENSOR_TYPES[24] = {
    [1] = {4, 5, 4}, [2] = {8, 6, 8}, [3] = {4, 7, 0}, [4] = {1, 7, 0}, [5] = {2, 7, 0},
    [6] = {1, 7, 0}, [7] = {0, 8, 0}, [8] = {8, 9, 8}, [9] = {8, 10, 0}, [10] = {1, 11, 0},
    [14] = {2, 13, 0}, [17] = {2, 7, 0}, [18] = {16, 12, 16}, [19] = {2, 13, 0},
    [22] = {4, 16, 0}, [23] = {8, 17, 0},
};

#define TENSOR_MAX_VALUES (1ull << 40) /* no message holds as many; empty tensors may state any side */
#define TENSOR_STRING 7

/* Read a shape; return 1 and the number of its values if all sides are known. */
static int read_tensor_shape(span s, tensor_type *found, uint64_t *count) {
    uint64_t size, limit = TENSOR_MAX_VALUES;
    uint32_t tag;
    span dim;
    *count = 1;
    while (s.at < s.end) {
        if (!read_tag(&s, &tag) || tag != (2 << 3 | DELIMITED) || !read_delimited(&s, &dim))
            return 0;
        size = 0;
        if (dim.at < dim.end && (*dim.at++ != (1 << 3 | VARINT) || !read_varint(&dim, &size)))
            return 0;
        if (dim.at < dim.end || size > limit) return 0;
        if (size) limit /= size;
        *count *= size;
        if (found->rank >= 0 && found->rank < TENSOR_SIDES)
            found->sides[found->rank++] = (int64_t)size;
        else
            found->rank = -1;
    }
    return 1;
}

static tensor_type tensor_of(span s) {
    tensor_type found = {TENSOR_OTHER, 0, {0}};
    uint64_t dtype, count, listed = 0;
    uint32_t tag;
    span inner;
    if (s.at == s.end || *s.at++ != (1 << 3 | VARINT) || !read_varint(&s, &dtype)) return found;
    if (dtype >= 24 || !TENSOR_TYPES[dtype].field) return found;
    if (!read_tag(&s, &tag) || tag != (2 << 3 | DELIMITED) || !read_delimited(&s, &inner) ||
        !read_tensor_shape(inner, &found, &count))
        return found;
    uint64_t size = TENSOR_TYPES[dtype].size, width = TENSOR_TYPES[dtype].listed;
    while (s.at < s.end) {
        if (!read_tag(&s, &tag) || !read_delimited(&s, &inner)) return found;
        uint64_t bytes = (uint64_t)(inner.end - inner.at);
        if (size && tag == (4 << 3 | DELIMITED)) {
            if (listed || !bytes || bytes % size) return found;
            listed = bytes / size;
        } else if (tag != ((uint32_t)TENSOR_TYPES[dtype].field << 3 | DELIMITED)) {
            return found;
        } else if (dtype == TENSOR_STRING) {
            listed++;
            continue;
        } else if (width) {
            if (listed || bytes % width) return found;
            listed = bytes / width;
        } else {
            if (listed || !bytes || inner.end[-1] > 127) return found;
            for (; inner.at < inner.end; inner.at++) listed += *inner.at < 128;
        }
        if (s.at < s.end) return found;
    }
    if (listed == count) found.dtype = (int)dtype;
    return found;
}

static void merge_tensors(tensor_type *found, const tensor_type *other) {
    if (other->dtype == TENSOR_NONE || found->dtype == TENSOR_OTHER) return;
    if (found->dtype == TENSOR_NONE || other->dtype == TENSOR_OTHER) {
        *found = *other;
        return;
    }
    if (found->dtype != other->dtype) found->dtype = TENSOR_MIXED;
    if (found->rank != other->rank) found->rank = -1;
    for (int i = 0; i < found->rank; i++)
        if (found->sides[i] != other->sides[i]) found->sides[i] = -1;
}

#endif
