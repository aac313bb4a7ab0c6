"""Detects annotated images by the content of their annotation files, as the sources find them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import islice

from recordsmith.errors import option
from recordsmith.sources.boxes.source import MAX_OPENED, SOURCES
from recordsmith.sources.files.file_tree import HEAD_BYTES, FileTree
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.stores import Location

_MAX_COMPARED = 10_000
_IMAGE_NAME = re.compile(rb'"[^"]+\.(jpe?g|png|bmp|tiff?|webp)"', re.IGNORECASE)


def find_candidates(tree: FileTree) -> Iterator[LayoutCandidate]:
    """Yield the ways to read the folder as annotated images."""
    candidates = [item for source in SOURCES.values() for item in source.find_candidates(tree)]
    yield from candidates or _unknown_formats(tree)


def candidate_of_file(path: Location) -> LayoutCandidate | None:
    """The way to read an annotation file as a source, if it is one."""
    name, head = path.name.lower(), None
    for source in SOURCES.values():
        known = source.box_format
        if name.endswith(known.file_suffixes):
            head = path.read(0, HEAD_BYTES) if head is None else head
            if known.owns_suffixes or known.matches(head):
                return LayoutCandidate(known.name, known.file_what, Confidence.MARKED)
    return None


def _unknown_formats(tree: FileTree) -> Iterator[LayoutCandidate]:
    """Files named like images, or that name images: annotations of a format that is not known."""
    images = {
        _plain_stem(name)
        for folder in tree.folders.values()
        for name in folder.names
        if has_image_name(name)
    }
    for suffix, similar in ((".txt", "yolo"), (".json", "labelme"), (".xml", "voc")):
        paths = list(islice(tree.files(suffix), _MAX_COMPARED))
        named = [path for path in paths if _plain_stem(posixpath.basename(path)) in images]
        if named and 2 * len(named) >= len(paths):
            yield _unknown(similar, f"files with the names of images such as {named[0]}")
            return
    for path in islice(tree.files(".json"), MAX_OPENED):
        if images and _IMAGE_NAME.search(tree.head(path)):
            yield _unknown("coco", f"images named in {path}")
            return


def _unknown(similar: str, what: str) -> LayoutCandidate:
    return LayoutCandidate(
        similar,
        what,
        Confidence.ANNOTATED,
        problem="the format of these annotations is not known",
        remedy="Convert them to COCO, YOLO or PASCAL VOC, or pack the images without them with "
        f"{option('format', 'files')} or {option('format', 'folder')}.",
    )


def _plain_stem(name: str) -> str:
    """The stem of an image, or of a file with the name of an image and another suffix."""
    stem = posixpath.splitext(name)[0]
    return posixpath.splitext(stem)[0] if has_image_name(stem) else stem
