"""Images to pack, good ones and bad ones, and what becomes of them undisturbed."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import recordsmith as rs

from ...places import contents
from .flower_jobs import OPTIONS


@pytest.fixture(scope="session")
def flowers(tmp_path_factory: pytest.TempPathFactory, images: ModuleType) -> Path:
    """Three classes, 21 small images. Not to be changed."""
    return images.make_folder(  # type: ignore[no-any-return]
        tmp_path_factory.mktemp("flowers") / "flowers", {"daisy": 10, "rose": 6, "tulip": 5}
    )


@pytest.fixture(scope="session")
def undisturbed(flowers: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a job that nothing happened to."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    rs.pack(rs.ImageFolder(flowers), out, **OPTIONS)
    return contents(out)


@pytest.fixture
def spoiled(tmp_path: Path, images: ModuleType) -> tuple[Path, list[str]]:
    """A folder in which some images cannot be read, and which."""
    root = images.make_folder(tmp_path / "in", {"a": 8, "b": 8})
    bad = []
    for number, kind in enumerate(("JPEG", "PNG", "WEBP")):
        whole = images.encode(images.noise(20, 16), kind)
        for share in (0.1, 0.5, 0.9):
            path = root / "ab"[number % 2] / f"cut {kind} {share}.jpg"
            path.write_bytes(whole[: int(len(whole) * share)])
            bad.append(str(path))
    (root / "a" / "words.jpg").write_text("words, no image")
    (root / "b" / "empty.png").touch()
    bad += [str(root / "a" / "words.jpg"), str(root / "b" / "empty.png")]
    (root / "a" / "README.txt").write_text("words")
    return root, sorted(bad)
