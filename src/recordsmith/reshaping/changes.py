"""Protocols for selecting and changing records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, Int64Array
from recordsmith.dataset import ClassNames
from recordsmith.errors import CorruptDataError, OptionError
from recordsmith.wire import RecordBlock

_PIECE_BYTES = 1 << 20


class Selection(Protocol):
    """Selects records."""

    def matches(self, block: RecordBlock) -> npt.NDArray[np.bool_]:
        """Return whether each record is selected: bool, (len(block),).

        Raises:
            CorruptDataError: a payload cannot be parsed; `record` counts from the stream's start.
            OptionError: the condition cannot be evaluated, such as for a missing feature.
        """

    def to_json(self) -> Any:
        """Return a JSON-able description, equal for equal selections."""


class Payloads(NamedTuple):
    """Concatenated payloads.

    offsets: int64, (count + 1,): payload i is data[offsets[i] : offsets[i + 1]].
    """

    data: BytesLike
    offsets: Int64Array


class Change(Protocol):
    """Changes payloads. `rewrite_each` makes it easy to write one."""

    def rewrite(self, block: RecordBlock) -> Iterator[Payloads]:
        """Yield the new payloads of a block, one per record in the same order.

        Raises:
            CorruptDataError: a payload cannot be parsed or lacks a value; `record` counts from
                the start of the block.
            RecordOptionError: the options do not fit a record.
        """

    def class_names(self, names: ClassNames | None) -> ClassNames | None:
        """Return the class names after the change."""

    def to_json(self) -> Mapping[str, Any]:
        """Return a JSON-able description, equal for equal changes."""


class RecordOptionError(Exception):
    """The options of a change do not fit a record.

    number: of the record in its block.
    error: the reason.
    """

    def __init__(self, number: int, error: OptionError) -> None:
        super().__init__(str(error))
        self.number = number
        self.error = error


def rewrite_each(
    block: RecordBlock, change: Callable[[memoryview], BytesLike]
) -> Iterator[Payloads]:
    """Apply a function to each payload of a block: all that `Change.changed` needs.

        class Upper:
            def rewrite(self, block):
                return rewrite_each(block, lambda payload: bytes(payload).upper())

    Args:
        block: the records.
        change: called with each payload as a memoryview; returns the new one. It may raise
            CorruptDataError or OptionError.
    """
    new: list[BytesLike] = []
    size = 0
    for number, payload in enumerate(block.payloads()):
        try:
            new.append(change(payload))
        except CorruptDataError as error:
            error.record = number
            raise
        except OptionError as error:
            raise RecordOptionError(number, error) from None
        size += len(new[-1])
        if size >= _PIECE_BYTES:
            yield _joined(new)
            new, size = [], 0
    yield _joined(new)


def _joined(payloads: list[BytesLike]) -> Payloads:
    offsets = np.cumsum([0, *map(len, payloads)], dtype=np.int64)
    return Payloads(b"".join(payloads), offsets)  # type: ignore[arg-type]
