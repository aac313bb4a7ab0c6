# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Example payloads <-> values, compiled: one at a time, or whole batches as columns.

No policy: buffers and integer arrays in, memory and codes out. All reading goes through the spans
of message.h, which look at no byte outside the payload; memory grows with the bytes that were
really there, at most eightfold (a one-byte varint becomes an int64).
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_SIMPLE,
    PyBuffer_FillInfo,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cpython.bytearray cimport PyByteArray_FromStringAndSize
from cpython.bytes cimport (
    PyBytes_AS_STRING,
    PyBytes_AsString,
    PyBytes_FromStringAndSize,
    PyBytes_GET_SIZE,
)
from cpython.float cimport PyFloat_AS_DOUBLE
from libc.stdint cimport INT64_MAX, SIZE_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

import os

import numpy as np

cdef object numpy_array = np.ndarray, numpy_scalar = np.generic

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    bint PyUnicode_IS_COMPACT_ASCII(object text)

cdef extern from "message.h" nogil:
    enum:
        DELIMITED
        KIND_NONE
        KIND_BYTES
        KIND_FLOAT
        KIND_INT64
        PAYLOAD_EXAMPLE
    ctypedef struct span:
        const uint8_t *at
        const uint8_t *end
    ctypedef struct map_entry:
        span key
        span value
        int has_value
    ctypedef struct growing:
        uint8_t *data
        size_t size
        size_t capacity
    ctypedef struct backward:
        uint8_t *base
        uint8_t *at
        size_t capacity
    int read_tag(span *s, uint32_t *tag)
    int read_delimited(span *s, span *inner)
    int skip_field(span *s, uint32_t tag, int depth)
    int read_entry(span s, map_entry *entry, int *odd)
    int read_usual_entry(
        span *features, const uint8_t *key, size_t key_size, span *items, uint64_t *count
    )
    int read_feature(span s, int *kind, span *values, int *odd)
    int next_list(span *values, int kind, span *lst)
    int count_values(span lst, int kind, uint64_t *count, int *odd)
    int check_lists(span values, int kind)
    int content_of(span value)
    int read_plain_feature(span s, span *lst)
    int64_t count_packed(span lst, int kind)
    int are_same(const uint8_t *a, const uint8_t *b, size_t size)
    int may_be_plain_example(span s)
    int c_classify "classify"(span s)
    void trim(growing *g)
    void release(growing *g)
    int push_int64(growing *g, int64_t value)
    int push_bytes(growing *g, const void *data, size_t size)
    int append_values(span lst, int kind, const uint8_t *origin, growing *values, growing *ends,
                      int64_t *count)
    size_t written(const backward *b)
    int make_room(backward *b, size_t extra)
    void put_delimited(backward *b, int field, size_t mark)
    void put_varint(backward *b, uint64_t value)
    int put_int64s(backward *b, const uint8_t *values, size_t count)
    int put_floats(backward *b, const uint8_t *values, size_t count)
    int put_bytes_value(backward *b, const void *data, size_t size)
    int put_feature_entry(backward *b, size_t mark, int kind, const void *key, size_t key_size)

cdef extern from "xxh64.h" nogil:
    uint64_t xxh64(const uint8_t *at, size_t size)

cdef extern from "siphash.h" nogil:
    uint64_t siphash(const uint64_t *key, const uint8_t *at, size_t size)

cdef uint64_t[2] secret  # of this process: nobody can choose keys that crowd a table
memcpy(secret, PyBytes_AS_STRING(os.urandom(16)), 16)


cdef enum:
    FIELD_1 = 1 << 3 | 2  # the tag of field 1, delimited
    FIELD_2 = 2 << 3 | 2
    # what can be wrong with a record
    GOOD = 0
    MALFORMED = 1
    NOT_AN_EXAMPLE = 2
    MISSING = 3
    WRONG_KIND = 4
    WRONG_LENGTH = 5
    NO_MEMORY = 6
    # how many keys are searched one by one before Python's dict is asked
    FEW_KEYS = 32
    # the number that stands for the keys which a survey does not keep
    OTHERS = 0


cdef class Memory:
    """Bytes that a kernel allocated, as a writable buffer; freed with its last user."""

    cdef growing held

    def __dealloc__(self):
        release(&self.held)

    def __len__(self):
        return self.held.size

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.held.data, self.held.size, 0, flags)


cdef Memory take(growing *g):
    """Hand the memory of `g` over, trimmed to what is used."""
    cdef Memory memory = Memory.__new__(Memory)
    trim(g)
    memory.held = g[0]
    memset(g, 0, sizeof(growing))
    return memory


cdef inline span span_of(const uint8_t *data, Py_ssize_t size) noexcept nogil:
    cdef span s
    s.at = data
    s.end = data + size
    return s


cdef inline bint spans_fit(
    Py_ssize_t size, const int64_t[::1] starts, const int64_t[::1] lengths
) noexcept nogil:
    cdef Py_ssize_t i
    if starts.shape[0] != lengths.shape[0]:
        return False
    for i in range(starts.shape[0]):
        if starts[i] < 0 or lengths[i] < 0 or starts[i] > size or lengths[i] > size - starts[i]:
            return False
    return True


def classify(const uint8_t[::1] payload not None):
    """What a payload is, by its strict wire form: a PAYLOAD_ number of message.h."""
    return c_classify(span_of(&payload[0], payload.shape[0]))


def classify_many(const uint8_t[::1] buffer not None, const int64_t[::1] starts not None,
                  const int64_t[::1] lengths not None, uint8_t[::1] kinds not None):
    """The same for each payload, into `kinds`."""
    cdef Py_ssize_t i, count = starts.shape[0]
    cdef const uint8_t *base = &buffer[0]
    if not spans_fit(buffer.shape[0], starts, lengths) or kinds.shape[0] != count:
        raise IndexError("a payload lies outside the buffer")
    with nogil:
        for i in range(count):
            kinds[i] = <uint8_t>c_classify(span_of(base + starts[i], lengths[i]))


KIND_NAMES = ("none", "bytes", "float", "int64")


# ---- one payload to a dict ---------------------------------------------------------------------


cdef object decode_feature(span feature, growing *scratch):
    """A list of bytes, an int64 or float32 array, [] without a kind; None if malformed."""
    cdef int kind, odd = 0, code
    cdef span values, items, item
    cdef uint32_t tag
    cdef int64_t count = 0
    cdef list strings
    if not read_feature(feature, &kind, &values, &odd):
        return None
    if kind == KIND_NONE:
        return []
    if kind == KIND_BYTES:
        strings = []
        while next_list(&values, kind, &items):
            while items.at < items.end:
                if not read_tag(&items, &tag):
                    return None
                if tag == FIELD_1:
                    if not read_delimited(&items, &item):
                        return None
                    strings.append(PyBytes_FromStringAndSize(<char *>item.at, item.end - item.at))
                elif not skip_field(&items, tag, 0):
                    return None
        return strings
    scratch.size = 0
    while next_list(&values, kind, &items):
        code = append_values(items, kind, NULL, scratch, NULL, &count)
        if code < 0:
            raise MemoryError
        if code == 0:
            return None
    return np.frombuffer(
        PyByteArray_FromStringAndSize(<char *>scratch.data, scratch.size),
        np.int64 if kind == KIND_INT64 else np.float32,
    )


cdef object decode_feature_list(span feature_list, growing *scratch):
    cdef uint32_t tag
    cdef span feature
    cdef list steps = []
    while feature_list.at < feature_list.end:
        if not read_tag(&feature_list, &tag):
            return None
        if tag == FIELD_1:
            if not read_delimited(&feature_list, &feature):
                return None
            step = decode_feature(feature, scratch)
            if step is None:
                return None
            steps.append(step)
        elif not skip_field(&feature_list, tag, 0):
            return None
    return steps


cdef bint decode_map(span message, bint lists, growing *scratch, dict into, int *odd) except -1:
    """Add the entries of a Features or FeatureLists message; False if malformed."""
    cdef uint32_t tag
    cdef span inner
    cdef map_entry entry
    while message.at < message.end:
        if not read_tag(&message, &tag):
            return False
        if tag != FIELD_1:
            odd[0] += 1
            if not skip_field(&message, tag, 0):
                return False
            continue
        if not read_delimited(&message, &inner) or not read_entry(inner, &entry, odd):
            return False
        if not entry.has_value:
            odd[0] += 1
        if lists:
            value = decode_feature_list(entry.value, scratch)
        else:
            value = decode_feature(entry.value, scratch)
        if value is None:
            return False
        key = PyBytes_FromStringAndSize(<char *>entry.key.at, entry.key.end - entry.key.at)
        into[key.decode("utf-8", "surrogateescape")] = value
    return True


def decode_example(const uint8_t[::1] payload not None):
    """(GOOD, features) or (code, what the payload is)."""
    cdef span all = span_of(&payload[0], payload.shape[0]), rest = all, inner
    cdef uint32_t tag
    cdef bint good = True
    cdef int odd = 0
    cdef growing scratch
    cdef dict features = {}
    memset(&scratch, 0, sizeof(scratch))
    try:
        while rest.at < rest.end:
            if not read_tag(&rest, &tag):
                good = False
                break
            if tag == FIELD_1:
                if not read_delimited(&rest, &inner) or not decode_map(
                    inner, False, &scratch, features, &odd
                ):
                    good = False
                    break
            else:
                odd += 1
                if not skip_field(&rest, tag, 0):
                    good = False
                    break
    finally:
        release(&scratch)
    if odd or not good:
        found = c_classify(all)
        if found != PAYLOAD_EXAMPLE:
            return (NOT_AN_EXAMPLE if good or found else MALFORMED), found
    return (GOOD, features) if good else (MALFORMED, 0)


def decode_sequence_example(const uint8_t[::1] payload not None):
    """(GOOD, (context, feature_lists)) or (MALFORMED, what the payload is)."""
    cdef span all = span_of(&payload[0], payload.shape[0]), rest = all, inner
    cdef uint32_t tag
    cdef bint good = True
    cdef int odd = 0
    cdef growing scratch
    cdef dict context = {}, lists = {}
    memset(&scratch, 0, sizeof(scratch))
    try:
        while good and rest.at < rest.end:
            if not read_tag(&rest, &tag):
                good = False
            elif tag == FIELD_1 or tag == FIELD_2:
                good = read_delimited(&rest, &inner) and decode_map(
                    inner, tag == FIELD_2, &scratch, lists if tag == FIELD_2 else context, &odd
                )
            else:
                good = skip_field(&rest, tag, 0)
    finally:
        release(&scratch)
    return (GOOD, (context, lists)) if good else (MALFORMED, c_classify(all))


# ---- many payloads to columns ------------------------------------------------------------------


cdef struct column_state:
    const uint8_t *key
    size_t key_size
    int kind                # KIND_NONE until a record shows it
    int found               # the kind in the record at hand
    bint is_borrowed        # of bytes: not the values, but where they are in the buffer
    int64_t required        # how many values a record must have; -1: any number
    int64_t default_count   # -1: no default
    growing default_values
    growing default_ends    # bytes only: the end of each value
    growing values
    growing ends
    growing splits          # after each record, how many values there are; empty while all
                            # records have as many
    int64_t count
    int64_t min_length
    int64_t max_length
    int64_t present
    # what was there before the record at hand, to start over when a key comes twice
    int64_t row
    int64_t row_count
    size_t row_values
    size_t row_ends
    int row_kind
    int next                # the column that followed this one last time


cdef class ColumnBuilder:
    """Collects chosen features of many Example payloads into columns."""

    cdef column_state *columns
    cdef int column_count
    cdef int *slots          # open addressing over the keys: column or -1
    cdef uint64_t slot_mask
    cdef int64_t row
    cdef const uint8_t *origin  # of the buffer at hand
    cdef bint is_finished
    cdef list keys           # the memory of each column's key

    def __cinit__(self, list keys not None, list kinds not None, list required not None,
                  list defaults not None, list are_borrowed not None):
        cdef uint64_t slot_count = 4
        cdef int i
        cdef bytes key
        self.keys = keys
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
            c.row = -1
            c.default_count = -1
            c.next = i + 1 if i + 1 < self.column_count else 0
            if defaults[i] is not None:
                values, ends, c.default_count = defaults[i]
                if not push_bytes(&c.default_values, PyBytes_AS_STRING(values), len(values)):
                    raise MemoryError
                if not push_bytes(&c.default_ends, PyBytes_AS_STRING(ends), len(ends)):
                    raise MemoryError
            if not push_int64(&c.ends, 0):
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
                release(&self.columns[i].splits)
        free(self.columns)
        free(self.slots)

    cdef inline uint64_t hash(self, const uint8_t *key, size_t size) noexcept nogil:
        """The keys in the table may be those of a file, which could be made to crowd it."""
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

    cdef inline int add_values(self, column_state *c, span feature) noexcept nogil:
        cdef int kind, code, odd = 0
        cdef span values, items
        if not read_feature(feature, &kind, &values, &odd):
            return MALFORMED
        if c.row == self.row:  # the key came before in this record: the last one counts
            c.kind = c.row_kind
            c.count = c.row_count
            c.values.size = c.row_values
            c.ends.size = c.row_ends
        else:
            c.row = self.row
            c.row_kind = c.kind
            c.row_count = c.count
            c.row_values = c.values.size
            c.row_ends = c.ends.size
        c.found = kind
        if kind != c.kind:
            if kind == KIND_NONE:
                return GOOD
            if c.kind != KIND_NONE:  # end_row refuses it, if the key does not come again
                return GOOD if check_lists(values, kind) else MALFORMED
            c.kind = kind
        while next_list(&values, kind, &items):
            code = append_values(
                items, kind, self.origin if c.is_borrowed else NULL, &c.values, &c.ends, &c.count
            )
            if code != 1:
                return MALFORMED if code == 0 else NO_MEMORY
        return GOOD

    cdef inline int end_row(self, column_state *c) noexcept nogil:
        """Defaults, the demanded length, the row split."""
        cdef int64_t length
        cdef int64_t base, end
        cdef int64_t i
        if c.row != self.row:
            c.row_count = c.count
            c.found = KIND_NONE
        if c.found != KIND_NONE:
            if c.found != c.kind:
                return WRONG_KIND
            c.present += 1
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
            return MISSING
        length = c.count - c.row_count
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
        return GOOD if push_int64(&c.splits, c.count) else NO_MEMORY

    cdef bint fill_splits(self, column_state *c) noexcept nogil:
        """The splits of the records so far, which all have as many values."""
        cdef int64_t row
        for row in range(self.row + 1):
            if not push_int64(&c.splits, row * c.max_length):
                return False
        return True

    cdef int add_record(self, span payload, int *column) noexcept nogil:
        cdef span rest = payload, features, inner
        cdef map_entry entry
        cdef uint32_t tag
        cdef int code, odd = 0, found, guess = 0, i
        while rest.at < rest.end:
            if not read_tag(&rest, &tag):
                return MALFORMED
            if tag != FIELD_1:
                odd += 1
                if not skip_field(&rest, tag, 0):
                    return MALFORMED
                continue
            if not read_delimited(&rest, &features):
                return MALFORMED
            while features.at < features.end:
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
                code = self.add_values(&self.columns[found], entry.value)
                if code != GOOD:
                    column[0] = found
                    return code
        if odd and c_classify(payload) != PAYLOAD_EXAMPLE:
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
        """Add the Examples at buffer[starts[i]:starts[i] + lengths[i]].

        Returns (code, row, column, found): row counts within this call, found is the number that
        was met instead of the right one (a kind, a length, a payload kind).
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
            return GOOD, 0, 0, 0
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
            if code == MALFORMED and found > PAYLOAD_EXAMPLE:
                code = NOT_AN_EXAMPLE
        elif code == WRONG_LENGTH:
            found = self.columns[column].count - self.columns[column].row_count
        elif code == WRONG_KIND:
            found = self.columns[column].found
        return code, i, column, found

    def kind(self, int column):
        """The kind of a column: as asked for, or as the records showed so far."""
        if not 0 <= column < self.column_count:
            raise IndexError("no such column")
        return self.columns[column].kind

    def finish(self, bint with_all_splits=True):
        """For each column (kind, values, ends, splits, min_length, max_length, present).

        values: int64 or float32 end to end, or bytes, or of bytes that are borrowed int64, (count, 2),
        where each begins and ends in the buffer; ends: int64, (count + 1,), for other bytes;
        splits: int64, (records + 1,), or if not wanted, none where all records have min_length
        values. All as Memory. The builder can do nothing more.
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
                c.min_length, c.max_length, c.present,
            ))
        return result


# ---- what features there are -------------------------------------------------------------------


cdef struct feature_state:
    const uint8_t *key
    size_t key_size
    int64_t kinds[4]        # records by kind
    int64_t contents[3]     # bytes values by content
    int64_t present
    int64_t min_length
    int64_t max_length
    int64_t min_steps
    int64_t max_steps
    int64_t value_bytes
    # the record at hand: counted when it ends, as the last of two equal keys counts
    int64_t row
    int row_kinds           # one bit a kind: steps of a feature list may differ
    int64_t row_min
    int64_t row_max
    int64_t row_steps
    int64_t row_contents[3]
    int64_t row_bytes
    int next


@cython.final
cdef class FeatureSurvey:
    """Counts which features many payloads have, without making values of them. For one thread.

    Of very many keys only the first few by name are kept, in memory that does not grow beyond that
    of the keys of one record. What is kept does not depend on the order of the records: a key that
    is left out once is left out for good, as it can only fall behind, so those that are kept were
    counted from the beginning.
    """

    cdef feature_state *states
    cdef int first           # the feature that a record began with last time
    cdef int state_count
    cdef int state_capacity
    cdef dict numbers        # key -> number; Python's dict, as the keys come from the file
    cdef list keys           # the memory of each feature's key
    cdef growing touched     # numbers of the features of the record at hand
    cdef int64_t row
    cdef int64_t most_keys, most_key_bytes, listed_keys, listed_key_bytes
    cdef int64_t room, room_bytes  # beyond these, keys are let go of
    cdef int64_t key_bytes
    cdef bint is_over        # there were more keys than are kept
    cdef bytes last          # of those that are kept, once there were more

    def __cinit__(self, int64_t most_keys=INT64_MAX, int64_t most_key_bytes=INT64_MAX,
                  int64_t listed_keys=0, int64_t listed_key_bytes=0):
        """With more than `most_keys`, or `most_key_bytes` in all, only `listed_keys` are kept: the
        first by name among those that have at most `listed_key_bytes`.
        """
        self.numbers = {}
        self.keys = []
        self.row = 0
        self.most_keys, self.most_key_bytes = most_keys, most_key_bytes
        self.listed_keys, self.listed_key_bytes = listed_keys, listed_key_bytes
        self.room, self.room_bytes = with_slack(most_keys), with_slack(most_key_bytes)
        self.add(None)  # what stands for all that are not kept

    def __dealloc__(self):
        free(self.states)
        release(&self.touched)

    cdef inline int number_of(self, span key) except -1 nogil:
        """The number of a key that is not the one that came next before."""
        cdef int number
        for number in range(1, min(self.state_count, FEW_KEYS)):
            if self.is_key(number, key):
                return number
        return self.looked_up(key)

    cdef int looked_up(self, span key) except -1 with gil:
        cdef bytes name = PyBytes_FromStringAndSize(<char *>key.at, key.end - key.at)
        number = self.numbers.get(name)
        if number is not None:
            return number
        if self.is_over and not (PyBytes_GET_SIZE(name) <= self.listed_key_bytes
                                 and (self.last is None or name < self.last)):
            return OTHERS
        return self.add(name)

    cdef int add(self, bytes name) except -1:
        """Begin to count a key; None: the keys that are not kept, which no key is equal to."""
        cdef feature_state *grown
        cdef int number
        if self.state_count == self.state_capacity:
            grown = <feature_state *>realloc(
                self.states, (2 * self.state_capacity + 8) * sizeof(feature_state)
            )
            if grown is NULL:
                raise MemoryError
            self.states = grown
            self.state_capacity = 2 * self.state_capacity + 8
        number = self.state_count
        memset(&self.states[number], 0, sizeof(feature_state))
        self.states[number].key_size = SIZE_MAX
        if name is not None:
            self.states[number].key = <const uint8_t *>PyBytes_AS_STRING(name)
            self.states[number].key_size = PyBytes_GET_SIZE(name)
            self.numbers[name] = number
            self.key_bytes += PyBytes_GET_SIZE(name)
        self.states[number].row = -1
        self.states[number].min_length = self.states[number].min_steps = INT64_MAX
        self.states[number].next = number
        self.keys.append(name)
        self.state_count += 1
        return number

    cdef int let_go(self) except -1 with gil:
        """Between two records: forget what was seen in no Example, and of too many keys most."""
        cdef list kept = self.kept()
        cdef list keys = [None, *kept]
        cdef dict numbers = {name: number for number, name in enumerate(kept, 1)}
        cdef feature_state *states
        cdef bytes name
        cdef int number
        states = <feature_state *>malloc(len(keys) * sizeof(feature_state))
        if states is NULL:
            raise MemoryError
        states[OTHERS] = self.states[OTHERS]
        states[OTHERS].next = self.first = OTHERS
        for number, name in enumerate(kept, 1):
            states[number] = self.states[<int>self.numbers[name]]
            states[number].next = OTHERS
        free(self.states)
        self.states, self.keys, self.numbers = states, keys, numbers
        self.state_count = self.state_capacity = <int>len(keys)
        self.key_bytes = sum(map(len, kept))
        return 0

    cdef list kept(self):
        """The keys that Examples have, or of too many the first by name; with them go the bounds."""
        cdef int i
        cdef list names = [self.keys[i] for i in range(1, self.state_count) if self.states[i].present]
        if not self.is_over and len(names) <= self.most_keys and (
            self.key_bytes <= self.most_key_bytes or sum(map(len, names)) <= self.most_key_bytes
        ):
            return names
        self.is_over = True
        self.room, self.room_bytes = with_slack(self.listed_keys), INT64_MAX
        names = sorted(name for name in names if len(name) <= self.listed_key_bytes)
        if len(names) >= self.listed_keys:
            del names[self.listed_keys:]
            self.last = names[self.listed_keys - 1] if names else b""
        return names

    cdef inline bint is_key(self, int number, span key) noexcept nogil:
        cdef feature_state *f = &self.states[number]
        cdef size_t size = key.end - key.at
        return f.key_size == size and are_same(f.key, key.at, size)

    cdef inline bint see_feature(self, feature_state *f, span feature) noexcept nogil:
        cdef int kind, odd = 0
        cdef uint64_t count = 0
        cdef int64_t packed = -1
        cdef span values, items
        kind = read_plain_feature(feature, &items)
        if kind != KIND_NONE:
            if kind != KIND_BYTES:
                packed = count_packed(items, kind)
            if packed >= 0:
                count = packed
                f.row_bytes += items.end - items.at
            elif not self.see_list(f, items, kind, &count):
                return False
        elif read_feature(feature, &kind, &values, &odd):
            while next_list(&values, kind, &items):
                if not self.see_list(f, items, kind, &count):
                    return False
        else:
            return False
        f.row_kinds |= 1 << kind
        f.row_min = min(f.row_min, <int64_t>count)
        f.row_max = max(f.row_max, <int64_t>count)
        return True

    cdef bint see_list(
        self, feature_state *f, span items, int kind, uint64_t *count
    ) noexcept nogil:
        cdef int odd = 0
        cdef uint32_t tag
        cdef span item
        f.row_bytes += items.end - items.at
        if kind != KIND_BYTES:
            return count_values(items, kind, count, &odd)
        while items.at < items.end:
            if not read_tag(&items, &tag):
                return False
            if tag != FIELD_1:
                if not skip_field(&items, tag, 0):
                    return False
                continue
            if not read_delimited(&items, &item):
                return False
            f.row_contents[content_of(item)] += 1
            count[0] += 1
        return True

    cdef inline bint begin_entry(self, int number) noexcept nogil:
        """Forget what an entry of the same record with the same key had."""
        cdef feature_state *f = &self.states[number]
        cdef int64_t touched = number
        if f.row != self.row:
            f.row = self.row
            if not push_int64(&self.touched, touched):
                return False
        f.row_kinds = 0
        f.row_min = INT64_MAX
        f.row_max = f.row_steps = f.row_bytes = 0
        memset(f.row_contents, 0, sizeof(f.row_contents))
        return True

    cdef inline bint see_usual(
        self, int number, int kind, span items, uint64_t count
    ) noexcept nogil:
        """See what read_usual_entry found."""
        cdef feature_state *f = &self.states[number]
        if not self.begin_entry(number):
            return False
        if kind != KIND_BYTES:
            f.row_bytes = items.end - items.at
        elif not self.see_list(f, items, kind, &count):
            return False
        f.row_kinds = 1 << kind
        f.row_min = f.row_max = <int64_t>count
        return True

    cdef inline bint see_entry(self, int number, span value, bint lists) noexcept nogil:
        cdef feature_state *f = &self.states[number]
        cdef uint32_t tag
        cdef span feature
        if not self.begin_entry(number):
            return False
        if not lists:
            return self.see_feature(f, value)
        while value.at < value.end:
            if not read_tag(&value, &tag):
                return False
            if tag != FIELD_1:
                if not skip_field(&value, tag, 0):
                    return False
                continue
            if not read_delimited(&value, &feature) or not self.see_feature(f, feature):
                return False
            f.row_steps += 1
        return True

    cdef inline int end_row(self) except -1 nogil:
        """Count what was seen of the record at hand."""
        cdef size_t at
        cdef int64_t number
        cdef int i
        cdef feature_state *f
        for at in range(0, self.touched.size, 8):
            memcpy(&number, self.touched.data + at, 8)
            f = &self.states[number]
            f.present += 1
            if f.row_kinds & (f.row_kinds - 1) == 0:  # one kind: its number from its bit
                f.kinds[(f.row_kinds >> 1) - (f.row_kinds >> 3)] += f.row_kinds != 0
            else:
                for i in range(4):
                    f.kinds[i] += f.row_kinds >> i & 1
            if f.row_kinds & 1 << KIND_BYTES:
                for i in range(3):
                    f.contents[i] += f.row_contents[i]
            f.value_bytes += f.row_bytes
            f.min_length = min(f.min_length, f.row_min)
            f.max_length = max(f.max_length, f.row_max)
            f.min_steps = min(f.min_steps, f.row_steps)
            f.max_steps = max(f.max_steps, f.row_steps)
        return self.drop_row()

    def update(self, const uint8_t[::1] buffer not None, const int64_t[::1] starts not None,
               const int64_t[::1] lengths not None, int field, bint lists):
        """Count the map in `field` of each payload: Features, or with `lists` FeatureLists.

        Returns how many payloads were counted; fewer than all if one is malformed.
        """
        cdef Py_ssize_t i = 0, count = starts.shape[0]
        cdef const uint8_t *base = &buffer[0]
        cdef uint32_t wanted = field << 3 | DELIMITED
        cdef int odd = 0
        if not spans_fit(buffer.shape[0], starts, lengths):
            raise IndexError("a payload lies outside the buffer")
        with nogil:
            while i < count and self.see_record(
                span_of(base + starts[i], lengths[i]), wanted, lists, &odd
            ):
                self.end_row()
                i += 1
            if i < count:
                self.drop_row()
        return i

    def update_examples(self, const uint8_t[::1] buffer not None,
                        const int64_t[::1] starts not None, const int64_t[::1] lengths not None,
                        uint8_t[::1] kinds not None):
        """Classify each payload, into `kinds`, and count the features of those that are Examples.

        The same as `classify_many` and then `update`, but most Examples are walked only once.
        """
        cdef Py_ssize_t i, count = starts.shape[0]
        cdef const uint8_t *base = &buffer[0]
        cdef span payload
        cdef int odd
        cdef bint is_done
        if not spans_fit(buffer.shape[0], starts, lengths) or kinds.shape[0] != count:
            raise IndexError("a payload lies outside the buffer")
        with nogil:
            for i in range(count):
                payload = span_of(base + starts[i], lengths[i])
                odd = 0
                is_done = (
                    may_be_plain_example(payload)
                    and self.see_record(payload, FIELD_1, False, &odd)
                    and not odd
                )
                kinds[i] = PAYLOAD_EXAMPLE
                if not is_done:
                    self.drop_row()
                    kinds[i] = <uint8_t>c_classify(payload)
                    if kinds[i] == PAYLOAD_EXAMPLE:
                        is_done = self.see_record(payload, FIELD_1, False, &odd)
                if is_done:
                    self.end_row()

    cdef inline int drop_row(self) except -1 nogil:
        """Count nothing more of the record at hand."""
        self.touched.size = 0
        self.row += 1
        if self.state_count > self.room or self.key_bytes > self.room_bytes:
            return self.let_go()
        return 0

    cdef bint see_record(self, span rest, uint32_t wanted, bint lists, int *odd) except -1 nogil:
        """See one payload, to be counted by end_row; False if it is malformed.

        `odd` counts what does not belong into the map in field `wanted`.
        """
        cdef span features, inner
        cdef map_entry entry
        cdef uint32_t tag
        cdef uint64_t count
        cdef int number, kind, guess = -1
        while rest.at < rest.end:
            if not read_tag(&rest, &tag):
                return False
            if tag != wanted:
                if not skip_field(&rest, tag, 0):
                    return False
                continue
            if not read_delimited(&rest, &features):
                return False
            while features.at < features.end:
                number = self.first if guess < 0 else self.states[guess].next
                if not lists:
                    count = 0
                    kind = read_usual_entry(
                        &features, self.states[number].key, self.states[number].key_size, &inner,
                        &count,
                    )
                    if kind != KIND_NONE:
                        guess = number
                        if not self.see_usual(number, kind, inner, count):
                            return False
                        continue
                if not read_tag(&features, &tag):
                    return False
                if tag != FIELD_1:
                    odd[0] += 1
                    if not skip_field(&features, tag, 0):
                        return False
                    continue
                if not read_delimited(&features, &inner) or not read_entry(inner, &entry, odd):
                    return False
                odd[0] += not entry.has_value
                if not self.is_key(number, entry.key):
                    number = self.number_of(entry.key)
                    if guess < 0:
                        self.first = number
                    else:
                        self.states[guess].next = number
                guess = number
                if not self.see_entry(number, entry.value, lists):
                    return False
        return True

    def settle(self):
        """Let go of what is not to be kept; whether all keys of Examples are."""
        self.drop_row()
        self.let_go()
        return not self.is_over

    def finish(self):
        """For each key that is kept (key, kinds, contents, present, lengths, steps, value_bytes)."""
        self.settle()
        return [
            (
                self.keys[i], list(self.states[i].kinds), list(self.states[i].contents),
                self.states[i].present,
                (min(self.states[i].min_length, self.states[i].max_length),
                 self.states[i].max_length),
                (self.states[i].min_steps, self.states[i].max_steps), self.states[i].value_bytes,
            )
            for i in range(1, self.state_count)
        ]


cdef inline int64_t with_slack(int64_t most) noexcept nogil:
    """A quarter more, so that letting go of keys is worth its while."""
    return most if most == INT64_MAX else most + most // 4 + 1


def submessages(const uint8_t[::1] buffer not None, const int64_t[::1] starts not None,
                const int64_t[::1] lengths not None, int field):
    """Where the messages of one field lie: (owners, starts, lengths), int64 as Memory.

    `owners` is the number of the payload that each lies in. Malformed payloads end where they do.
    """
    cdef growing owner, start, length
    cdef Py_ssize_t i
    cdef span rest, inner
    cdef uint32_t tag, wanted = field << 3 | DELIMITED
    cdef bint room = True
    memset(&owner, 0, sizeof(owner))
    memset(&start, 0, sizeof(start))
    memset(&length, 0, sizeof(length))
    if not spans_fit(buffer.shape[0], starts, lengths):
        raise IndexError("a payload lies outside the buffer")
    for i in range(starts.shape[0]):
        rest = span_of(&buffer[starts[i]], lengths[i])
        while room and rest.at < rest.end and read_tag(&rest, &tag):
            if tag != wanted:
                if not skip_field(&rest, tag, 0):
                    break
            elif read_delimited(&rest, &inner):
                room = (push_int64(&owner, i) and push_int64(&start, inner.at - &buffer[0])
                        and push_int64(&length, inner.end - inner.at))
            else:
                break
    result = take(&owner), take(&start), take(&length)
    if not room:
        raise MemoryError
    return result


def find_entries(const uint8_t[::1] payload not None, object wanted):
    """Where map entries of an Example or SequenceExample lie: (GOOD, maps), or (code, 0).

    Each map is (field, start, content, stop, entries), each entry (key, wanted[key], start,
    content, stop, key_start, key_stop, value_start, value_stop), all counted in bytes of the
    payload. Entries are left out for which wanted[key] is None.
    """
    cdef const uint8_t *base = &payload[0]
    cdef const uint8_t *start
    cdef const uint8_t *first
    cdef const uint8_t *field
    cdef span rest = span_of(base, payload.shape[0]), entries, entry, fields
    cdef span key, value, key_field, value_field
    cdef uint32_t tag, inner
    cdef list found, maps = []
    cdef bytes name
    while rest.at < rest.end:
        start = rest.at
        if not read_tag(&rest, &tag):
            return MALFORMED, 0
        if tag != FIELD_1 and tag != FIELD_2:
            if not skip_field(&rest, tag, 0):
                return MALFORMED, 0
            continue
        if not read_delimited(&rest, &entries):
            return MALFORMED, 0
        found = []
        content = entries.at - base
        while entries.at < entries.end:
            first = entries.at
            if not read_tag(&entries, &inner):
                return MALFORMED, 0
            if inner != FIELD_1:
                if not skip_field(&entries, inner, 0):
                    return MALFORMED, 0
                continue
            if not read_delimited(&entries, &entry):
                return MALFORMED, 0
            fields = entry
            key.at = key.end = key_field.at = key_field.end = entry.at
            value_field.at = value_field.end = entry.end
            while fields.at < fields.end:
                field = fields.at
                if not read_tag(&fields, &inner):
                    return MALFORMED, 0
                if inner == FIELD_1:
                    if not read_delimited(&fields, &key):
                        return MALFORMED, 0
                    key_field.at, key_field.end = field, fields.at
                elif inner == FIELD_2:
                    if not read_delimited(&fields, &value):
                        return MALFORMED, 0
                    value_field.at, value_field.end = field, fields.at
                elif not skip_field(&fields, inner, 0):
                    return MALFORMED, 0
            name = PyBytes_FromStringAndSize(<char *>key.at, key.end - key.at)
            answer = wanted[name]
            if answer is not None:
                found.append((
                    name, answer, first - base, entry.at - base, entry.end - base,
                    key_field.at - base, key_field.end - base,
                    value_field.at - base, value_field.end - base,
                ))
        maps.append((tag >> 3, start - base, content, rest.at - base, found))
    return GOOD, maps


def hash_spans(const uint8_t[::1] buffer not None, const int64_t[::1] starts not None,
               const int64_t[::1] lengths not None, uint64_t[::1] hashes not None):
    """XXH64 of each buffer[starts[i]:starts[i] + lengths[i]], into `hashes`."""
    cdef Py_ssize_t i, count = starts.shape[0]
    cdef const uint8_t *base = &buffer[0]
    if not spans_fit(buffer.shape[0], starts, lengths) or hashes.shape[0] != count:
        raise IndexError("a value lies outside the buffer")
    with nogil:
        for i in range(count):
            hashes[i] = xxh64(base + starts[i], lengths[i])


# ---- values to payloads ------------------------------------------------------------------------


cdef class Encoder:
    """Writes payloads back to front; one payload at a time, the memory is used again."""

    cdef backward out

    def __cinit__(self):
        self.out.base = self.out.at = NULL
        self.out.capacity = 0
        if not make_room(&self.out, 256):
            raise MemoryError

    def __dealloc__(self):
        free(self.out.base)

    def written(self):
        return written(&self.out)

    def payload(self):
        return PyBytes_FromStringAndSize(<char *>self.out.at, written(&self.out))

    def put_delimited(self, int field, size_t mark):
        """Put length and tag before what was written since `mark`."""
        if mark > written(&self.out) or not make_room(&self.out, 16):
            raise MemoryError
        put_delimited(&self.out, field, mark)

    def put_entry(self, size_t mark, int kind, bytes key not None):
        """Make a map entry of what was written since `mark`.

        That is a Feature of values of `kind`, or with KIND_NONE a FeatureList of Features.
        """
        if mark > written(&self.out) or not put_feature_entry(
            &self.out, mark, kind, PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)
        ):
            raise MemoryError

    def put_step(self, size_t mark, int kind):
        """Make a Feature of a FeatureList of the values written since `mark`."""
        if mark > written(&self.out) or not make_room(&self.out, 64):
            raise MemoryError
        if (kind == KIND_FLOAT or kind == KIND_INT64) and written(&self.out) != mark:
            put_delimited(&self.out, 1, mark)
        if kind != KIND_NONE:
            put_delimited(&self.out, kind, mark)
        put_delimited(&self.out, 1, mark)

    def put_int64s(self, const int64_t[::1] values not None):
        if not put_int64s(&self.out, <const uint8_t *>&values[0], values.shape[0]):
            raise MemoryError

    def put_floats(self, const float[::1] values not None):
        if not put_floats(&self.out, <const uint8_t *>&values[0], values.shape[0]):
            raise MemoryError

    @cython.boundscheck(True)  # another thread may shorten a list
    def put_values(self, items not None, int kind):
        """Put a list or tuple of Python scalars that all are of `kind` (bytes: str or bytes).

        Raises OverflowError, TypeError, ValueError or BufferError for a value that does not fit.
        """
        cdef Py_ssize_t i = len(items)
        cdef int64_t integer
        cdef float single
        cdef double number
        cdef int overflow = 0
        cdef Py_buffer view
        if not make_room(&self.out, 64):
            raise MemoryError
        while i > 0:
            i -= 1
            item = items[i]
            if kind == KIND_INT64:
                integer = PyLong_AsLongLongAndOverflow(item, &overflow)
                if overflow:
                    raise OverflowError(f"{item} does not fit int64")
                if not put_int64s(&self.out, <const uint8_t *>&integer, 1):
                    raise MemoryError
            elif kind == KIND_FLOAT:
                number = item
                single = <float>number
                if single - single != 0 and number - number == 0:
                    raise OverflowError(f"{number!r} does not fit a 32-bit float")
                if not put_floats(&self.out, <const uint8_t *>&single, 1):
                    raise MemoryError
            else:
                if isinstance(item, str):
                    item = (<str>item).encode("utf-8", "surrogateescape")
                PyObject_GetBuffer(item, &view, PyBUF_SIMPLE)
                try:
                    if not put_bytes_value(&self.out, view.buf, view.len):
                        raise MemoryError
                finally:
                    PyBuffer_Release(&view)

    def put_features(self, features not None, kinds not None, encode_key not None,
                     put_value not None):
        """Put the map entries of a dict, sorted by key; None is left out.

        Plain values are put here. For all others, and for all that is wrong,
        put_value(encoder, key, value, declared) puts the values and answers their kind, or raises;
        encode_key(key) does so for keys that are no plain str.
        """
        cdef size_t mark
        cdef int kind
        cdef const char *text
        cdef Py_ssize_t size
        for key in sorted(features, reverse=True):
            value = features[key]
            if value is None:
                continue
            declared = kinds.get(key) if kinds else None
            mark = written(&self.out)
            kind = put_plain(&self.out, value)
            if kind < 0 or not (declared is None or declared == KIND_NAMES[kind]):
                self.out.at = self.out.base + self.out.capacity - mark
                kind = put_value(self, key, value, declared)
                if mark > written(&self.out):
                    raise MemoryError
            encoded = key
            if type(key) is not str or not PyUnicode_IS_COMPACT_ASCII(key):
                encoded = encode_key(key)
                text = PyBytes_AsString(encoded)
                size = PyBytes_GET_SIZE(encoded)
            else:
                text = PyUnicode_AsUTF8AndSize(key, &size)
            if not put_feature_entry(&self.out, mark, kind, text, size):
                raise MemoryError


@cython.boundscheck(True)  # another thread may shorten a list
cdef int put_plain(backward *out, value) except? -2:
    """Put a value, if it is one of the usual kinds through and through; its kind, or -1."""
    cdef type kind = type(value)
    cdef Py_ssize_t i
    cdef int code = -1
    if kind is list or kind is tuple:
        i = len(value)
        if i:
            kind = type(value[0])
        while i > 0:
            i -= 1
            item = value[i]
            code = put_scalar(out, kind, item) if type(item) is kind else -1
            if code < 0:
                break
        return code
    code = put_scalar(out, kind, value)
    if code < 0 and (kind is numpy_array or isinstance(value, numpy_scalar)):
        code = put_numpy(out, value)
    return code


cdef inline int put_scalar(backward *out, type kind, item) except? -2:
    cdef int overflow = 0
    cdef int64_t integer
    cdef double number
    cdef float single
    cdef const char *text
    cdef Py_ssize_t size
    if kind is int or kind is bool:
        integer = PyLong_AsLongLongAndOverflow(item, &overflow)
        if overflow:
            return -1
        if not make_room(out, 64):
            raise MemoryError
        put_varint(out, <uint64_t>integer)
        return KIND_INT64
    if kind is float:
        number = PyFloat_AS_DOUBLE(item)
        single = <float>number
        if single - single != 0 and number - number == 0:
            return -1
        if not put_floats(out, <const uint8_t *>&single, 1):
            raise MemoryError
        return KIND_FLOAT
    if kind is bytes:
        text = PyBytes_AS_STRING(item)
        size = PyBytes_GET_SIZE(item)
    elif kind is str and PyUnicode_IS_COMPACT_ASCII(item):
        text = PyUnicode_AsUTF8AndSize(item, &size)
    else:
        return -1
    if not put_bytes_value(out, text, size):
        raise MemoryError
    return KIND_BYTES


cdef int put_numpy(backward *out, value) except? -2:
    """Put an array or scalar of int64, float32 or float64 whose memory is as it is needed."""
    cdef Py_buffer view
    cdef Py_ssize_t i
    cdef double number
    cdef float single
    cdef int kind = -1
    try:
        PyObject_GetBuffer(value, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)
    except (BufferError, ValueError, TypeError):
        return -1
    try:
        if view.format is NULL or view.format[0] == 0 or view.format[1] != 0:
            return -1
        if view.itemsize == 8 and (view.format[0] == b"l" or view.format[0] == b"q"):
            if not put_int64s(out, <const uint8_t *>view.buf, view.len // 8):
                raise MemoryError
            return KIND_INT64
        if view.itemsize == 4 and view.format[0] == b"f":
            if not put_floats(out, <const uint8_t *>view.buf, view.len // 4):
                raise MemoryError
            return KIND_FLOAT
        if view.itemsize == 8 and view.format[0] == b"d":
            for i in range(view.len // 8 - 1, -1, -1):
                memcpy(&number, <const uint8_t *>view.buf + 8 * i, 8)
                single = <float>number
                if single - single != 0 and number - number == 0:
                    return -1
                if not put_floats(out, <const uint8_t *>&single, 1):
                    raise MemoryError
            return KIND_FLOAT
        return -1
    finally:
        PyBuffer_Release(&view)


cdef struct column_source:
    const uint8_t *key
    size_t key_size
    int kind
    const uint8_t *values   # int64, float32 or bytes
    const int64_t *ends     # bytes: ends[i]:ends[i + 1] is value i
    const int64_t *splits   # ragged: splits[row]:splits[row + 1] are the values of a row
    int64_t length          # fixed: how many values each row has


def encode_columns(list columns not None, Py_ssize_t row_count):
    """Encode rows of columns as Example payloads, end to end.

    Each column is (key, kind, values, ends, splits, length), sorted by key: values an int64,
    float32 or uint8 array, ends and splits int64 arrays or None. Returns (data, offsets) as
    Memory: uint8 and int64 (row_count + 1,).
    """
    cdef int count = <int>len(columns), i
    cdef Py_ssize_t row
    cdef int64_t first, last, at, item_count, limit
    cdef column_source *sources = <column_source *>calloc(count + 1, sizeof(column_source))
    cdef column_source *c
    cdef backward scratch
    cdef growing data, offsets
    cdef const uint8_t[::1] values
    cdef const int64_t[::1] ends, splits
    cdef bint good = True
    cdef size_t mark
    scratch.base = scratch.at = NULL
    scratch.capacity = 0
    memset(&data, 0, sizeof(data))
    memset(&offsets, 0, sizeof(offsets))
    if sources is NULL:
        raise MemoryError
    try:
        for i in range(count):
            c = &sources[i]
            key, c.kind, value_array, end_array, split_array, c.length = columns[i]
            c.key = <const uint8_t *>PyBytes_AS_STRING(key)
            c.key_size = PyBytes_GET_SIZE(key)
            values = value_array.view(np.uint8)
            c.values = &values[0]
            item_count = values.shape[0]
            if c.kind == KIND_INT64:
                item_count //= 8
            elif c.kind == KIND_FLOAT:
                item_count //= 4
            else:
                ends = end_array
                check_splits(ends, ends.shape[0] - 1, values.shape[0])
                c.ends = &ends[0]
                item_count = ends.shape[0] - 1
            if split_array is None:
                if c.length < 0 or c.length * row_count != item_count:
                    raise ValueError("a column does not have as many values as its rows need")
            else:
                splits = split_array
                check_splits(splits, row_count, item_count)
                c.splits = &splits[0]
        with nogil:
            good = push_int64(&offsets, 0)
            for row in range(row_count):
                scratch.at = scratch.base + scratch.capacity
                for i in range(count - 1, -1, -1):
                    c = &sources[i]
                    if c.splits is not NULL:
                        first = c.splits[row]
                        last = c.splits[row + 1]
                    else:
                        first = c.length * row
                        last = first + c.length
                    mark = written(&scratch)
                    if c.kind == KIND_INT64:
                        good = good and put_int64s(&scratch, c.values + 8 * first, last - first)
                    elif c.kind == KIND_FLOAT:
                        good = good and put_floats(&scratch, c.values + 4 * first, last - first)
                    else:
                        good = good and make_room(&scratch, 64)
                        for at in range(last - 1, first - 1, -1):
                            good = good and put_bytes_value(
                                &scratch, c.values + c.ends[at], c.ends[at + 1] - c.ends[at]
                            )
                    good = good and put_feature_entry(&scratch, mark, c.kind, c.key, c.key_size)
                good = good and make_room(&scratch, 16)
                if not good:
                    break
                put_delimited(&scratch, 1, 0)
                good = (push_bytes(&data, scratch.at, written(&scratch))
                        and push_int64(&offsets, <int64_t>data.size))
        if not good:
            raise MemoryError
        return take(&data), take(&offsets)
    finally:
        free(sources)
        free(scratch.base)
        release(&data)
        release(&offsets)


cdef int check_splits(const int64_t[::1] splits, Py_ssize_t count, int64_t limit) except -1:
    """Splits must begin at or after 0, never fall, and end within `limit`."""
    cdef Py_ssize_t i
    cdef bint good = splits.shape[0] == count + 1 and count >= 0 and splits[0] >= 0
    if good:
        for i in range(count):
            good = good and splits[i] <= splits[i + 1]
        good = good and splits[count] <= limit
    if not good:
        raise ValueError("splits do not fit the values")
    return 0
