import numpy as np
import numpy.typing as npt

from recordsmith.support.buffers import Int64Array

def read_pieces(
    file: int,
    begins: Int64Array,
    ends: Int64Array,
    places: Int64Array,
    out: npt.NDArray[np.uint8],
) -> tuple[int, int]: ...
def read_headers(
    file: int, start: int, stop: int, gap: int, out: npt.NDArray[np.uint8]
) -> tuple[int, int]: ...
