"""Recognizes text files of captions: next to most images of a folder, with the same names."""

from __future__ import annotations

import posixpath
from itertools import islice

from recordsmith.sources.files.file_tree import MAX_OPENED, FileTree
from recordsmith.sources.files.images import without_suffix
from recordsmith.sources.files.paths import join_path

CAPTION_SUFFIXES = (".txt", ".caption")
_DIGITS = b"0123456789"
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())


def find_caption_file(tree: FileTree) -> str | None:
    """Return the first text file of captions; None if most images have none."""
    scans = tree.folders.values()
    text_count = sum(scan.suffixes[suffix] for scan in scans for suffix in CAPTION_SUFFIXES)
    images = {without_suffix(join_path(scan.path, name)) for scan in scans for name in scan.images}
    paths = tree.files(*CAPTION_SUFFIXES)
    named = [path for path in paths if posixpath.splitext(path)[0] in images]
    if not named or 2 * text_count < tree.image_counts[""] or 2 * len(named) < len(images):
        return None
    heads = [head for path in islice(named, MAX_OPENED) if (head := tree.head(path)).strip()]
    return named[0] if heads and all(map(_is_text, heads)) else None


def _is_text(head: bytes) -> bool:
    """Whether a file has more letters than digits, unlike the rows of annotation formats."""
    digit_count = len(head) - len(head.translate(None, _DIGITS))
    return len(head.translate(None, _NO_LETTERS)) > digit_count and b"\0" not in head
