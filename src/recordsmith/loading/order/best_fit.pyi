import numpy as np
import numpy.typing as npt

from recordsmith.support.buffers import Int64Array

def best_fit(lengths: Int64Array, capacity: int) -> tuple[npt.NDArray[np.int32], int]: ...
