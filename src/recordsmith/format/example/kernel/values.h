/* The values of a Feature, in the layout of arrays. */
#ifndef RECORDSMITH_VALUES_H
#define RECORDSMITH_VALUES_H

#include "growable_array.h"
#include "message.h"

/* Append the values of one list message: int64 and float32 in machine order, bytes end to end
 * with the end of each in `ends`; or of bytes, if there is an `origin`, two int64: where each
 * begins and ends, from there on. Return 1, 0 if malformed, -1 when out of memory. */
static inline int append_values(span list, int kind, const uint8_t *origin, growable_array *values,
                                growable_array *ends, int64_t *count) {
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
                /* every byte may be a value: reserve for all, without checks in the loop */
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

#endif
