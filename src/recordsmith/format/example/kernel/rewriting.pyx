# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Rewrite payloads: drop, rename, add or change features.

A payload is walked down to the keys of its features. What stays is copied as it lies there, with
its place and its spelling; a length is rewritten only around a change.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.pythread cimport (
    NOWAIT_LOCK,
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_release_lock,
    PyThread_type_lock,
)
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from recordsmith.format.example.kernel.memory cimport (
    growable_array,
    push_bytes,
    push_int64,
    release,
    take_as_it_is,
)
from recordsmith.format.example.kernel.message cimport (
    DELIMITED,
    FIELD_1,
    FIELD_2,
    GOOD,
    KIND_BYTES,
    KIND_NONE,
    MALFORMED,
    NO_MEMORY,
    NOT_AN_EXAMPLE,
    PAYLOAD_EXAMPLE,
    PAYLOAD_SEQUENCE,
    c_classify,
    check_lists,
    count_values,
    map_entry,
    may_be_plain_example,
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

cdef extern from "growable_array.h" nogil:
    int reserve(growable_array *g, size_t extra)

cdef extern from "result_cache.h" nogil:
    ctypedef struct cached_result:
        const uint8_t *asked
        size_t size
        const uint8_t *given
        size_t given_size
        int number
        int next
    ctypedef struct result_cache:
        cached_result *held
        int count
    int is_result_for(const cached_result *a, const uint8_t *asked, size_t size)
    int find_result(const result_cache *all, const uint64_t *secret, const uint8_t *asked, size_t size)
    int cache_result(result_cache *all, const uint64_t *secret, const uint8_t *asked, size_t size,
                    const uint8_t *given, size_t given_size, int number)
    void release_results(result_cache *all)

cdef extern from "common_entry.h" nogil:
    int read_common_entry(
        span *features, const uint8_t *key, size_t key_size, span *items, uint64_t *count
    )

cdef uint64_t[2] secret  # random per process, so that a file cannot choose colliding keys
memcpy(secret, PyBytes_AS_STRING(os.urandom(16)), 16)


cdef enum:
    NOTHING = 0         # the action of a key that does not change
    # defects of a record in addition to those of message.pxd
    CLASH = 7           # two features would have one name
    TOO_LONG = 8
    MAX_CACHED = 10_000
    LONGEST_CACHED = 1000  # bytes of a cached key or value, and of a new value

cdef size_t FAR_TOO_LONG = <size_t>1 << 60

CODES = {
    "good": GOOD, "not an Example": NOT_AN_EXAMPLE, "clash": CLASH, "too long": TOO_LONG,
}


cdef struct action_state:
    bint drops
    const uint8_t *name     # the field of its new key; NULL keeps the name
    size_t name_size
    int recoder             # -1 keeps the value
    int stays_as            # the number of its name among those that must be free, if it keeps it
    int becomes             # that of its new name; -1: none of them


cdef struct edited_entry:
    # a map entry that is rewritten, or adjacent ones that are dropped: its start and stop, with tag
    # and length; the start of its content; the fields of its key and value, empty if missing
    const uint8_t *start
    const uint8_t *content
    const uint8_t *stop
    span key
    span value
    int action
    bint is_recoded
    const uint8_t *new_value  # NULL: at `new_at` in the uncached results for this record
    size_t new_at
    size_t new_value_size
    size_t size             # of its new content


cdef struct map_section:
    int field
    const uint8_t *start    # with tag and length
    const uint8_t *content
    const uint8_t *stop
    Py_ssize_t first        # its entries
    Py_ssize_t last
    size_t size             # of its new content


@cython.final
cdef class Rewriter:
    """Rewrites payloads. For one thread at a time."""

    cdef list kept           # owns the memory of the pointers
    cdef action_state *actions
    cdef int action_count
    cdef int recoder_count
    cdef int name_count
    cdef uint8_t *is_added   # of each name that must be free
    cdef int64_t *kept_in    # [2][name_count]: the last record in which a feature keeps this name
    cdef int64_t *made_in    # ... in which one gets it
    cdef Py_ssize_t *last_of  # [2][recoder_count]: the last entry of the record that it is for
    cdef span added
    cdef object action_of
    cdef object new_value_of
    cdef result_cache keys
    cdef result_cache *values     # [2][recoder_count]
    cdef growable_array entries     # of the current record
    cdef growable_array sections
    cdef growable_array fresh       # results that are not cached
    cdef int64_t serial
    cdef bint is_free        # no two features of the record get one name
    cdef const uint8_t *owner  # the map that gets the added features, or NULL
    cdef int guess           # the last key
    cdef size_t most_bytes
    cdef PyThread_type_lock busy  # a nested call, or another thread, would change the state above
    cdef readonly Py_ssize_t row
    """The record that the last call reached."""

    def __cinit__(self, list actions not None, bytes is_added not None, bytes added not None,
                  action_of not None, new_value_of not None, size_t most_bytes):
        """
        actions: (drops, name, recoder, stays_as, becomes) of each, the first being that of keys
            that stay. name: the field of the new key, or None; recoder: its number, or -1;
            stays_as, becomes: the number of the name that a feature keeps or gets, among those
            that nothing else may have; or -1.
        is_added: of each of these names 1 if a feature of it is added, else 0.
        added: map entries that are added to every record.
        action_of: key -> number of its action.
        new_value_of: (recoder, field of the map, field of a value) -> the new field of the value.
        most_bytes: no payload may become longer.
        """
        cdef int i = 0, names = <int>len(is_added), count = <int>len(actions)
        cdef action_state *action
        self.busy = PyThread_allocate_lock()
        if self.busy is NULL:
            raise MemoryError
        self.kept = [added]
        self.added = span_of(<const uint8_t *>PyBytes_AS_STRING(added), PyBytes_GET_SIZE(added))
        self.action_of, self.new_value_of = action_of, new_value_of
        self.most_bytes = most_bytes
        self.actions = <action_state *>calloc(count + 1, sizeof(action_state))
        if self.actions is NULL:
            raise MemoryError
        self.action_count, self.name_count = count, names
        for i in range(count):
            action = &self.actions[i]
            drops, name, action.recoder, action.stays_as, action.becomes = actions[i]
            action.drops = drops
            if name is not None:
                self.kept.append(<bytes?>name)
                action.name = <const uint8_t *>PyBytes_AS_STRING(name)
                action.name_size = PyBytes_GET_SIZE(name)
            if not (-1 <= action.stays_as < names and -1 <= action.becomes < names
                    and -1 <= action.recoder < 1 << 20):
                raise IndexError("an action has a number that there is not")
            self.recoder_count = max(self.recoder_count, action.recoder + 1)
        if count == 0:
            raise IndexError("there is no action for keys that stay")
        self.is_added = <uint8_t *>calloc(names + 1, 1)
        self.kept_in = <int64_t *>calloc(2 * names + 1, sizeof(int64_t))
        self.made_in = <int64_t *>calloc(2 * names + 1, sizeof(int64_t))
        self.last_of = <Py_ssize_t *>calloc(2 * self.recoder_count + 1, sizeof(Py_ssize_t))
        self.values = <result_cache *>calloc(2 * self.recoder_count + 1, sizeof(result_cache))
        if (self.is_added is NULL or self.kept_in is NULL or self.made_in is NULL
                or self.last_of is NULL or self.values is NULL):
            raise MemoryError
        memcpy(self.is_added, PyBytes_AS_STRING(is_added), names)

    def __dealloc__(self):
        cdef int i
        if self.values is not NULL:
            for i in range(2 * self.recoder_count):
                release_results(&self.values[i])
        release_results(&self.keys)
        release(&self.entries)
        release(&self.sections)
        release(&self.fresh)
        if self.busy is not NULL:
            PyThread_free_lock(self.busy)
        free(self.actions)
        free(self.is_added)
        free(self.kept_in)
        free(self.made_in)
        free(self.last_of)
        free(self.values)

    cdef inline int action_for(self, span key) except -1 nogil:
        """Return the action of a key, usually the one that followed the last key before."""
        cdef size_t size = key.end - key.at
        cdef int place
        if self.keys.count:
            place = self.keys.held[self.guess].next
            if not is_result_for(&self.keys.held[place], key.at, size):
                place = find_result(&self.keys, secret, key.at, size)
                if place < 0:
                    return self.ask_action(key)
                self.keys.held[self.guess].next = place
            self.guess = place
            return self.keys.held[place].number
        return self.ask_action(key)

    cdef int ask_action(self, span key) except -1 with gil:
        cdef size_t size = key.end - key.at
        cdef int number, place
        number = self.action_of(PyBytes_FromStringAndSize(<char *>key.at, size))
        if not 0 <= number < self.action_count:
            raise IndexError("there is no such action")
        if size <= LONGEST_CACHED and self.keys.count < MAX_CACHED:
            place = cache_result(&self.keys, secret, key.at, size, NULL, 0, number)
            if place < 0:
                raise MemoryError
            self.keys.held[self.guess].next = place
            self.guess = place
        return number

    cdef int recode(self, edited_entry *entry, int field) except -1 nogil:
        """Find the new value of an entry."""
        cdef size_t size = entry.value.end - entry.value.at
        cdef result_cache *known
        cdef int place
        known = &self.values[2 * self.actions[entry.action].recoder + field - 1]
        place = find_result(known, secret, entry.value.at, size)
        if place < 0:
            return self.ask_value(entry, field)
        entry.new_value = known.held[place].given
        entry.new_value_size = known.held[place].given_size
        return 0

    cdef int ask_value(self, edited_entry *entry, int field) except -1 with gil:
        cdef int recoder = self.actions[entry.action].recoder, place
        cdef result_cache *known = &self.values[2 * recoder + field - 1]
        cdef size_t size = entry.value.end - entry.value.at
        cdef const uint8_t *new
        cdef bytes given = self.new_value_of(
            recoder, field, PyBytes_FromStringAndSize(<char *>entry.value.at, size)
        )
        if given is None:
            raise TypeError("a new value is None; expected bytes")
        new = <const uint8_t *>PyBytes_AS_STRING(given)
        entry.new_value_size = PyBytes_GET_SIZE(given)
        if max(size, entry.new_value_size) <= LONGEST_CACHED and known.count < MAX_CACHED:
            place = cache_result(known, secret, entry.value.at, size, new, entry.new_value_size, 0)
            if place < 0:
                raise MemoryError
            entry.new_value = known.held[place].given
        else:
            entry.new_value = NULL
            entry.new_at = self.fresh.size
            if not push_bytes(&self.fresh, new, entry.new_value_size):
                raise MemoryError
        return 0

    cdef int find(self, span payload) except -1 nogil:
        """Collect the sections and entries of a record that change."""
        cdef int odd = 0, kind, code
        self.owner = last_features(payload) if self.added.at < self.added.end else NULL
        self.is_free = True
        if may_be_plain_example(payload):
            code = self.walk(payload, True, &odd)
            if code == GOOD and not odd:
                return GOOD if self.is_free else CLASH
            self.is_free = True
        kind = c_classify(payload)
        if kind != PAYLOAD_EXAMPLE and kind != PAYLOAD_SEQUENCE:
            return NOT_AN_EXAMPLE
        code = self.walk(payload, False, &odd)
        return CLASH if code == GOOD and not self.is_free else code

    cdef int walk(self, span rest, bint checking, int *odd) except -1 nogil:
        """`checking`: whether to check that features are well-formed.

        `odd` counts what speaks against an Example.
        """
        cdef span items, fields, values
        cdef map_section section
        cdef edited_entry entry
        cdef map_entry plain
        cdef uint32_t tag
        cdef cached_result *next_key
        cdef uint64_t count
        cdef int kind, inside = 0
        self.entries.size = self.sections.size = self.fresh.size = 0
        self.serial += 1
        memset(&entry, 0, sizeof(entry))
        memset(&section, 0, sizeof(section))
        while rest.at < rest.end:
            section.start = rest.at
            if not read_tag(&rest, &tag):
                return MALFORMED
            if tag != FIELD_1 and tag != FIELD_2:
                if not skip_field(&rest, tag, 0):
                    return MALFORMED
                continue
            if not read_delimited(&rest, &items):
                return MALFORMED
            section.field = tag >> 3
            section.content = items.at
            section.stop = rest.at
            section.first = self.entries.size // sizeof(edited_entry)
            while items.at < items.end:
                entry.start = items.at
                if checking and self.keys.count:
                    next_key = &self.keys.held[self.keys.held[self.guess].next]
                    kind = read_common_entry(&items, next_key.asked, next_key.size, &values, &count)
                    if kind != KIND_NONE:
                        if kind == KIND_BYTES and not count_values(values, kind, &count, &inside):
                            return MALFORMED
                        self.guess = self.keys.held[self.guess].next
                        entry.action = next_key.number
                        if entry.action == NOTHING:
                            continue
                        entry.content = entry.key.at = entry.start + 2
                        entry.key.end = entry.value.at = entry.content + 2 + next_key.size
                        entry.stop = entry.value.end = items.at
                        if not self.note(&entry, &section):
                            return NO_MEMORY
                        continue
                if not read_tag(&items, &tag):
                    return MALFORMED
                if tag != FIELD_1:
                    odd[0] += 1
                    if not skip_field(&items, tag, 0):
                        return MALFORMED
                    continue
                if not read_delimited(&items, &fields) or not read_entry(fields, &plain, odd):
                    return MALFORMED
                odd[0] += not plain.has_value
                if checking and not is_feature(plain.value):
                    return MALFORMED
                entry.action = self.action_for(plain.key)
                if entry.action == NOTHING:
                    continue
                entry.content = fields.at
                entry.stop = fields.end
                if not find_fields(fields, &entry):
                    return MALFORMED
                if not self.note(&entry, &section):
                    return NO_MEMORY
            section.last = self.entries.size // sizeof(edited_entry)
            if section.first < section.last or section.start == self.owner:
                if not push_bytes(&self.sections, &section, sizeof(section)):
                    return NO_MEMORY
        return GOOD

    cdef inline bint note(self, edited_entry *entry, map_section *section) noexcept nogil:
        """Record the name of an entry, and the entry if it changes."""
        cdef action_state *action = &self.actions[entry.action]
        cdef Py_ssize_t count = self.entries.size // sizeof(edited_entry)
        cdef edited_entry *before
        cdef int field = section.field, at = (field - 1) * self.name_count
        if action.drops and count > section.first:
            before = &(<edited_entry *>self.entries.data)[count - 1]
            if self.actions[before.action].drops and before.stop == entry.start:
                before.stop = entry.stop  # one dropped piece
                return True
        if action.stays_as >= 0:
            self.kept_in[at + action.stays_as] = self.serial
            if self.made_in[at + action.stays_as] == self.serial or (
                field == 1 and self.is_added[action.stays_as]
            ):
                self.is_free = False
        if action.becomes >= 0:
            self.made_in[at + action.becomes] = self.serial
            if self.kept_in[at + action.becomes] == self.serial:
                self.is_free = False
        if action.recoder >= 0:
            self.last_of[2 * action.recoder + field - 1] = count
        elif not action.drops and action.name is NULL:
            return True
        return push_bytes(&self.entries, entry, sizeof(edited_entry))

    cdef int measure(self, span payload, size_t *size) except -1 nogil:
        """Compute the new sizes, calling for new values."""
        cdef map_section *sections = <map_section *>self.sections.data
        cdef edited_entry *entries = <edited_entry *>self.entries.data
        cdef Py_ssize_t count = self.sections.size // sizeof(map_section), i, number
        cdef map_section *section
        cdef edited_entry *entry
        cdef action_state *action
        cdef size_t added = self.added.end - self.added.at
        size[0] = payload.end - payload.at
        for i in range(count):
            section = &sections[i]
            section.size = section.stop - section.content
            for number in range(section.first, section.last):
                entry = &entries[number]
                action = &self.actions[entry.action]
                section.size -= entry.stop - entry.start
                if action.drops:
                    continue
                entry.size = entry.stop - entry.content
                if action.name is not NULL:
                    entry.size += action.name_size - (entry.key.end - entry.key.at)
                # only the last of equal keys counts
                if (
                    action.recoder >= 0 and entry.value.at < entry.value.end
                    and self.last_of[2 * action.recoder + section.field - 1] == number
                ):
                    self.recode(entry, section.field)
                    entry.is_recoded = True
                    entry.size += entry.new_value_size - (entry.value.end - entry.value.at)
                section.size += field_size(entry.size)
                if section.size > FAR_TOO_LONG:  # what is added each time is shorter than that
                    return TOO_LONG
            if section.start == self.owner:
                section.size += added
            size[0] += field_size(section.size) - (section.stop - section.start)
            if size[0] > FAR_TOO_LONG:
                return TOO_LONG
        if added and self.owner is NULL:
            size[0] += field_size(added)
        return TOO_LONG if size[0] > self.most_bytes else GOOD

    cdef uint8_t *put(self, uint8_t *out, span payload) noexcept nogil:
        """Write a payload after its parts are measured."""
        cdef map_section *sections = <map_section *>self.sections.data
        cdef edited_entry *entries = <edited_entry *>self.entries.data
        cdef Py_ssize_t count = self.sections.size // sizeof(map_section), i, number
        cdef const uint8_t *at = payload.at
        cdef map_section *section
        cdef span added = self.added
        for i in range(count):
            section = &sections[i]
            out = put_bytes(out, at, section.start)
            out = put_head(out, section.field, section.size)
            at = section.content
            for number in range(section.first, section.last):
                out = put_bytes(out, at, entries[number].start)
                at = entries[number].stop
                if not self.actions[entries[number].action].drops:
                    out = self.put_entry(out, &entries[number])
            out = put_bytes(out, at, section.stop)
            at = section.stop
            if section.start == self.owner:
                out = put_bytes(out, added.at, added.end)
        out = put_bytes(out, at, payload.end)
        if added.at < added.end and self.owner is NULL:
            out = put_bytes(put_head(out, 1, added.end - added.at), added.at, added.end)
        return out

    cdef inline uint8_t *put_entry(self, uint8_t *out, edited_entry *entry) noexcept nogil:
        cdef action_state *action = &self.actions[entry.action]
        cdef const uint8_t *at = entry.content
        cdef const uint8_t *new = entry.new_value
        cdef bint key_is_put = action.name is NULL
        out = put_head(out, 1, entry.size)
        if not key_is_put and entry.key.at <= entry.value.at:
            out = put_bytes(put_bytes(out, at, entry.key.at), action.name,
                            action.name + action.name_size)
            at = entry.key.end
            key_is_put = True
        if entry.is_recoded:
            if new is NULL:
                new = self.fresh.data + entry.new_at
            out = put_bytes(put_bytes(out, at, entry.value.at), new, new + entry.new_value_size)
            at = entry.value.end
        if not key_is_put:
            out = put_bytes(put_bytes(out, at, entry.key.at), action.name,
                            action.name + action.name_size)
            at = entry.key.end
        return put_bytes(out, at, entry.stop)

    def rewrite(self, const uint8_t[::1] buffer not None, const int64_t[::1] starts not None,
                const int64_t[::1] lengths not None, Py_ssize_t first, size_t enough):
        """Rewrite the payloads buffer[starts[i]:starts[i] + lengths[i]] from number `first` on,
        until there are `enough` bytes.

        Returns (code, stop, data, offsets): the new payloads of first:stop lie end to end in data,
        uint8; offsets, int64 (stop - first + 1,), tells where each begins and ends. With a code
        that is not GOOD, `stop` is the record that has the defect. Whatever the functions raise
        that are asked is handed on, and `row` is the record.
        """
        cdef Py_ssize_t count = starts.shape[0]
        cdef growable_array data, offsets
        cdef int code = GOOD
        memset(&data, 0, sizeof(data))
        memset(&offsets, 0, sizeof(offsets))
        if not spans_fit(buffer.shape[0], starts, lengths) or not 0 <= first <= count:
            raise IndexError("a payload lies outside the buffer")
        if not PyThread_acquire_lock(self.busy, NOWAIT_LOCK):
            raise RuntimeError("a Rewriter is for one thread at a time, and not for what it asks")
        self.row = first
        try:
            with nogil:
                code = self.rewrite_some(
                    &buffer[0], starts, lengths, max(enough, <size_t>1), &data, &offsets
                )
            if code == NO_MEMORY:
                raise MemoryError
            return code, self.row, take_as_it_is(&data), take_as_it_is(&offsets)
        finally:
            PyThread_release_lock(self.busy)
            release(&data)
            release(&offsets)

    cdef int rewrite_some(self, const uint8_t *base, const int64_t[::1] starts,
                          const int64_t[::1] lengths, size_t enough, growable_array *data,
                          growable_array *offsets) except -1 nogil:
        cdef span payload
        cdef int code
        cdef size_t size = 0
        cdef Py_ssize_t last = self.row
        cdef uint8_t *end
        while last < starts.shape[0] and size < enough:  # an estimate of the output
            size += lengths[last] + (self.added.end - self.added.at)
            last += 1
        if size > enough // 8:
            size = max(size, enough)  # one size, so that freed pieces are reused
        if not reserve(data, size + size // 8) or not reserve(offsets, 8 * (last - self.row + 1)):
            return NO_MEMORY
        push_int64(offsets, 0)
        while self.row < starts.shape[0] and data.size < enough:
            payload = span_of(base + starts[self.row], lengths[self.row])
            code = self.find(payload)
            if code == GOOD:
                code = self.measure(payload, &size)
            if code != GOOD:
                return code
            if not reserve(data, size + 1):
                return NO_MEMORY
            end = self.put(data.data + data.size, payload)
            if <size_t>(end - data.data) - data.size != size:
                with gil:
                    raise AssertionError("a payload is not as long as it was measured")
            data.size += size
            if not push_int64(offsets, <int64_t>data.size):
                return NO_MEMORY
            self.row += 1
        return GOOD


cdef const uint8_t *last_features(span payload) noexcept nogil:
    """Find the last map of features in a payload, or NULL."""
    cdef const uint8_t *found = NULL
    cdef const uint8_t *field
    cdef uint32_t tag
    while payload.at < payload.end:
        field = payload.at
        if not read_tag(&payload, &tag) or not skip_field(&payload, tag, 0):
            break
        if tag == FIELD_1:
            found = field
    return found


cdef bint is_feature(span value) noexcept nogil:
    cdef int kind, odd = 0
    cdef span values
    return read_feature(value, &kind, &values, &odd) and check_lists(values, kind)


cdef bint find_fields(span fields, edited_entry *entry) noexcept nogil:
    """Find the fields of key and value in an entry."""
    cdef const uint8_t *field
    cdef span inner
    cdef uint32_t tag
    entry.key.at = entry.key.end = fields.at
    entry.value.at = entry.value.end = fields.end
    while fields.at < fields.end:
        field = fields.at
        if not read_tag(&fields, &tag):
            return False
        if tag == FIELD_1 or tag == FIELD_2:
            if not read_delimited(&fields, &inner):
                return False
            inner.at = field
            if tag == FIELD_1:
                entry.key = inner
            else:
                entry.value = inner
        elif not skip_field(&fields, tag, 0):
            return False
    return True


cdef inline size_t field_size(size_t content) noexcept nogil:
    """Return the size of a field with a tag of one byte and its length."""
    cdef size_t size = 2 + content, rest = content >> 7
    while rest:
        size += 1
        rest >>= 7
    return size


cdef inline uint8_t *put_head(uint8_t *out, int field, size_t size) noexcept nogil:
    out[0] = <uint8_t>(field << 3 | DELIMITED)
    out += 1
    while size >= 128:
        out[0] = <uint8_t>(size | 128)
        out += 1
        size >>= 7
    out[0] = <uint8_t>size
    return out + 1


cdef inline uint8_t *put_bytes(uint8_t *out, const uint8_t *at, const uint8_t *end) noexcept nogil:
    if at < end:
        memcpy(out, at, end - at)
        out += end - at
    return out
