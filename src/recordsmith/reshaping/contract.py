"""What chooses and changes records on their way into other shards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import ClassNames
from recordsmith.wire import RecordBlock


class Selection(Protocol):
    """Says which records go on."""

    def chosen(self, block: RecordBlock) -> npt.NDArray[np.bool_]:
        """bool, (len(block),).

        Raises:
            CorruptDataError: a payload cannot be understood; its position is that in the stream.
            OptionError: no record could ever be asked this, such as for lack of the feature.
        """

    def to_json(self) -> Any:
        """What decides the answers: equal for equal ones."""


class Change(Protocol):
    """Makes another payload of each."""

    def apply(self, payload: bytes | memoryview) -> bytes:
        """The new payload.

        Raises:
            CorruptDataError: it cannot be understood, or lacks what the change needs.
        """

    def class_names(self, names: ClassNames | None) -> ClassNames | None:
        """The names of classes afterwards."""

    def to_json(self) -> Mapping[str, Any]:
        """What decides the result: equal for equal ones."""
