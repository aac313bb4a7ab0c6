"""What is read and packed: made once, deterministically, and kept in a folder.

Small records: three int64 scalars, 13 floats, 1 to 19 int64s, a string of two bytes, as in logs
for a recommender. Large records: incompressible bytes as long as a photograph. Images: smooth
colours, shapes and grain, which JPEG makes as large as photographs of 320 by 240 pixels. Masks,
boxes and tables: see `annotated`. What a camera wrote: images of 500 by 375 pixels and 107 kB,
larger ones and those of 12 megapixels, in the form that each loader likes.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import annotated

VERSION = 1
"""Raise it when what is made here changes: the folder's name holds it."""

LARGE_BYTES = 110_000
EMBEDDING_SIZE = 1536
_SMALL_TIMES, _LARGE_TIMES = 25, 5  # the file of each as often makes a gigabyte
CLASSES = ("daisy", "dandelion", "roses", "sunflowers", "tulips")


@dataclass(frozen=True)
class Camera:
    """Photographs of one size.

    grain: as of a `Painter`: the more, the larger the files.
    """

    count: int
    width: int
    height: int
    grain: tuple[float, float]
    quality: int


class Columns(NamedTuple):
    """The small records as columns: int64 (rows,); float32 (rows, 13); ragged int64; bytes."""

    user: Any
    label: Any
    time: Any
    dense: Any
    items: Any
    item_splits: Any
    country: list[bytes]

    def rows(self) -> Iterator[dict[str, Any]]:
        """The same as dicts of ints, lists and bytes."""
        splits = self.item_splits.tolist()
        items = self.items.tolist()
        numbers = zip(
            self.user.tolist(),
            self.label.tolist(),
            self.time.tolist(),
            self.dense.tolist(),
            self.country,
            splits[:-1],
            splits[1:],
            strict=True,
        )
        for user, label, time, dense, country, start, stop in numbers:
            yield {
                "user": user,
                "label": label,
                "time": time,
                "dense": dense,
                "items": items[start:stop],
                "country": country,
            }


def _read_anew(path: Path) -> None:
    stat = path.stat()
    if stat.st_blocks * 512 < stat.st_size:
        return  # it has holes, which are larger than the memory
    with open(path, "rb", buffering=0) as file:
        if hasattr(os, "posix_fadvise"):
            os.fsync(file.fileno())  # what is not on the disk stays in memory
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(1 << 20):
            pass


class Inputs:
    """The folder of inputs. `make` creates a missing input; `path` returns its path."""

    def __init__(self, folder: Path, quick: bool) -> None:
        self.folder = folder / f"v{VERSION}-{'quick' if quick else 'full'}"
        self.small_count = 20_000 if quick else 200_000
        self.dict_count = 5_000 if quick else 50_000
        self.large_count = 200 if quick else 2_000
        self.mask_count = 300 if quick else 3_000
        self.image_count = 400 if quick else 3_670
        self.photograph_count = 100 if quick else 1_000
        self.encoded_count = 40 if quick else 400
        self.cameras = {  # whole batches of 32
            "camera": Camera(128 if quick else 1_024, 500, 375, (6, 14), 95),
            "camera-2mp": Camera(32 if quick else 256, 1600, 1200, (4, 9), 92),
            "camera-12mp": Camera(32, 4000, 3000, (3, 7), 92),
        }
        self.camera_count = self.cameras["camera"].count
        self.thumbnail_count = 10_000 if quick else 100_000
        self.random_count = 2_000 if quick else 20_000
        self.embedding_count = 4_000 if quick else 40_000
        self.row_count = 40_000 if quick else 400_000
        self.video_count = 200 if quick else 2_000
        self.few_rows, self.many_rows = 10_000, 50_000 if quick else 1_000_000
        self.record_counts = {  # of a damaged file: before it was damaged
            "small.tfrecord": self.small_count,
            "small-4-times.tfrecord": 4 * self.small_count,
            "small-5-times.tfrecord": 5 * self.small_count,
            "small-50-times.tfrecord": 50 * self.small_count,
            "small-damaged.tfrecord": _SMALL_TIMES * self.small_count,
            "small-packed": _SMALL_TIMES * self.small_count,
            "large.tfrecord": self.large_count,
            "masks.tfrecord": self.mask_count,
            "large-damaged.tfrecord": _LARGE_TIMES * self.large_count,
            "large-packed": _LARGE_TIMES * self.large_count,
        }
        self._makers: dict[str, Callable[[Path], None]] = {
            "small.tfrecord": self._make_small,
            "small-4-times.tfrecord": partial(self._make_small_times, 4),
            "small-5-times.tfrecord": partial(self._make_small_times, 5),
            "small-50-times.tfrecord": partial(self._make_small_times, 50),
            "small-damaged.tfrecord": lambda path: self._damage(
                "small.tfrecord", _SMALL_TIMES, path
            ),
            "small-packed": lambda path: self._pack_times("small.tfrecord", _SMALL_TIMES, path),
            "small-packed-50-times": lambda path: self._pack_times("small.tfrecord", 50, path),
            "flat": self._make_flat,
            "large-packed": lambda path: self._pack_times("large.tfrecord", _LARGE_TIMES, path),
            "small.parquet": partial(self._make_parquet, 1),
            "small-50-times.parquet": partial(self._make_parquet, 50),
            "large.tfrecord": self._make_large,
            "embeddings.tfrecord": self._make_embeddings,
            "embeddings.parquet": self._make_embedding_table,
            "embeddings.raw": lambda path: self.embeddings().tofile(path),
            "masks.tfrecord": self._make_masks,
            "videos.tfrecord": self._make_videos,
            "large-damaged.tfrecord": lambda path: self._damage(
                "large.tfrecord", _LARGE_TIMES, path
            ),
            "images": self._make_images,
            "images-quarter": self._make_quarter,
            "photographs": lambda path: annotated.draw_photographs(path, self.photograph_count),
            "few-photographs": self._make_few,
            "progressive": lambda path: annotated.draw_photographs(
                path, self.encoded_count, progressive=True
            ),
            "pngs": self._of_photographs(
                lambda path, source: annotated.make_pngs(path, source, self.encoded_count)
            ),
            "pairs": self._of_photographs(annotated.make_pairs),
            "voc": self._of_photographs(annotated.make_voc),
            "coco": self._of_photographs(annotated.make_coco),
            "coco-keypoints": self._of_photographs(partial(annotated.make_coco, keypoint_count=17)),
            "coco-keypoints-packed": self._pack_keypoints,
            "yolo": self._of_photographs(annotated.make_yolo),
            "table.csv": lambda path: annotated.make_csv(path, self.row_count),
            "table.jsonl": lambda path: annotated.make_json(path, self.row_count),
            "table.parquet": lambda path: annotated.make_parquet(path, self.row_count),
            "camera-packed-256": lambda path: self._pack_camera("camera", path, shorter_side=256),
            "camera-packed-8": lambda path: self._pack_camera("camera", path, shorter_side=8),
            "camera-packed-10-times": self._make_camera_10_times,
            "camera-labels": lambda path: self._add_layer("camera-packed", path, 0),
            "camera-embeddings": lambda path: self._add_layer(
                "camera-packed", path, EMBEDDING_SIZE
            ),
            "small-labels": lambda path: self._add_layer("small.tfrecord", path, 0),
            "thumbnails": self._make_thumbnails,
            "thumbnails.parquet": self._make_thumbnail_table,
            "new-labels.csv": self._make_new_labels,
            "remote/camera": self._make_remote_camera,
            "remote/large": lambda path: self._pack_times("large.tfrecord", _LARGE_TIMES, path),
            "remote/1000-shards": self._make_1000_shards,
            "remote/sparse.tfrecord": self._make_sparse,
            "small.arrayrecord": self._make_small_array_record,
            "few-rows.csv": lambda path: annotated.make_csv(path, self.few_rows),
            "many-rows.csv": lambda path: annotated.make_csv(path, self.many_rows),
        }
        for name in ("camera-labels", "camera-embeddings", "small-labels"):
            self._makers[f"{name}-inside"] = partial(self._merge_layer, name)
        for name in self.cameras:
            self._makers |= {
                name: partial(self._draw_camera, name),
                f"{name}-packed": partial(self._pack_camera, name),
                f"{name}-tiles": partial(self._pack_camera, name, tiles=True),
                f"{name}.offsets": partial(self._make_camera_offsets, name),
                f"{name}.idx": partial(self._make_camera_idx, name),
                f"{name}.arrayrecord": partial(self._make_camera_array_record, name),
            }

    def path(self, name: str) -> Path:
        """Where an input is."""
        return self.folder / name

    def out(self, name: str) -> Path:
        """Where a peer may write; on the file system of the inputs."""
        folder = self.folder / "out"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name

    def make(self, name: str) -> None:
        """Make an input, whole or not at all, unless it is there."""
        path = self.path(name)
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        if partial.is_dir():
            shutil.rmtree(partial)
        self._makers[name](partial)
        partial.rename(path)

    def read_anew(self, name: str) -> None:
        """Let the system have an input in its memory as after a first reading, for all peers alike.

        Files that were written shortly before lie there in smaller pieces, which doubles what
        reading them takes.
        """
        path = self.path(name)
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                _read_anew(file)

    def columns(self, count: int | None = None) -> Columns:
        """The first rows of the small records."""
        import numpy as np

        rng = np.random.default_rng(0)
        rows = self.small_count
        lengths = rng.integers(1, 20, rows)
        splits = np.zeros(rows + 1, np.int64)
        np.cumsum(lengths, out=splits[1:])
        users = rng.integers(0, 1 << 31, rows)
        labels = rng.integers(0, 2, rows)
        times = 1_700_000_000 + np.sort(rng.integers(0, 30_000_000, rows))
        dense = rng.standard_normal((rows, 13), np.float32)
        items = rng.integers(0, 1_000_000, int(splits[-1]))
        codes = (b"BR", b"DE", b"FR", b"GB", b"IN", b"JP", b"KE", b"US")
        countries = [codes[number] for number in rng.integers(0, len(codes), rows).tolist()]
        stop = rows if count is None else count
        return Columns(
            users[:stop],
            labels[:stop],
            times[:stop],
            dense[:stop],
            items[: splits[stop]],
            splits[: stop + 1],
            countries[:stop],
        )

    def _make_small(self, path: Path) -> None:
        from by_hand import example
        from recordsmith import ShardWriter

        with ShardWriter(path) as writer:
            for features in self.columns().rows():
                writer.write(example(features))

    def _make_small_times(self, times: int, path: Path) -> None:
        self.make("small.tfrecord")
        data = self.path("small.tfrecord").read_bytes()
        with open(path, "wb") as file:
            file.writelines(data for _ in range(times))

    def _damage(self, name: str, times: int, path: Path) -> None:
        """So many copies in one file, with a hundred damages of each of three kinds: a flipped bit,
        4 KiB of zeros, 5,000 bytes missing.
        """
        self.make(name)
        good = self.path(name).read_bytes()
        count = 100 // times
        with open(path, "wb") as file:
            for _ in range(times):
                data = bytearray(good)
                for number in reversed(range(count)):
                    at = (2 * number + 1) * len(data) // (2 * count)
                    data[at] ^= 1
                    data[at + 20_000 : at + 20_000 + 4096] = bytes(4096)
                    del data[at + 40_000 : at + 45_000]
                file.write(data)

    def _pack_times(self, name: str, times: int, path: Path) -> None:
        """The records of a file, again and again, as a dataset of one shard."""
        from recordsmith import reshard

        self.make(name)
        data = self.path(name).read_bytes()
        joined = path.with_name(f"{path.name}.tfrecord")
        with open(joined, "wb") as file:
            file.writelines(data for _ in range(times))
        reshard(joined, path, shards=1, shard_names="train")
        joined.unlink()

    def _make_flat(self, path: Path) -> None:
        """The small records without the ragged feature, as a dataset of one shard."""
        from recordsmith import edit

        self.make("small.tfrecord")
        edit(self.path("small.tfrecord"), path, drop=["items"], shards=1, shard_names="train")

    def _make_parquet(self, times: int, path: Path) -> None:
        import pyarrow.parquet

        from cases.columns import arrow_table

        table = arrow_table(self.columns())
        with pyarrow.parquet.ParquetWriter(path, table.schema) as writer:
            for _ in range(times):
                writer.write_table(table)

    def _make_large(self, path: Path) -> None:
        import numpy as np

        from by_hand import example
        from recordsmith import ShardWriter

        rng = np.random.default_rng(1)
        with ShardWriter(path) as writer:
            for number in range(self.large_count):
                features = {"image/encoded": rng.bytes(LARGE_BYTES), "image/class/label": number}
                writer.write(example(features))

    def embeddings(self) -> Any:
        """float32, (rows, EMBEDDING_SIZE)."""
        import numpy as np

        shape = self.embedding_count, EMBEDDING_SIZE
        return np.random.default_rng(2).standard_normal(shape, np.float32)

    def _make_embeddings(self, path: Path) -> None:
        from recordsmith import ShardWriter

        with ShardWriter(path) as writer:
            writer.write_columns({"embedding": self.embeddings()})

    def _make_embedding_table(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        lists = pa.FixedSizeListArray.from_arrays(self.embeddings().ravel(), EMBEDDING_SIZE)
        table = pa.table({"embedding": lists})
        pq.write_table(table, path, row_group_size=1024, compression="none", use_dictionary=False)

    def _make_videos(self, path: Path) -> None:
        """SequenceExamples as those of YouTube-8M: 1,024 bytes for each of 150 to 300 seconds."""
        import numpy as np

        from by_hand import sequence_example
        from recordsmith import ShardWriter

        rng = np.random.default_rng(0)
        with ShardWriter(path) as writer:
            for number, steps in enumerate(rng.integers(150, 301, self.video_count).tolist()):
                context = {"labels": rng.integers(0, 3862, 3).tolist(), "id": b"%d" % number}
                writer.write(sequence_example(context, {"rgb": [rng.bytes(1024)] * steps}))

    def _make_masks(self, path: Path) -> None:
        """Masks of a few polygons, as large as those of Pascal VOC."""

        import numpy as np
        from PIL import Image, ImageDraw

        from by_hand import example
        from recordsmith import ShardWriter

        rng = np.random.default_rng(3)
        with ShardWriter(path) as writer:
            for number in range(self.mask_count):
                mask, out = Image.new("L", (500, 375)), io.BytesIO()
                for label in rng.integers(1, 21, 6).tolist():
                    corners = [tuple(corner) for corner in rng.uniform(0, 500, (12, 2)).tolist()]
                    ImageDraw.Draw(mask).polygon(corners, fill=label)
                mask.save(out, "PNG")
                features = {"image/segmentation/class/encoded": out.getvalue(), "id": number}
                writer.write(example(features))

    def _make_images(self, path: Path) -> None:
        from drawing import Painter

        painter = Painter(seed=2)
        for number in range(self.image_count):
            folder = path / CLASSES[number % len(CLASSES)]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number:06d}.jpg").write_bytes(painter.draw())

    def _make_few(self, path: Path) -> None:
        """As many of the photographs as are encoded again, as links to the same files."""
        self.make("photographs")
        path.mkdir()
        for image in sorted(self.path("photographs").iterdir())[: self.encoded_count]:
            os.link(image, path / image.name)

    def _of_photographs(self, make: Callable[[Path, Path], None]) -> Callable[[Path], None]:
        """A maker of what is made with the photographs."""

        def make_both(path: Path) -> None:
            self.make("photographs")
            make(path, self.path("photographs"))

        return make_both

    def camera(self, name: str = "camera") -> list[tuple[Path, int]]:
        """The camera's files and the number of the class of each."""
        files = sorted(self.path(name).glob("*/*.jpg"), key=lambda path: path.name)
        classes = sorted({path.parent.name for path in files})
        return [(path, classes.index(path.parent.name)) for path in files]

    def _draw_camera(self, name: str, path: Path) -> None:
        camera = self.cameras[name]
        annotated.draw_camera(
            path,
            camera.count,
            camera.width,
            camera.height,
            grain=camera.grain,
            quality=camera.quality,
        )

    def _pack_camera(self, name: str, path: Path, **options: Any) -> None:
        import recordsmith as rs

        self.make(name)
        source, images = rs.ImageFolder(self.path(name)), rs.ImageOptions(**options)
        rs.pack(source, path, shards=1, image_options=images)

    def _pack_keypoints(self, path: Path) -> None:
        import recordsmith as rs

        self.make("coco-keypoints")
        rs.pack(rs.Coco(self.path("coco-keypoints")), path, shards=1)

    def _make_camera_10_times(self, path: Path) -> None:
        """The same shard under ten names."""
        self.make("camera-packed")
        (shard,) = self.path("camera-packed").glob("*.tfrecord")
        path.mkdir()
        for number in range(10):
            os.link(shard, path / f"train-{number:05d}-of-00010.tfrecord")

    def _add_layer(self, name: str, path: Path, size: int) -> None:
        """A dataset in one shard with a layer of a label, or of so many floats, of each record."""
        import numpy as np
        import pyarrow as pa

        import recordsmith as rs

        self.make(name)
        rs.reshard(self.path(name), path, shards=1)
        count = len(rs.open(path))
        draw = np.random.default_rng(8)
        values: Any = pa.array(np.arange(count) % len(CLASSES))
        if size:
            floats = draw.standard_normal(count * size, np.float32)
            values = pa.FixedSizeListArray.from_arrays(floats, size)
        table = pa.table({"row": np.arange(count), "value": values})
        key = "embedding" if size else "new_label"
        rs.add_layer(path, table, name="new", on="position=row", features={key: "value"})

    def _merge_layer(self, name: str, path: Path) -> None:
        """The same with the values inside the records."""
        from recordsmith import reshard

        self.make(name)
        reshard(self.path(name), path, shards=1)

    def _thumbnails(self) -> Iterator[dict[str, Any]]:
        """Images of 7 kB and their numbers; each of some images comes often."""
        import io

        import numpy as np
        from PIL import Image

        images = []
        for seed in range(64):
            pixels = np.random.default_rng(seed).integers(0, 256, (12, 12, 3), np.uint8)
            image, file = Image.fromarray(pixels).resize((192, 192)), io.BytesIO()
            grain = np.random.default_rng(seed).normal(0, 9, (192, 192, 3))
            noisy = np.clip(np.asarray(image) + grain, 0, 255).astype(np.uint8)
            Image.fromarray(noisy).save(file, "JPEG", quality=70)
            images.append(file.getvalue())
        for number in range(self.thumbnail_count):
            yield {"id": number, "image/encoded": images[number % 64]}

    def _make_thumbnails(self, path: Path) -> None:
        import recordsmith as rs

        rs.pack(rs.Rows(list(self._thumbnails())), path, shards=8)

    def _make_thumbnail_table(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns: dict[str, list[Any]] = {"id": [], "image": []}
        for row in self._thumbnails():
            columns["id"].append(row["id"])
            columns["image"].append(row["image/encoded"])
        schema = pa.schema({"id": pa.int64(), "image": pa.large_binary()})
        pq.write_table(pa.table(columns, schema), path, compression="none", use_dictionary=False)

    def _make_new_labels(self, path: Path) -> None:
        """The labels of the thumbnails, in another order."""
        import numpy as np

        ids = np.random.default_rng(9).permutation(self.thumbnail_count).tolist()
        rows = "".join(f"{number},{number % len(CLASSES)}\n" for number in ids)
        path.write_text("id,label\n" + rows)

    def _make_remote_camera(self, path: Path) -> None:
        """A gigabyte in ten shards."""
        from recordsmith import reshard

        self.make("camera-packed-10-times")
        reshard(self.path("camera-packed-10-times"), path, shards=10)

    def _make_1000_shards(self, path: Path) -> None:
        from recordsmith import reshard

        self.make("small.tfrecord")
        reshard(self.path("small.tfrecord"), path, shards=1000)

    def _make_sparse(self, path: Path) -> None:
        """100 GB, of which only the first records are there."""
        self.make("large.tfrecord")
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path("large.tfrecord"), "rb") as file:
            path.write_bytes(file.read(200 * LARGE_BYTES))
        os.truncate(path, 100_000_000_000)

    def _make_camera_offsets(self, name: str, path: Path) -> None:
        """Where each JPEG file lies in the shard, how long it is, and its class; as JSON."""
        import recordsmith as rs

        self.make(f"{name}-packed")
        (shard,) = self.path(f"{name}-packed").glob("*.tfrecord")
        data, offset, table = shard.read_bytes(), 0, []
        for example in rs.open(self.path(f"{name}-packed")):
            (encoded,) = example["image/encoded"]
            offset = data.index(encoded, offset)
            table.append([offset, len(encoded), int(example["image/class/label"][0])])
        path.write_text(json.dumps(table))

    def _make_camera_idx(self, name: str, path: Path) -> None:
        """Where each record begins and how long it is, as DALI expects it."""
        from by_hand import frame_places

        self.make(f"{name}-packed")
        (shard,) = self.path(f"{name}-packed").glob("*.tfrecord")
        path.write_text("".join(f"{at} {size}\n" for at, size in frame_places(shard)))

    def _make_camera_array_record(self, name: str, path: Path) -> None:
        """A byte with the class, then the JPEG file: nothing needs to be parsed."""
        self.make(name)
        _write_array_record(
            path, (bytes([label]) + image.read_bytes() for image, label in self.camera(name))
        )

    def _make_small_array_record(self, path: Path) -> None:
        from by_hand import find_checksum, read_payloads

        self.make("small.tfrecord")
        data = self.path("small.tfrecord").read_bytes()
        _write_array_record(path, read_payloads(data, find_checksum()))

    def _make_quarter(self, path: Path) -> None:
        """A quarter of the images, as links to the same files."""
        self.make("images")
        for number, image in enumerate(sorted(self.path("images").glob("*/*.jpg"))):
            if number % 4 == 0:
                target = path / image.parent.name / image.name
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(image, target)


def _write_array_record(path: Path, records: Iterable[bytes]) -> None:
    from array_record.python.array_record_module import ArrayRecordWriter

    # one record a group is what its documentation advises for random access
    writer = ArrayRecordWriter(str(path), "group_size:1")
    for record in records:
        writer.write(record)
    writer.close()
