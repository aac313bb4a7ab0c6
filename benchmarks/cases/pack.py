"""A folder of JPEG files into two shards, for training and validation.

The peers list the classes, shuffle with a seed, split 70 to 30, and sync both files at the end.
All but the tutorials' script store the seven features that recordsmith stores. recordsmith also
reads every shard back and proves its checksums, and writes an index, a manifest and labels: that
is in its figure.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from by_hand import example, find_checksum, frame
from case import OURS, Case, Peer, Task
from cases.write import sync
from inputs import Inputs

Split = tuple[str, list[tuple[Path, int, str]]]


def _splits(root: Path) -> Iterator[Split]:
    """(name, its images as (path, label, class name)), shuffled."""
    classes = sorted(entry.name for entry in root.iterdir() if entry.is_dir())
    images = [
        (path, label, name)
        for label, name in enumerate(classes)
        for path in sorted((root / name).iterdir())
    ]
    random.Random(0).shuffle(images)
    cut = round(0.7 * len(images))
    yield "train", images[:cut]
    yield "validation", images[cut:]


def _task(inputs: Inputs, name: str, run: Callable[[Path, Path], None]) -> Task:
    root = inputs.path("images")
    return packing_task(inputs.out(name), inputs.image_count, lambda out: run(root, out))


def packing_task(out: Path, count: int, run: Callable[[Path], None]) -> Task:
    """`run` writes so many records into the folder `out`, which is empty before."""

    def before() -> None:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()

    return Task(lambda: run(out), count, before, digest=lambda _: count_records(out))


def count_records(out: Path) -> int | None:
    """How many records the shards have; None where there are none."""
    shards = [path.read_bytes() for path in out.glob("*.tfrecord")]
    count = 0
    for data in shards:
        at = 0
        while at < len(data):
            at += int.from_bytes(data[at : at + 8], "little") + 16
            count += 1
    return count if shards else None


def _recordsmith(inputs: Inputs) -> Task:
    from recordsmith import ImageFolder, pack

    def run(root: Path, out: Path) -> None:
        shares = {"train": 0.7, "validation": 0.3}
        report = pack(ImageFolder(root), out, splits=shares, shards=1)
        assert report.sample_count == inputs.image_count

    return _task(inputs, "recordsmith", run)


def _tutorial(inputs: Inputs) -> Task:
    """The tutorials' script in TensorFlow 2: it decodes each image to learn its size."""
    import tensorflow as tf

    def int64(value: int) -> Any:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

    def string(value: bytes) -> Any:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    def run(root: Path, out: Path) -> None:
        for split, images in _splits(root):
            path = out / f"{split}.tfrecord"
            with tf.io.TFRecordWriter(str(path)) as writer:
                for image, label, _ in images:
                    data = tf.io.gfile.GFile(str(image), "rb").read()
                    height, width, _ = tf.io.decode_jpeg(data, channels=3).shape
                    features = {
                        "image/encoded": string(data),
                        "image/format": string(b"jpg"),
                        "image/class/label": int64(label),
                        "image/height": int64(height),
                        "image/width": int64(width),
                    }
                    message = tf.train.Example(features=tf.train.Features(feature=features))
                    writer.write(message.SerializeToString())
            sync(path)

    return _task(inputs, "tutorial", run)


def jpeg_size(data: bytes) -> tuple[int, int]:
    """(height, width) from the first frame header of a JPEG file."""
    at = 2
    while True:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return (
                int.from_bytes(data[at + 5 : at + 7], "big"),
                int.from_bytes(data[at + 7 : at + 9], "big"),
            )
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")


def _lean_tensorflow(inputs: Inputs) -> Task:
    """The least that TensorFlow needs: sizes from the headers, files read by Python."""
    import tensorflow as tf

    feature, int64s, strings = tf.train.Feature, tf.train.Int64List, tf.train.BytesList

    def int64(value: int) -> Any:
        return feature(int64_list=int64s(value=[value]))

    def string(value: bytes) -> Any:
        return feature(bytes_list=strings(value=[value]))

    def run(root: Path, out: Path) -> None:
        for split, images in _splits(root):
            path = out / f"{split}.tfrecord"
            with tf.io.TFRecordWriter(str(path)) as writer:
                for image, label, name in images:
                    data = image.read_bytes()
                    height, width = jpeg_size(data)
                    features = {
                        "image/encoded": string(data),
                        "image/format": string(b"jpeg"),
                        "image/filename": string(f"{name}/{image.name}".encode()),
                        "image/class/label": int64(label),
                        "image/class/text": string(name.encode()),
                        "image/height": int64(height),
                        "image/width": int64(width),
                    }
                    message = tf.train.Example(features=tf.train.Features(feature=features))
                    writer.write(message.SerializeToString())
            sync(path)

    return _task(inputs, "lean-tensorflow", run)


def _by_hand(inputs: Inputs) -> Task:
    """No TensorFlow: simplejpeg for the header, Example and frame put together in Python."""
    from simplejpeg import decode_jpeg_header

    checksum = find_checksum()

    def run(root: Path, out: Path) -> None:
        for split, images in _splits(root):
            path = out / f"{split}.tfrecord"
            with open(path, "wb") as file:
                for image, label, name in images:
                    data = image.read_bytes()
                    height, width, _, _ = decode_jpeg_header(data)
                    payload = example(
                        {
                            "image/encoded": data,
                            "image/format": b"jpeg",
                            "image/filename": f"{name}/{image.name}".encode(),
                            "image/class/label": label,
                            "image/class/text": name.encode(),
                            "image/height": height,
                            "image/width": width,
                        }
                    )
                    file.write(frame(payload, checksum))
            sync(path)

    return _task(inputs, "by-hand", run)


def _copy(inputs: Inputs) -> Task:
    def run(root: Path, out: Path) -> None:
        for split, images in _splits(root):
            for image, _, name in images:
                folder = out / split / name
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(image, folder / image.name)

    return _task(inputs, "copy", run)


CASES = (
    Case(
        name="pack",
        title="Pack images",
        what=(
            "A folder of JPEG files of 320 by 240 pixels in five classes into one shard for "
            "training and one for validation, synced at the end; the files are in the page cache. "
            "Copying the files, without a sync, is stated for comparison. recordsmith's figure "
            "includes reading all of it back with every checksum."
        ),
        unit="image",
        peers=(
            Peer(OURS, _recordsmith),
            Peer("the tutorials' script, on TensorFlow 2", _tutorial, at_most=1 / 12),
            Peer("TensorFlow, sizes from the headers", _lean_tensorflow, at_most=1 / 2.8),
            Peer("Python by hand, simplejpeg, crc32c", _by_hand, at_most=1.0),
            Peer("copying the files", _copy),
        ),
        inputs=("images",),
    ),
)
