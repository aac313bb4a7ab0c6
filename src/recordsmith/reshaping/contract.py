"""What chooses and changes records on their way into other shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, Int64Array
from recordsmith.dataset import ClassNames
from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.wire import RecordBlock

_PIECE_BYTES = 1 << 20


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


class Payloads(NamedTuple):
    """Some payloads, end to end.

    offsets: int64, (count + 1,): they are data[offsets[i] : offsets[i + 1]].
    """

    data: BytesLike
    offsets: Int64Array


class Change(Protocol):
    """Makes another payload of each. `one_by_one` is the easy way to write one."""

    def changed(self, block: RecordBlock) -> Iterator[Payloads]:
        """The new payloads of a block, one for each record and in their order, piece by piece.

        Raises:
            CorruptDataError: a payload cannot be understood, or lacks what the change needs; its
                position is that in the block.
            RefusedError: it cannot be made of a record, for a reason that the caller can mend.
        """

    def class_names(self, names: ClassNames | None) -> ClassNames | None:
        """The names of classes afterwards."""

    def to_json(self) -> Mapping[str, Any]:
        """What decides the result: equal for equal ones."""


class RefusedError(Exception):
    """A change cannot be made of a record, for a reason that the caller can mend.

    Args:
        number: that of the record in its block.
        error: the reason.
    """

    def __init__(self, number: int, error: OptionError) -> None:
        super().__init__(str(error))
        self.where = CorruptDataError(Defect.FEATURE_VALUE, str(error), position=number)


def one_by_one(block: RecordBlock, change: Callable[[memoryview], BytesLike]) -> Iterator[Payloads]:
    """What a function makes of each payload of a block: all that `Change.changed` needs.

        class Upper:
            def changed(self, block):
                return one_by_one(block, lambda payload: bytes(payload).upper())

    Args:
        change: a payload, as a view -> the new one. It may raise CorruptDataError or OptionError.
    """
    new: list[BytesLike] = []
    size = 0
    for number, payload in enumerate(block.payloads()):
        try:
            new.append(change(payload))
        except CorruptDataError as error:
            error.position = number
            raise
        except OptionError as error:
            raise RefusedError(number, error) from None
        size += len(new[-1])
        if size >= _PIECE_BYTES:
            yield _joined(new)
            new, size = [], 0
    yield _joined(new)


def _joined(payloads: list[BytesLike]) -> Payloads:
    offsets = np.cumsum([0, *map(len, payloads)], dtype=np.int64)
    return Payloads(b"".join(payloads), offsets)  # type: ignore[arg-type]
