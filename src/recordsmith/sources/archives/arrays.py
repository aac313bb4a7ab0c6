"""Arrays of images and labels: idx files of MNIST, `.npy` and `.npz`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import LARGEST_LABEL, ClassNames, class_names_of
from recordsmith.format.example import encode_example
from recordsmith.image import encode_png
from recordsmith.sources.archives.array_layout import ArrayLayout, SplitArrays, find_arrays
from recordsmith.sources.archives.stored_array import ArrayFile, StoredArray, array_features
from recordsmith.sources.files.account import Role
from recordsmith.sources.files.file_tree import PathSource
from recordsmith.sources.files.files_reader import FilesReader, versions_of
from recordsmith.sources.files.images import class_features, image_features
from recordsmith.sources.files.paths import common_version, last_name
from recordsmith.sources.numbered import RowNames, SampleTable, split_coding
from recordsmith.sources.problems import count_notice, join_names
from recordsmith.sources.samples import Note, Sample, ignore_note, unlisted_error
from recordsmith.sources.source import Listing
from recordsmith.sources.tables.encoded_rows import referenced_row
from recordsmith.stores import PlaceLike
from recordsmith.support.errors import SourceError

_CHANNELS = (1, 3, 4)
_PROBED_ROWS = 16


class Arrays(PathSource):
    """The rows of arrays: images with labels.

    Reads idx files (MNIST, Fashion-MNIST, EMNIST), and `.npy` and `.npz` files of NumPy. Names of
    files and arrays decide what is what: `train-images-idx3-ubyte.gz` and
    `train-labels-idx1-ubyte.gz`, `x_train` and `y_train`, `images` and `labels`; `train`, `test`,
    `t10k` and so on are splits.

    An array of bytes of shape (n, height, width), also with 1, 3 or 4 channels in front or at the
    end, is stored as images, losslessly as PNG: `image/encoded`, `image/class/label` and so on.
    Other arrays are stored as numbers: the values and `<name>/shape`. More arrays with as many
    rows become features. Nothing is ever unpickled.

    Example:
        rs.pack(rs.Arrays("mnist"), "packed")
    """

    def __init__(self, path: PlaceLike) -> None:
        """
        Args:
            path: a folder, or a `.npz` file.
        """
        super().__init__(path)

    def list_samples(self) -> Listing:
        """Find the arrays and read their headers and labels.

        Raises:
            SourceError: there are no arrays of images, several fit, or a file is damaged.
            FileAccessError: a file cannot be read.
        """
        layout = find_arrays(self.path, () if self._tree is None else self._tree.leave_out)
        parts = layout.parts
        labels = _labels(layout)
        class_names: ClassNames | None = None
        if labels is not None:
            class_names = class_names_of({n: str(n) for n in np.unique(labels).tolist()})
        counts = [layout.array(part.images).shape[0] for part in parts]
        files = versions_of(layout.root, list(layout.files))
        reader = ArrayReader(
            layout.root,
            files,
            tuple(_features(part, are_labels=labels is not None) for part in parts),
            class_names,
        ).having(layout.files)
        row_names = RowNames(
            {part.images.place: rows for part, rows in zip(parts, counts, strict=True)}
        )

        def reference(number: int) -> Mapping[str, Any]:
            part, row = row_names.locate(number)
            array = parts[part].images
            return {"file": array.file, "array": array.member, "row": row}

        splits = split_coding([part.split for part in parts], counts)
        samples = SampleTable(
            row_names,
            np.ones(len(row_names), np.int64),
            labels=labels,
            splits=splits if splits[0] else None,
            version=common_version(version for _, version in files),
            references=reference,
        )
        samples.sizes = _sizes(reader, samples, counts)
        read = (layout.root / name for name in layout.files)
        account = self._files_account(Role.ARRAY, read)
        others = layout.others if account is None else []
        labelled = [part.labels for part in parts if part.labels is not None]
        without = [part.images.place for part in parts if part.labels is None]
        if labelled and without:
            names = join_names(array.place for array in labelled)
            layout.notices.append(
                f"{names} stored as the feature {labelled[0].feature}, not as classes, because "
                f"{join_names(without)} has no labels"
            )
        notices = (*layout.notices, *count_notice(others, "file", "of other types not packed"))
        return Listing(
            samples, reader, class_names, notices, tuple(splits[0]), layout.only_split
        ).with_account(account)

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "Arrays", "file" if self.root is None else "folder": last_name(self.path)}


@dataclass(frozen=True)
class ArrayReader(FilesReader[ArrayFile]):
    """Reads rows of arrays. Elsewhere, a compressed array is decompressed once.

    Each of the parts has the (feature, file, array) of the images and of other arrays.
    """

    parts: tuple[tuple[tuple[str, str, str], ...], ...]
    class_names: tuple[str | None, ...] | None = None

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        file, reference = self.opened(sample)
        row, name = referenced_row(sample), str(reference.get("array"))
        arrays = self._arrays.get((reference["file"], name), ())
        if not arrays or row >= file.array(name).shape[0]:
            raise unlisted_error(sample)
        features: dict[str, Any] = {}
        try:
            for feature, place, member in arrays:
                array = self.file(place).array(member)
                value = array.rows(row, row + 1)[0]
                if (place, member) == (reference["file"], name) and is_image_array(array):
                    features |= _image(value, f"{sample.name}.png")
                elif value.ndim:
                    features |= array_features(value, feature)
                else:
                    features[feature] = array_features(value, feature)[feature]
        except ValueError as error:
            raise SourceError(str(error), sample=sample.name) from None
        return features | class_features(sample.label, self.class_names)

    @cached_property
    def _arrays(self) -> Mapping[tuple[str, str], tuple[tuple[str, str, str], ...]]:
        return {(arrays[0][1], arrays[0][2]): arrays for arrays in self.parts}

    def _open(self, name: str) -> Mapping[str, ArrayFile]:
        return {name: ArrayFile(self.checked(name))}


def is_image_array(array: StoredArray) -> bool:
    """Whether the rows of an array are images: bytes of a height, a width and maybe channels."""
    if array.dtype != np.uint8:
        return False
    sides = array.shape[1:]
    return len(sides) == 2 or (len(sides) == 3 and (sides[2] in _CHANNELS or sides[0] in _CHANNELS))


def _image(pixels: npt.NDArray[Any], name: str) -> dict[str, Any]:
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    elif pixels.shape[2] not in _CHANNELS:
        pixels = pixels.transpose(1, 2, 0)
    return image_features(encode_png(np.ascontiguousarray(pixels)), name)


def _labels(layout: ArrayLayout) -> npt.NDArray[np.int32] | None:
    """The labels of all parts; None if not all parts have integers from 0 as labels."""
    labels = []
    for part in layout.parts:
        if part.labels is None:
            return None
        array = layout.array(part.labels)
        if array.dtype.kind not in "iub" or array.shape[1:] not in ((), (1,)):
            return None
        labels.append(array.all_rows().reshape(-1))
        if labels[-1].min() < 0 or labels[-1].max() > LARGEST_LABEL:
            return None
    return np.concatenate(labels).astype(np.int32)


def _features(part: SplitArrays, *, are_labels: bool) -> tuple[tuple[str, str, str], ...]:
    labels = [] if are_labels or part.labels is None else [part.labels]
    return tuple(
        (array.feature, array.file, array.member) for array in (part.images, *labels, *part.extras)
    )


def _sizes(
    reader: ArrayReader, samples: SampleTable, counts: Sequence[int]
) -> npt.NDArray[np.int64]:
    """The mean size of some records of each part, for all of its samples."""
    means, first = [], 0
    for count in counts:
        rows = sorted({first + count * at // _PROBED_ROWS for at in range(_PROBED_ROWS)})
        sizes = [len(encode_example(reader.read(samples[row]), reader.kinds())) for row in rows]
        means.append(-(-sum(sizes) // len(sizes)))
        first += count
    return np.repeat(np.array(means, np.int64), counts)
