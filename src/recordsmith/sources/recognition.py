"""Which source fits a path? Told by the caller, or recognised by what lies there.

Only names are looked at, in the folder and the two levels below it; the source itself then says
in detail what it expected and what it found.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from recordsmith.dataset.names import RECORD_SUFFIXES
from recordsmith.errors import OptionError, SourceError
from recordsmith.files import PathLike, as_path, is_folder
from recordsmith.sources.coco import Coco
from recordsmith.sources.contract import Source
from recordsmith.sources.image_files import ImageFiles
from recordsmith.sources.image_folder import ImageFolder
from recordsmith.sources.image_pairs import ImagePairs
from recordsmith.sources.pictures import has_picture_name
from recordsmith.sources.shards import Shards
from recordsmith.sources.splits import are_split_names, split_in
from recordsmith.sources.table import Table
from recordsmith.sources.voc import Voc
from recordsmith.sources.webdataset import WebDataset
from recordsmith.sources.yolo import Yolo

_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
_PACKED_TABLES = tuple(f"{ending}.gz" for ending in _TABLES[:-1])
_ARCHIVES = (".tar", ".tar.gz", ".tgz")
_MASK_FOLDERS = frozenset(("masks", "mask", "segmentationclass"))
_PICTURE_FOLDERS = frozenset(("images", "image", "imgs", "img", "pictures", "jpegimages"))
_MOST_NAMES = 20_000


@dataclass(frozen=True)
class _Kind:
    """One kind of source: its class, and what the command line calls the options that it takes."""

    source: Callable[..., Source]
    options: tuple[str, ...] = ()


KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "folder": _Kind(ImageFolder),
        "files": _Kind(ImageFiles, ("class_pattern",)),
        "pairs": _Kind(ImagePairs, ("pictures", "masks", "pairs", "colours")),
        "voc": _Kind(Voc, ("label_map", "boxes")),
        "coco": _Kind(Coco, ("annotations", "pictures", "label_map", "boxes", "object_masks")),
        "yolo": _Kind(Yolo, ("label_map", "boxes")),
        "table": _Kind(
            Table,
            (
                *("picture_column", "pictures", "split_column", "group_column", "label_column"),
                "encoding",
            ),
        ),
        "shards": _Kind(Shards),
        "webdataset": _Kind(WebDataset),
    }
)
"""What `--as` takes."""

_RENAMED = {  # the word of the command line -> the parameter of the source, where they differ
    ("coco", "pictures"): "images",
    ("coco", "object_masks"): "masks",
    ("table", "picture_column"): "pictures",
    ("table", "pictures"): "picture_folder",
    ("table", "split_column"): "split",
    ("table", "group_column"): "group",
    ("table", "label_column"): "label",
}


@dataclass(frozen=True)
class Recognised:
    """A source, and how it was chosen.

    kind: one of KINDS.
    reason: what was recognised, in words; empty if the caller said the kind.
    """

    source: Source
    kind: str
    reason: str


def make_source(path: PathLike, kind: str | None = None, **options: Any) -> Recognised:
    """The source that fits a path.

    Args:
        path: a folder or a file.
        kind: which source to take; None to recognise it.
        options: of the source; those that are None are passed over.

    Raises:
        OptionError: there is no such kind, or it does not take one of the options.
        SourceError: nothing is recognised.
        FileAccessError: the path cannot be read.
    """
    reason = ""
    if kind is None:
        kind, reason = recognise(path)
    if kind not in KINDS:
        close = difflib.get_close_matches(kind, KINDS, 1)
        meant = f"; did you mean {close[0]}?" if close else ""
        raise OptionError(f"{kind!r} is no kind of source; expected {', '.join(KINDS)}{meant}")
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in KINDS[kind].options:
            takers = [other for other, known in KINDS.items() if name in known.options]
            raise OptionError(
                f"{name} is an option of {' and '.join(takers) or 'no source'}, but {path} is "
                f"packed as {kind}{f' ({reason})' if reason else ''}"
            )
    parameters = {_RENAMED.get((kind, name), name): value for name, value in given.items()}
    return Recognised(KINDS[kind].source(path, **parameters), kind, reason)


def recognise(path: PathLike) -> tuple[str, str]:
    """The kind of source that fits a path, and why.

    Raises:
        SourceError: it is a file of which no source is known.
        FileAccessError: it cannot be read.
    """
    root = Path(as_path(path))
    if "{" in root.name or "*" in root.name:
        if _is_archive(root.name):
            return "webdataset", "a pattern of tar files"
        return "shards", "a pattern of files"
    if not is_folder(root):
        return _recognise_file(root)
    names = _Names(root)
    for kind, reason in _signs(names):
        if reason:
            return kind, reason
    return "folder", "folders of classes"


def _recognise_file(path: Path) -> tuple[str, str]:
    name = path.name.lower()
    if name.endswith((*_TABLES, *_PACKED_TABLES)):
        ending = Path(name.removesuffix(".gz")).suffix[1:].upper()
        return "table", f"a {ending} file"
    if _is_archive(name):
        return "webdataset", "a tar file"
    if name.endswith(".json"):
        return "coco", "a JSON file"
    if name.endswith((".yaml", ".yml", ".data")):
        return "yolo", "a file that describes YOLO data"
    if any(ending in name for ending in RECORD_SUFFIXES):
        return "shards", "a TFRecord file"
    raise SourceError(
        f"{path} is a file of which no source is known; expected a folder, or a file that ends in "
        f"{', '.join((*_TABLES, *_ARCHIVES[:1], RECORD_SUFFIXES[0], '.json'))}"
    )


def _is_archive(name: str) -> bool:
    return name.lower().endswith(_ARCHIVES)


class _Names:
    """The names in a folder and in the two levels below it, as paths in lower case."""

    def __init__(self, root: Path) -> None:
        self.files: list[str] = []
        self.folders: set[str] = set()
        for folder, folders, files in os.walk(root):
            depth = os.path.relpath(folder, root)
            parts = [] if depth == "." else depth.lower().split(os.sep)
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            prefix = "".join(f"{part}/" for part in parts)
            self.folders.update(f"{prefix}{name.lower()}" for name in folders)
            self.files += [f"{prefix}{name.lower()}" for name in sorted(files)]
            if len(parts) >= 2 or len(self.files) > _MOST_NAMES:
                folders.clear()

    def file(self, *names: str) -> str | None:
        """The first file of one of these names, at any depth."""
        return next((path for path in self.files if path.rpartition("/")[2] in names), None)

    def ending(self, *endings: str, depth: int = 2) -> str | None:
        """The first file with one of these endings, at most so deep."""
        return next(
            (path for path in self.files if path.endswith(endings) and path.count("/") <= depth),
            None,
        )

    def folder(self, names: frozenset[str]) -> str | None:
        """The first folder of one of these names, at any depth."""
        return next(
            (path for path in sorted(self.folders) if path.rpartition("/")[2] in names), None
        )


def _signs(names: _Names) -> list[tuple[str, str]]:
    """Each kind with its reason, empty where nothing speaks for it; the surest signs first."""
    records = next(
        (
            path
            for path in names.files
            if ("/" not in path or (path.count("/") == 1 and split_in(path) is not None))
            and any(suffix in path for suffix in RECORD_SUFFIXES)
        ),
        None,
    )
    metadata = names.file(*(f"metadata{ending}" for ending in _TABLES))
    coco = names.ending("_annotations.coco.json") or _annotation_json(names)
    yolo = names.file("data.yaml", "dataset.yaml", "obj.data", "obj.names", "classes.txt")
    masks = names.folder(_MASK_FOLDERS)
    pictures = names.folder(_PICTURE_FOLDERS)
    labels = names.folder(frozenset(("labels",)))
    has_label_texts = any(
        path.endswith(".txt") and "labels" in path.split("/")[:-1] for path in names.files
    )
    xml = names.ending(".xml")
    top_pictures = any("/" not in path and has_picture_name(path) for path in names.files)
    is_flat = top_pictures and not any(
        "/" in path and has_picture_name(path) for path in names.files
    )
    table = names.ending(*_TABLES, depth=0)
    tops = {path for path in names.folders if "/" not in path}
    in_splits_only = are_split_names(tops) and all(
        path.count("/") == 1 and path.rpartition("/")[2] in _PICTURE_FOLDERS
        for path in names.folders - tops
    )
    is_alone = next(iter(tops)) if tops == names.folders and len(tops) == 1 else ""
    is_alone = is_alone if is_alone in _PICTURE_FOLDERS and not top_pictures else ""
    return [
        ("shards", f"TFRecord shards such as {records}" if records else ""),
        ("webdataset", _sign("tar files such as", names.ending(*_ARCHIVES, depth=0))),
        ("table", _sign("the table", metadata)),
        ("coco", _sign("COCO's", coco)),
        ("yolo", _sign("YOLO's", yolo)),
        ("yolo", f"pictures and {labels}" if pictures and has_label_texts else ""),
        ("pairs", f"pictures in {pictures} and masks in {masks}" if masks and not xml else ""),
        ("voc", _sign("XML files such as", xml)),
        ("table", _sign("the table", table) if not top_pictures else ""),
        ("files", "pictures in folders of splits, without classes" if in_splits_only else ""),
        ("files", f"pictures in {is_alone}, without classes" if is_alone else ""),
        ("files", "pictures without folders of classes, so without labels" if is_flat else ""),
    ]


def _sign(words: str, name: str | None) -> str:
    return f"{words} {name}" if name else ""


def _annotation_json(names: _Names) -> str | None:
    """A JSON file that is named or placed as COCO's annotations are."""
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
