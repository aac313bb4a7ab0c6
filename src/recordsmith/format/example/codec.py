"""One payload <-> a dict of features, for tf.train.Example and SequenceExample.

Decoding follows protobuf: packed and unpacked lists, the last of equal keys, unknown fields
skipped. Encoding sorts keys and packs lists, so that equal content gives equal bytes: those of
protobuf's deterministic serialization.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.format.example.kernel import decoding
from recordsmith.format.example.kernel.encoding import Encoder
from recordsmith.format.example.payload import (
    KIND_NUMBERS,
    PAYLOAD_KINDS,
    Kind,
    encode_key,
    kind_remedy,
    unparsable_error,
)
from recordsmith.format.example.spans import field_spans, payload_views, whole
from recordsmith.support.buffers import BytesLike, as_view
from recordsmith.support.errors import NotAnExampleError, OptionError

FeatureValue: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.float32] | list[bytes]
Features: TypeAlias = dict[str, FeatureValue]

_GOOD, _MALFORMED, _NOT_AN_EXAMPLE = 0, 1, 2
_NONE, _BYTES, _FLOAT, _INT64 = 0, 1, 2, 3
_SCALAR_KINDS: dict[type, int] = {
    int: _INT64,
    bool: _INT64,
    float: _FLOAT,
    str: _BYTES,
    bytes: _BYTES,
    bytearray: _BYTES,
    memoryview: _BYTES,
}


class SequenceExample(NamedTuple):
    """A decoded tf.train.SequenceExample.

    context: features of the whole sequence.
    feature_lists: the steps by name, each with the values of one feature.

    Example:
        payload = rs.encode_sequence_example({"id": [1]}, {"action": [[0.5], [1.0]]})
        example = rs.decode_sequence_example(payload)
        print(example.context["id"], len(example.feature_lists["action"]))
    """

    context: Features
    feature_lists: dict[str, list[FeatureValue]]


def decode_example(payload: BytesLike) -> Features:
    """Decode a serialized tf.train.Example.

    Returns:
        The values of each feature, always as a list: int64 (n,), float32 (n,), or a list of bytes;
        an empty list for a feature without a kind. Arrays own their memory. Keys that are not UTF-8
        are decoded with surrogate escapes.

    Raises:
        NotAnExampleError: a SequenceExample, a ranking list, or another message or data that a
            lenient parser may accept as an Example.
        CorruptDataError: malformed-example.

    Example:
        >>> decode_example(encode_example({"label": 3}))
        {'label': array([3])}
    """
    code, result = decoding.decode_example(payload)
    if code == _GOOD:
        return result  # type: ignore[no-any-return]
    raise (
        unparsable_error(payload)
        if code == _MALFORMED
        else NotAnExampleError(PAYLOAD_KINDS[result])
    )


def decode_sequence_example(payload: BytesLike) -> SequenceExample:
    """Decode a serialized tf.train.SequenceExample, with values as in `decode_example`.

    The arrays of the steps of a list share its memory.

    Raises:
        NotAnExampleError: it does not begin as one.
        CorruptDataError: malformed-example.

    Example:
        payload = rs.encode_sequence_example({"id": [1]}, {"action": [[0.5], [1.0]]})
        print(rs.decode_sequence_example(payload).feature_lists["action"])
    """
    code, result = decoding.decode_sequence_example(payload)
    if code == _GOOD:
        return SequenceExample(*result)
    raise unparsable_error(payload)


def decode_payload(payload: BytesLike) -> Features | SequenceExample:
    """Decode an Example or a SequenceExample."""
    code, result = decoding.decode_example(payload)
    if code == _GOOD:
        return result  # type: ignore[no-any-return]
    if code == _MALFORMED:
        raise unparsable_error(payload)
    if PAYLOAD_KINDS[result] == "SequenceExample":
        return decode_sequence_example(payload)
    raise NotAnExampleError(PAYLOAD_KINDS[result])


def encode_example(features: Mapping[str, Any], kinds: Mapping[str, Kind] | None = None) -> bytes:
    """Encode a dict as a tf.train.Example.

    Args:
        features: by name, an int, float, bool, str, bytes, a list of one of these, or a NumPy array
            with at most one axis. bool becomes int64, str becomes UTF-8, ints among floats become
            floats. An empty list without a declared kind becomes a feature without a kind. A
            feature with the value None is omitted.
        kinds: the kinds of some features, instead of inferring them from the values.

    Raises:
        OptionError: a value has an unsupported type, mixes kinds, or does not fit its kind; an
            array has two or more axes, which a feature, a flat list, cannot store.

    Example:
        payload = rs.encode_example({"id": [1], "score": [0.5], "name": [b"rose"]})
    """
    encoder = Encoder()
    _put_features(encoder, features, kinds or {})
    encoder.put_delimited(1, 0)
    return encoder.payload()


def encode_sequence_example(
    context: Mapping[str, Any],
    feature_lists: Mapping[str, Iterable[Any]],
    kinds: Mapping[str, Kind] | None = None,
) -> bytes:
    """Encode a tf.train.SequenceExample.

    Args:
        context: features of the whole sequence, as in `encode_example`.
        feature_lists: the steps by name; each step is a value as in `encode_example`, but not
            None: a step without values is an empty list. A feature list that is None is omitted.
        kinds: the kinds of some features of either, instead of inferring them.

    Raises:
        OptionError: as in `encode_example`.

    Example:
        payload = rs.encode_sequence_example({"id": [1]}, {"action": [[0.5], [1.0]]})
    """
    kinds = kinds or {}
    encoder = Encoder()
    _check_names(feature_lists)
    feature_lists = {key: steps for key, steps in feature_lists.items() if steps is not None}
    for key in sorted(feature_lists, reverse=True):
        mark = encoder.written()
        for step in reversed(_steps(key, feature_lists[key])):
            step_mark = encoder.written()
            encoder.put_step(step_mark, _put_value(encoder, key, step, kinds.get(key)))
        encoder.put_entry(mark, _NONE, encode_key(key))
    if feature_lists:
        encoder.put_delimited(2, 0)
    mark = encoder.written()
    _put_features(encoder, context, kinds)
    if encoder.written() != mark:
        encoder.put_delimited(1, mark)
    return encoder.payload()


def _put_features(encoder: Encoder, features: Mapping[str, Any], kinds: Mapping[str, Kind]) -> None:
    _check_names(features)
    encoder.put_features(features, kinds, encode_key, _put_value)


def _check_names(features: Mapping[str, Any]) -> None:
    if not isinstance(features, (dict, Mapping)):
        raise OptionError(
            f"the features are a {type(features).__name__}", expected="a dict of values by name"
        )
    for key in features:
        if type(key) is not str:
            encode_key(key)  # a subclass of str passes


def _steps(key: str, steps: Iterable[Any]) -> list[Any]:
    if isinstance(steps, Iterable) and not isinstance(steps, (str, bytes, bytearray, Mapping)):
        return list(steps)
    raise OptionError(
        f"feature list {key!r} is a {type(steps).__name__}",
        expected="a list with a value for each step",
    )


def _put_value(encoder: Encoder, key: str, value: Any, declared: str | None) -> int:
    """Write the values of one feature and return their kind; errors name the feature."""
    try:
        if declared is not None and declared not in KIND_NUMBERS:
            raise ValueError(
                f"unknown kind {declared!r}; expected {', '.join(KIND_NUMBERS)}"
                f". {kind_remedy(declared)}".removesuffix(". ")
            )
        if isinstance(value, (list, tuple)):
            value = _plain(value)
        elif type(value) in _SCALAR_KINDS or isinstance(value, (str, bytes)):
            value = _plain((value,))
        else:
            array = as_array(value)
            if array.ndim > 1:
                raise ValueError(too_many_axes(array.shape, "array.ravel()"))
            if array.dtype.kind not in "OSU":
                return _put_array(encoder, array, declared)
            value = _plain(array.ravel().tolist())
        kind = _common_kind(value)
        if declared is not None:
            kind = _declared_kind(kind, declared)
        if kind != _NONE:
            encoder.put_values(value, kind)
    except (BufferError, OverflowError, TypeError, ValueError) as error:
        raise OptionError(f"feature {key!r} cannot be encoded: {error}") from None
    return kind


def _common_kind(values: Sequence[Any]) -> int:
    """Return the kind of Python scalars; ints among floats become floats."""
    kinds = {_SCALAR_KINDS.get(kind, _NONE) for kind in set(map(type, values))}
    if len(kinds) == 1:
        kind = kinds.pop()
        if kind != _NONE:
            return kind
    elif not kinds:
        return _NONE
    elif kinds == {_FLOAT, _INT64}:
        return _FLOAT
    names = ", ".join(sorted({type(value).__name__ for value in values}))
    raise TypeError(f"the values are {names}; expected ints, floats, or str and bytes")


def _plain(values: Sequence[Any]) -> Sequence[Any]:
    """Convert NumPy scalars among the values to Python scalars."""
    if _SCALAR_KINDS.keys() >= set(map(type, values)):
        return values
    return [_plain_value(value) for value in values]


def _plain_value(value: Any) -> Any:
    if isinstance(value, (str, bytes)):  # also NumPy's: item() would cut zeros at the end
        return value[:]
    return value.item() if isinstance(value, np.generic) else value


def _declared_kind(kind: int, declared: str) -> int:
    number = KIND_NUMBERS[declared]
    if kind in (_NONE, number) or (kind == _INT64 and number == _FLOAT):
        return number
    raise TypeError(f"the values do not fit the declared kind {declared}")


def as_array(value: Any) -> npt.NDArray[Any]:
    """Convert `value` to an ndarray, if it has `__array__`."""
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__"):
        return np.asarray(value)
    raise TypeError(
        f"the value is a {type(value).__name__}; expected int, float, bool, str, bytes, a list of "
        "these or a NumPy array"
    )


def too_many_axes(shape: tuple[int, ...], flat: str) -> str:
    """Explain why an array cannot be encoded; `flat` is the code that flattens it."""
    return (
        f"it has shape {shape}, but a feature is a flat list. Encode images as JPEG or PNG; store "
        "another array as tobytes() with its shape in a second feature, or flatten it with "
        f"{flat}"
    )


def as_values(
    array: npt.NDArray[Any], declared: str | None
) -> npt.NDArray[np.int64] | npt.NDArray[np.float32]:
    """Convert a numeric array to what a feature stores: flat int64 or float32."""
    if array.dtype.kind in "iub":
        if declared == "float":
            return np.ascontiguousarray(array, np.float32).reshape(-1)
        if declared == "bytes":
            raise TypeError("the array is numeric; store array.tobytes() for raw bytes")
        if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
            raise OverflowError(f"{array.max()} does not fit int64")
        return np.ascontiguousarray(array, np.int64).reshape(-1)
    if array.dtype.kind != "f":
        raise TypeError(f"the array has dtype {array.dtype}; expected integers or floats")
    if declared not in (None, "float"):
        raise TypeError(f"the values do not fit the declared kind {declared}")
    with np.errstate(over="ignore"):
        floats = np.ascontiguousarray(array, np.float32).reshape(-1)
    if array.dtype.itemsize > 4 and np.isinf(floats).sum() != np.isinf(array).sum():
        raise OverflowError("a value does not fit a 32-bit float")
    return floats


def _put_array(encoder: Encoder, array: npt.NDArray[Any], declared: str | None) -> int:
    values: Any = as_values(array, declared)
    if values.dtype == np.int64:
        encoder.put_int64s(values)
        return _INT64
    encoder.put_floats(values)
    return _FLOAT


class RankingList(NamedTuple):
    """ExampleListWithContext of TensorFlow Ranking: Examples in field 1, their context in 2."""

    context: Features
    examples: list[Features]


def decode_ranking_list(payload: BytesLike) -> RankingList:
    """Decode a payload that `classify` detects as ELWC."""
    data = as_view(payload)
    spans = (field_spans(data, *whole(data), field) for field in (2, 1))
    context, examples = (list(payload_views(data, part.starts, part.lengths)) for part in spans)
    # protobuf also merges the pieces of a repeated message
    return RankingList(decode_example(b"".join(context)), list(map(decode_example, examples)))
