# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Frames over buffers, compiled. No policy: buffers and integer arrays in, numbers out.

A frame is: length (8 bytes, little-endian), masked CRC-32C of those 8 bytes, the payload, masked
CRC-32C of the payload. Source: tensorflow/core/lib/io/record_writer.h.

Every length is compared with the bytes that are left before it is used; nothing is read outside
[0, len(buffer)) and nothing is written outside the arrays that are handed in.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer


cdef extern from "crc32c.h" nogil:
    void crc32c_init()
    uint32_t c_crc32c "crc32c"(uint32_t crc, const uint8_t *data, size_t size)
    uint32_t (*crc32c_implementations[3])(uint32_t crc, const uint8_t *data, size_t size)
    int crc32c_implementation_count
    uint32_t crc32c_mask(uint32_t crc)


cdef enum:
    HEADER = 12
    FOOTER = 4
    RELEASE_FROM = 1 << 18  # bytes: below, releasing the lock costs more than the work
    # what ended a scan
    END = 0             # the buffer ended after a record, or the arrays are full
    PARTIAL_HEADER = 1  # fewer than 12 bytes are left
    PARTIAL_PAYLOAD = 2 # the length is more than what is left
    LENGTH_CRC = 3
    PAYLOAD_CRC = 4
    # what else ends a gather
    MISPLACED = 5       # the frame is not where it should be, or has another length
    NO_ROOM = 6
    FRAMES_AHEAD = 6    # how many frames to prefetch


cdef extern from *:
    """
    #if defined(__GNUC__)
    #define recordsmith_prefetch(p) __builtin_prefetch(p)
    #else
    #define recordsmith_prefetch(p)
    #endif
    """
    void prefetch "recordsmith_prefetch"(const uint8_t *p) nogil


crc32c_init()


cdef inline uint32_t load32(const uint8_t *p) noexcept nogil:
    return p[0] | <uint32_t>p[1] << 8 | <uint32_t>p[2] << 16 | <uint32_t>p[3] << 24


cdef inline uint64_t load64(const uint8_t *p) noexcept nogil:
    return load32(p) | <uint64_t>load32(p + 4) << 32


cdef inline void store32(uint8_t *p, uint32_t value) noexcept nogil:
    cdef int i
    for i in range(4):
        p[i] = <uint8_t>(value >> (8 * i))


cdef inline uint8_t *store_frame(uint8_t *out, const uint8_t *payload, uint64_t size) noexcept nogil:
    """Write one frame at `out`; return where the next begins."""
    cdef int i
    for i in range(8):
        out[i] = <uint8_t>(size >> (8 * i))
    store32(out + 8, crc32c_mask(c_crc32c(0, out, 8)))
    memcpy(out + HEADER, payload, size)
    # over the source, which the copy has loaded into the cache
    store32(out + HEADER + size, crc32c_mask(c_crc32c(0, payload, size)))
    return out + HEADER + size + FOOTER


def crc32c(const uint8_t[::1] data not None, uint32_t value=0):
    """Return the CRC-32C of `data`, continuing from `value`."""
    with nogil:
        value = c_crc32c(value, &data[0], data.shape[0])
    return value


WAY_COUNT = crc32c_implementation_count  # implementations on this processor: a table, then faster ones


def crc32c_by(int way, const uint8_t[::1] data not None, uint32_t value=0):
    """Return the CRC-32C by one implementation, 0 <= way < WAY_COUNT, for tests."""
    if way < 0 or way >= crc32c_implementation_count:
        raise IndexError("this processor does not have this implementation")
    with nogil:
        value = crc32c_implementations[way](value, &data[0], data.shape[0])
    return value


def masked_crc32c(const uint8_t[::1] data not None):
    """Return the checksum as a frame stores it."""
    cdef uint32_t value
    with nogil:
        value = crc32c_mask(c_crc32c(0, &data[0], data.shape[0]))
    return value


cdef inline int check_frame(
    const uint8_t *base, Py_ssize_t at, Py_ssize_t size, bint check_payload_crc, uint64_t *length
) noexcept nogil:
    """Check the frame at base[at], at < size; return its defect, or END if it is intact.

    `length` is that of its payload, and valid only if the frame is complete.
    """
    if size - at < HEADER:
        return PARTIAL_HEADER
    length[0] = load64(base + at)
    if load32(base + at + 8) != crc32c_mask(c_crc32c(0, base + at, 8)):
        return LENGTH_CRC
    if size - at < HEADER + FOOTER or length[0] > <uint64_t>(size - at - HEADER - FOOTER):
        return PARTIAL_PAYLOAD
    if check_payload_crc and load32(base + at + HEADER + length[0]) != crc32c_mask(
        c_crc32c(0, base + at + HEADER, length[0])
    ):
        return PAYLOAD_CRC
    return END


def scan(
    const uint8_t[::1] buffer not None,
    Py_ssize_t start,
    int64_t[::1] starts not None,
    int64_t[::1] lengths not None,
    bint check_payload_crc,
):
    """Scan frames from `start`; store the starts and lengths of payloads.

    Returns (count, stop, code): `stop` is where the frame begins that ended the scan.
    """
    cdef Py_ssize_t size = buffer.shape[0], at = start, count = 0
    cdef Py_ssize_t capacity = min(starts.shape[0], lengths.shape[0])
    cdef const uint8_t *base = &buffer[0]
    cdef uint64_t length
    cdef int code = END
    if start < 0 or start > size:
        raise IndexError("start lies outside the buffer")
    with nogil:
        while at < size and count < capacity:
            code = check_frame(base, at, size, check_payload_crc, &length)
            if code != END:
                break
            starts[count] = at + HEADER
            lengths[count] = <int64_t>length
            count += 1
            at += HEADER + <Py_ssize_t>length + FOOTER
    return count, at, code


def check(const uint8_t[::1] buffer not None, Py_ssize_t start):
    """Check both checksums of the frames from `start` and count them.

    Returns (count, stop, code), as `scan` does.
    """
    cdef Py_ssize_t size = buffer.shape[0], at = start, count = 0
    cdef const uint8_t *base = &buffer[0] if size else NULL
    cdef uint64_t length
    cdef int code = END
    if start < 0 or start > size:
        raise IndexError("start lies outside the buffer")
    with nogil:
        while at < size:
            code = check_frame(base, at, size, True, &length)
            if code != END:
                break
            count += 1
            at += HEADER + <Py_ssize_t>length + FOOTER
    return count, at, code


def find_header(const uint8_t[::1] buffer not None, Py_ssize_t start, Py_ssize_t stop, int64_t end):
    """Find the first place in buffer[start:stop] with a length and its checksum, of a frame that
    ends by `end`; return `stop` if there is none.

    `end`, the end of the file, counts from the start of the buffer and may lie after it. Places
    with fewer than twelve bytes in the buffer are skipped.

    Guarantees: start <= result <= stop; if result < stop, buffer[result:] has twelve bytes with a
    valid checksum, result + 16 + length <= end, and result is the first such place. Nothing is read
    outside the buffer.
    """
    cdef Py_ssize_t at = start, last = min(stop, buffer.shape[0] - HEADER + 1), step
    cdef const uint8_t *base = &buffer[0] if buffer.shape[0] else NULL
    cdef const uint8_t *place
    cdef uint64_t length
    cdef uint8_t zeros[8]
    cdef uint32_t crc_of_zeros
    if start < 0 or start > stop or stop > buffer.shape[0]:
        raise IndexError("start and stop lie outside the buffer")
    # below 2**56, the top byte of a length is zero: a nonzero byte at at + 7 cannot be one of the
    # top bytes of a length at `at` or shortly after it
    step = 0 if end >> 56 else 1
    while 0 < step < 7 and end >> (8 * (7 - step)) == 0:
        step += 1
    with nogil:
        memset(zeros, 0, 8)
        crc_of_zeros = crc32c_mask(c_crc32c(0, zeros, 8))
        while at < last:
            place = base + at
            if place[7] and step:
                at += step
                continue
            length = load64(place)
            if at + HEADER + FOOTER <= end and length <= <uint64_t>(end - at - HEADER - FOOTER):
                # runs of zeros are common on disks: skip their checksums
                if load32(place + 8) == (
                    crc32c_mask(c_crc32c(0, place, 8)) if length else crc_of_zeros
                ):
                    break
            at += 1
    return at if at < last else stop


def gather(
    const uint8_t[::1] buffer not None,
    const int64_t[::1] begins not None,
    const int64_t[::1] ends not None,
    const int64_t[::1] places not None,
    uint8_t[::1] out not None,
    bint check_payload_crc,
    bint whole,
):
    """Copy the payloads of the frames buffer[begins[i]:ends[i]] to out[places[i]:]; or, if `whole`,
    the frames. Checks the copy, as the buffer may be a memory-mapped file that changes. After an
    error, the places of the frames from `count` on may have been written to.

    Returns (count, code): how many were copied, and the defect of the next frame: END if there is
    none, MISPLACED if the frame has another length.
    """
    cdef Py_ssize_t size = buffer.shape[0], room = out.shape[0], count = begins.shape[0], i = 0
    cdef const uint8_t *base = &buffer[0] if size else NULL
    cdef uint8_t *target = &out[0] if room else NULL
    cdef const uint8_t *frame
    cdef uint8_t *payload
    cdef uint8_t header[HEADER]
    cdef int64_t length, copied
    cdef uint32_t stored
    cdef int code = END
    if ends.shape[0] != count or places.shape[0] != count:
        raise IndexError("begins, ends and places differ in length")
    with nogil:
        while i < count:
            if i + FRAMES_AHEAD < count and 0 <= begins[i + FRAMES_AHEAD] < size:
                prefetch(base + begins[i + FRAMES_AHEAD])
            if begins[i] < 0 or ends[i] < begins[i] or ends[i] > size:
                code = MISPLACED
                break
            length = ends[i] - begins[i] - HEADER - FOOTER
            if length < 0:
                code = MISPLACED
                break
            frame = base + begins[i]
            memcpy(header, frame, HEADER)
            if load32(header + 8) != crc32c_mask(c_crc32c(0, header, 8)):
                code = LENGTH_CRC
                break
            if load64(header) != <uint64_t>length:
                code = MISPLACED
                break
            copied = length + HEADER + FOOTER if whole else length
            if places[i] < 0 or copied > room - places[i]:
                code = NO_ROOM
                break
            payload = target + places[i]
            if whole:
                memcpy(payload, header, HEADER)
                payload += HEADER
                memcpy(payload, frame + HEADER, length + FOOTER)
                stored = load32(payload + length)
            else:
                if length:
                    memcpy(payload, frame + HEADER, length)
                stored = load32(frame + HEADER + length)
            if check_payload_crc and stored != crc32c_mask(c_crc32c(0, payload, length)):
                code = PAYLOAD_CRC
                break
            i += 1
    if code == NO_ROOM:
        raise IndexError("a payload or frame does not fit into its place")
    return i, code


def lengths_of_headers(const uint8_t[:, ::1] headers not None, int64_t room, int64_t[::1] lengths not None):
    """Read the lengths of payloads from the headers of frames that follow each other.

    `room` is the number of bytes from the first header on. Returns (count, stop): how many frames
    lie in them and have a valid checksum of their length, and where the last of these ends.
    """
    cdef Py_ssize_t most = headers.shape[0], count = 0
    cdef uint64_t length
    cdef int64_t at = 0
    if headers.shape[1] != HEADER or lengths.shape[0] < most:
        raise IndexError("headers have another size, or lengths is too short")
    while count < most and room - at >= HEADER + FOOTER:
        length = load64(&headers[count, 0])
        if load32(&headers[count, 8]) != crc32c_mask(c_crc32c(0, &headers[count, 0], 8)):
            break
        if length > <uint64_t>(room - at - HEADER - FOOTER):
            break
        lengths[count] = <int64_t>length
        at += HEADER + <int64_t>length + FOOTER
        count += 1
    return count, at


def frame_list(list payloads not None):
    """Frames of a list of bytes-like payloads, one after the other, as bytes."""
    cdef Py_ssize_t total = 0
    cdef Py_buffer view
    cdef uint8_t *out
    for payload in payloads:
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        total += view.len + HEADER + FOOTER
        PyBuffer_Release(&view)
    result = PyBytes_FromStringAndSize(NULL, total)
    out = <uint8_t *>PyBytes_AS_STRING(result)
    cdef uint8_t *end = out + total
    for payload in payloads:
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        if view.len + HEADER + FOOTER > end - out:  # it grew meanwhile
            PyBuffer_Release(&view)
            raise ValueError("a payload changed its size while it was written")
        if view.len < RELEASE_FROM:
            out = store_frame(out, <const uint8_t *>view.buf, view.len)
        else:
            with nogil:
                out = store_frame(out, <const uint8_t *>view.buf, view.len)
        PyBuffer_Release(&view)
    if out != end:
        raise ValueError("a payload changed its size while it was written")
    return result


def frame_into(payload not None, uint8_t[::1] out not None, Py_ssize_t at):
    """Frame one payload into `out` at byte `at`; return the end of the frame, 0 if it does not fit."""
    cdef Py_buffer view
    cdef uint8_t *place
    cdef uint8_t *end = NULL
    if at < 0 or at > out.shape[0]:
        raise IndexError("at lies outside the buffer")
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    if view.len + HEADER + FOOTER <= out.shape[0] - at:
        place = &out[0] + at
        if view.len < RELEASE_FROM:
            end = store_frame(place, <const uint8_t *>view.buf, view.len)
        else:
            with nogil:
                end = store_frame(place, <const uint8_t *>view.buf, view.len)
        at += end - place
    PyBuffer_Release(&view)
    return at if end is not NULL else 0


def frame_slices(
    const uint8_t[::1] data not None, const int64_t[::1] offsets not None, uint8_t[::1] out not None
):
    """Frame data[offsets[i]:offsets[i + 1]] for each i into `out`, which must fit exactly."""
    cdef Py_ssize_t count = offsets.shape[0] - 1, i
    cdef uint8_t *place = &out[0]
    cdef const uint8_t *base = &data[0]
    cdef bint good = count >= 0 and offsets[0] >= 0 and offsets[count] <= data.shape[0]
    if good:
        for i in range(count):
            if offsets[i] > offsets[i + 1]:
                good = False
                break
    if not good or out.shape[0] != offsets[count] - offsets[0] + count * (HEADER + FOOTER):
        raise ValueError("offsets do not fit data and out")
    with nogil:
        for i in range(count):
            place = store_frame(place, base + offsets[i], offsets[i + 1] - offsets[i])
