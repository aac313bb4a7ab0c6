from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.format.example.kernel.memory import Memory
from recordsmith.format.example.payload import Kind
from recordsmith.support.buffers import Int64Array

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
    columns: list[
        tuple[
            bytes,
            int,
            npt.NDArray[Any],
            Int64Array | None,
            Int64Array | None,
            Int64Array | None,
            int,
            npt.NDArray[np.uint8] | None,
        ]
    ],
    row_count: int,
    out: npt.NDArray[np.uint8] | None = None,
) -> tuple[Memory | npt.NDArray[np.uint8], Int64Array]: ...
