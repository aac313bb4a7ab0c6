"""Gets values of one feature of an example or of a sample: the first, the only one, or all.

A feature without such values gives None, or nothing; callers decide whether that is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def values_of(value: Any) -> Sequence[Any]:
    """The values of a feature, which may be a single one or None."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return value  # type: ignore[return-value]
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray, memoryview, str)):
        return list(value)
    return () if value is None else (value,)


def first_value(features: Mapping[str, Any], key: str | None) -> Any:
    """The first value of a feature."""
    values = () if key is None else values_of(features.get(key))
    return values[0] if len(values) else None


def first_bytes(features: Mapping[str, Any], key: str | None) -> bytes | None:
    """The first value of a bytes feature."""
    value = first_value(features, key)
    return value if isinstance(value, bytes) else None


def first_text(features: Mapping[str, Any], key: str) -> str | None:
    """The first value of a bytes feature as text, as `all_texts`."""
    value = first_bytes(features, key)
    return None if value is None else _as_text(value)


def first_int(features: Mapping[str, Any], key: str) -> int | None:
    """The first value of an int64 feature."""
    values = all_ints(features, key)
    return int(values[0]) if len(values) else None


def only_value(features: Mapping[str, Any], key: str | None) -> Any:
    """The value of a feature that has exactly one."""
    values = () if key is None else values_of(features.get(key))
    return values[0] if len(values) == 1 else None


def all_ints(features: Mapping[str, Any], key: str) -> npt.NDArray[np.int64]:
    """All values of an int64 feature; empty if it is absent or of another kind."""
    return _all_numbers(features, key, np.int64)


def all_floats(features: Mapping[str, Any], key: str) -> npt.NDArray[np.float32]:
    """All values of a float feature; empty if it is absent or of another kind."""
    return _all_numbers(features, key, np.float32)


def all_texts(features: Mapping[str, Any], key: str) -> list[str]:
    """All values of a bytes feature as text; invalid UTF-8 becomes surrogates, as in file names."""
    value = features.get(key)
    return list(map(_as_text, value)) if isinstance(value, list) else []


def object_values(
    features: Mapping[str, Any], names: Sequence[str], count: int
) -> npt.NDArray[np.float64] | None:
    """The values of several features of each object, such as its keypoints: (count, k, features).

    k is 0 if there are no values; None if the features do not have k values for each object.
    """
    columns = [np.asarray(values_of(features.get(name))) for name in names]
    each = len(columns[0]) // max(1, count)
    if any(len(column) != each * count or column.dtype.kind not in "iuf" for column in columns):
        return None
    return np.stack(columns, -1).astype(np.float64).reshape(count, each, len(names))


def _all_numbers(features: Mapping[str, Any], key: str, dtype: Any) -> npt.NDArray[Any]:
    value: Any = features.get(key)
    is_kind = isinstance(value, np.ndarray) and value.dtype == dtype
    return value if is_kind else np.empty(0, dtype)


def _as_text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")
