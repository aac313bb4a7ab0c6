# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Decode chosen features and feature lists of many payloads to columns, ragged where lengths differ."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from recordsmith.format.example.kernel.memory cimport Memory, growable_array, push_bytes, push_int64, release, take
from recordsmith.format.example.kernel.message cimport (
    FIELD_1,
    FIELD_2,
    GOOD,
    KIND_BYTES,
    KIND_FLOAT,
    KIND_NONE,
    MALFORMED,
    MISSING,
    NO_MEMORY,
    NOT_AN_EXAMPLE,
    PAYLOAD_EXAMPLE,
    PAYLOAD_SEQUENCE,
    WRONG_KIND,
    WRONG_LENGTH,
    append_values,
    c_classify,
    check_lists,
    map_entry,
    next_list,
    read_delimited,
    read_entry,
    read_feature,
    read_tag,
    skip_field,
    span,
    span_of,
)
from recordsmith.format.example.kernel.places cimport spans_fit

import os

cdef extern from "common_entry.h" nogil:
    bint read_common_entry_of_kind(
        span *features, const uint8_t *key, size_t key_size, int kind, span *items
    )

cdef extern from "siphash.h" nogil:
    uint64_t siphash(const uint64_t *key, const uint8_t *at, size_t size)

cdef uint64_t[2] secret  # random per process, so that a file cannot choose colliding keys
memcpy(secret, PyBytes_AS_STRING(os.urandom(16)), 16)


cdef enum:
    PRESENCE_ONLY = -1      # the kind of a column that stores no values
    EITHER = 2              # a feature, or the values of all steps of a feature list


cdef struct column_state:
    const uint8_t *key
    size_t key_size
    int kind                # KIND_NONE until a record shows it
    int found               # the kind in the current record
    bint is_borrowed        # of bytes: stores positions in the buffer, not values
    bint has_validity       # whether to store which records have the key
    int in_steps            # whether it is a feature list, whose values belong to steps; or EITHER
    int64_t required        # how many values a record, or a step, must have; -1: any number
    int64_t default_count   # -1: no default
    growable_array default_values
    growable_array default_ends    # bytes only: the end of each value
    growable_array values
    growable_array ends
    growable_array steps           # of a feature list: the number of values after each step
    growable_array splits          # the number of values, or steps, after each record; empty while
                            # all records have equally many
    int64_t count
    int64_t step_count
    int64_t wrong_step      # the first step of the current record with another length or kind; -1
    int64_t wrong_length
    int64_t min_length
    int64_t max_length
    int64_t present
    growable_array validity        # a bit for each record, as in Arrow; empty while no key is missing
    # the state before the current record, restored when a key is repeated
    int64_t row
    int64_t row_count
    size_t row_values
    size_t row_ends
    int64_t row_steps
    int row_kind
    int next                # the column that followed this one last time


cdef class ColumnBuilder:
    """Collects chosen features of many payloads into columns: of Examples, and of SequenceExamples the
    context and the feature lists."""

    cdef column_state *columns
    cdef int column_count
    cdef int *slots          # open addressing over the keys: column or -1
    cdef uint64_t slot_mask
    cdef int64_t row
    cdef const uint8_t *origin  # of the current buffer
    cdef bint is_finished
    cdef bint fills_missing
    cdef bint has_lists      # whether a column is a feature list
    cdef bint reads_lists    # whether a column could be in a feature list
    cdef list keys           # the memory of each column's key

    def __cinit__(self, list keys not None, list kinds not None, list required not None,
                  list defaults not None, list are_borrowed not None,
                  list have_validity not None, list are_in_steps not None, bint fills_missing=False):
        cdef uint64_t slot_count = 4
        cdef int i
        cdef bytes key
        self.keys = keys
        self.fills_missing = fills_missing
        self.column_count = <int>len(keys)
        self.columns = <column_state *>calloc(self.column_count + 1, sizeof(column_state))
        while slot_count < 2 * <uint64_t>self.column_count + 2:
            slot_count *= 2
        self.slots = <int *>malloc(slot_count * sizeof(int))
        if self.columns is NULL or self.slots is NULL:
            raise MemoryError
        self.slot_mask = slot_count - 1
        memset(self.slots, 255, slot_count * sizeof(int))
        for i in range(self.column_count):
            key = keys[i]
            c = &self.columns[i]
            c.key = <const uint8_t *>PyBytes_AS_STRING(key)
            c.key_size = PyBytes_GET_SIZE(key)
            c.kind = kinds[i]
            c.required = required[i]
            c.is_borrowed = are_borrowed[i]
            c.has_validity = have_validity[i]
            c.in_steps = are_in_steps[i]
            self.has_lists |= c.in_steps == 1
            self.reads_lists |= c.in_steps or c.kind == PRESENCE_ONLY
            c.wrong_step = -1
            c.row = -1
            c.default_count = -1
            c.next = i + 1 if i + 1 < self.column_count else 0
            if defaults[i] is not None:
                values, ends, c.default_count = defaults[i]
                if not push_bytes(&c.default_values, PyBytes_AS_STRING(values), len(values)):
                    raise MemoryError
                if not push_bytes(&c.default_ends, PyBytes_AS_STRING(ends), len(ends)):
                    raise MemoryError
            if not push_int64(&c.ends, 0) or not push_int64(&c.steps, 0):
                raise MemoryError
            slot = self.hash(c.key, c.key_size) & self.slot_mask
            while self.slots[slot] >= 0:
                slot = (slot + 1) & self.slot_mask
            self.slots[slot] = i

    def __dealloc__(self):
        cdef int i
        if self.columns is not NULL:
            for i in range(self.column_count):
                release(&self.columns[i].default_values)
                release(&self.columns[i].default_ends)
                release(&self.columns[i].values)
                release(&self.columns[i].ends)
                release(&self.columns[i].steps)
                release(&self.columns[i].splits)
                release(&self.columns[i].validity)
        free(self.columns)
        free(self.slots)

    cdef inline uint64_t hash(self, const uint8_t *key, size_t size) noexcept nogil:
        """Hash a key with the secret: a file could contain colliding keys."""
        return siphash(secret, key, size)

    cdef inline int find(self, span key, int guess) noexcept nogil:
        cdef size_t size = key.end - key.at
        cdef column_state *c = &self.columns[guess]
        cdef uint64_t slot
        if c.key_size == size and memcmp(c.key, key.at, size) == 0:
            return guess
        slot = self.hash(key.at, size) & self.slot_mask
        while self.slots[slot] >= 0:
            c = &self.columns[self.slots[slot]]
            if c.key_size == size and memcmp(c.key, key.at, size) == 0:
                return self.slots[slot]
            slot = (slot + 1) & self.slot_mask
        return -1

    cdef inline void begin_values(self, column_state *c) noexcept nogil:
        """Remember the state before this record; after a repeated key restore it: the last counts."""
        if c.row == self.row:
            c.kind = c.row_kind
            c.count = c.row_count
            c.values.size = c.row_values
            c.ends.size = c.row_ends
            c.steps.size -= 8 * (c.step_count - c.row_steps)
            c.step_count = c.row_steps
            c.wrong_step = -1
        else:
            c.row = self.row
            c.row_kind = c.kind
            c.row_count = c.count
            c.row_values = c.values.size
            c.row_ends = c.ends.size
            c.row_steps = c.step_count

    cdef inline int add_values(self, column_state *c, span feature) noexcept nogil:
        cdef int kind, odd = 0
        cdef span values
        if not read_feature(feature, &kind, &values, &odd):
            return MALFORMED
        self.begin_values(c)
        c.found = kind
        return self.add_lists(c, kind, values)

    cdef int add_steps(self, column_state *c, span feature_list, int *odd) noexcept nogil:
        """Add the values of all steps of a feature list."""
        cdef int kind, code
        cdef int64_t before
        cdef uint32_t tag
        cdef span values, feature
        self.begin_values(c)
        c.found = KIND_NONE
        while feature_list.at < feature_list.end:
            if not read_tag(&feature_list, &tag):
                return MALFORMED
            if tag != FIELD_1:
                odd[0] += 1
                if not skip_field(&feature_list, tag, 0):
                    return MALFORMED
                continue
            if not read_delimited(&feature_list, &feature):
                return MALFORMED
            if not read_feature(feature, &kind, &values, odd):
                return MALFORMED
            before = c.count
            code = self.add_lists(c, kind, values)
            if code != GOOD:
                return code
            if c.kind == PRESENCE_ONLY:
                continue
            if c.wrong_step < 0 and kind != KIND_NONE:
                c.found = kind
                if kind != c.kind:
                    c.wrong_step = c.step_count - c.row_steps
            if c.wrong_step < 0 and c.required >= 0 and c.count - before != c.required:
                c.wrong_step = c.step_count - c.row_steps
                c.wrong_length = c.count - before
            c.step_count += 1
            if not push_int64(&c.steps, c.count):
                return NO_MEMORY
        return GOOD

    cdef inline int add_lists(self, column_state *c, int kind, span values) noexcept nogil:
        """Add the values of a Feature, unless they are of another kind than the column."""
        cdef int code
        cdef span items
        if kind != c.kind:
            if kind == KIND_NONE:
                return GOOD
            if c.kind != KIND_NONE:  # end_row refuses it, unless the key is repeated
                return GOOD if check_lists(values, kind) else MALFORMED
            c.kind = kind
        while next_list(&values, kind, &items):
            code = append_values(
                items, kind, self.origin if c.is_borrowed else NULL, &c.values, &c.ends, &c.count
            )
            if code != 1:
                return MALFORMED if code == 0 else NO_MEMORY
        return GOOD

    cdef inline int add_common_entry(self, column_state *c, span *features) noexcept nogil:
        """Add the values of the next entry, if it is what most records have: the key and kind of
        this column, once, in one short list.

        Return the kind; KIND_NONE if it is another entry, which stays; -1 if its values are
        malformed, -2 when out of memory.
        """
        cdef span items
        cdef int code
        if c.kind <= KIND_NONE or c.row == self.row or c.in_steps == 1:
            return KIND_NONE
        if not read_common_entry_of_kind(features, c.key, c.key_size, c.kind, &items):
            return KIND_NONE
        c.row = self.row
        c.row_kind = c.found = c.kind
        c.row_count = c.count
        c.row_values = c.values.size
        c.row_ends = c.ends.size
        code = append_values(
            items, c.kind, self.origin if c.is_borrowed else NULL, &c.values, &c.ends, &c.count
        )
        return c.kind if code == 1 else -1 if code == 0 else -2

    cdef inline int end_row(self, column_state *c) noexcept nogil:
        """Add defaults, check the length, add the row split and the validity."""
        cdef int64_t length, total
        cdef int64_t base, end
        cdef int64_t i
        cdef bint is_missing = c.row != self.row
        if is_missing:
            c.row_count = c.count
            c.row_steps = c.step_count
            c.found = KIND_NONE
        if c.has_validity and (is_missing or c.validity.size):
            if not self.push_validity(c, not is_missing):
                return NO_MEMORY
        if c.found != KIND_NONE:
            if c.found != c.kind and c.kind != PRESENCE_ONLY:
                return WRONG_KIND
            c.present += 1
        elif c.in_steps == 1:
            c.present += not is_missing
        elif c.default_count >= 0:
            base = c.values.size
            if not push_bytes(&c.values, c.default_values.data, c.default_values.size):
                return NO_MEMORY
            if c.kind == KIND_BYTES:
                for i in range(c.default_count):
                    memcpy(&end, c.default_ends.data + 8 * i, 8)
                    if not push_int64(&c.ends, base + end):
                        return NO_MEMORY
            c.count += c.default_count
        elif c.required >= 0:
            if not self.fills_missing:
                return MISSING
            if is_missing and not self.push_zeros(c):
                return NO_MEMORY
        if c.in_steps == 1:
            if c.wrong_step >= 0:
                return WRONG_LENGTH
            total, length = c.step_count, c.step_count - c.row_steps
        else:
            total, length = c.count, c.count - c.row_count
            if c.required >= 0 and length != c.required:
                return WRONG_LENGTH
        if c.splits.size == 0:
            if self.row == 0:
                c.min_length = c.max_length = length
            if length == c.max_length:
                return GOOD
            if not self.fill_splits(c):
                return NO_MEMORY
        c.min_length = min(c.min_length, length)
        c.max_length = max(c.max_length, length)
        return GOOD if push_int64(&c.splits, total) else NO_MEMORY

    cdef bint push_validity(self, column_state *c, bint is_valid) noexcept nogil:
        """Write the validity of the current record, and at the first missing key of those before."""
        cdef int64_t row
        cdef uint8_t byte = 255
        if c.validity.size == 0:
            for row in range(self.row // 8):
                if not push_bytes(&c.validity, &byte, 1):
                    return False
            byte = (1 << (self.row % 8)) - 1
            if not push_bytes(&c.validity, &byte, 1):
                return False
        elif self.row % 8 == 0:
            byte = 0
            if not push_bytes(&c.validity, &byte, 1):
                return False
        if is_valid:
            c.validity.data[self.row // 8] |= 1 << (self.row % 8)
        return True

    cdef bint push_zeros(self, column_state *c) noexcept nogil:
        """Add the values of a missing row of fixed shape: zeros or empty bytes."""
        cdef int64_t number
        cdef int64_t zero = 0
        for number in range(c.required):
            if c.kind == KIND_BYTES and c.is_borrowed:
                if not push_int64(&c.values, 0) or not push_int64(&c.values, 0):
                    return False
            elif c.kind == KIND_BYTES:
                if not push_int64(&c.ends, c.values.size):
                    return False
            elif not push_bytes(&c.values, &zero, 4 if c.kind == KIND_FLOAT else 8):
                return False
        c.count += c.required
        return True

    cdef bint fill_splits(self, column_state *c) noexcept nogil:
        """Write the splits of the records so far, which have equally many values."""
        cdef int64_t row
        for row in range(self.row + 1):
            if not push_int64(&c.splits, row * c.max_length):
                return False
        return True

    cdef int add_feature_lists(self, span lists, int *odd, int *column) noexcept nogil:
        """Add the feature lists of a SequenceExample."""
        cdef span inner
        cdef map_entry entry
        cdef uint32_t tag
        cdef int code, found, guess = self.column_count
        while lists.at < lists.end:
            if not read_tag(&lists, &tag):
                return MALFORMED
            if tag != FIELD_1:
                odd[0] += 1
                if not skip_field(&lists, tag, 0):
                    return MALFORMED
                continue
            if not read_delimited(&lists, &inner) or not read_entry(inner, &entry, odd):
                return MALFORMED
            if not entry.has_value:
                odd[0] += 1
            found = self.find(entry.key, self.columns[guess].next)
            if found < 0:
                continue
            self.columns[guess].next = found
            guess = found
            if not self.columns[found].in_steps and self.columns[found].kind != PRESENCE_ONLY:
                continue
            code = self.add_steps(&self.columns[found], entry.value, odd)
            if code != GOOD:
                column[0] = found
                return code
        return GOOD

    cdef int add_record(self, span payload, int *column) noexcept nogil:
        cdef span rest = payload, features, inner
        cdef map_entry entry
        cdef uint32_t tag
        cdef int code, odd = 0, found, i, kind
        cdef int guess = self.column_count  # whose `next` is the first key of a record
        while rest.at < rest.end:
            if not read_tag(&rest, &tag):
                return MALFORMED
            if tag == FIELD_2 and self.reads_lists:
                if not read_delimited(&rest, &features):
                    return MALFORMED
                code = self.add_feature_lists(features, &odd, column)
                if code == MALFORMED and not self.has_lists:  # perhaps an unknown field
                    odd += 1
                elif code != GOOD:
                    return code
                continue
            if tag != FIELD_1:
                odd += 1
                if not skip_field(&rest, tag, 0):
                    return MALFORMED
                continue
            if not read_delimited(&rest, &features):
                return MALFORMED
            while features.at < features.end:
                found = self.columns[guess].next
                code = self.add_common_entry(&self.columns[found], &features)
                if code > KIND_NONE:
                    guess = found
                    continue
                if code < KIND_NONE:
                    column[0] = found
                    return MALFORMED if code == -1 else NO_MEMORY
                if not read_tag(&features, &tag):
                    return MALFORMED
                if tag != FIELD_1:
                    odd += 1
                    if not skip_field(&features, tag, 0):
                        return MALFORMED
                    continue
                if not read_delimited(&features, &inner):
                    return MALFORMED
                if not read_entry(inner, &entry, &odd):
                    return MALFORMED
                if not entry.has_value:
                    odd += 1
                found = self.find(entry.key, self.columns[guess].next)
                if found < 0:
                    continue
                self.columns[guess].next = found
                guess = found
                if self.columns[found].in_steps == 1:
                    continue
                code = self.add_values(&self.columns[found], entry.value)
                if code != GOOD:
                    column[0] = found
                    return code
        if odd:
            kind = c_classify(payload)
            if kind != PAYLOAD_EXAMPLE and kind != PAYLOAD_SEQUENCE:
                return NOT_AN_EXAMPLE
        for i in range(self.column_count):
            code = self.end_row(&self.columns[i])
            if code != GOOD:
                column[0] = i
                return code
        self.row += 1
        return GOOD

    def append(self, const uint8_t[::1] buffer not None, const int64_t[::1] starts not None,
               const int64_t[::1] lengths not None):
        """Add the Examples or SequenceExamples at buffer[starts[i]:starts[i] + lengths[i]].

        Returns (code, row, column, found, step): row counts within this call, found is the number
        that was met instead of the right one (a kind, a length, a payload kind), step that of a
        feature list; -1 for others.
        """
        cdef Py_ssize_t i = 0, count = starts.shape[0]
        cdef int code = GOOD, column = 0
        cdef int64_t found = 0
        cdef const uint8_t *base = &buffer[0]
        self.origin = base
        if self.is_finished:
            raise ValueError("the builder is finished")
        if self.column_count == 0:
            self.row += count
            return GOOD, 0, 0, 0, -1
        if not spans_fit(buffer.shape[0], starts, lengths):
            raise IndexError("a payload lies outside the buffer")
        with nogil:
            while i < count:
                code = self.add_record(span_of(base + starts[i], lengths[i]), &column)
                if code != GOOD:
                    break
                i += 1
        if code == NO_MEMORY:
            raise MemoryError
        if code == NOT_AN_EXAMPLE or code == MALFORMED:
            found = c_classify(span_of(base + starts[i], lengths[i]))
            if code == MALFORMED and found > PAYLOAD_SEQUENCE:
                code = NOT_AN_EXAMPLE
        elif code == WRONG_LENGTH:
            c = &self.columns[column]
            found = c.wrong_length if c.in_steps == 1 else c.count - c.row_count
        elif code == WRONG_KIND:
            found = self.columns[column].found
        return code, i, column, found, self.columns[column].wrong_step

    def kind(self, int column):
        """Return the kind of a column: declared, or found in the records so far."""
        if not 0 <= column < self.column_count:
            raise IndexError("no such column")
        return self.columns[column].kind

    def finish(self, bint with_all_splits=True):
        """Return for each column (kind, values, ends, splits, min_length, max_length, present,
        steps, validity).

        values: int64 or float32 end to end, or bytes, or of bytes that are borrowed int64, (count, 2),
        where each begins and ends in the buffer; ends: int64, (count + 1,), for other bytes;
        splits: int64, (records + 1,), or if not wanted, none where all records have min_length
        values; validity: a bit for each record, lowest bit first, or none if all records have the
        key; of a feature list, splits and lengths count steps, and steps is int64, (step count + 1,),
        the number of values before each step. All as Memory. The builder can do nothing more.
        """
        cdef int i
        if self.is_finished:
            raise ValueError("the builder is finished")
        self.is_finished = True
        result = []
        for i in range(self.column_count):
            c = &self.columns[i]
            if with_all_splits and c.splits.size == 0 and not self.fill_splits(c):
                raise MemoryError
            result.append((
                c.kind, take(&c.values), take(&c.ends), take(&c.splits),
                c.min_length, c.max_length, c.present, take(&c.steps),
                take(&c.validity),
            ))
        return result
