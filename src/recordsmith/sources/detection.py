"""Detect the type of a source from the names in a folder and the two levels below it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from recordsmith.dataset.names import RECORD_SUFFIXES
from recordsmith.errors import FileAccessError, OptionError, SourceError, option
from recordsmith.sources.archives.arrays import Arrays
from recordsmith.sources.archives.shards import Shards
from recordsmith.sources.archives.webdataset import WebDataset
from recordsmith.sources.boxes.coco import Coco
from recordsmith.sources.boxes.voc import Voc
from recordsmith.sources.boxes.yolo import Yolo
from recordsmith.sources.class_folders.image_files import ImageFiles
from recordsmith.sources.class_folders.image_folder import ImageFolder
from recordsmith.sources.files.folders import is_folder
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.pairs.image_pairs import ImagePairs
from recordsmith.sources.source import Source
from recordsmith.sources.splits import are_split_names, find_split
from recordsmith.sources.tables.table import TABLE_SUFFIXES, Table
from recordsmith.stores import Location, PlaceLike, as_place

_ARCHIVES = (".tar", ".tar.gz", ".tgz")
_MASK_FOLDERS = frozenset(("masks", "mask", "segmentationclass"))
_IMAGE_FOLDERS = frozenset(("images", "image", "imgs", "img", "pictures", "jpegimages"))
_MOST_NAMES = 20_000


@dataclass(frozen=True)
class _Kind:
    """One type of source: its class, and the options that it accepts."""

    source: Callable[..., Source]
    options: tuple[str, ...] = ()


KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "folder": _Kind(ImageFolder),
        "files": _Kind(ImageFiles, ("class_pattern",)),
        "pairs": _Kind(ImagePairs, ("images", "masks", "pairs", "colours")),
        "voc": _Kind(Voc, ("label_map", "boxes")),
        "coco": _Kind(Coco, ("annotations", "images", "label_map", "boxes", "object_masks")),
        "yolo": _Kind(Yolo, ("label_map", "boxes")),
        "table": _Kind(
            Table,
            (
                *("table", "image_column", "images", "split_column", "group_column"),
                *("label_column", "encoding"),
            ),
        ),
        "arrays": _Kind(Arrays),
        "shards": _Kind(Shards),
        "webdataset": _Kind(WebDataset),
    }
)
"""The types of sources by name."""


@dataclass(frozen=True)
class DetectedSource:
    """A source and how it was chosen.

    kind: one of KINDS.
    reason: what was detected; empty if the caller chose the type.
    """

    source: Source
    kind: str
    reason: str


def make_source(path: PlaceLike, kind: str | None = None, **options: Any) -> DetectedSource:
    """Make the source for a path.

    Args:
        path: a folder or a file.
        kind: the type of source, one of KINDS; None to detect it.
        options: of the source; those that are None are ignored.

    Raises:
        OptionError: the type is unknown, or does not accept one of the options.
        SourceError: the type cannot be detected.
        FileAccessError: the path cannot be read.
    """
    reason = ""
    if kind is None:
        kind, reason = recognise(path)
    if kind not in KINDS:
        close = difflib.get_close_matches(kind, KINDS, 1)
        raise OptionError(
            option="format",
            value=kind,
            expected=f"one of {', '.join(KINDS)}",
            remedy=f"Did you mean {close[0]}?" if close else "",
        )
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        if name not in KINDS[kind].options:
            accepting = [other for other, known in KINDS.items() if name in known.options]
            raise OptionError(
                f"{option(name)} does not apply to the format {kind}"
                f"{f' ({reason})' if reason else ''}",
                option=name,
                value=value,
                remedy=f"It applies to {', '.join(accepting)}." if accepting else "",
            )
    return DetectedSource(KINDS[kind].source(path, **given), kind, reason)


def recognise(path: PlaceLike) -> tuple[str, str]:
    """Detect the type of source for a path, and the reason.

    Raises:
        SourceError: unsupported file type.
        FileAccessError: the path cannot be read.
    """
    root = as_place(path)
    if "{" in root.name or "*" in root.name:
        if _is_archive(root.name):
            return "webdataset", "a pattern of tar files"
        return "shards", "a pattern of files"
    if not is_folder(root):
        return _recognise_file(root)
    names = _Names(root)
    for kind, reason in _candidates(names):
        if reason:
            return kind, reason
    has_classes = any("/" in path and has_image_name(path) for path in names.files)
    return "folder", "class folders" if has_classes else ""


def _recognise_file(path: Location) -> tuple[str, str]:
    name = path.name.lower()
    if name.removesuffix(".gz").endswith(TABLE_SUFFIXES):
        ending = name.removesuffix(".gz").rpartition(".")[2].upper()
        return "table", f"a {ending} file"
    if _is_archive(name):
        return "webdataset", "a tar file"
    if name.endswith(".json"):
        return "coco", "a JSON file"
    if name.endswith((".yaml", ".yml", ".data")):
        return "yolo", "a YOLO dataset description"
    if any(ending in name for ending in RECORD_SUFFIXES):
        return "shards", "a TFRecord file"
    known = ", ".join((*TABLE_SUFFIXES, *_ARCHIVES[:1], RECORD_SUFFIXES[0], ".json"))
    raise SourceError(
        f"unsupported file type; expected a folder or a file ending in {known}", path=path
    )


def _is_archive(name: str) -> bool:
    return name.lower().endswith(_ARCHIVES)


class _Names:
    """The names in a folder and in the two levels below it, as paths in lower case.

    written: the paths as they are written, by those in lower case.
    """

    def __init__(self, root: Location) -> None:
        self.files: list[str] = []
        self.folders: set[str] = set()
        self.written: dict[str, str] = {}
        self._add(root, "", 0)

    def _add(self, folder: Location, prefix: str, depth: int) -> None:
        try:
            entries = list(folder.list_entries())
        except FileAccessError:
            return
        files = [prefix + entry.name for entry in entries if entry.kind != "folder"]
        folders = [entry for entry in entries if entry.kind == "folder" and entry.name[0] != "."]
        paths = [prefix + entry.name for entry in folders]
        self.files += [path.lower() for path in files]
        self.folders.update(path.lower() for path in paths)
        self.written |= {path.lower(): path for path in (*files, *paths)}
        for entry in folders:
            if depth < 2 and len(self.files) <= _MOST_NAMES and not entry.is_link:
                self._add(folder / entry.name, f"{prefix}{entry.name}/", depth + 1)

    def file(self, *names: str) -> str | None:
        """The first file with one of these names, at any depth."""
        return next((path for path in self.files if path.rpartition("/")[2] in names), None)

    def ending(self, *endings: str, depth: int = 2) -> str | None:
        """The first file with one of these endings, at most `depth` levels deep."""
        return next(
            (path for path in self.files if path.endswith(endings) and path.count("/") <= depth),
            None,
        )

    def folder(self, names: frozenset[str]) -> str | None:
        """The first folder with one of these names, at any depth."""
        return next(
            (path for path in sorted(self.folders) if path.rpartition("/")[2] in names), None
        )

    def reason(self, text: str, *paths: str | None) -> str:
        """The text with the paths as they are written; empty if one is missing."""
        if not all(paths):
            return ""
        return text.format(*(self.written[path] for path in paths if path))


def _candidates(names: _Names) -> list[tuple[str, str]]:
    """Each type with the reason for it, empty if there is none; the most certain first."""
    records = next(
        (
            path
            for path in names.files
            if ("/" not in path or (path.count("/") == 1 and find_split(path) is not None))
            and any(suffix in path for suffix in RECORD_SUFFIXES)
        ),
        None,
    )
    metadata = names.file(*(f"metadata{ending}" for ending in TABLE_SUFFIXES))
    coco = names.ending("_annotations.coco.json") or _annotation_json(names)
    yolo = names.file("data.yaml", "dataset.yaml", "obj.data", "obj.names", "classes.txt")
    masks = names.folder(_MASK_FOLDERS)
    images = names.folder(_IMAGE_FOLDERS)
    labels = names.folder(frozenset(("labels",)))
    has_label_texts = any(
        path.endswith(".txt") and "labels" in path.split("/")[:-1] for path in names.files
    )
    xml = names.ending(".xml")
    top_images = any("/" not in path and has_image_name(path) for path in names.files)
    is_flat = top_images and not any("/" in path and has_image_name(path) for path in names.files)
    table = names.ending(*TABLE_SUFFIXES, depth=0) or next(
        (
            path
            for path in names.files
            if path.startswith("data/") and path.endswith(TABLE_SUFFIXES)
        ),
        None,
    )
    tops = {path for path in names.folders if "/" not in path}
    in_splits_only = are_split_names(tops) and all(
        path.count("/") == 1 and path.rpartition("/")[2] in _IMAGE_FOLDERS
        for path in names.folders - tops
    )
    is_alone = next(iter(tops)) if tops == names.folders and len(tops) == 1 else ""
    is_alone = is_alone if is_alone in _IMAGE_FOLDERS and not top_images else ""
    masked = names.reason("images in {} and masks in {}", images, masks)
    return [
        ("shards", names.reason("TFRecord shards such as {}", records)),
        ("webdataset", names.reason("tar files such as {}", names.ending(*_ARCHIVES, depth=0))),
        ("table", names.reason("the table {}", metadata)),
        ("coco", names.reason("the COCO file {}", coco)),
        ("yolo", names.reason("the YOLO file {}", yolo)),
        ("yolo", names.reason("images in {}, labels in {}", images, labels) * has_label_texts),
        ("pairs", (masked or names.reason("masks in {}", masks)) if not xml else ""),
        ("voc", names.reason("XML files such as {}", xml)),
        ("table", names.reason("the table {}", table) if not top_images else ""),
        ("files", "images in split folders, without classes" if in_splits_only else ""),
        ("files", names.reason("images in {}, without classes", is_alone)),
        ("files", "images outside class folders, without classes" if is_flat else ""),
    ]


def _annotation_json(names: _Names) -> str | None:
    """A JSON file named or placed like COCO's annotations."""
    return next(
        (
            path
            for path in names.files
            if path.endswith(".json")
            and path.rpartition("/")[2] != "dataset.json"
            and (
                "annotations" in path.split("/")[:-1]
                or path.rpartition("/")[2].startswith(("instances", "annotations", "coco"))
            )
        ),
        None,
    )
