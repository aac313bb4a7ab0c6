"""DALI's pipeline on the CPU over TFRecord files with its indexes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tf_data
from rival import SIDE, Batch, Loader, Options, Photo, Rival, UnsupportedError


def pack(photos: Sequence[Photo], out: Path) -> None:
    """TFRecord files as by TensorFlow's guide, and the index of each by DALI's script."""
    import runpy
    from unittest.mock import patch

    tf_data.pack(photos, out)
    script = Path(sys.executable).with_name("tfrecord2idx")
    for path in out.glob("*.tfrecord"):
        # in this process, as the script imports TensorFlow each time
        with patch.object(sys, "argv", [script.name, str(path), str(path.with_suffix(".idx"))]):
            runpy.run_path(str(script))


class Images(Loader):
    """Its reader with a buffer of 1,000 records, its decoder and its resizer."""

    def __init__(self, options: Options) -> None:
        if options.keep is not None:
            raise UnsupportedError("a pipeline keeps the number of samples")
        self._options, self._batch = options, 0
        self._start(None)

    def _start(self, checkpoint: Any) -> None:
        self._pipeline = _pipeline(self._options, checkpoint)
        self._pipeline.build()
        meta = self._pipeline.reader_meta("reader")
        # its iterators count the records of a rank in the same way; all ranks have as many batches
        rank, ranks, size = meta["shard_id"], meta["number_of_shards"], meta["epoch_size"]
        self._count = (rank + 1) * size // ranks - rank * size // ranks
        self._batches = -(-meta["epoch_size_padded"] // (ranks * self._options.batch_size))

    def epoch(self) -> Iterator[Batch]:
        import numpy as np

        size = self._options.batch_size
        while self._batch < self._batches:
            keys, images = self._pipeline.run()
            wanted = min(size, self._count - self._batch * size)  # the last one is filled up
            self._batch += 1
            if self._options.what == "bytes":
                files: Any = [images.at(row).tobytes() for row in range(wanted)]
            else:
                files = np.from_dlpack(images.as_tensor())[:wanted]  # no copy
            if wanted > 0:
                yield Batch(np.ravel(keys.as_array())[:wanted], files)
        self._batch = 0

    def state(self) -> Any:
        # its iterators keep their own count with the checkpoint in the same way
        return {"pipeline": self._pipeline.checkpoint(), "batch": self._batch}

    def load(self, state: Any) -> None:
        self._batch = state["batch"]
        self._start(state["pipeline"])


def _pipeline(options: Options, checkpoint: Any) -> Any:
    from nvidia.dali import fn, pipeline_def, tfrecord, types

    paths = [f"{options.place}/{name}" for name in tf_data.SHARD_NAMES]

    @pipeline_def(
        batch_size=options.batch_size,
        num_threads=options.thread_count,
        device_id=None,
        seed=options.seed,
        prefetch_queue_depth=options.prefetch,
        enable_checkpointing=True,
        checkpoint=checkpoint,
    )  # type: ignore[untyped-decorator]
    def pipeline() -> Any:
        records = fn.readers.tfrecord(
            path=paths,
            index_path=[path.replace(".tfrecord", ".idx") for path in paths],
            features={
                "key": tfrecord.FixedLenFeature([], tfrecord.int64, 0),
                "image": tfrecord.FixedLenFeature([], tfrecord.string, ""),
            },
            random_shuffle=options.shuffle,
            initial_fill=tf_data.SHUFFLE_BUFFER,
            shard_id=options.rank,
            num_shards=options.world_size,
            stick_to_shard=True,
            pad_last_batch=True,
            name="reader",
        )
        keys, encoded = records["key"], records["image"]
        if options.what == "bytes":
            return keys, encoded
        if options.what == "crops":
            images = fn.decoders.image_random_crop(
                encoded,
                device="cpu",
                output_type=types.RGB,
                random_area=(0.08, 1.0),
                random_aspect_ratio=(3 / 4, 4 / 3),
                num_attempts=10,
            )
        else:
            images = fn.decoders.image(encoded, device="cpu", output_type=types.RGB)
        images = fn.resize(
            images,
            resize_x=SIDE,
            resize_y=SIDE,
            interp_type=types.INTERP_LINEAR,
            antialias=False,
        )
        return keys, images

    return pipeline()


_DOCS = "https://docs.nvidia.com/deeplearning/dali/user-guide/docs"

RIVAL = Rival(
    title="DALI, CPU",
    distributions=("nvidia-dali-cuda120", "nvidia-nvimgcodec-cu12"),
    pages=(
        f"{_DOCS}/operations/nvidia.dali.fn.readers.tfrecord.html",
        f"{_DOCS}/advanced_topics_checkpointing.html",
    ),
    chosen="a buffer of 1,000 records, the same number of threads, no antialiasing; arrays without "
    "a copy",
    pack=pack,
    loader=Images,
    environment="tensorflow",
)
