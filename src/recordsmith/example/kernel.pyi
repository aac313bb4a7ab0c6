from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, Int64Array
from recordsmith.example.payload import Kind

KIND_NAMES: tuple[str, ...]

class Memory:
    def __len__(self) -> int: ...

def classify(payload: BytesLike) -> int: ...
def classify_many(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, kinds: npt.NDArray[np.uint8]
) -> None: ...
def decode_example(payload: BytesLike) -> tuple[int, Any]: ...
def decode_sequence_example(payload: BytesLike) -> tuple[int, Any]: ...

class ColumnBuilder:
    def __init__(
        self,
        keys: list[bytes],
        kinds: list[int],
        required: list[int],
        defaults: list[tuple[bytes, bytes, int] | None],
        are_borrowed: list[bool],
    ) -> None: ...
    def append(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
    ) -> tuple[int, int, int, int]: ...
    def kind(self, column: int) -> int: ...
    def finish(
        self, with_all_splits: bool = True
    ) -> list[tuple[int, Memory, Memory, Memory, int, int, int]]: ...

class FeatureSurvey:
    def __init__(
        self,
        most_keys: int = ...,
        most_key_bytes: int = ...,
        listed_keys: int = ...,
        listed_key_bytes: int = ...,
    ) -> None: ...
    def settle(self) -> bool: ...
    def update(
        self,
        buffer: BytesLike,
        starts: Int64Array,
        lengths: Int64Array,
        field: int,
        lists: bool,
    ) -> int: ...
    def update_examples(
        self,
        buffer: BytesLike,
        starts: Int64Array,
        lengths: Int64Array,
        kinds: npt.NDArray[np.uint8],
    ) -> None: ...
    def finish(
        self,
    ) -> list[tuple[bytes, list[int], list[int], int, tuple[int, int], tuple[int, int], int]]: ...

def submessages(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, field: int
) -> tuple[Memory, Memory, Memory]: ...
def find_entries(
    payload: BytesLike, wanted: Mapping[bytes, Any]
) -> tuple[int, list[tuple[int, int, int, int, list[tuple[Any, ...]]]]]: ...
def hash_spans(
    buffer: BytesLike,
    starts: Int64Array,
    lengths: Int64Array,
    hashes: npt.NDArray[np.uint64],
) -> None: ...

class Encoder:
    def written(self) -> int: ...
    def payload(self) -> bytes: ...
    def put_delimited(self, field: int, mark: int) -> None: ...
    def put_entry(self, mark: int, kind: int, key: bytes) -> None: ...
    def put_step(self, mark: int, kind: int) -> None: ...
    def put_int64s(self, values: npt.NDArray[np.int64]) -> None: ...
    def put_floats(self, values: npt.NDArray[np.float32]) -> None: ...
    def put_values(self, items: list[Any] | tuple[Any, ...], kind: int) -> None: ...
    def put_features(
        self,
        features: Mapping[str, Any],
        kinds: Mapping[str, Kind],
        encode_key: Callable[[str], bytes],
        put_value: Callable[[Encoder, str, Any, str | None], int],
    ) -> None: ...

def encode_columns(
    columns: list[tuple[bytes, int, npt.NDArray[Any], Int64Array | None, Int64Array | None, int]],
    row_count: int,
) -> tuple[Memory, Memory]: ...
