"""Datasets to export, written record by record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.stores import Location, MemoryStore, PlaceLike, as_folder

from ..places import contents

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the examples of some splits: write(train=[{...}, {...}], val=[...])."""

    def write_splits(
        kinds: Mapping[str, Any] | None = None,
        compression: str = "none",
        **splits: Sequence[Mapping[str, Any]],
    ) -> Path:
        folder = tmp_path / "records"
        folder.mkdir(exist_ok=True)
        for split, examples in splits.items():
            path = folder / f"{split}.tfrecord"
            with rs.ShardWriter(path, compression=compression, overwrite=True) as writer:
                for example in examples:
                    writer.write_example(example, kinds)
        return folder

    return write_splits


@pytest.fixture
def image(images: ModuleType) -> Callable[..., dict[str, Any]]:
    """The features of an image: image("a.jpg", seed=1, more="features")."""

    def features(
        name: str | bytes | None = None,
        *,
        seed: int = 0,
        width: int = 12,
        height: int = 8,
        more: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        named = {} if name is None else {"image/filename": name}
        return {
            "image/encoded": images.jpeg(seed, width, height),
            "image/format": "jpeg",
            "image/height": height,
            "image/width": width,
            **named,
            **(more or {}),
        }

    return features


def boxes(*edges: tuple[float, float, float, float], label: int = 1, name: str = "cat") -> Any:
    """Features of objects of one class, by xmin, ymin, xmax, ymax."""
    columns = list(zip(*edges, strict=True)) or [()] * 4
    keys = ("xmin", "ymin", "xmax", "ymax")
    return {
        f"image/object/bbox/{key}": list(map(float, column))
        for key, column in zip(keys, columns, strict=True)
    } | {
        "image/object/class/label": [label] * len(edges),
        "image/object/class/text": [name] * len(edges),
    }


BOX_KINDS = {
    **{f"image/object/bbox/{key}": "float" for key in ("xmin", "ymin", "xmax", "ymax")},
    "image/object/class/label": "int64",
    "image/object/class/text": "bytes",
}


@pytest.fixture(scope="session")
def box_features() -> Any:
    return boxes


@pytest.fixture(scope="session")
def box_kinds() -> Any:
    return BOX_KINDS


@pytest.fixture(params=["files", "memory"])
def out(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """A folder that does not exist yet, in each kind of store."""
    if request.param == "memory":
        return Location(MemoryStore(), "new/out")
    return as_folder(tmp_path / "new" / "out")


def files_below(folder: PlaceLike) -> dict[str, bytes]:
    """Every object below a folder but the note of the export, with its bytes."""
    return {name: data for name, data in contents(folder).items() if name != ".export.json"}


@pytest.fixture(scope="session")
def files() -> Callable[[PlaceLike], dict[str, bytes]]:
    return files_below
