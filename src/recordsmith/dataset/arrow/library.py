"""Imports pyarrow, which is optional."""

from __future__ import annotations

from typing import Any

from recordsmith.support.errors import MissingExtraError


def import_pyarrow() -> Any:
    """Return the module `pyarrow`."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtraError("arrow", "pyarrow") from None
    return pa
