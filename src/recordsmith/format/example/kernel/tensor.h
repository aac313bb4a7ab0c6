/* Read serialised tensors: TensorProto messages as TensorFlow writes them, with a dtype, a shape, and
 * then exactly as many values as the shape has, as bytes or as a list.
 *
 *   TensorProto      { DataType dtype = 1; TensorShapeProto tensor_shape = 2;
 *                      bytes tensor_content = 4; a list of values for each kind of dtype }
 *   TensorShapeProto { repeated Dim dim = 2 }      Dim { int64 size = 1 }
 *
 * Fields in another order, unknown sides and names of sides are refused: TensorFlow writes none.
 */
#ifndef RECORDSMITH_TENSOR_H
#define RECORDSMITH_TENSOR_H

#include "message.h"

enum { TENSOR_GOOD = 0, TENSOR_MALFORMED = 1, TENSOR_DTYPE = 2, TENSOR_COUNT = 3 };
enum { TENSOR_CONTENT = 4, TENSOR_STRING = 7 };
#define TENSOR_SIDES 32
#define SURVEYED_SIDES 6 /* that a schema shows */
/* no message holds as many; an empty tensor may state any side */
#define TENSOR_MAX_VALUES (1ull << 40)

/* Of each DataType: the bytes of a value, the field of its list, and the bytes of a number in it: 0
 * for varints, half of a value for complex numbers. */
static const struct { uint8_t size, field, listed; } TENSOR_TYPES[24] = {
    [1] = {4, 5, 4}, [2] = {8, 6, 8}, [3] = {4, 7, 0}, [4] = {1, 7, 0}, [5] = {2, 7, 0},
    [6] = {1, 7, 0}, [7] = {0, 8, 0}, [8] = {8, 9, 4}, [9] = {8, 10, 0}, [10] = {1, 11, 0},
    [14] = {2, 13, 0}, [17] = {2, 7, 0}, [18] = {16, 12, 8}, [19] = {2, 13, 0},
    [22] = {4, 16, 0}, [23] = {8, 17, 0},
};

/* dtype: the number of its DataType. expected, count: of values, by the shape and in fact.
 * values: their fields; if has_content, only the bytes of values. */
typedef struct {
    uint64_t dtype, expected, count;
    int rank, has_content;
    int64_t sides[TENSOR_SIDES];
    span values;
} tensor;

static int read_tensor_shape(span s, tensor *found) {
    uint64_t size, limit = TENSOR_MAX_VALUES;
    uint32_t tag;
    span dim;
    for (found->rank = 0, found->expected = 1; s.at < s.end; found->expected *= size) {
        if (!read_tag(&s, &tag) || tag != (2 << 3 | DELIMITED) || !read_delimited(&s, &dim))
            return 0;
        size = 0;
        if (dim.at < dim.end && (*dim.at++ != (1 << 3 | VARINT) || !read_varint(&dim, &size)))
            return 0;
        if (dim.at < dim.end || size > limit || found->rank == TENSOR_SIDES) return 0;
        if (size) limit /= size;
        found->sides[found->rank++] = (int64_t)size;
    }
    return 1;
}

/* Count the values; with `out`, also copy a list to its `room`: floats as they are, others as uint64.
 * `missing` bytes of tensor_content are not there. */
static int read_tensor_values(tensor *found, uint64_t missing, uint8_t *out, uint64_t room) {
    span s = found->values, inner;
    uint64_t size = TENSOR_TYPES[found->dtype].size, width = TENSOR_TYPES[found->dtype].listed;
    uint64_t length, bytes = 0;
    uint32_t tag, field = TENSOR_TYPES[found->dtype].field;
    uint32_t unpacked = width == 4 ? FIXED32 : width == 8 ? FIXED64 : VARINT;
    found->count = 0;
    while (s.at < s.end) {
        if (!read_tag(&s, &tag)) return 0;
        if (tag == (TENSOR_CONTENT << 3 | DELIMITED) && size && !bytes && !found->count) {
            if (!read_varint(&s, &length) || length != (uint64_t)(s.end - s.at) + missing) return 0;
            found->has_content = 1;
            found->values = s;
            found->count = length / size;
            return length % size == 0;
        }
        if (tag == (field << 3 | DELIMITED)) {
            if (!read_delimited(&s, &inner)) return 0;
        } else if (size && tag == (field << 3 | unpacked)) {
            inner.at = s.at;
            if (!skip_field(&s, tag, 0)) return 0;
            inner.end = s.at;
        } else return 0;
        length = (uint64_t)(inner.end - inner.at);
        if (!size) {
            found->count++;
        } else if (width) {
            if (length % width || (out && length > room - bytes)) return 0;
            if (out && length) memcpy(out + bytes, inner.at, length);
            bytes += length;
        } else
            for (uint64_t value; inner.at < inner.end; found->count++) {
                if (!read_varint(&inner, &value)) return 0;
                if (out && room / 8 <= found->count) return 0;
                if (out) memcpy(out + 8 * found->count, &value, 8);
            }
    }
    if (width) found->count = bytes / size;
    return !missing && !(width && bytes % size);
}

static int read_tensor(span s, uint64_t missing, tensor *found) {
    span shape;
    uint32_t tag;
    found->has_content = 0;
    if (s.at == s.end || *s.at++ != (1 << 3 | VARINT) || !read_varint(&s, &found->dtype) ||
        !read_tag(&s, &tag) || tag != (2 << 3 | DELIMITED) || !read_delimited(&s, &shape) ||
        !read_tensor_shape(shape, found))
        return TENSOR_MALFORMED;
    if (found->dtype >= 24 || !TENSOR_TYPES[found->dtype].field) return TENSOR_DTYPE;
    found->values = s;
    if (!read_tensor_values(found, missing, NULL, 0)) return TENSOR_MALFORMED;
    return found->count == found->expected ? TENSOR_GOOD : TENSOR_COUNT;
}

/* What some tensors have in common. dtype: NO_TENSORS, OTHER_VALUES if one is no tensor, or
 * SEVERAL_DTYPES. rank: -1 if it differs, or is above SURVEYED_SIDES. sides: -1 if they differ. */
enum { NO_TENSORS = 0, OTHER_VALUES = -1, SEVERAL_DTYPES = -2 };
typedef struct {
    int dtype, rank;
    int64_t sides[SURVEYED_SIDES];
} tensors;

static void merge_tensors(tensors *all, const tensors *other) {
    if (other->dtype == NO_TENSORS || all->dtype == OTHER_VALUES) return;
    if (all->dtype == NO_TENSORS || other->dtype == OTHER_VALUES) {
        *all = *other;
        return;
    }
    if (all->dtype != other->dtype) all->dtype = SEVERAL_DTYPES;
    if (all->rank != other->rank) all->rank = -1;
    for (int i = 0; i < all->rank; i++)
        if (all->sides[i] != other->sides[i]) all->sides[i] = -1;
}

static void survey_tensor(span value, tensors *all) {
    tensor found;
    tensors one = {OTHER_VALUES, 0, {0}};
    if (all->dtype != OTHER_VALUES && read_tensor(value, 0, &found) == TENSOR_GOOD) {
        one.dtype = (int)found.dtype;
        one.rank = found.rank <= SURVEYED_SIDES ? found.rank : -1;
        for (int i = 0; i < one.rank; i++) one.sides[i] = found.sides[i];
    }
    merge_tensors(all, &one);
}

#endif
