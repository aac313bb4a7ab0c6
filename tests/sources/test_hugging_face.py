"""Datasets of Hugging Face: what is packed equals what the package `datasets` reads."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.format.example.keys import IMAGE, MASK
from recordsmith.sources import HuggingFace, Source

from ..raising import raises
from .source_contract import SourceContract

pytest.importorskip("pyarrow")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
datasets = pytest.importorskip("datasets")


@pytest.fixture(autouse=True)
def _offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def everything(images: ModuleType, count: int = 12) -> Any:
    """A dataset with a column of each kind."""
    kinds = datasets
    features = kinds.Features(
        {
            "image": kinds.Image(),
            "label": kinds.ClassLabel(names=["daisy", "rose"]),
            "text": kinds.Value("string"),
            "score": kinds.Value("float32"),
            "count": kinds.Value("uint8"),
            "is_good": kinds.Value("bool"),
            "tokens": kinds.List(kinds.Value("int32")),
            "pair": kinds.List(kinds.Value("float32"), length=2),
            "array": kinds.Array2D((2, 3), "int64"),
            "rows": kinds.Array3D((None, 2, 2), "float32"),
            "points": kinds.List(kinds.List(kinds.Value("int16"))),
            "translation": kinds.Translation(["de", "en"]),
            "nested": {"a": {"b": kinds.Value("int64")}, "c": kinds.List(kinds.Value("string"))},
            "objects": kinds.List({"id": kinds.Value("int64"), "name": kinds.Value("string")}),
            "views": kinds.List(kinds.Image()),
        }
    )
    rows = [
        {
            "image": images.noise(9 + n, 8, "RGB"),
            "label": n % 2,
            "text": None if n == 3 else f"ü{n}",
            "score": n / 4,
            "count": 200 + n,
            "is_good": n % 3 == 0,
            "tokens": [*range(n % 4)],
            "pair": [n, n + 0.5],
            "array": np.arange(6).reshape(2, 3) + n,
            "rows": np.arange(4.0 * (n % 3)).reshape(n % 3, 2, 2),
            "points": [[n, 1], [2, 3]][: n % 3],
            "translation": {"de": f"d{n}", "en": f"e{n}"},
            "nested": {"a": {"b": n}, "c": ["x"] * (n % 2)},
            "objects": [{"id": k, "name": f"o{k}"} for k in range(n % 3)],
            "views": [images.noise(4, 4, "L")] * (n % 2),
        }
        for n in range(count)
    ]
    return kinds.Dataset.from_list(rows, features=features)


def expected(row: dict[str, Any]) -> dict[str, Any]:
    """The features of a row of `everything` as `datasets` decodes it, flat by hand."""
    names = ["daisy", "rose"]
    objects = row["objects"]
    found = {
        IMAGE: [pixels(row["image"])],
        "image/class/label": [row["label"]],
        "image/class/text": [names[row["label"]]],
        "image/height": [row["image"].height],
        "image/width": [row["image"].width],
        "image/format": ["png"],
        "text": [] if row["text"] is None else [row["text"]],
        "score": [row["score"]],
        "count": [row["count"]],
        "is_good": [int(row["is_good"])],
        "tokens": row["tokens"],
        "pair": row["pair"],
        "array": np.ravel(row["array"]).tolist(),
        "rows": np.ravel(row["rows"]).tolist(),
        "points": np.ravel(row["points"]).tolist(),
        "translation/de": [row["translation"]["de"]],
        "translation/en": [row["translation"]["en"]],
        "nested/a/b": [row["nested"]["a"]["b"]],
        "nested/c": row["nested"]["c"],
        "objects/id": [each["id"] for each in objects],
        "objects/name": [each["name"] for each in objects],
        "views": [pixels(view) for view in row["views"]],
    }
    return {key: value for key, value in found.items() if len(value)}


def pixels(image: Any) -> list[Any]:
    return np.asarray(image).tolist()  # type: ignore[no-any-return]


def found(example: Any) -> dict[str, Any]:
    """A record as Python values; images as pixels."""
    values = {}
    for key, value in example.items():
        if key in (IMAGE, "views"):
            values[key] = [pixels(Image.open(io.BytesIO(data))) for data in value]
        elif isinstance(value, np.ndarray):
            values[key] = value.tolist()
        else:
            values[key] = [text.decode() for text in value]
    return {key: value for key, value in values.items() if len(value)}


@pytest.mark.parametrize("make", ["map", "shuffled", "files", "stream", "generator"])
def test_every_kind_of_column_equals_what_datasets_reads(
    make: str, images: ModuleType, tmp_path: Path
) -> None:
    dataset = everything(images)
    if make == "shuffled":  # has indices of rows
        dataset = dataset.shuffle(seed=1).select([5, 0, 3, 3, 9])
    elif make == "files":  # paths instead of bytes
        for n, row in enumerate(dataset):
            row["image"].save(tmp_path / f"{n}.png")
        paths = [str(tmp_path / f"{n}.png") for n in range(len(dataset))]
        dataset = dataset.remove_columns("image").add_column("image", paths)
        dataset = dataset.cast_column("image", datasets.Image())
    given = dataset
    if make == "stream":
        given = dataset.to_iterable_dataset(num_shards=2)
    elif make == "generator":
        rows = list(dataset)
        given = datasets.IterableDataset.from_generator(
            lambda: iter(rows), features=dataset.features
        )
    report = rs.pack(given, tmp_path / "out", shuffle=False)
    packed = rs.open(tmp_path / "out")
    assert packed.class_names == ("daisy", "rose")
    assert report.sample_count == len(dataset)
    for example, row in zip(packed, dataset, strict=True):
        values = found(example)
        values.pop("image/filename", None)
        assert values == expected(row)


def test_image_bytes_are_not_encoded_again(images: ModuleType, tmp_path: Path) -> None:
    data = images.encode(images.noise(16, 16), "JPEG")
    dataset = datasets.Dataset.from_dict({"image": [{"bytes": data, "path": "b/a.jpg"}]})
    dataset = dataset.cast_column("image", datasets.Image())
    rs.pack(dataset, tmp_path / "out")
    (example,) = rs.open(tmp_path / "out")
    assert (example[IMAGE], example["image/filename"]) == ([data], [b"a.jpg"])


def test_splits(images: ModuleType, tmp_path: Path) -> None:
    dataset = everything(images)
    parts = datasets.DatasetDict(
        {"test": dataset.select([7, 1]), "train": dataset.select(range(2, 7))}
    )
    report = rs.pack(parts, tmp_path / "out", shuffle=False)
    assert report.splits == {"train": 5, "test": 2}
    splits = rs.open(tmp_path / "out").splits
    for name in parts:
        assert [e["count"][0] for e in splits[name]] == parts[name]["count"]
    with raises(rs.OptionError, option="splits"):
        rs.pack(parts, tmp_path / "other", splits={"train": 0.5, "test": 0.5})
    of_one = rs.pack(parts["test"], tmp_path / "one")
    assert set(of_one.splits) == {"train"}  # made by select: without a name
    parts["other"] = dataset.remove_columns("text")
    with raises(rs.OptionError, option="dataset", value="other"):
        HuggingFace(parts)


def test_masks(images: ModuleType, tmp_path: Path) -> None:
    names: dict[str, Any] = dict.fromkeys(("image", "mask"), datasets.Image())
    names["kinds"] = datasets.List(datasets.ClassLabel(names=["cat", "dog"]))
    masks: list[npt.NDArray[np.uint8]] = [np.full((8, 10), n, np.uint8) for n in range(2)]
    rows = [
        {"image": images.noise(10, 8), "mask": Image.fromarray(mask), "kinds": [0]}
        for mask in masks
    ]
    dataset = datasets.Dataset.from_list(rows, features=datasets.Features(names))
    renamed = dataset.rename_columns({"image": "photo", "mask": "zones"})
    for source in (HuggingFace(dataset), HuggingFace(renamed, mask_column="zones")):
        rs.pack(source, tmp_path / "out", shuffle=False, overwrite=True)
        for mask, example in zip(masks, rs.open(tmp_path / "out"), strict=True):
            (data,) = example[MASK]
            assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), mask)  # type: ignore[arg-type]
            assert {"mask", "zones", "kinds"}.isdisjoint(example)
            assert example["image/class/text"] == [b"cat"]


def test_which_column_has_the_classes(tmp_path: Path) -> None:
    features = datasets.Features(
        {
            "fine": datasets.ClassLabel(names=["a", "b", "c"]),
            "coarse": datasets.ClassLabel(names=["x", "y"]),
        }
    )
    dataset = datasets.Dataset.from_dict(
        {"fine": [2, 0, -1], "coarse": [0, 1, 1]}, features=features
    )
    listing = HuggingFace(dataset).list_samples()
    assert listing.class_names is None
    assert [notice for notice in listing.notices if "fine and coarse" in notice]
    listing = HuggingFace(dataset, label_column="fine").list_samples()
    assert listing.class_names == ("a", "b", "c")
    assert [sample.label for sample in listing.samples] == [2, 0, None]
    renamed = HuggingFace(dataset.rename_column("coarse", "label")).list_samples()
    assert renamed.class_names == ("x", "y")


def test_several_columns_of_images(images: ModuleType, tmp_path: Path) -> None:
    row = {"before": images.noise(8, 8), "after": images.noise(9, 9)}
    features = datasets.Features({"before": datasets.Image(), "after": datasets.Image()})
    dataset = datasets.Dataset.from_list([row], features=features)
    with raises(rs.OptionError, option="image_column"):
        rs.pack(dataset, tmp_path / "out")
    rs.pack(HuggingFace(dataset, image_column="after"), tmp_path / "out")
    (example,) = rs.open(tmp_path / "out")
    for key, column in ((IMAGE, "after"), ("before", "before")):
        assert pixels(Image.open(io.BytesIO(example[key][0]))) == pixels(row[column])  # type: ignore[arg-type]


def _audio() -> Any:
    dataset = datasets.Dataset.from_dict({"sound": [{"bytes": b"x", "path": None}]})
    return dataset.cast(datasets.Features({"sound": datasets.Audio()}))


def _of(*values: Any) -> Any:
    return datasets.Dataset.from_dict({"x": [*values]})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_audio, ("'sound'", "Audio")),
        (lambda: _of([[1, 2], [3]]), ("'x'", "1 and 2")),
        (lambda: _of([[1, 2]], [[1, 2, 3]]), ("'x'", "2 and 3")),
        (lambda: _of([[1], None]), ("'x'", "null")),
        (lambda: _of(1).select([]), ("no rows",)),
        (lambda: _of({"bytes": None, "path": "hf://x/a.png"}).cast(
            datasets.Features({"x": datasets.Image()})), ("'x'", "hf://x/a.png")),
    ],
)  # fmt: skip
def test_what_no_feature_can_hold_is_refused(make: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(rs.SourceError) as caught:
        HuggingFace(make()).list_samples()
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"image_column": "nope"}, "image_column"),
        ({"label_column": "nope"}, "label_column"),
        ({"image_column": "text"}, "image_column"),
        ({"mask_column": "text"}, "mask_column"),
        ({"group_column": "nope"}, "group_column"),
    ],
)
def test_invalid_options(options: Any, option: str, images: ModuleType) -> None:
    with raises(rs.OptionError, option=option):
        HuggingFace(everything(images, 2), **options).list_samples()


def test_the_error_of_a_generator_is_raised_as_it_is() -> None:
    def rows() -> Iterator[Any]:
        yield from ({"x": n} for n in range(3000))
        raise ZeroDivisionError("mine")

    dataset = datasets.IterableDataset.from_generator(rows)
    with pytest.raises(ZeroDivisionError, match="mine"):
        HuggingFace(dataset).list_samples()


def test_rows_of_other_types_than_the_first_are_refused() -> None:
    def rows() -> Iterator[Any]:
        yield from ({"x": n} for n in range(3000))
        yield {"x": "text"}

    dataset = datasets.IterableDataset.from_generator(rows)
    with raises(rs.SourceError, match="other columns or types"):
        HuggingFace(dataset).list_samples()


def test_parquet_of_datasets_needs_no_package(images: ModuleType, tmp_path: Path) -> None:
    """The same columns as from the dataset in memory, also through the command line."""
    dataset = everything(images).remove_columns("translation")  # which `datasets` cannot write
    dataset.to_parquet(tmp_path / "data.parquet")
    for source, out in ((dataset, "direct"), (rs.Table(tmp_path / "data.parquet"), "file")):
        rs.pack(source, tmp_path / out, shuffle=False)
    direct, file = (list(rs.open(tmp_path / out)) for out in ("direct", "file"))
    assert [found(example) for example in file] == [found(example) for example in direct]
    _audio().to_parquet(tmp_path / "audio.parquet")
    with raises(rs.SourceError, match="Audio"):
        rs.Table(tmp_path / "audio.parquet").list_samples()


def test_paths_in_a_file_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_bytes(b"a secret")
    values = [{"bytes": None, "path": str(secret)}]
    dataset = datasets.Dataset.from_dict({"image": values, "views": [values]})
    features = {"image": datasets.Image(), "views": datasets.List(datasets.Image())}
    dataset = dataset.cast(datasets.Features(features)).with_format("arrow")
    from pyarrow import parquet

    parquet.write_table(dataset[:], tmp_path / "t.parquet")
    with raises(rs.SourceError, match="'views'"):
        rs.Table(tmp_path / "t.parquet").list_samples()


def test_saved_datasets(images: ModuleType, tmp_path: Path) -> None:
    """One dataset is a table. Of several, the error has what packs them."""
    dataset = everything(images).select_columns(["image", "label", "text"])
    folder = tmp_path / "saved"
    datasets.DatasetDict(train=dataset, test=dataset).save_to_disk(folder)
    with raises(rs.SourceError, path=folder) as refused:
        rs.detect(folder).reading.format  # noqa: B018 - it raises
    with raises(rs.OptionError, option="paths", value=folder, remedy=refused.value.remedy):
        rs.open(folder)
    assert f"load_from_disk({str(folder)!r})" in refused.value.remedy
    rs.pack(datasets.load_from_disk(str(folder)), tmp_path / "packed")
    assert {name: len(part) for name, part in rs.open(tmp_path / "packed").splits.items()} == {
        "train": len(dataset),
        "test": len(dataset),
    }
    table = "train/data-00000-of-00001.arrow"
    for source in (rs.detect(folder / "train"), rs.detect(folder, table=table)):
        assert len(source.source.list_samples().samples) == len(dataset)
    with raises(rs.OptionError, option="paths", value=folder / "train") as unpacked:
        rs.open(folder / "train")
    assert f"recordsmith pack {folder / 'train'} " in unpacked.value.remedy


@pytest.mark.parametrize("names", [["train", "test"], ["train", "val", "holdout"], ["a.b", "c"]])
def test_round_trip(names: list[str], images: ModuleType, tmp_path: Path) -> None:
    """Dataset -> pack -> export -> load_dataset gives equal values."""
    dataset = everything(images)
    dataset = dataset.map(lambda row: {"views": [*row["views"], row["image"], row["image"]]})
    parts = datasets.DatasetDict(
        {name: dataset.shard(len(names), n) for n, name in enumerate(names)}
    )
    rs.pack(parts, tmp_path / "packed", shuffle=False)
    rs.export(tmp_path / "packed", tmp_path / "exported", format="huggingface")
    again = datasets.load_dataset(str(tmp_path / "exported"), cache_dir=str(tmp_path / "cache"))
    assert {*again} == {*names}
    for name in names:
        features = again[name].features
        assert features["label"] == dataset.features["label"]
        assert isinstance(features["image"], datasets.Image)
        for row, given in zip(again[name], parts[name], strict=True):
            values = expected(given)
            label, flat = values.pop("image/class/label"), {}
            for key, value in row.items():
                if key == "image":
                    flat[IMAGE] = [pixels(value)]
                elif key == "views":
                    flat[key] = [pixels(Image.open(io.BytesIO(view))) for view in value]
                elif key != "label":
                    flat[key] = value if isinstance(value, list) else [value]
            assert [row["label"]] == label
            flat = {key: value for key, value in flat.items() if value not in ([], [None])}
            assert flat == {k: v for k, v in values.items() if k == IMAGE or "image/" not in k}
    rs.pack(again, tmp_path / "second", shuffle=False)
    for name in names:
        first, second = (rs.open(tmp_path / out, name) for out in ("packed", "second"))
        assert [found(example) for example in first] == [found(example) for example in second]


class TestContract(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:  # noqa: ARG002
        return HuggingFace(everything(images).remove_columns("text"))
