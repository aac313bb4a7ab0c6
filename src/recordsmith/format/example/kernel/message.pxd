# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Shared by all kernels: the spans of message.h, payload kinds, codes of defects."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from recordsmith.format.example.kernel.memory cimport growable_array

cdef extern from "message.h" nogil:
    enum:
        DELIMITED
        KIND_NONE
        KIND_BYTES
        KIND_FLOAT
        KIND_INT64
    ctypedef struct span:
        const uint8_t *at
        const uint8_t *end
    ctypedef struct map_entry:
        span key
        span value
        int has_value
    int read_tag(span *s, uint32_t *tag)
    int read_delimited(span *s, span *inner)
    int skip_field(span *s, uint32_t tag, int depth)
    int read_entry(span s, map_entry *entry, int *odd)
    int read_feature(span s, int *kind, span *values, int *odd)
    int next_list(span *values, int kind, span *lst)
    int count_values(span lst, int kind, uint64_t *count, int *odd)
    int check_lists(span values, int kind)

cdef extern from "classify.h" nogil:
    enum:
        PAYLOAD_EXAMPLE
        PAYLOAD_SEQUENCE
    int c_classify "classify"(span s)
    int may_be_plain_example(span s)

cdef extern from "values.h" nogil:
    int append_values(span lst, int kind, const uint8_t *origin, growable_array *values, growable_array *ends,
                      int64_t *count)


cdef enum:
    FIELD_1 = 1 << 3 | 2  # the tag of field 1, delimited
    FIELD_2 = 2 << 3 | 2
    # defects of a record
    GOOD = 0
    MALFORMED = 1
    NOT_AN_EXAMPLE = 2
    MISSING = 3
    WRONG_KIND = 4
    WRONG_LENGTH = 5
    NO_MEMORY = 6


cdef inline span span_of(const uint8_t *data, Py_ssize_t size) noexcept nogil:
    cdef span s
    s.at = data
    s.end = data + size
    return s
