"""Arrays: idx files of MNIST, `.npy`, `.npz`; against NumPy and struct."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.sources import Arrays, Source

from ..raising import raises
from ..reading import read_sample
from .layouts.files import idx_bytes, npy_bytes, npz_bytes
from .source_contract import SourceContract

NOISE = np.random.default_rng(0).integers(0, 256, (9, 12, 10), np.uint8)
LABELS = np.array([0, 1, 2, 2, 1, 0, 1, 1, 2], np.uint8)


def _put(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def _mnist(suffix: str = "-idx{}-ubyte") -> dict[str, bytes]:
    return {
        f"{split}-{what}{suffix.format(array.ndim)}": idx_bytes(array)
        for split, part in (("train", slice(0, 6)), ("t10k", slice(6, 9)))
        for what, array in (("images", NOISE[part]), ("labels", LABELS[part]))
    }


class TestContractIdx(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:  # noqa: ARG002
        files = _mnist()
        return Arrays(_put(folder, {f"{n}.gz" if "t10k" in n else n: files[n] for n in files}))


class TestContractNpz(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:  # noqa: ARG002
        ids = np.arange(9, dtype=np.int32)
        return Arrays(
            _put(folder, {"a.npz": npz_bytes(packed=True, images=NOISE, labels=LABELS, ids=ids)})
        )


def _read(source: Arrays) -> list[tuple[str | None, Any, int | None, dict[str, Any]]]:
    """(split, pixels, label, features) of each sample; pixels decoded by Pillow."""
    found = []
    for sample in source.list_samples().samples:
        features: Any = read_sample(source, sample)
        pixels = None
        if "image/encoded" in features:
            image = Image.open(io.BytesIO(features["image/encoded"]))
            assert image.format == "PNG"
            pixels = np.asarray(image)
            assert pixels.shape[:2] == (features["image/height"], features["image/width"])
        found.append((sample.split, pixels, sample.label, features))
    return found


def _compare(source: Arrays, images: Any, labels: Any, splits: Any = None) -> None:
    found = _read(source)
    assert len(found) == len(images)
    for number, (split, pixels, label, features) in enumerate(found):
        assert split == (None if splits is None else splits[number])
        assert np.array_equal(pixels, images[number])
        assert label == features.get("image/class/label") == labels[number]


_SPLITS = ["train"] * 6 + ["test"] * 3


def _arrays(arrays: Mapping[str, Any], *, packed: bool = False) -> dict[str, bytes]:
    """Files of arrays by name: `a.npy`, idx files, and `a.npz/x`, which is an array in `a.npz`."""
    members: dict[str, dict[str, Any]] = {}
    files = {}
    for name, array in arrays.items():
        file, _, member = name.partition(".npz/")
        if member:
            members.setdefault(f"{file}.npz", {})[member] = array
        else:
            files[name] = npy_bytes(array) if name.endswith(".npy") else idx_bytes(array)
    return files | {name: npz_bytes(packed=packed, **arrays) for name, arrays in members.items()}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("images", "labels", "test"),
    [
        ("{}-images-idx3-ubyte", "{}-labels-idx1-ubyte.gz", "t10k"),
        ("MNIST/raw/{}-images.idx3-ubyte.gz", "MNIST/raw/{}-labels.idx1-ubyte", "t10k"),
        ("{}-images-idx3.ubyte", "{}-labels-idx1.ubyte", "t10k"),
        ("{}/images.npy", "{}/labels.npy", "test"),
        ("{}.npz/x", "{}.npz/y", "test"),
        ("a.npz/x_{}", "a.npz/y_{}", "test"),
        ("a.npz/X_{}", "a.npz/Y_{}", "test"),
        ("a.npz/{}_images", "a.npz/{}_labels", "test"),
        ("a.npz/x{}", "a.npz/y{}", "test"),
        ("a.npz/{}X", "a.npz/{}Y", "test"),
        ("a.npz/images_{}", "a.npz/targets_{}", "test"),
    ],
)
def test_names_of_splits(tmp_path: Path, images: str, labels: str, test: str, packed: bool) -> None:
    arrays = {images.format("train"): NOISE[:6], labels.format("train"): LABELS[:6]}
    arrays |= {images.format(test): NOISE[6:], labels.format(test): LABELS[6:]}
    _put(tmp_path, _arrays(arrays, packed=packed))
    listing = Arrays(tmp_path).list_samples()
    assert (listing.splits, listing.notices) == (("train", "test"), ())
    assert listing.class_names == ("0", "1", "2")
    _compare(Arrays(tmp_path), NOISE, LABELS, _SPLITS)
    if images.startswith("a.npz/"):
        _compare(Arrays(tmp_path / "a.npz"), NOISE, LABELS, _SPLITS)


def test_a_copy_next_to_its_gzip_file_is_read_once(tmp_path: Path) -> None:
    files = _mnist()
    _put(tmp_path, files | {f"{name}.gz": data for name, data in files.items()})
    (notice,) = Arrays(tmp_path).list_samples().notices
    assert notice.startswith("4 compressed copies skipped")
    _compare(Arrays(tmp_path), NOISE, LABELS, _SPLITS)


def test_a_single_file_of_an_array_names_its_folder(tmp_path: Path) -> None:
    path = _put(tmp_path, _mnist()) / "t10k-images-idx3-ubyte"
    with raises(rs.SourceError, path=path, match="folder"):
        Arrays(path).list_samples()


def test_a_file_for_each_sample_is_refused(tmp_path: Path) -> None:
    _put(tmp_path, {f"image{number}.npy": npy_bytes(NOISE[0]) for number in range(120)})
    with raises(rs.SourceError, path=tmp_path, match="120 files"):
        Arrays(tmp_path).list_samples()


@pytest.mark.parametrize(
    "files",
    [
        {"images.npy": NOISE, "labels.npy": LABELS},
        {"X.npy": NOISE, "y.npy": LABELS},
        {"my_data.npy": NOISE, "my_targets.npy": LABELS.astype(np.int16)},
        {"a.npz/x": NOISE, "a.npz/y": LABELS[:, None]},
    ],
)
def test_names_of_arrays(tmp_path: Path, files: dict[str, Any]) -> None:
    _put(tmp_path, _arrays(files))
    _compare(Arrays(tmp_path), NOISE, LABELS)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("is_planar", [False, True])
def test_channels(tmp_path: Path, channels: int, is_planar: bool) -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (5, 8, 6, channels), np.uint8)
    stored = pixels.transpose(0, 3, 1, 2).copy() if is_planar else pixels
    _put(tmp_path, {"images.npy": npy_bytes(stored)})
    _compare(Arrays(tmp_path), pixels[..., 0] if channels == 1 else pixels, [None] * 5)


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "f2", "i1", ">i4", "u2", "?", "i8"])
@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 2, 3), (4, 2, 3, 5, 2)])
def test_numbers_are_features_with_their_shape(
    tmp_path: Path, dtype: str, shape: tuple[int, ...]
) -> None:
    array = (np.random.default_rng(3).normal(size=shape) * 50).astype(dtype)
    _put(tmp_path, {"a.npz": npz_bytes(x=array, y=np.array([0.5, 1, 2, 3]), names=list("abcd"))})
    source = Arrays(tmp_path)
    listing = source.list_samples()
    assert listing.class_names is None
    assert any("names" in notice for notice in listing.notices)
    for number, (_, pixels, label, features) in enumerate(_read(source)):
        assert (pixels, label) == (None, None)
        kind = np.float32 if array.dtype.kind == "f" else np.int64
        assert np.array_equal(features["x"], array[number].astype(kind).ravel())
        if array.ndim > 1:
            assert features["x/shape"] == list(shape[1:])
        assert features["y"] == [0.5, 1, 2, 3][number]


def test_labels_of_some_splits_are_a_feature(tmp_path: Path) -> None:
    arrays = {"x_train.npy": NOISE[:6], "y_train.npy": LABELS[:6], "x_test.npy": NOISE[6:]}
    source = Arrays(_put(tmp_path, _arrays(arrays)))
    listing = source.list_samples()
    assert listing.class_names is None
    assert any("y_train" in notice and "x_test" in notice for notice in listing.notices)
    found = [features["y"] for split, _, _, features in _read(source) if split == "train"]
    assert found == LABELS[:6].tolist()


def test_more_arrays_are_features(tmp_path: Path) -> None:
    boxes = np.arange(36, dtype=np.int32).reshape(9, 4)
    data = npz_bytes(images=NOISE, labels=LABELS, boxes=boxes, mean=np.zeros((12, 10)))
    _put(tmp_path, {"a.npz": data, "read me.txt": b"x"})
    source = Arrays(tmp_path)
    notices = source.list_samples().notices
    assert any("mean" in notice for notice in notices)
    assert any("read me.txt" in notice for notice in notices)
    found = [features["boxes"].tolist() for _, _, _, features in _read(source)]
    assert found == boxes.tolist()


class _Planted:
    def __reduce__(self) -> Any:
        return (exit, (3,))


def test_pickles_are_refused_with_the_way_out(tmp_path: Path) -> None:
    data = pickle.dumps({b"data": _Planted()}, protocol=2)
    path = _put(tmp_path, {"cifar-10-batches-py/data_batch_1": data})
    with raises(rs.SourceError, path=path / "cifar-10-batches-py/data_batch_1") as caught:
        rs.detect(path)
    assert "numpy.savez" in caught.value.remedy
    objects = np.array([_Planted(), 1], object)
    path = tmp_path / "a.npz"
    path.write_bytes(npz_bytes(images=objects))
    with raises(rs.SourceError, path=path, match="object"):
        Arrays(path).list_samples()
    path.write_bytes(npz_bytes(images=NOISE, extra=objects))
    assert any("extra" in notice for notice in Arrays(path).list_samples().notices)


def _bomb(size: int) -> bytes:
    """A member that announces few values, and inflates to many bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("images.npy", npy_bytes(NOISE) + bytes(size))
    return stream.getvalue()


def _twice() -> bytes:
    """Two members of one name."""
    stream = io.BytesIO(npz_bytes(images=NOISE))
    with zipfile.ZipFile(stream, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("images.npy", npy_bytes(NOISE))
    return stream.getvalue()


def _huge_npy() -> bytes:
    head = json.dumps({"descr": "|u1", "fortran_order": False, "shape": 0})
    head = head.replace("false", "False").replace('"shape": 0', '"shape": (4294967295, 65536, 3)')
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(head) + 1) + head.encode() + b"\n" + bytes(9)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x-images-idx3-ubyte", struct.pack(">BBBBIII", 0, 0, 8, 3, 2**31, 2**31, 2**31)),
        ("x-images-idx3-ubyte.gz", struct.pack(">BBBBIII", 0, 0, 8, 3, 2**31, 28, 28) + bytes(99)),
        ("x-images-idx3-ubyte", struct.pack(">BBBBIII", 0, 0, 8, 3, 2**31, 0, 28)),
        ("x-images-idx3-ubyte", struct.pack(">BBBB", 0, 0, 8, 255)),
        ("x-images-idx3-ubyte", struct.pack(">BBBB", 0, 0, 8, 0)),
        ("x-images-idx3-ubyte", struct.pack(">BBBBI", 0, 0, 7, 1, 1) + b"x"),
        ("x-images-idx3-ubyte", b""),
        ("x-images-idx3-ubyte", b"text that is not an array"),
        ("x-images-idx3-ubyte", idx_bytes(NOISE)[:-1]),
        ("x-images-idx3-ubyte", idx_bytes(NOISE) + b"x"),
        ("x-images-idx3-ubyte.gz", idx_bytes(NOISE) + bytes(5_000_000)),
        ("images.npy", _huge_npy()),
        ("images.npy", npy_bytes(NOISE)[:-1]),
        ("images.npy", npy_bytes(np.zeros((3, 0, 5), np.uint8))),
        ("images.npy", npy_bytes(np.uint8(3))),
        ("images.npy", npy_bytes(np.asfortranarray(NOISE))),
        ("images.npy", b"\x93NUMPY\x01\0\xff\xff"),
        ("a.npz", b"PK\x03\x04 and nothing"),
        ("a.npz", npz_bytes(images=NOISE)[:-30]),
        ("a.npz", _bomb(50_000_000)),
        ("a.npz", _twice()),
        ("a.npz", npz_bytes(other=NOISE, another=NOISE)),
        ("a.npz", npz_bytes(images=NOISE, labels=LABELS[:-1])),
        ("a.npz", npz_bytes(images=NOISE, x=NOISE)),
    ],
)
def test_hostile_files_are_refused_by_name(tmp_path: Path, name: str, data: bytes) -> None:
    _put(tmp_path, {name: data})
    with pytest.raises((rs.SourceError, rs.CorruptDataError)) as caught:
        Arrays(tmp_path).list_samples()
    assert caught.value.path in (str(tmp_path / name), str(tmp_path))


def test_only_the_announced_bytes_are_decompressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    read = zipfile.ZipExtFile.read

    def counting(file: zipfile.ZipExtFile, size: int | None = -1) -> bytes:
        data = read(file, size)
        counts.append(len(data))
        return data

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counting)
    _put(tmp_path, {"a.npz": _bomb(50_000_000)})
    with raises(rs.SourceError, path=tmp_path / "a.npz", match="more bytes follow"):
        Arrays(tmp_path).list_samples()
    assert NOISE.nbytes < sum(counts) < 4_000_000


def test_flipped_bytes_are_errors_or_other_values(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    for data in (npz_bytes(packed=True, images=NOISE, labels=LABELS), npz_bytes(x=NOISE, y=LABELS)):
        path = tmp_path / "a.npz"
        for _ in range(150):
            changed = bytearray(data)
            changed[int(random.integers(len(data)))] ^= 1 << int(random.integers(8))
            path.write_bytes(changed)
            try:
                _read(Arrays(path))
            except rs.RecordsmithError as error:
                assert error.path  # noqa: PT017


@pytest.mark.parametrize("make", [lambda p: p / "none", lambda p: p])
def test_nothing_there(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    with pytest.raises((rs.SourceError, rs.FileAccessError)) as caught:
        Arrays(make(tmp_path)).list_samples()
    assert str(tmp_path) in str(caught.value)
