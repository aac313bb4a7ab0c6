"""Images with captions in text files next to them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.sources import Source

from ..raising import raises
from .source_contract import SourceContract


def _write(folder: Path, images: ModuleType, texts: dict[str, str | None]) -> Path:
    """An image for each name, and a text file where there is a text."""
    for number, (name, text) in enumerate(texts.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(images.encode(images.noise(6 + number, 5), "PNG"))
        if text is not None:
            path.with_suffix(".txt").write_bytes(text.encode("utf-8", "surrogateescape"))
    return folder


class TestContract(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:
        texts = {f"{part}/{n}.png": f"{part} {n}" for part in ("train", "val") for n in range(3)}
        return rs.CaptionedImages(_write(folder, images, texts))


def test_captions_of_images(tmp_path: Path, images: ModuleType) -> None:
    texts = {"a/1.png": "a cat\r\n\r\n  \xfc dog \n", "a/2.png": None, "b/3.jpeg.png": "\n",
             "plots/9.png": None, "b/UP.PNG": "\ufeffx"}  # fmt: skip
    folder = _write(tmp_path / "in", images, texts)
    for name in ("README.txt", "a/lost.txt", "notes/other.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("words")
    detection = rs.detect(folder)
    assert detection.reading.format == "captions"
    (folder / "a/1.txt").rename(folder / "a/1.caption")
    assert "class_pattern" in str(rs.CaptionedImages(folder).list_samples().notices)
    source = rs.CaptionedImages(folder, class_pattern="([^/]+)/[^/]+$")
    report = rs.pack(source, tmp_path / "out")
    found = {
        example["image/filename"][0].decode(): [
            *(text.decode() for text in example["image/caption"]),
            *(text.decode() for text in example["image/class/text"]),
        ]
        for example in rs.open(tmp_path / "out")
    }
    assert found == {
        "a/1.png": ["a cat", "\xfc dog", "a"], "a/2.png": ["a"], "b/3.jpeg.png": ["b"],
        "b/UP.PNG": ["x", "b"],
    }  # fmt: skip
    account = detection.source.list_samples().account
    assert account is not None
    counts = {str(line.kind): line.file_count for line in account}
    assert counts == {"image": 4, "file of captions": 3, "annotations without an image": 1,
                      "without an annotation": 1, "documentation or programs": 1,
                      "not images": 1}  # fmt: skip
    assert any("a/2.png" in notice for notice in report.notices)


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["a cat", "1girl, solo, 2 cats", "", "ein Hund"], "captions"),
        (["a cat", None, None, "b"], "captions"),
        (["a cat", None, None, None], None),
        (["0 .5 .5 .1 .1", "a cat", "b", "c"], "yolo"),
        (["Car 0.00 0 -1.5 600 150 620 190 1.4 1.5 3.6 2.8 1.7 8.4 -1.5"] * 4, "kitti"),
        (["377,117,463,117,465,130,378,130,Genaxis Theatre"] * 4, None),
        (["7"] * 4, None),
    ],
)
def test_which_texts_are_captions(
    tmp_path: Path, images: ModuleType, texts: list[str | None], kind: str | None
) -> None:
    _write(tmp_path, images, {f"{n}.png": text for n, text in enumerate(texts)})
    detection = rs.detect(tmp_path)
    if kind is None:
        with pytest.raises(rs.SourceError):
            detection.reading  # noqa: B018 - a property
    else:
        assert detection.reading.format == kind


def test_captions_in_another_encoding(tmp_path: Path, images: ModuleType) -> None:
    folder = _write(tmp_path / "in", images, {"1.png": "fine\n\udcfc", "2.png": "x"})
    with raises(rs.SourceError, match="1.txt, line 2: .*encoding"):
        rs.pack(rs.CaptionedImages(folder), tmp_path / "out")
    rs.pack(rs.CaptionedImages(folder, encoding="cp1252"), tmp_path / "out")
    captions: Any = rs.open(tmp_path / "out")[0]["image/caption"]
    assert max(captions, key=len) in (b"fine", b"x")
    (tmp_path / "empty").mkdir()
    with raises(rs.SourceError, path=tmp_path / "empty"):
        rs.CaptionedImages(tmp_path / "empty").list_samples()
