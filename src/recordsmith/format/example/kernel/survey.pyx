# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Count the features of many payloads without decoding values."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport INT64_MAX, SIZE_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from recordsmith.format.example.kernel.memory cimport growable_array, push_int64, release
from recordsmith.format.example.kernel.message cimport (
    DELIMITED,
    FIELD_1,
    KIND_BYTES,
    KIND_NONE,
    PAYLOAD_EXAMPLE,
    c_classify,
    count_values,
    map_entry,
    may_be_plain_example,
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

cdef extern from "common_entry.h" nogil:
    int read_common_entry(
        span *features, const uint8_t *key, size_t key_size, span *items, uint64_t *count
    )
    int read_common_feature(
        const uint8_t *at, const uint8_t *stop, span *items, uint64_t *count
    )
    int are_same(const uint8_t *a, const uint8_t *b, size_t size)

cdef extern from "content.h" nogil:
    int CONTENT_RAW
    int content_of(span value)

cdef extern from "tensor.h" nogil:
    enum:
        NO_TENSORS
        OTHER_VALUES
        SEVERAL_DTYPES
    ctypedef struct tensors_t "tensors":
        int dtype
        int rank
        int64_t sides[6]
    void merge_tensors(tensors_t *all, const tensors_t *other)
    void survey_tensor(span value, tensors_t *all)


cdef enum:
    # how many keys are compared one by one before using Python's dict
    FEW_KEYS = 32
    # the number of all keys that a survey does not keep
    OTHERS = 0


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
    tensors_t tensors       # of its raw values
    # the current record, counted at its end, as the last of equal keys counts
    int64_t row
    int row_kinds           # one bit a kind: steps of a feature list may differ
    int64_t row_min
    int64_t row_max
    int64_t row_steps
    int64_t row_contents[3]
    int64_t row_bytes
    tensors_t row_tensors
    int next


@cython.final
cdef class FeatureSurvey:
    """Counts the features of many payloads without decoding values. For one thread.

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
    cdef growable_array touched     # numbers of the features of the current record
    cdef int64_t row
    cdef int64_t most_keys, most_key_bytes, listed_keys, listed_key_bytes
    cdef int64_t room, room_bytes  # limits above which keys are dropped
    cdef int64_t key_bytes
    cdef bint is_over        # there were more keys than are kept
    cdef bytes last          # of the kept keys, once there were more

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
        self.add(None)  # the entry of all dropped keys

    def __dealloc__(self):
        free(self.states)
        release(&self.touched)

    cdef inline int number_of(self, span key) except -1 nogil:
        """Look up the number of a key that did not follow the last key before."""
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
        """Begin to count a key; None stands for the dropped keys and equals no key."""
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
        """Drop keys between two records: those not in Examples, and most of too many."""
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
        """Select the keys of Examples, or the first by name of too many, and set the bounds."""
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
        cdef span values, items
        kind = read_common_feature(feature.at, feature.end, &items, &count)
        if kind == KIND_NONE:
            if not read_feature(feature, &kind, &values, &odd):
                return False
            while next_list(&values, kind, &items):
                if not self.see_list(f, items, kind, &count):
                    return False
        elif kind != KIND_BYTES:
            f.row_bytes += items.end - items.at
        elif not self.see_list(f, items, kind, &count):
            return False
        f.row_kinds |= 1 << kind
        f.row_min = min(f.row_min, <int64_t>count)
        f.row_max = max(f.row_max, <int64_t>count)
        return True

    cdef bint see_list(
        self, feature_state *f, span items, int kind, uint64_t *count
    ) noexcept nogil:
        cdef int odd = 0, content
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
            content = content_of(item)
            f.row_contents[content] += 1
            if content == CONTENT_RAW:
                survey_tensor(item, &f.row_tensors)
            count[0] += 1
        return True

    cdef inline bint begin_entry(self, int number) noexcept nogil:
        """Undo an earlier entry of the same record with the same key."""
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
        f.row_tensors.dtype = NO_TENSORS
        return True

    cdef inline bint see_usual(
        self, int number, int kind, span items, uint64_t count
    ) noexcept nogil:
        """Count the result of read_common_entry."""
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
        """Count the current record."""
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
                merge_tensors(&f.tensors, &f.row_tensors)
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
        """Discard the current record."""
        self.touched.size = 0
        self.row += 1
        if self.state_count > self.room or self.key_bytes > self.room_bytes:
            return self.let_go()
        return 0

    cdef bint see_record(self, span rest, uint32_t wanted, bint lists, int *odd) except -1 nogil:
        """Read one payload, to be counted by end_row; return False if it is malformed.

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
                    kind = read_common_entry(
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
        """Drop keys above the limits; return whether all keys of Examples are kept."""
        self.drop_row()
        self.let_go()
        return not self.is_over

    def finish(self):
        """Return for each kept key (key, kinds, contents, present, lengths, steps, value_bytes,
        tensors).

        tensors: of raw values: None without any; False if one is no serialised tensor; otherwise
            the number of their dtype and their sides, None where they differ.
        """
        self.settle()
        return [
            (
                self.keys[i], list(self.states[i].kinds), list(self.states[i].contents),
                self.states[i].present,
                (min(self.states[i].min_length, self.states[i].max_length),
                 self.states[i].max_length),
                (self.states[i].min_steps, self.states[i].max_steps), self.states[i].value_bytes,
                described(&self.states[i].tensors),
            )
            for i in range(1, self.state_count)
        ]


cdef object described(const tensors_t *tensors):
    if tensors.dtype == NO_TENSORS:
        return None
    if tensors.dtype == OTHER_VALUES:
        return False
    sides = [None if tensors.sides[i] < 0 else tensors.sides[i] for i in range(tensors.rank)]
    return (
        None if tensors.dtype == SEVERAL_DTYPES else tensors.dtype,
        None if tensors.rank < 0 else sides,
    )


cdef inline int64_t with_slack(int64_t most) noexcept nogil:
    """Add a quarter, so that keys are not dropped too often."""
    return most if most == INT64_MAX else most + most // 4 + 1
