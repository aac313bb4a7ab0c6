"""DOTA: one text file per image in `labelTxt/`, one line per object: four corners in pixels, class
and difficulty, below lines about the image. Splits are folders.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import chain

from recordsmith.dataset import is_label
from recordsmith.format.example.keys import OBJECT_DIFFICULT
from recordsmith.sources.boxes.annotation import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    quad_object,
    to_float,
)
from recordsmith.sources.boxes.annotation_files import PerImageAnnotationSource
from recordsmith.sources.boxes.known_formats import are_rows, first_rows
from recordsmith.sources.files.file_tree import HEAD_BYTES
from recordsmith.sources.files.name_files import read_lines

_ABOUT_IMAGE = ("imagesource:", "gsd:", "acquisition")
_FOLDER = re.compile(r"(^|/)(labeltxt|annfiles)[^/]*/", re.IGNORECASE)
_OF_UPRIGHT = re.compile(r"(reclabeltxt|_hbb)[^/]*/", re.IGNORECASE)
_EXPECTED = "expected x and y of four corners, a class and its difficulty, an integer"


def matches(head: bytes) -> bool:
    """Whether a file begins like DOTA's: with a line about the image, or rows of an object each."""
    rows, about = first_rows(head), tuple(map(str.encode, _ABOUT_IMAGE))
    is_known = are_rows(rows, (9, 10), text=8)
    is_known = is_known and all(map(bytes.isdigit, chain(*(row[9:] for row in rows))))
    return is_known or (bool(rows) and rows[0][0].startswith(about))


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    """Yield the image of a file; none for text of another type outside of `labelTxt/`."""
    if not _FOLDER.search(file.name) and not matches(file.location.read(0, HEAD_BYTES)):
        return
    rows = ((line, text.split()) for line, text in read_lines(file.location, file.name))
    objects = [
        _object(f"line {line}", words)
        for line, words in rows
        if not words[0].startswith(_ABOUT_IMAGE)
    ]
    yield AnnotatedImage(objects=objects)


def _object(where: str, words: list[str]) -> AnnotatedObject:
    numbers = [*map(to_float, words[:8])]
    is_row = len(words) == 10 or (len(words) == 9 and not words[8].isdigit())
    name, difficulty, *_ = (*words[8:], "0", "0")
    if not is_row or any(map(math.isnan, numbers)) or not is_label(difficulty):
        return AnnotatedObject(where, "", fault=f"{' '.join(words)!r:.80}; {_EXPECTED}")
    points = [*zip(numbers[::2], numbers[1::2], strict=True)]
    return quad_object(where, name, points, [int(difficulty)])


class Dota(
    PerImageAnnotationSource,
    box_format=BoxFormat(
        "dota",
        ".txt",
        matches,
        parse,
        what="images and rotated boxes of text files such as {} (DOTA)",
        expected="text files in labelTxt/, below or next to the folders of their splits, and "
        "images in images/",
        features={OBJECT_DIFFICULT: "int64"},
    ),
):
    """Images with rotated boxes in DOTA's text format.

    Each sample has the image and box features of `Voc`, with `image/object/difficult`, and the
    four corners of each object, `image/object/corner/x` and `image/object/corner/y`: clockwise,
    relative to the image, and also outside of it. The box is that around them. Labels follow the
    order of the names.

    Example:
        rs.pack(rs.Dota("DOTA"), "packed")
    """

    def _documents(self, documents: list[str]) -> list[str]:
        return [path for path in documents if not _OF_UPRIGHT.search(path)] or documents
