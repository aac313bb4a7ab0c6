"""obstore, and the threads in which it makes requests.

A forked process does not have these threads: each request would wait forever. obstore has no way to
start them again, so there a second copy of its library is loaded, which starts its own.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from typing import Any

from recordsmith.errors import MissingExtraError, OptionError

_LIBRARY = "obstore._obstore"
_THREADS = "TOKIO_WORKER_THREADS"

_lock = threading.Lock()
_started: tuple[int, Any] | None = None  # the process whose threads make requests, and the module
_path: str | None = None  # of the library


def obstore_here() -> Any:
    """Return the module obstore, ready for requests from this process.

    One thread takes in what arrives: it keeps up with a fast network, and several cost a third more
    CPU time for each request (measured).

    Raises:
        MissingExtraError: it is not installed.
        OptionError: this process was forked from one that had made requests, and the system cannot
            load the library again.
    """
    global _started, _path  # noqa: PLW0603 - its threads are global, too
    if _started is not None and _started[0] == os.getpid():
        return _started[1]
    with _lock:
        if _started is None or _started[0] != os.getpid():
            if _started is not None:
                _load_copy()
            _started = os.getpid(), _start()
            _path = _path or sys.modules[_LIBRARY].__file__
        return _started[1]


def is_panic(error: BaseException) -> bool:
    """Return whether an error is a panic of the library, which is not an `Exception`."""
    return type(error).__module__ == "pyo3_runtime"


def _start() -> Any:
    """Import obstore and start its threads."""
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError:
        raise MissingExtraError("remote", "obstore") from None
    given = os.environ.get(_THREADS)
    os.environ[_THREADS] = given or "1"
    try:
        obstore.put(obstore.store.MemoryStore(), "first", b"")
    finally:
        if given is None:
            del os.environ[_THREADS]
    return obstore


def _load_copy() -> None:
    """Load another copy of the library, which the next import finds."""
    if _path is None or not hasattr(os, "memfd_create"):
        raise OptionError(
            "this process was forked from one that had read over the network, whose connections it "
            "cannot use",
            remedy="Start processes with forkserver or spawn, as with "
            "DataLoader(…, multiprocessing_context='forkserver').",
        )
    for name in [name for name in sys.modules if name.partition(".")[0] == "obstore"]:
        del sys.modules[name]
    copy = os.memfd_create("obstore")  # a library is loaded once from each file
    finder = _Copy(f"/proc/self/fd/{copy}")
    sys.meta_path.insert(0, finder)
    try:
        with open(_path, "rb") as source, open(copy, "wb", closefd=False) as target:
            target.write(source.read())
        importlib.import_module(_LIBRARY)
    finally:
        sys.meta_path.remove(finder)
        os.close(copy)


class _Copy:
    """Finds the library in another file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name != _LIBRARY:
            return None
        loader = ExtensionFileLoader(name, self._path)
        return spec_from_file_location(name, self._path, loader=loader)


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
