"""Imports obstore, also in forked processes, where the threads of its first copy do not exist."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from typing import Any

from recordsmith.errors import MissingExtraError, OptionError

_EXTENSION = "obstore._obstore"

_imported: tuple[int, Any] | None = None
_lock = threading.Lock()


def import_obstore() -> Any:
    """Return the module, in a copy that works in this process.

    Its requests run in threads that are never started again in a forked process, so that the first
    request there would wait forever. A second copy of its library has threads of its own.

    Raises:
        MissingExtraError: it is not installed.
        OptionError: this process was forked where libraries cannot be copied.
    """
    global _imported  # noqa: PLW0603 - one for each process
    if _imported is None or _imported[0] != os.getpid():
        with _lock:
            if _imported is None:
                _imported = os.getpid(), _import()
            elif _imported[0] != os.getpid():
                _imported = os.getpid(), _import_copy()
    return _imported[1]


def _import() -> Any:
    try:
        importlib.import_module("obstore.store")
        importlib.import_module("obstore.exceptions")
    except ImportError:
        raise MissingExtraError("remote", "obstore") from None
    return importlib.import_module("obstore")


def _import_copy() -> Any:
    path = getattr(sys.modules.get(_EXTENSION), "__file__", None)
    if path is None or not hasattr(os, "memfd_create"):
        raise OptionError(
            "this process was forked after the first request to an object store, and its "
            "connections cannot be opened again here",
            remedy="Start processes with the method 'spawn', as in DataLoader(..., "
            "multiprocessing_context='spawn').",
        )
    finder = _CopyFinder(path)
    for name in [name for name in sys.modules if name.split(".")[0] == "obstore"]:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        return _import()
    finally:
        sys.meta_path.remove(finder)


class _CopyFinder(MetaPathFinder):
    """Finds the library of obstore in a copy, since a library is loaded only once from a file."""

    def __init__(self, path: str) -> None:
        # stays open: the loader knows libraries by their paths
        number = os.memfd_create("obstore")
        with open(path, "rb") as library:
            size = os.fstat(library.fileno()).st_size
            done = 0
            while done < size:
                done += os.sendfile(number, library.fileno(), done, size - done)
        self._path = f"/proc/self/fd/{number}"

    def find_spec(
        self,
        name: str,
        path: object = None,  # noqa: ARG002
        target: object = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if name != _EXTENSION:
            return None
        return spec_from_file_location(
            name, self._path, loader=ExtensionFileLoader(name, self._path)
        )


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
