"""pyarrow, which is optional, and tables of any library."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from recordsmith.support.errors import MissingExtraError


@runtime_checkable
class ArrowStream(Protocol):
    """A table of any library, by Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


def import_pyarrow() -> Any:
    """Return the module `pyarrow`."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtraError("arrow", "pyarrow") from None
    return pa
