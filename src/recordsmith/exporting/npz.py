"""NumPy: one `.npz` for each split with arrays for each feature, without pickle.

    <key>                              int64 or float32, (records,) or (records, n): fixed shape
    <key>.values, <key>.row_splits     numbers, of varying count
    <key>.buffer, <key>.offsets        bytes: value i is buffer[offsets[i]:offsets[i + 1]]
    <key>.buffer, .offsets, .row_splits  bytes, of varying count
    <key>.present                      bool, (records,): if some records lack the feature

All splits have the same arrays. Values are written to temporary files first; memory holds the
lengths of each feature, 8 bytes per record.
"""

from __future__ import annotations

import io
import shutil
import zipfile
from array import array
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import Dataset
from recordsmith.errors import OptionError, SourceError
from recordsmith.example import Features, FeatureValue
from recordsmith.exporting.export_writer import ExportWriter

_DTYPES: dict[str, np.dtype[Any]] = {
    "bytes": np.dtype(np.uint8),
    "int64": np.dtype(np.int64),
    "float": np.dtype(np.float32),
}
_BLOCK_BYTES = 1 << 20


class NpzFiles:
    """Writes the features of each split as arrays."""

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        self._out = out
        self._counts: dict[str, int] = {}  # split -> its records
        self._arrays: dict[tuple[str, str], _Feature] = {}  # of a split and key
        self._kinds: dict[str, str] = {}

    def add(self, example: Features, split: str, position: int) -> None:
        for key, value in example.items():
            kind = _kind(value)
            known = self._kinds.get(key) or kind
            if kind not in ("", known):
                raise SourceError(f"feature {key!r} is {kind} here but {known} in earlier records")
        for key, value in example.items():
            self._kinds[key] = self._kinds.get(key) or _kind(value)
        count = self._counts.get(split, 0)
        for key, value in example.items():
            if (split, key) not in self._arrays:
                self._arrays[split, key] = _Feature(count, self._out.temporary_file())
            self._arrays[split, key].append(value, count)
        self._counts[split] = count + 1

    def finish(self) -> None:
        for (split, _), feature in self._arrays.items():
            feature.fill(self._counts[split])
        keys = sorted({key for _, key in self._arrays})
        shapes = {
            key: _Shape(
                self._kinds[key], [self._arrays.get((split, key)) for split in self._counts]
            )
            for key in keys
        }
        self._check_names(shapes)
        for split, count in self._counts.items():
            name = f"{self._out.split_name(split)}.npz"
            with self._out.opened(name) as file, zipfile.ZipFile(file, "w") as archive:
                for key in keys:
                    feature = self._arrays.get((split, key)) or _Feature(
                        count, self._out.temporary_file()
                    )
                    feature.write(archive, key, shapes[key])

    @staticmethod
    def _check_names(shapes: dict[str, _Shape]) -> None:
        """Raise OptionError if two features would have arrays with the same name."""
        names = [name for key, shape in shapes.items() for name in shape.array_names(key)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise OptionError(
                f"two features would both have an array {twice[0]!r}", remedy="Rename one of them."
            )


class _Feature:
    """The values of one feature in one split."""

    def __init__(self, absent: int, values: IO[bytes]) -> None:
        """`absent`: how many records precede the first one with the feature."""
        self.lengths = array("q", [-1] * absent)  # -1: the record lacks it
        self.value_bytes = array("q")  # of bytes
        self._values = values

    def append(self, value: FeatureValue, position: int) -> None:
        self.fill(position)
        self.lengths.append(len(value))
        if isinstance(value, list):
            self.value_bytes.extend(map(len, value))
            self._values.write(b"".join(value))
        else:
            self._values.write(value.tobytes())

    def fill(self, count: int) -> None:
        """Add records without the feature up to a count."""
        self.lengths.extend([-1] * (count - len(self.lengths)))

    def write(self, archive: zipfile.ZipFile, key: str, shape: _Shape) -> None:
        lengths = np.asarray(self.lengths, np.int64)
        counts = np.maximum(lengths, 0)
        rows: tuple[int, ...] = (len(lengths),)
        if shape.has_gaps:
            _write_array(archive, f"{key}.present", lengths >= 0)
        if shape.row_length is None:
            _write_array(archive, f"{key}.row_splits", _offsets(counts))
            rows = (int(counts.sum()),)
        elif shape.row_length != 1:
            rows = (len(lengths), shape.row_length)
        if shape.kind == "bytes":
            sizes = np.asarray(self.value_bytes, np.int64)
            _write_array(archive, f"{key}.offsets", _offsets(sizes))
            rows = (int(sizes.sum()),)
        with _member(archive, shape.array_names(key)[0]) as member:
            _write_header(member, _DTYPES[shape.kind], rows)
            self._values.seek(0)
            shutil.copyfileobj(self._values, member, _BLOCK_BYTES)


class _Shape:
    """The form of a feature in all splits.

    Attributes:
        kind: bytes, int64 or float.
        has_gaps: whether some records lack the feature.
        row_length: the number of values of each record; None if it varies, or for bytes is not 1.
    """

    def __init__(self, kind: str, features: list[_Feature | None]) -> None:
        there = [feature for feature in features if feature is not None]
        self.kind = kind or "float"  # lists that are empty in every record
        lengths = {length for feature in there for length in set(feature.lengths)}
        self.has_gaps = -1 in lengths or len(there) < len(features)
        is_fixed = len(lengths) == 1 and not self.has_gaps
        self.row_length = next(iter(lengths)) if is_fixed else None
        if self.kind == "bytes" and self.row_length != 1:
            self.row_length = None

    def array_names(self, key: str) -> list[str]:
        """The names of its arrays; the one with the values is first."""
        is_ragged = self.row_length is None
        if self.kind == "bytes":
            names = [f"{key}.buffer", f"{key}.offsets"]
        else:
            names = [f"{key}.values" if is_ragged else key]
        if is_ragged:
            names.append(f"{key}.row_splits")
        return [*names, f"{key}.present"] if self.has_gaps else names


def _kind(value: FeatureValue) -> str:
    if isinstance(value, list):
        return "bytes" if value else ""
    return "int64" if value.dtype == np.int64 else "float"


def _offsets(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))


def _write_array(archive: zipfile.ZipFile, name: str, values: npt.NDArray[Any]) -> None:
    with _member(archive, name) as member:
        _write_header(member, values.dtype, values.shape)
        member.write(values.data)


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    """A new member without a date."""
    return archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True)


def _write_header(member: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header,
        {
            "descr": np.lib.format.dtype_to_descr(dtype),
            "fortran_order": False,
            "shape": shape,
        },
    )
    member.write(header.getvalue())
