"""Get values of decoded features that may be missing or of another kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.example import Features


def as_text(value: bytes) -> str:
    """Decode UTF-8; invalid bytes become surrogates, as in file names."""
    return value.decode("utf-8", "surrogateescape")


def has_values(example: Features, key: str) -> bool:
    """Whether the feature exists and has a value."""
    value = example.get(key)
    return value is not None and len(value) > 0


def get_bytes(example: Features, key: str) -> bytes | None:
    """The first value of a bytes feature."""
    value = example.get(key)
    return value[0] if isinstance(value, list) and value else None


def get_text(example: Features, key: str) -> str | None:
    """The first value of a bytes feature as text."""
    value = get_bytes(example, key)
    return None if value is None else as_text(value)


def get_int(example: Features, key: str) -> int | None:
    """The first value of an int64 feature."""
    value = get_ints(example, key)
    return int(value[0]) if len(value) else None


def get_ints(example: Features, key: str) -> npt.NDArray[np.int64]:
    """All values of an int64 feature; empty if it is absent or of another kind."""
    value: Any = example.get(key)
    if isinstance(value, np.ndarray) and value.dtype == np.int64:
        return value
    return np.empty(0, np.int64)


def get_floats(example: Features, key: str) -> npt.NDArray[np.float32]:
    """All values of a float feature; empty if it is absent or of another kind."""
    value: Any = example.get(key)
    if isinstance(value, np.ndarray) and value.dtype == np.float32:
        return value
    return np.empty(0, np.float32)


def get_texts(example: Features, key: str) -> list[str]:
    """All values of a bytes feature as text."""
    value = example.get(key)
    return [as_text(item) for item in value] if isinstance(value, list) else []
