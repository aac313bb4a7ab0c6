"""Folders that are not datasets of images or tables: they must be refused."""

from __future__ import annotations

from .files import Folder
from .layout import Reading, Record, layout, one


@layout(loud_is_right=True, loud_words=("empty",))
def empty_folder(root: Folder) -> None:
    """Nothing at all."""


@layout(loud_is_right=True, loud_words=("no images", "hidden", "empty"))
def only_what_systems_leave(root: Folder) -> None:
    root.data(".DS_Store", bytes(40))
    root.data("__MACOSX/photos/._1.jpg", b"\0\5\26\7\0\2\0\0Mac OS X")
    root.data("Thumbs.db", bytes(40))


@layout(loud_is_right=True)
def text_in_class_folders(root: Folder) -> None:
    """aclImdb: reviews as files of text."""
    for split in ("train", "test"):
        for name in ("neg", "pos"):
            for number in range(3):
                root.text(f"aclImdb/{split}/{name}/{number}_9.txt", "A film of our own making.\n")
    root.lines("aclImdb/README", "Large Movie Review Dataset")


@layout(loud_is_fine=True)
def sound_with_a_table(root: Folder) -> Reading:
    """ESC-50: the rows of the table are a reading if the output mentions the files of sound."""
    rows = [(f"1-10003{number}-A-0.wav", number) for number in range(3)]
    for name, _ in rows:
        root.data(f"audio/{name}", b"RIFF\x24\0\0\0WAVEfmt " + bytes(40))
    root.csv("meta/esc50.csv", "filename,target", *rows)
    columns = ("filename", "target")
    records = [Record(None, values=dict(zip(columns, row, strict=True))) for row in rows]
    return one(records).mentioning("wav", "audio")


@layout(loud_is_right=True)
def dicom_and_nifti(root: Folder) -> None:
    for number in range(2):
        root.data(f"patient_{number}/IM000{number}.dcm", bytes(128) + b"DICM" + bytes(32))
        root.data(f"patient_{number}/scan.nii.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\3" + bytes(30))


@layout(loud_is_right=True)
def pointers_of_git_lfs(root: Folder) -> None:
    """A clone without `git lfs pull`: the JPEGs are text."""
    for name in ("cat", "dog"):
        for number in range(3):
            root.lines(
                f"{name}/{number}.jpg",
                "version https://git-lfs.github.com/spec/v1",
                f"oid sha256:{'0123456789abcdef' * 4}",
                "size 12345",
            )


@layout(loud_is_right=True)
def only_annotations(root: Folder) -> None:
    """annotations/instances_val2017.json, but the images were not downloaded."""
    document = {
        "images": [{"id": 1, "file_name": "000000000139.jpg", "width": 32, "height": 24}],
        "annotations": [
            {
                "id": 1,
                "image_id": 1,
                "category_id": 1,
                "bbox": [1, 2, 8, 9],
                "area": 72,
                "iscrowd": 0,
            }
        ],
        "categories": [{"id": 1, "name": "cat"}],
    }
    root.json("annotations/instances_val2017.json", document)


@layout(loud_is_right=True)
def only_masks(root: Folder) -> None:
    """masks/ without the images: they are no class."""
    for number in range(5):
        root.mask(f"masks/{number}_mask.png", (0, 1, 2))


@layout(loud_is_right=True)
def source_code(root: Folder) -> None:
    root.lines("setup.py", "from setuptools import setup")
    root.lines("src/package/__init__.py", "")
    root.lines("package.json", "{}")
    root.lines("README.md", "# A program")
