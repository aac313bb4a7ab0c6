"""Datasets that TensorFlow Datasets writes and reads, as the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Records = Mapping[str, Sequence[Mapping[str, Any]]]


def write(tfds: Any, folder: Path, features: Any, records: Records, **info: Any) -> Path:
    """Write the records of each split with TFDS; returns the folder `name/version`."""

    class Fixture(tfds.core.GeneratorBasedBuilder, skip_registration=True):  # type: ignore[misc]
        VERSION = tfds.core.Version("1.2.3")
        name = "fixture"
        code_path = None  # it looks for checksums of downloads next to the code

        def _info(self) -> Any:
            return tfds.core.DatasetInfo(
                builder=self, features=tfds.features.FeaturesDict(features), **info
            )

        def _split_generators(self, _: Any) -> Any:
            return {split: self._generate_examples(split) for split in records}

        def _generate_examples(self, split: str) -> Iterator[tuple[int, Any]]:
            yield from enumerate(records[split])

    builder = Fixture(data_dir=str(folder))
    builder.download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=2))
    return Path(str(builder.data_dir))


def load(tfds: Any, folder: Path, split: str) -> list[dict[str, Any]]:
    """The records of a split as TFDS reads them, in order, as flat dicts."""
    builder = tfds.builder_from_directory(str(folder))
    dataset = builder.as_dataset(split=split, shuffle_files=False)
    return [dict(_flat(record, "")) for record in dataset]


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    import tensorflow as tf

    if isinstance(value, dict):
        for name, item in value.items():
            yield from _flat(item, f"{path}/{name}".lstrip("/"))
    elif isinstance(value, tf.data.Dataset):
        for number, step in enumerate(value):
            yield from _flat(step, f"{path}[{number}]")
    elif isinstance(value, tf.RaggedTensor):
        yield path, (value.dtype.name, value.to_list())
    else:
        array = value.numpy()
        yield path, (value.dtype.name, np.shape(array), np.asarray(array).tolist())


def all_features(tfds: Any) -> dict[str, tuple[Any, Callable[[int], Any]]]:
    """Each type of feature that recordsmith reads, and the value in the nth record."""
    f = tfds.features
    random = np.random.default_rng(0)

    def pixels(*shape: int, dtype: Any = np.uint8) -> Any:
        if dtype == np.float32:
            return random.random(shape, np.float32)
        return random.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)

    return {
        "image": (f.Image(encoding_format="png"), lambda n: pixels(5 + n, 6, 3)),
        "image16": (
            f.Image(shape=(4, 5, 1), dtype=np.uint16),
            lambda _: pixels(4, 5, 1, dtype=np.uint16),
        ),
        "depth": (
            f.Image(shape=(4, 5, 1), dtype=np.float32),
            lambda _: pixels(4, 5, 1, dtype=np.float32),
        ),
        "mask": (f.LabeledImage(labels=["ground", "cat"]), lambda n: pixels(5 + n, 6, 1) % 2),
        "label": (f.ClassLabel(names=["cat", "dog"]), lambda n: n % 3 - 1),
        "other label": (f.ClassLabel(num_classes=5), lambda n: n),
        "objects": (
            f.Sequence(
                {
                    "bbox": f.BBoxFeature(),
                    "label": f.ClassLabel(names=["x", "ü"]),
                    "is_crowd": np.bool_,
                }
            ),
            lambda n: [
                {"bbox": f.BBox(0.1 * k, 0.2, 0.9, 1.0), "label": k % 2, "is_crowd": k == 1}
                for k in range(n)
            ],
        ),
        "file_name": (f.Text(), lambda n: f"é/{n}.png"),
        "text": (f.Text(), lambda n: "é" * n),
        **{
            f"scalar {kind}": (
                f.Scalar(getattr(np, kind)),
                lambda n, k=kind: np.dtype(k).type(n * 0.7),
            )
            for kind in ("int8", "uint8", "int32", "int64", "float16", "float32", "float64")
        },
        "scalar uint64": (f.Scalar(np.uint64), lambda n: 2**64 - 1 - n),
        "scalar bool": (f.Scalar(np.bool_), lambda n: bool(n % 2)),
        "fixed": (
            f.Tensor(shape=(2, 3), dtype=np.float32),
            lambda _: random.random((2, 3), np.float32),
        ),
        "texts": (f.Tensor(shape=(2,), dtype=np.str_), lambda n: ["a", f"b{n}"]),
        "rows": (
            f.Tensor(shape=(None, 3), dtype=np.int64),
            lambda n: np.arange(3 * n).reshape(n, 3),
        ),
        "as bytes": (
            f.Tensor(shape=(2, 3), dtype=np.float32, encoding="bytes"),
            lambda _: random.random((2, 3), np.float32),
        ),
        "as zlib": (
            f.Tensor(shape=(None, 3), dtype=np.int16, encoding="zlib"),
            lambda n: np.full((n, 3), -n, np.int16),
        ),
        "double": (
            f.Tensor(shape=(2,), dtype=np.float64, encoding="zlib"),
            lambda n: np.array([1 / 3, n]),
        ),
        "unsigned": (
            f.Tensor(shape=(1,), dtype=np.uint64, encoding="bytes"),
            lambda n: np.array([2**64 - 1 - n], np.uint64),
        ),
        "flags": (
            f.Tensor(shape=(3,), dtype=np.bool_, encoding="bytes"),
            lambda n: np.arange(3) == n,
        ),
        "any shape": (
            f.Tensor(shape=(None, None), dtype=np.float32, encoding="bytes"),
            lambda n: random.random((n, 2), np.float32),
        ),
        "several as bytes": (
            f.Sequence(f.Tensor(shape=(2,), dtype=np.int32, encoding="bytes")),
            lambda n: [np.array([k, n], np.int32) for k in range(n)],
        ),
        "nested": ({"a": np.int32, "b": {"c": f.Text()}}, lambda n: {"a": n, "b": {"c": "deep"}}),
        "numbers": (f.Sequence(np.int64), lambda n: list(range(n))),
        "three": (f.Sequence(np.int32, length=3), lambda n: [1, 2, n]),
        "words": (f.Sequence(f.Text()), lambda n: ["w"] * n),
        "frames": (
            f.Sequence(f.Image(encoding_format="png")),
            lambda n: [pixels(4, 5, 3) for _ in range(n)],
        ),
        "ragged": (f.Sequence(f.Sequence(np.int32)), lambda n: [list(range(k)) for k in range(n)]),
        "ragged twice": (
            f.Sequence(f.Sequence(f.Sequence(f.Text()))),
            lambda n: [[["a"] * k] * 2 for k in range(n)],
        ),
        "vectors": (
            f.Sequence(f.Tensor(shape=(2,), dtype=np.float32)),
            lambda n: [random.random(2, np.float32) for _ in range(n)],
        ),
        "dicts": (
            f.Sequence({"k": f.Sequence(f.Text()), "z": np.float32}),
            lambda n: [{"k": ["q"] * k, "z": k / 3} for k in range(n)],
        ),
        "translation": (f.Translation(["en", "de"]), lambda _: {"en": "a", "de": "b"}),
        "translations": (
            f.TranslationVariableLanguages(["en", "de"]),
            lambda n: {"en": "a", "de": ["b", "c"][: n + 1]},
        ),
        "optional": (f.Scalar(np.int32, optional=True), lambda n: None if n % 2 else n),
        "optional text": (f.Scalar(np.str_, optional=True), lambda n: None if n % 2 else "yes"),
        "optional list": (
            f.Tensor(shape=(2,), dtype=np.float32, optional=True),
            lambda n: None if n % 2 else np.ones(2, np.float32),
        ),
        "boxes": (f.Sequence(f.BBoxFeature()), lambda n: [f.BBox(0.0, 0.0, 1.0, 1.0)] * n),
        "steps": (
            f.Dataset({"p": np.int32, "q": f.Image(shape=(4, 4, 3))}),
            lambda n: [{"p": k, "q": pixels(4, 4, 3)} for k in range(n)],
        ),
    }


def episodes(tfds: Any, lengths: Sequence[int]) -> tuple[Any, list[Any]]:
    """The features of RLDS, and episodes of these numbers of steps."""
    f = tfds.features
    features = {
        "steps": f.Dataset(
            {
                "observation": {
                    "image": f.Image(shape=(4, 5, 3), encoding_format="png"),
                    "state": f.Tensor(shape=(3,), dtype=np.float32),
                    "tokens": f.Sequence(np.int64),
                    "packed": f.Tensor(shape=(2,), dtype=np.int32, encoding="zlib"),
                },
                "action": f.Tensor(shape=(2,), dtype=np.float32),
                "reward": np.float32,
                "language_instruction": f.Text(),
                "is_first": np.bool_,
                "is_last": np.bool_,
                "is_terminal": np.bool_,
            }
        ),
        "episode_metadata": {"file_path": f.Text()},
    }
    random = np.random.default_rng(1)
    records = [
        {
            "steps": [
                {
                    "observation": {
                        "image": random.integers(0, 255, (4, 5, 3), np.uint8),
                        "state": random.random(3, np.float32),
                        "tokens": list(range(step % 3)),
                        "packed": np.array([number, step], np.int32),
                    },
                    "action": np.array([number, step], np.float32),
                    "reward": step / 2,
                    "language_instruction": f"do {step}",
                    "is_first": step == 0,
                    "is_last": step == length - 1,
                    "is_terminal": step == length - 1,
                }
                for step in range(length)
            ],
            "episode_metadata": {"file_path": f"episode {number}"},
        }
        for number, length in enumerate(lengths)
    ]
    return features, records
