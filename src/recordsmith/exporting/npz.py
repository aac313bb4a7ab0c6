"""NumPy: one `.npz` for each split with arrays for each feature, without pickle.

    <key>                              int64 or float32, (records,) or (records, n): fixed shape
    <key>.values, <key>.row_splits     numbers, of varying count
    <key>.buffer, <key>.offsets        bytes: value i is buffer[offsets[i]:offsets[i + 1]]
    <key>.buffer, .offsets, .row_splits  bytes, of varying count
    <key>.present                      bool, (records,): if some records lack the feature

All splits have the same arrays. The arrays of a split are written to temporary files first.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import Dataset
from recordsmith.errors import NotAnExampleError, OptionError
from recordsmith.example import (
    BytesArray,
    ColumnDecoder,
    FeatureSpec,
    RaggedArray,
    Schema,
)
from recordsmith.exporting.export_writer import ExportWriter, TableExporter
from recordsmith.exporting.record_shards import numbered_names

_BLOCK_BYTES = 1 << 20


class NpzFiles(TableExporter):
    """Writes the features of each split as arrays."""

    decoder: ColumnDecoder

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        schema = dataset.schema
        self._out = out
        self.decoder = ColumnDecoder(_specs(schema), with_validity=True)
        self._with_gaps = {
            key for key, found in schema.features.items() if found.present < schema.record_count
        }
        names = [name for name, _, _ in self._pieces(0)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise OptionError(
                f"two features would both have an array {twice[0]!r}", remedy="Rename one of them."
            )
        self._split = ""
        self._arrays: dict[str, _Array] = {}

    def add(self, split: str, row_count: int, position: Callable[[int], int]) -> int:
        if split != self._split:
            self.finish()
            self._split = split
        for name, values, are_offsets in self._pieces(row_count):
            if name not in self._arrays:
                self._arrays[name] = _Array(values, self._out.temporary_file())
            self._arrays[name].append(values, are_offsets=are_offsets)
        return row_count

    def part_names(self, split: str, count: int) -> Sequence[str]:
        return numbered_names(split, count, ".npz")

    def finish(self) -> None:
        """Write the arrays of the current split."""
        if not self._split:
            return
        name = self._out.file_of(self._split, ".npz")
        with self._out.opened(name) as file:
            # where a file cannot seek, zipfile would write other headers
            place = file if file.seekable() else self._out.temporary_file()
            with zipfile.ZipFile(place, "w") as archive:
                for name, array in self._arrays.items():
                    # a member without a date
                    member = zipfile.ZipInfo(f"{name}.npy")
                    with archive.open(member, "w", force_zip64=True) as target:
                        array.write(target)
            if place is not file:
                _copy(place, file)
        self._arrays = {}

    def _pieces(self, row_count: int) -> Iterator[tuple[str, npt.NDArray[Any], bool]]:
        """Empty the decoder: yield the next values of all arrays, and whether they are offsets."""
        columns, validity = self.decoder.finish_with_validity()
        for key, column in columns.items():
            name, values = key, column
            if key in self._with_gaps:
                bits = validity.get(key, np.full(-(-row_count // 8), 255, np.uint8))
                present = np.unpackbits(bits, count=row_count, bitorder="little")
                yield f"{key}.present", present.view(np.bool_), False
            if isinstance(values, RaggedArray):
                yield f"{key}.row_splits", values.row_splits, True
                name, values = f"{key}.values", values.values
            if isinstance(values, BytesArray):
                packed = values.packed()
                yield f"{key}.offsets", packed.offsets, True
                name, values = f"{key}.buffer", packed.buffer
            yield name, values, False


class _Array:
    """An array that grows in a file."""

    def __init__(self, values: npt.NDArray[Any], file: IO[bytes]) -> None:
        """`values`: the first ones; only their type and shape are used."""
        self._dtype, self._row_shape = values.dtype, values.shape[1:]
        self._file = file
        self._length = self._last = 0

    def append(self, values: npt.NDArray[Any], *, are_offsets: bool) -> None:
        if are_offsets and self._length:
            values = values[1:] + self._last
        self._file.write(np.ascontiguousarray(values).data)
        self._length += len(values)
        if are_offsets and len(values):  # a block may have no values
            self._last = int(values[-1])

    def write(self, target: IO[bytes]) -> None:
        """Write the `.npy` file and close the temporary one."""
        description = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (self._length, *self._row_shape),
        }
        np.lib.format.write_array_header_1_0(target, description)
        _copy(self._file, target)


def _copy(source: IO[bytes], target: IO[bytes]) -> None:
    """Copy a temporary file and close it."""
    source.seek(0)
    shutil.copyfileobj(source, target, _BLOCK_BYTES)
    source.close()


def _specs(schema: Schema) -> dict[str, FeatureSpec]:
    """Return the columns of a schema.

    Raises:
        NotAnExampleError: the records are not Examples.
    """
    if schema.payload not in ("Example", "none"):
        raise NotAnExampleError(schema.payload, "Examples")
    specs = {}
    for key, feature in sorted(schema.features.items()):
        kind: Any = "float" if feature.kind == "none" else feature.kind
        is_ragged = feature.shape is None or (kind == "bytes" and feature.shape != ())
        specs[key] = FeatureSpec(kind, "ragged" if is_ragged else feature.shape)
    return specs
