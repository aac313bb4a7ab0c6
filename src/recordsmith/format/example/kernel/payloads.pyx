# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Classify payloads and find fields in them."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from recordsmith.format.example.kernel.memory cimport growable_array, push_int64, take
from recordsmith.format.example.kernel.message cimport (
    DELIMITED,
    c_classify,
    read_delimited,
    read_tag,
    skip_field,
    span,
    span_of,
)
from recordsmith.format.example.kernel.places cimport spans_fit

cdef extern from "xxh64.h" nogil:
    uint64_t xxh64(const uint8_t *at, size_t size)

cdef extern from "tensor.h" nogil:
    ctypedef struct tensor_t "tensor":
        uint64_t dtype
        uint64_t expected
        uint64_t count
        int rank
        int has_content
        int64_t sides[32]
        span values
    int c_read_tensor "read_tensor"(span s, uint64_t missing, tensor_t *found)
    int read_tensor_values(tensor_t *found, uint64_t missing, uint8_t *out, uint64_t room)

KIND_NAMES = ("none", "bytes", "float", "int64")


def classify(const uint8_t[::1] payload not None):
    """Classify a payload by strict rules: a PAYLOAD_ number of classify.h."""
    return c_classify(span_of(&payload[0], payload.shape[0]))


def classify_many(const uint8_t[::1] buffer not None, const int64_t[::1] starts not None,
                  const int64_t[::1] lengths not None, uint8_t[::1] kinds not None):
    """Classify each payload, into `kinds`."""
    cdef Py_ssize_t i, count = starts.shape[0]
    cdef const uint8_t *base = &buffer[0]
    if not spans_fit(buffer.shape[0], starts, lengths) or kinds.shape[0] != count:
        raise IndexError("a payload lies outside the buffer")
    with nogil:
        for i in range(count):
            kinds[i] = <uint8_t>c_classify(span_of(base + starts[i], lengths[i]))


def submessages(const uint8_t[::1] buffer not None, const int64_t[::1] starts not None,
                const int64_t[::1] lengths not None, int field):
    """Find the messages of one field: (owners, starts, lengths), int64 as Memory.

    `owners` is the number of the payload that each lies in. Malformed payloads end where they do.
    """
    cdef growable_array owner, start, length
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


def copy_padded(const uint8_t[::1] buffer not None, const int64_t[::1] starts not None,
                const int64_t[::1] counts not None, uint8_t[:, :, ::1] out not None):
    """Copy values of one length to rows, `counts` of them to each, and zeros after them.

    out: (rows, width, length): value i is buffer[starts[i]:starts[i] + length].
    """
    cdef Py_ssize_t row, value, i = 0
    cdef Py_ssize_t width = out.shape[1], length = out.shape[2]
    cdef Py_ssize_t last = buffer.shape[0] - length
    if counts.shape[0] != out.shape[0]:
        raise IndexError("there is not one count for each row")
    with nogil:
        for row in range(counts.shape[0]):
            if not 0 <= counts[row] <= min(width, starts.shape[0] - i):
                i = -1
                break
            for value in range(counts[row]):
                if not 0 <= starts[i] <= last:
                    i = -1
                    break
                memcpy(&out[row, value, 0], &buffer[starts[i]], length)
                i += 1
            if i < 0:
                break
            if counts[row] < width and length:
                memset(&out[row, counts[row], 0], 0, (width - counts[row]) * length)
    if i != starts.shape[0]:
        raise IndexError("a value lies outside the buffer or its row")


def read_tensor(const uint8_t[::1] data not None, uint64_t missing, uint8_t[::1] out=None):
    """Read a serialised tensor, of which some last bytes may be missing.

    Returns a TENSOR_ code of tensor.h, the number of the dtype, the sides, how many values there
    are, where they begin, and whether they are stored as bytes. A list of values is copied to
    `out`, if it is given: floats as they are, others as uint64.
    """
    cdef tensor_t found
    cdef int i, code
    memset(&found, 0, sizeof(found))
    found.values = span_of(&data[0], data.shape[0])
    code = c_read_tensor(found.values, missing, &found)
    if out is not None and (code or not read_tensor_values(&found, 0, &out[0], out.shape[0])):
        raise IndexError("the list is not one that fits the memory for it")
    sides = tuple([found.sides[i] for i in range(found.rank)])
    return code, found.dtype, sides, found.count, found.values.at - &data[0], found.has_content != 0
