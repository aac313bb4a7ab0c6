from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Levels: TypeAlias = npt.NDArray[np.uint8]

def mix(images: npt.NDArray[Any], share: float, out: npt.NDArray[Any]) -> None: ...
def jitter(
    images: Levels, steps: npt.NDArray[np.int8], factors: npt.NDArray[np.float64], out: Levels
) -> None: ...
