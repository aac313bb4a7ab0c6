from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs

from ..raising import raises

parquet = pytest.importorskip("pyarrow.parquet")

# as `datasets` writes them: Features({...}).arrow_schema.metadata
LABEL = {"names": ["daisy", "rose"], "_type": "ClassLabel"}
IMAGE_TYPE = "struct<bytes: binary, path: string>"


@pytest.fixture
def flowers(images: ModuleType, tmp_path: Path) -> Path:
    folder = images.make_folder(tmp_path / "flowers", {"daisy": 4, "rose": 5})
    out = tmp_path / "packed"
    rs.pack(rs.ImageFolder(folder), out, splits={"train": 0.7, "val": 0.3})
    return out


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    module = pytest.importorskip("datasets")
    monkeypatch.setattr(module.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(module.config, "HF_HUB_OFFLINE", True)
    module.disable_progress_bars()
    yield module
    module.enable_progress_bars()


def types_in(path: Path) -> dict[str, Any]:
    metadata = parquet.read_schema(path).metadata[b"huggingface"]
    return json.loads(metadata)["info"]["features"]  # type: ignore[no-any-return]


def test_datasets_loads_images_and_classes(flowers: Path, tmp_path: Path, datasets: Any) -> None:
    rs.export(flowers, tmp_path / "out", "huggingface")
    cache = str(tmp_path / "cache")
    one = datasets.Dataset.from_parquet(str(tmp_path / "out" / "train.parquet"), cache_dir=cache)
    splits = datasets.load_dataset(str(tmp_path / "out"), cache_dir=cache)
    assert splits["train"].features == one.features
    assert one.features["label"].names == ["daisy", "rose"]
    assert {*splits} == {"train", "val"}  # not guessed as train and validation
    for name in splits:
        examples = list(rs.open(flowers, name))
        assert len(splits[name]) == len(examples)
        for row, example in zip(splits[name], examples, strict=True):
            assert row["label"] == example["image/class/label"][0]
            pixels = Image.open(io.BytesIO(example["image/encoded"][0]))  # type: ignore[arg-type]
            assert np.array_equal(np.asarray(row["image"]), np.asarray(pixels))


def test_masks_boxes_and_missing_images(
    write: Any, image: Any, images: ModuleType, box_features: Any, tmp_path: Path
) -> None:
    mask = images.encode(images.noise(12, 8, "P"), "PNG")
    boxes = box_features((0.25, 0.5, 0.75, 1), label=0) | {"weight": 0.5}
    examples = [
        image("cat/a.jpg", more={"image/segmentation/class/encoded": mask, **boxes}),
        {"weight": 1.5, "image/object/class/label": [1, 0]},
    ]
    source = write(train=examples)
    (source / "labels.txt").write_text("0:daisy\n1:rose\n")
    rs.export(source, tmp_path / "out", "huggingface")
    path = tmp_path / "out" / "train.parquet"
    types = types_in(path)
    assert types.pop("image/object/class/label") == {"feature": LABEL, "_type": "LargeList"}
    assert types == {"image": {"_type": "Image"}, "mask": {"_type": "Image"}}
    first, second = parquet.read_table(path).to_pylist()
    assert first["image"] == {"bytes": examples[0]["image/encoded"], "path": "cat/a.jpg"}
    assert first["mask"] == {"bytes": mask, "path": "cat/a.jpg"}
    assert (second["image"], second["mask"], second["weight"]) == (None, None, 1.5)
    assert second["image/object/class/label"] == [1, 0]


def test_classes_without_a_name_are_refused(write: Any, image: Any, tmp_path: Path) -> None:
    more = [{"image/class/label": label} for label in (0, 2, 1)]
    source = write(train=[image(f"{n}.jpg", more=m) for n, m in enumerate(more)])
    (source / "labels.txt").write_text("0:daisy\n1:rose\n")
    with raises(
        rs.CorruptDataError, feature="image/class/label", record=1, found="2", match="below 2"
    ):
        rs.export(source, tmp_path / "out", "huggingface")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("labels", "types"),
    [
        ("1:daisy\n2:rose\n", {"names": ["0", "daisy", "rose"], "_type": "ClassLabel"}),
        ("0:1\n2:rose\n", {"names": ["1", "1", "rose"], "_type": "ClassLabel"}),
    ],
)
def test_gaps_between_classes_have_their_number_as_name(
    write: Any, image: Any, tmp_path: Path, labels: str, types: Any
) -> None:
    source = write(train=[image("a.jpg", more={"image/class/label": 2})])
    (source / "labels.txt").write_text(labels)
    rs.export(source, tmp_path / "out", "huggingface")
    found = types_in(tmp_path / "out" / "train.parquet").get("label")
    is_unique = len(set(types["names"])) == len(types["names"])
    assert found == (types if is_unique else None)  # `datasets` refuses names that repeat


def test_a_feature_that_is_named_like_a_column(write: Any, image: Any, tmp_path: Path) -> None:
    source = write(train=[image("a.jpg", more={"image": 5})])
    with pytest.raises(rs.OptionError, match="same name"):
        rs.export(source, tmp_path / "out", "huggingface")
