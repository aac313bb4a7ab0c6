"""obstore, and the threads in which it makes requests."""

from __future__ import annotations

import os
import threading
from typing import Any

from recordsmith.errors import MissingExtraError, OptionError

_THREADS = "TOKIO_WORKER_THREADS"
_lock = threading.Lock()
_started_in: int | None = None  # the process whose threads make requests


def obstore_here() -> Any:
    """Return the module obstore, ready for requests from this process.

    One thread takes in what arrives: it keeps up with a fast network, and several cost a third more
    CPU time for each request (measured).

    Raises:
        MissingExtraError: it is not installed.
        OptionError: this process was forked from one that had made requests.
    """
    global _started_in  # noqa: PLW0603 - its threads are global, too
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError:
        raise MissingExtraError("remote", "obstore") from None
    if _started_in is None:
        with _lock:
            given = os.environ.get(_THREADS)
            os.environ[_THREADS] = given or "1"
            try:
                obstore.put(obstore.store.MemoryStore(), "first", b"")  # starts its threads
            finally:
                if given is None:
                    del os.environ[_THREADS]
            _started_in = os.getpid()
    if _started_in != os.getpid():
        raise OptionError(
            "this process was forked from one that had read over the network, whose connections it "
            "cannot use",
            remedy="Start processes with forkserver or spawn, as with "
            "DataLoader(…, multiprocessing_context='forkserver').",
        )
    return obstore
