"""tf.data over TFRecord files that TensorFlow wrote, as its guides have both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rival import SIDE, Batch, Loader, Options, Photo, Rival, UnsupportedError

SHARD_NAMES = tuple(f"train-{shard:05}-of-00008.tfrecord" for shard in range(8))
SHUFFLE_BUFFER = 1_000


def pack(photos: Sequence[Photo], out: Path) -> None:
    """`tf.train.Example` and `TFRecordWriter`, as in the tutorial about TFRecord."""
    import tensorflow as tf

    def of_bytes(value: bytes) -> Any:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    def of_int(value: int) -> Any:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

    out.mkdir(parents=True, exist_ok=True)
    for shard, name in enumerate(SHARD_NAMES):
        with tf.io.TFRecordWriter(str(out / name)) as writer:
            for photo in photos[shard :: len(SHARD_NAMES)]:
                features = {
                    "key": of_int(photo.key),
                    "label": of_int(photo.label),
                    "image": of_bytes(photo.path.read_bytes()),
                }
                example = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(example.SerializeToString())


class Images(Loader):
    """Files in a random order, read in turn, and a buffer that is shuffled."""

    def __init__(self, options: Options) -> None:
        import tensorflow as tf

        if "://" in options.place:
            raise UnsupportedError("S3 is in tensorflow-io: https://www.tensorflow.org/io")
        self._dataset = _dataset(options)
        self._iterator: Any = None
        self._is_loaded = False
        self._tf = tf

    def epoch(self) -> Iterator[Batch]:
        if not self._is_loaded:
            self._iterator = self._dataset.as_numpy_iterator()  # arrays that are no copies
        self._is_loaded = False
        for keys, images in self._iterator:
            yield Batch(keys, images)

    def state(self) -> Any:
        """The files of a checkpoint."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            self._tf.train.Checkpoint(iterator=self._iterator).write(f"{folder}/iterator")
            return {path.name: path.read_bytes() for path in Path(folder).iterdir()}

    def load(self, state: Any) -> None:
        import tempfile

        self._iterator = self._dataset.as_numpy_iterator()
        with tempfile.TemporaryDirectory() as folder:
            for name, content in state.items():
                (Path(folder) / name).write_bytes(content)
            checkpoint = self._tf.train.Checkpoint(iterator=self._iterator)
            checkpoint.read(f"{folder}/iterator").assert_consumed()
        self._is_loaded = True


def _dataset(options: Options) -> Any:
    import tensorflow as tf

    parallel = options.thread_count
    features = {
        "key": tf.io.FixedLenFeature([], tf.int64),
        "image": tf.io.FixedLenFeature([], tf.string),
    }
    whole = tf.constant([[[0.0, 0.0, 1.0, 1.0]]])

    def is_kept(payload: Any) -> Any:
        key = tf.io.parse_single_example(payload, features)["key"]
        return tf.ensure_shape(tf.numpy_function(options.keep, [key], tf.bool), [])

    def make(payload: Any, seed: Any = None) -> tuple[Any, Any]:
        example = tf.io.parse_single_example(payload, features)
        encoded = example["image"]
        if options.what == "bytes":
            return example["key"], encoded
        if options.what == "crops":
            corner, size, _ = tf.image.stateless_sample_distorted_bounding_box(
                tf.io.extract_jpeg_shape(encoded),
                whole,
                tf.stack([seed, seed]),
                min_object_covered=0.0,
                aspect_ratio_range=(3 / 4, 4 / 3),
                area_range=(0.08, 1.0),
                max_attempts=10,
            )
            window = tf.concat([corner[:2], size[:2]], 0)
            pixels = tf.io.decode_and_crop_jpeg(encoded, window, channels=3)
        else:
            pixels = tf.io.decode_jpeg(encoded, channels=3)
        return example["key"], tf.cast(tf.image.resize(pixels, (SIDE, SIDE)), tf.uint8)

    paths = sorted(str(path) for path in Path(options.place).glob("*.tfrecord"))
    files = tf.data.Dataset.from_tensor_slices(paths).shard(options.world_size, options.rank)
    if options.shuffle:
        files = files.shuffle(len(paths), seed=options.seed)
    records = files.interleave(
        tf.data.TFRecordDataset,
        cycle_length=len(paths),
        num_parallel_calls=parallel,
        deterministic=True,
    )
    if options.keep is not None:
        records = records.filter(is_kept)
    if options.shuffle:
        records = records.shuffle(SHUFFLE_BUFFER, seed=options.seed)
    if options.what == "crops":
        # random operations inside of map have a state that checkpoints refuse
        seeds = tf.data.Dataset.random(options.seed, rerandomize_each_iteration=True)
        records = tf.data.Dataset.zip(records, seeds)
    chosen = tf.data.Options()
    chosen.threading.private_threadpool_size = parallel
    chosen.threading.max_intra_op_parallelism = 1
    return (
        records.map(make, num_parallel_calls=parallel)
        .batch(options.batch_size)
        .prefetch(options.prefetch)
        .with_options(chosen)
    )


RIVAL = Rival(
    title="tf.data",
    distributions=("tensorflow-cpu",),
    pages=(
        "https://www.tensorflow.org/guide/data_performance",
        "https://www.tensorflow.org/tutorials/load_data/tfrecord",
        "https://www.tensorflow.org/guide/data#iterator_checkpointing",
    ),
    chosen=(
        "all files read in turn, a buffer of 1,000 records, parallel calls and a pool of as many "
        "threads as the others; arrays without a copy; its random crops are smaller on average"
    ),
    pack=pack,
    loader=Images,
    environment="tensorflow",
)
