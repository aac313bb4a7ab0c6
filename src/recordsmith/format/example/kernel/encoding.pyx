# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Encode dicts or rows of columns as payloads."""

cimport cython
from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_SIMPLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cpython.bytes cimport (
    PyBytes_AS_STRING,
    PyBytes_AsString,
    PyBytes_FromStringAndSize,
    PyBytes_GET_SIZE,
)
from cpython.float cimport PyFloat_AS_DOUBLE
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from recordsmith.format.example.kernel.memory cimport growable_array, take_as_it_is
from recordsmith.format.example.kernel.message cimport KIND_BYTES, KIND_FLOAT, KIND_INT64, KIND_NONE

import numpy as np

from recordsmith.format.example.kernel.payloads import KIND_NAMES

cdef object numpy_array = np.ndarray, numpy_scalar = np.generic

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    bint PyUnicode_IS_COMPACT_ASCII(object text)

cdef extern from "backward.h" nogil:
    ctypedef struct backward:
        uint8_t *base
        uint8_t *at
        size_t capacity
        bint is_borrowed
    size_t written(const backward *b)
    int make_room(backward *b, size_t extra)
    void put_delimited(backward *b, int field, size_t mark)
    void put_varint(backward *b, uint64_t value)
    int put_int64s(backward *b, const uint8_t *values, size_t count)
    int put_floats(backward *b, const uint8_t *values, size_t count)
    int put_bytes_value(backward *b, const void *data, size_t size)
    int put_feature_entry(backward *b, size_t mark, int kind, const void *key, size_t key_size)


cdef class Encoder:
    """Writes payloads back to front, one at a time; reuses its memory."""

    cdef backward out

    def __cinit__(self):
        self.out.base = self.out.at = NULL
        self.out.capacity = 0
        self.out.is_borrowed = False
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
        """Make a map entry from what was written since `mark`.

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
        """Put the map entries of a dict, sorted by key; None is omitted.

        Plain values are put here. For all others, and for all that is wrong,
        put_value(encoder, key, value, declared) writes the values and returns their kind, or raises;
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
    """Write a value of common types only; return its kind, or -1 for other types."""
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
    """Put an array of at most one axis, or a scalar, of int64, float32 or float64 with suitable
    memory."""
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
        if view.ndim > 1 or view.format is NULL or view.format[0] == 0 or view.format[1] != 0:
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
    const int64_t *starts   # bytes: starts[i]:stops[i] is value i
    const int64_t *stops
    const int64_t *splits   # ragged: splits[row]:splits[row + 1] are the values of a row
    int64_t length          # fixed: how many values each row has
    const uint8_t *valid    # for each row, 0 omits the feature; NULL: all rows have it


def encode_columns(list columns not None, Py_ssize_t row_count, uint8_t[::1] out=None):
    """Encode rows of columns as Example payloads, end to end.

    Each column is (key, kind, values, starts, stops, splits, length, valid), sorted by key: values an
    int64, float32 or uint8 array, starts and stops int64 arrays of where the bytes of each value are,
    or None, splits an int64 array or None, valid a uint8 array with a number for each row, where 0
    omits the feature, or None.

    Returns (memory, offsets): offsets is int64, (row_count + 1,), the payloads are the last
    offsets[row_count] bytes of memory: `out`, or a Memory if that is too small.
    """
    cdef int count = <int>len(columns), i
    cdef Py_ssize_t row
    cdef int64_t first, last, at, item_count
    cdef column_source *sources = <column_source *>calloc(count + 1, sizeof(column_source))
    cdef column_source *c
    cdef backward target
    cdef growable_array grown
    cdef const uint8_t[::1] values, valid
    cdef const int64_t[::1] starts, stops, splits
    offset_array = np.empty(row_count + 1, np.int64)
    cdef int64_t[::1] offsets = offset_array
    cdef bint good = True
    cdef size_t mark, row_mark
    memset(&target, 0, sizeof(target))
    if out is not None and out.shape[0]:
        target.base = &out[0]
        target.capacity = out.shape[0]
        target.is_borrowed = True
    target.at = target.base + target.capacity
    if sources is NULL:
        raise MemoryError
    try:
        for i in range(count):
            c = &sources[i]
            key, c.kind, value_array, start_array, stop_array, split_array, c.length, valid_array = columns[i]
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
                starts, stops = start_array, stop_array
                check_spans(starts, stops, values.shape[0])
                c.starts = &starts[0]
                c.stops = &stops[0]
                item_count = starts.shape[0]
            if split_array is None:
                if c.length < 0 or c.length * row_count != item_count:
                    raise ValueError("a column does not have as many values as its rows need")
            else:
                splits = split_array
                check_splits(splits, row_count, item_count)
                c.splits = &splits[0]
            if valid_array is not None:
                valid = valid_array
                if valid.shape[0] != row_count:
                    raise ValueError("a column does not have a validity for each row")
                if row_count:
                    c.valid = &valid[0]
        with nogil:
            offsets[row_count] = 0
            for row in range(row_count - 1, -1, -1):  # the last one first, as its values
                row_mark = written(&target)
                for i in range(count - 1, -1, -1):
                    c = &sources[i]
                    if c.valid is not NULL and not c.valid[row]:
                        continue
                    if c.splits is not NULL:
                        first = c.splits[row]
                        last = c.splits[row + 1]
                    else:
                        first = c.length * row
                        last = first + c.length
                    mark = written(&target)
                    if c.kind == KIND_INT64:
                        good = good and put_int64s(&target, c.values + 8 * first, last - first)
                    elif c.kind == KIND_FLOAT:
                        good = good and put_floats(&target, c.values + 4 * first, last - first)
                    else:
                        good = good and make_room(&target, 64)
                        for at in range(last - 1, first - 1, -1):
                            good = good and put_bytes_value(
                                &target, c.values + c.starts[at], c.stops[at] - c.starts[at]
                            )
                    good = good and put_feature_entry(&target, mark, c.kind, c.key, c.key_size)
                good = good and make_room(&target, 16)
                if not good:
                    break
                put_delimited(&target, 1, row_mark)
                offsets[row] = <int64_t>written(&target)  # from the end
            for row in range(row_count):
                offsets[row] = <int64_t>written(&target) - offsets[row]
            offsets[row_count] = <int64_t>written(&target)
        if not good:
            raise MemoryError
        if target.is_borrowed:
            return out.base, offset_array
        grown.data, grown.size, grown.capacity = target.base, target.capacity, target.capacity
        target.base = NULL
        return take_as_it_is(&grown), offset_array
    finally:
        free(sources)
        if not target.is_borrowed:
            free(target.base)


cdef int check_spans(
    const int64_t[::1] starts, const int64_t[::1] stops, int64_t limit
) except -1:
    """Check that spans lie within 0 to `limit`."""
    cdef Py_ssize_t i
    cdef bint good = starts.shape[0] == stops.shape[0]
    if good:
        for i in range(starts.shape[0]):
            good = good and 0 <= starts[i] <= stops[i] <= limit
    if not good:
        raise ValueError("spans do not fit the values")
    return 0


cdef int check_splits(const int64_t[::1] splits, Py_ssize_t count, int64_t limit) except -1:
    """Check that splits ascend within 0 to `limit`."""
    cdef Py_ssize_t i
    cdef bint good = splits.shape[0] == count + 1 and count >= 0 and splits[0] >= 0
    if good:
        for i in range(count):
            good = good and splits[i] <= splits[i + 1]
        good = good and splits[count] <= limit
    if not good:
        raise ValueError("splits do not fit the values")
    return 0
