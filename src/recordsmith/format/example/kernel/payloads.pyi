import numpy as np
import numpy.typing as npt

from recordsmith.format.example.kernel.memory import Memory
from recordsmith.support.buffers import BytesLike, Int64Array

KIND_NAMES: tuple[str, ...]

def classify(payload: BytesLike) -> int: ...
def classify_many(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, kinds: npt.NDArray[np.uint8]
) -> None: ...
def submessages(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, field: int
) -> tuple[Memory, Memory, Memory]: ...
def hash_spans(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, hashes: npt.NDArray[np.uint64]
) -> None: ...
def copy_padded(
    buffer: BytesLike, starts: Int64Array, counts: Int64Array, out: npt.NDArray[np.uint8]
) -> None: ...
def read_tensor(
    data: BytesLike, missing: int, out: npt.NDArray[np.uint8] | None = None
) -> tuple[int, int, tuple[int, ...], int, int, bool]: ...
