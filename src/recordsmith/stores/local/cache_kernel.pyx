# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Finds, verifies and writes blocks of objects in a cache file, compiled: a shuffled epoch reads
thousands of them each second.

The file, little-endian: a head of 4,096 bytes, of which bytes 8:16 are the number of groups; then
the groups. A group is a table of 4,096 bytes and 16 slots of 256 KiB. A slot holds a part of an
object: 16 blocks of 16 KiB, of which any may be missing. Its entry in the table:
    0   8  hash of the name of the object
    8   8  hash of its name and version
    16  4  number of the part in the object
    20  4  when it was used, about, in seconds
    24  8 * 16  for each block CRC-32C (seeded with bytes 0:20 and the number of the block) and size;
           0 if it is missing. Only the last block of an object is shorter than 16 KiB.

A part may lie in either of two groups, which follow from its hashes and the number of groups. The
file is untrusted: sizes are checked, nothing is read or written outside the arrays, and bytes that
do not match their checksum are missing.
"""

from libc.errno cimport EINTR, EIO, errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from posix.unistd cimport pread, pwrite


cdef extern from "<sys/uio.h>" nogil:
    cdef struct iovec:
        void *iov_base
        size_t iov_len
    ssize_t preadv(int file, const iovec *pieces, int count, int64_t at)


cdef extern from "crc32c.h" nogil:
    void crc32c_init()
    uint32_t c_crc32c "crc32c"(uint32_t crc, const uint8_t *data, size_t size)


cdef enum:
    BLOCK = 1 << 14
    BLOCKS = 16
    PART = 1 << 18
    SLOTS = 16
    HEAD = 4096
    TABLE = 4096
    ENTRY = 152
    KEY = 20
    USED = 20
    CHECKS = 24
    GROUP = TABLE + SLOTS * PART

BLOCK_BYTES, PART_BYTES, HEAD_BYTES, TABLE_BYTES, GROUP_BYTES = BLOCK, PART, HEAD, TABLE, GROUP
SLOT_COUNT, BLOCK_COUNT, ENTRY_BYTES = SLOTS, BLOCKS, ENTRY

crc32c_init()


cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    """SplitMix64."""
    x += <uint64_t>0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)


cdef inline int64_t jump(uint64_t key, int64_t count) noexcept nogil:
    """Lamping and Veach's consistent hash: with another count, few keys move."""
    cdef int64_t found = 0, following = 0
    while following < count:
        found = following
        key = key * <uint64_t>2862933555777941757 + 1
        following = <int64_t>((found + 1) * (<double>(1LL << 31) / <double>((key >> 33) + 1)))
    return found


cdef struct Key:
    uint64_t name
    uint64_t version
    uint32_t part


cdef inline void groups_of(const Key *key, int64_t count, int64_t *found) noexcept nogil:
    cdef uint64_t hashed = mix(key.name ^ mix(key.version ^ mix(key.part)))
    found[0] = jump(hashed, count)
    found[1] = jump(mix(hashed), count)


cdef inline void store_key(uint8_t *at, const Key *key) noexcept nogil:
    memcpy(at, &key.name, 8)
    memcpy(at + 8, &key.version, 8)
    memcpy(at + 16, &key.part, 4)


cdef inline uint32_t seed_of(const uint8_t *key, uint8_t block) noexcept nogil:
    return c_crc32c(c_crc32c(0, key, KEY), &block, 1)


cdef inline int64_t group_start(int64_t group) noexcept nogil:
    return HEAD + group * GROUP


cdef int read_all(int file, uint8_t *out, size_t size, int64_t at) noexcept nogil:
    cdef ssize_t got
    while True:
        got = pread(file, out, size, at)
        if got >= 0 or errno != EINTR:
            return got == <ssize_t>size


cdef int write_all(int file, const uint8_t *data, size_t size, int64_t at) noexcept nogil:
    """Return 0 or an errno."""
    cdef ssize_t done
    while size:
        done = pwrite(file, data, size, at)
        if done < 0:
            if errno == EINTR:
                continue
            return errno
        if done == 0:
            return EIO
        data += done
        size -= done
        at += done
    return 0


cdef int64_t count_groups(int file) noexcept nogil:
    """The number of groups, 0 if it cannot be read or is impossible."""
    cdef int64_t count
    if not read_all(file, <uint8_t *>&count, 8, 8):
        return 0
    return count if 0 < count < <int64_t>1 << 40 else 0


cdef const uint8_t *find(
    int file, int64_t count, const Key *key, uint8_t *table, int64_t *group, int *slot
) noexcept nogil:
    """Return the entry of a part in `table`, which it is read into; NULL if it is not cached."""
    cdef uint8_t wanted[KEY]
    cdef int64_t places[2]
    cdef int i, j
    if count <= 0:
        return NULL
    store_key(wanted, key)
    groups_of(key, count, places)
    for i in range(2 if places[0] != places[1] else 1):
        if not read_all(file, table, SLOTS * ENTRY, group_start(places[i])):
            continue
        for j in range(SLOTS):
            if memcmp(table + j * ENTRY, wanted, KEY) == 0:
                group[0], slot[0] = places[i], j
                return table + j * ENTRY
    return NULL


cdef struct Missing:
    int64_t start  # -1 if nothing is missing
    int64_t stop
    int64_t end    # of the object; -1 if it was not reached


cdef inline void add_missing(Missing *missing, int64_t start, int64_t stop) noexcept nogil:
    if missing.start < 0:
        missing.start = start
    missing.stop = stop


cdef void read_part(
    int file, int64_t data_at, const uint8_t *entry, int64_t part_start, int64_t start, int64_t stop,
    uint8_t *out, Missing *missing,
) noexcept nogil:
    """Read the bytes start:stop of an object, which lie in one part, to `out`."""
    cdef uint8_t before[BLOCK]
    cdef uint8_t after[BLOCK]
    cdef iovec pieces[3]
    cdef uint32_t sizes[BLOCKS]
    cdef uint32_t crc, found
    cdef int first = (start - part_start) // BLOCK, last = (stop - 1 - part_start) // BLOCK
    cdef int low = -1, high = -1, i, count = 0
    cdef int64_t begin, end, at, block_start, block_stop, inside
    cdef ssize_t got
    for i in range(first, last + 1):
        memcpy(&sizes[i], entry + CHECKS + 8 * i + 4, 4)
        if sizes[i] == 0:
            continue
        if sizes[i] > BLOCK:
            sizes[i] = 0
            continue
        low = i if low < 0 else low
        high = i
        if sizes[i] < BLOCK:  # the object ends here
            for i in range(high + 1, last + 1):
                sizes[i] = 0
            break
    if low < 0:
        add_missing(missing, start, stop)
        return
    # one read: what is not wanted of the first and the last block goes elsewhere
    begin, end = part_start + low * BLOCK, part_start + high * BLOCK + sizes[high]
    if begin < start:
        pieces[count].iov_base, pieces[count].iov_len = before, start - begin
        count += 1
    if min(end, stop) > max(begin, start):
        pieces[count].iov_base = out + (max(begin, start) - start)
        pieces[count].iov_len = min(end, stop) - max(begin, start)
        count += 1
    if end > stop:
        pieces[count].iov_base, pieces[count].iov_len = after, end - stop
        count += 1
    while True:
        got = preadv(file, pieces, count, data_at + low * BLOCK)
        if got >= 0 or errno != EINTR:
            break
    for i in range(first, last + 1):
        block_start = part_start + i * BLOCK
        block_stop = block_start + sizes[i]
        if sizes[i] and got >= block_stop - begin:
            memcpy(&found, entry + CHECKS + 8 * i, 4)
            crc = seed_of(entry, i)
            at = block_start
            if at < start:
                inside = min(start, block_stop)
                crc = c_crc32c(crc, before + (at - begin), inside - at)
                at = inside
            if at < min(stop, block_stop):
                inside = min(stop, block_stop)
                crc = c_crc32c(crc, out + (at - start), inside - at)
                at = inside
            if at < block_stop:
                crc = c_crc32c(crc, after + (at - stop), block_stop - at)
            if crc == found:
                if sizes[i] < BLOCK:
                    missing.end = block_stop
                    return
                continue
        add_missing(missing, max(start, block_start), min(stop, block_start + BLOCK))


cdef void read_range(
    int file, Key *key, int64_t start, int64_t stop, uint8_t *out, uint32_t now,
    uint32_t refresh_after, Missing *missing,
) noexcept nogil:
    cdef uint8_t table[SLOTS * ENTRY]
    cdef int64_t at = start, part_start, part_stop, group = 0
    cdef int64_t count = count_groups(file)
    cdef uint32_t used
    cdef int slot = 0
    cdef const uint8_t *entry
    missing.start = missing.stop = missing.end = -1
    while at < stop and missing.end < 0:
        key.part = <uint32_t>(at // PART)
        part_start = at // PART * PART
        part_stop = min(stop, part_start + PART)
        entry = NULL
        if at // PART < <int64_t>1 << 32:
            entry = find(file, count, key, table, &group, &slot)
        if entry == NULL:
            add_missing(missing, at, part_stop)
        else:
            read_part(
                file, group_start(group) + TABLE + slot * PART, entry, part_start, at, part_stop,
                out + (at - start), missing,
            )
            memcpy(&used, entry + USED, 4)
            if now > used and now - used > refresh_after:
                write_all(file, <uint8_t *>&now, 4, group_start(group) + slot * ENTRY + USED)
        at = part_stop


def read(
    int file, uint64_t name, uint64_t version, int64_t start, int64_t stop, uint32_t now,
    uint32_t refresh_after,
):
    """Read the bytes start:stop of an object.

    Returns (data, missing_start, missing_stop): what is missing lies in missing_start:missing_stop,
    whose bytes in `data` mean nothing; (-1, -1) if nothing is missing. `data` is shorter if the
    object ends before.
    """
    cdef Key key
    cdef Missing missing
    if start < 0 or stop < start:
        raise IndexError("the range is invalid")
    data = PyBytes_FromStringAndSize(NULL, stop - start)
    cdef uint8_t *out = <uint8_t *>PyBytes_AS_STRING(data)
    key.name, key.version = name, version
    with nogil:
        read_range(file, &key, start, stop, out, now, refresh_after, &missing)
    if 0 <= missing.end < stop:
        data = data[: max(0, missing.end - start)]
    return data, missing.start, missing.stop


def places(uint64_t name, uint64_t version, uint32_t part, int64_t count):
    """Return the two groups, of `count`, in which a part may lie; they may be the same."""
    cdef Key key
    cdef int64_t found[2]
    if count <= 0:
        raise IndexError("there are no groups")
    key.name, key.version, key.part = name, version, part
    groups_of(&key, count, found)
    return found[0], found[1]


def claim(
    int file, int64_t group, int slot, uint64_t name, uint64_t version, uint32_t part, uint32_t now
):
    """Give a slot to a part, of which no block is there yet. Returns an errno, or 0."""
    cdef uint8_t entry[ENTRY]
    cdef Key key
    cdef int error
    _check_slot(group, slot)
    key.name, key.version, key.part = name, version, part
    memset(entry, 0, ENTRY)
    store_key(entry, &key)
    memcpy(entry + USED, &now, 4)
    with nogil:
        error = write_all(file, entry, ENTRY, group_start(group) + slot * ENTRY)
    return error


def write_blocks(
    int file, int64_t group, int slot, uint64_t name, uint64_t version, uint32_t part,
    int first, data,
):
    """Write blocks of a part to its slot, and then their checksums. Returns an errno, or 0.

    Args:
        first: the number of the first block in the part.
        data: whole blocks; only the last block of the object may be shorter.
    """
    cdef Py_buffer view
    cdef Key key
    cdef uint8_t start[KEY]
    cdef uint8_t checks[8 * BLOCKS]
    cdef int count, i, error
    cdef uint32_t crc, size
    cdef int64_t left
    _check_slot(group, slot)
    key.name, key.version, key.part = name, version, part
    store_key(start, &key)
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if first < 0 or first >= BLOCKS or view.len > PART - first * BLOCK:
            raise IndexError("the blocks do not fit into their part")
        with nogil:
            count = (view.len + BLOCK - 1) // BLOCK
            for i in range(count):
                left = view.len - i * BLOCK
                size = <uint32_t>min(left, <int64_t>BLOCK)
                crc = c_crc32c(
                    seed_of(start, first + i), <const uint8_t *>view.buf + i * BLOCK, size
                )
                memcpy(checks + 8 * i, &crc, 4)
                memcpy(checks + 8 * i + 4, &size, 4)
            error = write_all(
                file, <const uint8_t *>view.buf, view.len,
                group_start(group) + TABLE + slot * PART + first * BLOCK,
            )
            if error == 0:
                error = write_all(
                    file, checks, 8 * count,
                    group_start(group) + slot * ENTRY + CHECKS + 8 * first,
                )
    finally:
        PyBuffer_Release(&view)
    return error


cdef int _check_slot(int64_t group, int slot) except -1:
    if group < 0 or slot < 0 or slot >= SLOTS:
        raise IndexError("there is no such slot")
    return 0
