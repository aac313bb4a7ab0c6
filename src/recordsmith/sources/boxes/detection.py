"""Detect annotated images by the suffixes and first bytes of their annotation files."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from itertools import islice

from recordsmith.sources.boxes.known_formats import KnownFormat, recognise_annotations
from recordsmith.sources.files.caption_files import find_caption_file
from recordsmith.sources.files.file_tree import HEAD_BYTES, MAX_OPENED, FileTree
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.formats import BOX_SUFFIXES, FORMATS
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.stores import Location
from recordsmith.support.errors import option

_MAX_COMPARED = 10_000
_SIMILAR = {".txt": "yolo", ".json": "labelme", ".xml": "voc", ".ndjson": "coco", ".odgt": "coco"}
_WITHOUT = (
    f"To pack the images without annotations, pass {option('format', 'files')} or "
    f"{option('format', 'folder')}."
)


def find_candidates(tree: FileTree) -> Iterator[LayoutCandidate]:
    """Yield the ways to read a folder as annotated images."""
    candidates = [
        candidate
        for name, suffixes in BOX_SUFFIXES.items()
        if any(True for _ in tree.files(*suffixes))
        for candidate in FORMATS[name].find_candidates(tree)
    ]
    yield from candidates or _unknown_formats(tree)


def candidate_of_file(path: Location) -> LayoutCandidate | None:
    """The way to read an annotation file as a source, if it is one."""
    name, head = path.name.lower(), None
    for format_name, suffixes in BOX_SUFFIXES.items():
        known = FORMATS[format_name].box_format if name.endswith(suffixes) else None
        if known is not None and name.endswith(known.file_suffixes):
            head = path.read(0, HEAD_BYTES) if head is None else head
            if other := recognise_annotations(name, head):
                return _not_read(known.name, path.name, other)
            if known.owns_suffixes or known.is_format_of(name, head):
                return LayoutCandidate(known.name, known.file_what, Confidence.MARKED)
    return None


def _unknown_formats(tree: FileTree) -> Iterator[LayoutCandidate]:
    """Files of a format that is recognised but not read, or of an unknown one by their names."""
    for suffix, similar in _SIMILAR.items():
        for path in islice(tree.files(suffix), MAX_OPENED):
            if known := recognise_annotations(path, tree.head(path)):
                yield _not_read(similar, path, known)
                return
    scans = tree.folders.values()
    if captions := find_caption_file(tree):
        yield LayoutCandidate(
            "captions",
            f"images with captions in text files such as {captions}",
            Confidence.ANNOTATED,
        )
        return
    images = {_plain_stem(name) for scan in scans for name in scan.images}
    for suffix, similar in islice(_SIMILAR.items(), 3):
        paths = list(islice(tree.files(suffix), _MAX_COMPARED))
        named = [path for path in paths if _plain_stem(posixpath.basename(path)) in images]
        if named and 2 * len(named) >= len(paths):
            yield LayoutCandidate(
                similar,
                f"files with the names of images such as {named[0]}",
                Confidence.ANNOTATED,
                problem="the format of these annotations is not known",
                remedy=f"Convert them to COCO, YOLO or PASCAL VOC. {_WITHOUT}",
            )
            return


def _not_read(similar: str, path: str, known: KnownFormat) -> LayoutCandidate:
    """The candidate for a file of a format that is recognised but not read."""
    return LayoutCandidate(
        similar,
        f"annotations such as {path}",
        Confidence.ANNOTATED,
        problem=known.problem,
        remedy=f"{known.advice} {_WITHOUT}",
    )


def _plain_stem(name: str) -> str:
    """The stem of an image, or of a file with the name of an image and another suffix."""
    stem = posixpath.splitext(name)[0]
    return posixpath.splitext(stem)[0] if has_image_name(stem) else stem
