from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float32]

def normalise(
    pixels: npt.NDArray[Any], factors: Floats, shifts: Floats, out: Floats, is_planar: bool
) -> None: ...
