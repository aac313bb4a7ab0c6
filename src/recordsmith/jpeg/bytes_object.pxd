# cython: language_level=3
"""Bytes objects that are written once, and then shortened."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

cdef extern from "Python.h":
    PyObject *new_bytes "PyBytes_FromStringAndSize"(const char *data, Py_ssize_t size) except NULL
    char *start_of_bytes "PyBytes_AS_STRING"(PyObject *string)
    int _PyBytes_Resize(PyObject **string, Py_ssize_t size) except -1


cdef inline object shortened(PyObject *file, Py_ssize_t size):
    """The object with its first bytes; `file` is no longer valid."""
    _PyBytes_Resize(&file, size)
    result = <object>file
    Py_DECREF(result)
    return result
