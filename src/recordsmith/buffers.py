"""The types of memory that the codecs take and give."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

BytesLike: TypeAlias = bytes | bytearray | memoryview | npt.NDArray[np.uint8]
Int64Array: TypeAlias = npt.NDArray[np.int64]
