"""Images in arrays: IDX, NumPy, pickles, MATLAB, HDF5."""

from __future__ import annotations

import gzip
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .files import Folder, array_digest, idx_bytes, npz_bytes
from .layout import Reading, Record, layout


def _digits(root: Folder, count: int, channels: int = 0) -> NDArray[np.uint8]:
    shape = (count, 12, 10, channels) if channels else (count, 12, 10)
    return root.random().integers(0, 256, shape, dtype=np.uint8)


def _records(pixels: NDArray[np.uint8], labels: NDArray[Any]) -> list[Record]:
    records = []
    for image, label in zip(pixels, labels.tolist(), strict=True):
        rgb = np.asarray(Image.fromarray(image).convert("RGB"))
        records.append(Record(array_digest(rgb), str(label)))
    return records


def _mnist(root: Folder, name: str, *, compressed: bool) -> Reading:
    splits = {}
    for split, prefix, count in (("train", "train", 5), ("test", "t10k", 3)):
        pixels = _digits(root, count)
        labels = np.arange(count, dtype=np.uint8) * 2 % 10
        for kind, array in (("images", pixels), ("labels", labels)):
            data = idx_bytes(array)
            path = name.format(prefix=prefix, kind=kind, axes=array.ndim)
            root.data(path, gzip.compress(data, mtime=0) if compressed else data)
        splits[split] = _records(pixels, labels)
    return Reading(splits, label_column="label")


@layout()
def mnist_idx_gz(root: Folder) -> Reading:
    return _mnist(root, "{prefix}-{kind}-idx{axes}-ubyte.gz", compressed=True)


@layout(loud_is_right=True, loud_words=("pickle",))
def cifar_10_pickles(root: Folder) -> None:
    """Pickles are never opened: they can run code."""
    for name in ("data_batch_1", "data_batch_2", "test_batch"):
        batch = {
            b"data": root.random().integers(0, 256, (4, 3072), dtype=np.uint8),
            b"labels": [6, 9, 9, 4],
            b"filenames": [b"a.png", b"b.png", b"c.png", b"d.png"],
        }
        root.data(f"cifar-10-batches-py/{name}", pickle.dumps(batch, protocol=2))
    meta = {b"label_names": [b"airplane", b"automobile"]}
    root.data("cifar-10-batches-py/batches.meta", pickle.dumps(meta, protocol=2))
    root.text("cifar-10-batches-py/readme.html", "<a href='http://example.com'>readme</a>")


@layout(loud_is_right=True)
def cifar_10_binary(root: Folder) -> None:
    """A label and 3 x 32 x 32 bytes for each image."""
    for name in ("data_batch_1.bin", "test_batch.bin"):
        records = root.random().integers(0, 256, (4, 3073), dtype=np.uint8)
        root.data(f"cifar-10-batches-bin/{name}", records.tobytes())
    root.lines("cifar-10-batches-bin/batches.meta.txt", "airplane", "automobile")


@layout()
def keras_npz(root: Folder) -> Reading:
    """mnist.npz with x_train, y_train, x_test, y_test."""
    arrays, splits = {}, {}
    for split, count in (("train", 5), ("test", 3)):
        pixels, labels = _digits(root, count), np.arange(count, dtype=np.uint8)
        arrays |= {f"x_{split}": pixels, f"y_{split}": labels}
        splits[split] = _records(pixels, labels)
    root.data("mnist.npz", npz_bytes(**arrays))
    return Reading(splits, label_column="label")


@layout()
def medmnist_npz(root: Folder) -> Reading:
    """train_images, train_labels, val_images, …, with labels of shape (n, 1)."""
    arrays, splits = {}, {}
    for split, short, count in (
        ("train", "train", 4),
        ("validation", "val", 2),
        ("test", "test", 3),
    ):
        pixels, labels = _digits(root, count, 3), np.arange(count, dtype=np.uint8)
        arrays |= {f"{short}_images": pixels, f"{short}_labels": labels[:, None]}
        splits[split] = _records(pixels, labels)
    root.data("pathmnist.npz", npz_bytes(**arrays))
    return Reading(splits, label_column="label")


@layout(loud_is_right=True)
def svhn_matlab(root: Folder) -> None:
    for name in ("train_32x32.mat", "test_32x32.mat"):
        root.data(
            name, b"MATLAB 5.0 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\1IM" + bytes(64)
        )


@layout(loud_is_right=True)
def hdf5(root: Folder) -> None:
    for name in ("train_catvnoncat.h5", "test_catvnoncat.h5"):
        root.data(f"datasets/{name}", b"\x89HDF\r\n\x1a\n" + bytes(200))
