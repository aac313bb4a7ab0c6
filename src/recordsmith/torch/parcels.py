"""How does a batch get from a worker process to the main one, cheaply?

Torch puts each tensor into shared memory of its own, which the system has to clear and to map, page
by page, for every batch. Here a worker writes the tensors of a batch, one after the other, into a
file in memory, the main process reads them into tensors of its own, and the file is used again: two
copies, which cost less than the pages. Nor does it need any room in /dev/shm.

Whatever else is in a batch is sent as torch sends it. Where the system has no files in memory, that
is everything; where it has no descriptors or no room left, the numbers go through the pipe.
"""

from __future__ import annotations

import os
import sys
import threading
from multiprocessing import reduction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from recordsmith.loading.memory import empty
from recordsmith.torch.conversion import TorchRagged

_FREE, _IN_USE = b"\0", b"\1"  # the first byte of a file
_BEGIN = 64  # where its tensors begin


def parcel(batch: dict[str, Any]) -> dict[str, Any]:
    """The same batch of a worker process, so that it is cheap to send; it arrives as a dict."""
    return _Parcel(batch) if sys.platform == "linux" else batch


class _Parcel(dict[str, Any]):
    def __copy__(self) -> _Parcel:
        return _Parcel(self)

    def __reduce__(self) -> Any:
        arrays: list[npt.NDArray[Any]] = []
        places = {name: _packed(entry, arrays) for name, entry in self.items()}
        try:
            descriptor = _files.write(arrays)
            try:
                return _opened, (places, reduction.DupFd(descriptor))
            except OSError:
                os.pwrite(descriptor, _FREE, 0)
                raise
        except OSError:
            # No memory, no descriptors, which torch's own way needs as well. An error here would be
            # lost, and torch wait for ever: send the numbers themselves.
            return _unpacked, (places, arrays)


class _Place(NamedTuple):
    """What stands for a tensor that is in the file, where it comes next."""

    dtype: str
    shape: tuple[int, ...]


def _packed(entry: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    """What is sent of an entry; the arrays that go into the file are appended."""
    if isinstance(entry, TorchRagged):
        return TorchRagged(*(_packed(tensor, arrays) for tensor in entry))
    if type(entry) is not torch.Tensor:
        return entry
    try:
        array = np.ascontiguousarray(entry.numpy()).reshape(entry.shape)
    except (RuntimeError, TypeError):  # on a device, with a gradient, of a dtype NumPy has not
        return entry
    arrays.append(array)
    return _Place(array.dtype.str, array.shape)


def _unpacked(places: dict[str, Any], arrays: list[npt.NDArray[Any]]) -> dict[str, Any]:
    """The batch whose numbers were sent without a file."""
    left = iter(arrays)

    def unpacked(entry: Any) -> Any:
        if isinstance(entry, TorchRagged):
            return TorchRagged(*map(unpacked, entry))
        return torch.from_numpy(next(left)) if isinstance(entry, _Place) else entry

    return {name: unpacked(entry) for name, entry in places.items()}


def _opened(places: dict[str, Any], sent: Any) -> dict[str, Any]:
    """The batch, in the process that gets it."""
    try:
        descriptor, at = sent.detach(), _BEGIN
    except (OSError, EOFError) as error:
        raise RuntimeError(
            "a worker process of the DataLoader died before its last batch was received; see the "
            "system log for the cause, such as lack of memory"
        ) from error

    def unpacked(entry: Any) -> Any:
        nonlocal at
        if isinstance(entry, TorchRagged):
            return TorchRagged(*map(unpacked, entry))
        if not isinstance(entry, _Place):
            return entry
        array = empty("", entry.shape, np.dtype(entry.dtype))
        memory = _memory(array)
        while len(memory):  # a call moves 2 GiB at most
            count = os.preadv(descriptor, [memory], at)
            if count == 0:
                raise EOFError("a batch of a worker process is truncated")
            memory, at = memory[count:], at + count
        return torch.from_numpy(array)

    try:
        batch = {name: unpacked(entry) for name, entry in places.items()}
        os.pwrite(descriptor, _FREE, 0)
    finally:
        os.close(descriptor)
    return batch


class _Files:
    """The files of a worker process: as many as it has sent parcels which are not opened yet."""

    def __init__(self) -> None:
        self._descriptors: list[int] = []
        self._lock = threading.Lock()

    def write(self, arrays: list[npt.NDArray[Any]]) -> int:
        """The descriptor of a file that holds them, until its reader releases it."""
        with self._lock:
            descriptor = next(filter(_is_free, self._descriptors), None)
            if descriptor is None:
                descriptor = os.memfd_create("recordsmith-batch")
                self._descriptors.append(descriptor)
            os.pwrite(descriptor, _IN_USE, 0)
        at = _BEGIN
        try:
            for array in arrays:
                memory = _memory(array)
                while len(memory):
                    count = os.pwrite(descriptor, memory, at)
                    memory, at = memory[count:], at + count
        except OSError:
            with self._lock:
                self._descriptors.remove(descriptor)
            os.close(descriptor)
            raise
        return descriptor


def _is_free(descriptor: int) -> bool:
    return os.pread(descriptor, 1, 0) == _FREE


def _memory(array: npt.NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


_files = _Files()
