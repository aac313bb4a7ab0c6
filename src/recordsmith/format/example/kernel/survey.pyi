from typing import Literal

import numpy as np
import numpy.typing as npt

from recordsmith.support.buffers import BytesLike, Int64Array

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
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array, field: int, lists: bool
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
    ) -> list[
        tuple[
            bytes, list[int], list[int], int, tuple[int, int], tuple[int, int], int,
            Literal[False] | tuple[int | None, list[int | None] | None] | None,
        ]
    ]: ...  # fmt: skip
