"""Imports obstore, in a forked process once more.

obstore runs requests in threads of its own, which a forked process does not have: each call would
wait forever. Its library has no way to start them again, but a second copy of it starts its own.
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

_module: Any = None
_is_forked = False
_lock = threading.Lock()


def import_obstore() -> Any:
    """Return the module.

    Raises:
        MissingExtraError: it is not installed.
        OptionError: in a forked process, where the system cannot load it again.
    """
    global _module, _is_forked  # noqa: PLW0603 - one for each process
    if _module is not None:
        return _module
    with _lock:
        if _is_forked:
            _drop()
            _is_forked = False
        try:
            import obstore
            import obstore.exceptions
            import obstore.store
        except ImportError:
            raise MissingExtraError("remote", "obstore") from None
        _module = obstore
    return _module


def _drop() -> None:
    """Let the next import load another copy of the library."""
    path = sys.modules[_LIBRARY].__file__
    if path is None or not hasattr(os, "memfd_create"):
        raise OptionError(
            "object stores cannot be used in a forked process on this system",
            remedy="Start processes by 'spawn' or 'forkserver'.",
        )
    for name in [name for name in sys.modules if name.partition(".")[0] == "obstore"]:
        del sys.modules[name]
    copy = os.memfd_create("obstore")  # the system loads one file once, but not its copy
    try:
        with open(path, "rb") as source, open(copy, "wb", closefd=False) as target:
            target.write(source.read())
        sys.meta_path.insert(0, _Copy(f"/proc/self/fd/{copy}"))
        try:
            importlib.import_module(_LIBRARY)
        finally:
            del sys.meta_path[0]
    finally:
        os.close(copy)


class _Copy:
    """Finds the library in a file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name != _LIBRARY:
            return None
        loader = ExtensionFileLoader(name, self._path)
        return spec_from_file_location(name, self._path, loader=loader)


def _after_fork() -> None:
    global _module, _is_forked, _lock
    _module, _is_forked, _lock = None, _is_forked or _module is not None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
