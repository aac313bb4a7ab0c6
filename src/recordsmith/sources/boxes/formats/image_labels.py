"""Lists of the classes of images: CelebA's attributes, and Open Images' labels of images."""

from __future__ import annotations

import io
import posixpath
import re
from collections.abc import Collection, Iterator
from typing import BinaryIO, cast

from recordsmith.sources.boxes.annotation import AnnotatedImage, AnnotationFile, BoxFormat, to_float
from recordsmith.sources.boxes.annotation_files import SharedAnnotationSource
from recordsmith.sources.boxes.formats.csv_boxes import csv_rows, described_classes, text_lines
from recordsmith.sources.boxes.known_formats import recognise_annotations
from recordsmith.sources.classes import Classes, classes_by_label
from recordsmith.sources.files.account import Reason, Role
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.file_tree import HEAD_BYTES
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.files.paths import common_version
from recordsmith.sources.tables.label_lists import FLAGS, OPEN_IMAGES, recognise_label_list
from recordsmith.support.errors import SourceError, accessing

_PARTITION = re.compile(r"list_eval_partition\.(txt|csv)", re.IGNORECASE)
_SPLITS = {"0": "train", "1": "val", "2": "test"}
_OTHER_CONFIDENCE = "labels with several confidences got the highest"


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    kind = recognise_label_list(file.location.read(0, HEAD_BYTES))
    with io.BufferedReader(file.location.open_read(), 1 << 20) as stream, accessing(file.name):
        lines = text_lines(cast(BinaryIO, stream), file.name)
        yield from _open_images(file, lines) if kind == "open-images" else _celeba(file, lines)


def _celeba(file: AnnotationFile, lines: Iterator[str]) -> Iterator[AnnotatedImage]:
    """Yield the images of a list of attributes; `columns` has the split of each."""
    first = next(lines, "").strip()
    separator = None if first.isdecimal() else ","
    names = [name.strip() for name in (first if separator else next(lines, "")).split(separator)]
    names, begin = (names[1:], 2) if separator else (names, 3)
    if len({*names}) < len(names) or not names:
        problem = "the names of attributes are not different"
        raise SourceError(problem, path=file.name, line=begin - 1)
    file.class_names = dict(enumerate(names))
    count = 0
    for line, text in enumerate(lines, begin):
        image, *cells = [cell.strip() for cell in text.split(separator)] or [""]
        if not text.strip():
            continue
        if len(cells) != len(names) or not FLAGS.issuperset(cells):
            wrong = [repr(cell)[:40] for cell in cells if cell not in FLAGS]
            found = wrong[0] if wrong else f"{len(cells)} attributes"
            problem = f"found {found}; expected 1 or -1 for each of {len(names)} attributes"
            raise SourceError(problem, path=file.name, line=line)
        count += 1
        labels = {name: 1.0 for name, cell in zip(names, cells, strict=True) if cell == "1"}
        split = file.columns.get(image, "")
        yield AnnotatedImage(f"line {line}", image, labels=labels, split=split)
    if separator is None and str(count) != first:
        problem = f"found {count} rows; its first line has {first:.20}"
        remedy = "Download it again, or correct the number."
        raise SourceError(problem, path=file.name, line=1, remedy=remedy)


def _open_images(file: AnnotationFile, lines: Iterator[str]) -> Iterator[AnnotatedImage]:
    """Yield the images of a table with a label in each row; the rows of an image in any order."""
    rows = csv_rows(lines, ",", file.name)
    header = [name.strip() for name in next(rows, (0, [""]))[1]]
    if missing := [name for name in OPEN_IMAGES if name not in header]:
        raise SourceError(f"missing column {missing[0]}", path=file.name, line=1)
    places = [header.index(name) for name in OPEN_IMAGES]
    images: dict[str, tuple[int, dict[str, float]]] = {}
    notes: dict[str, list[tuple[str, str]]] = {}
    for line, row in rows:
        if not row:
            continue
        cells = [row[place].strip() for place in places if place < len(row)]
        confidence = to_float(cells[-1]) if len(cells) == len(places) else -1
        if not (0 <= confidence <= 1 and cells[0] and cells[1]):
            raise SourceError(
                f"found {','.join(row)!r:.80}; expected an image, a class and a confidence from 0 "
                "to 1",
                path=file.name,
                line=line,
            )
        image, name = cells[0], file.class_names.get(cells[1], cells[1])
        labels = images.setdefault(image, (line, {}))[1]
        if labels.setdefault(name, confidence) != confidence:
            labels[name] = max(labels[name], confidence)
            place = f"{file.name}, line {line}: {name}"
            notes.setdefault(image, []).append((_OTHER_CONFIDENCE, place))
    for image, (line, labels) in images.items():
        yield AnnotatedImage(f"line {line}", image, labels=labels, notes=notes.get(image, ()))


class ImageLabels(
    SharedAnnotationSource,
    box_format=BoxFormat(
        "image-labels",
        ".csv",
        lambda head: recognise_label_list(head) is not None,
        parse,
        what="images and the lists of their classes in {}",
        file_what="a list of classes of images (CelebA, Open Images)",
        file_suffixes=(".csv", "_celeba.txt"),
        expected="list_attr_celeba.txt or .csv, or a CSV with the columns ImageID, LabelName and "
        "Confidence, next to or above its images",
        has_outlines=False,
        has_lists=True,
    ),
):
    """Images with several classes: CelebA's attributes, and Open Images' labels of images.

    Each sample has the image features of `ImageFolder`, and lists in `image/class/label` (from 0)
    and `image/class/text`, which are empty if the image has none of the classes. Of CelebA, these
    are the attributes of 1, in the order of the file; splits are those of `list_eval_partition`. Of
    Open Images, `image/class/confidence` is 0 for a class that was verified to be absent; classes
    have the names of `class-descriptions*.csv`.

    Example:
        rs.pack(rs.ImageLabels("celeba"), "packed")
    """

    def _files(self, index: FileIndex) -> dict[str, AnnotationFile]:
        files = super()._files(index)
        names, version = described_classes(index)
        lists = [path for path in index.paths if _PARTITION.fullmatch(posixpath.basename(path))]
        rows = (line for path in lists for _, line in read_lines(index.root / path))
        cells = (re.split(r"[\s,]+", f"{row},") for row in rows)
        splits = {image: _SPLITS.get(split, "") for image, split, *_ in cells}
        index.account.read(Role.LIST, {*lists})
        others = [path for path in index.paths if recognise_annotations(path, b"") is not None]
        what = "of other tasks skipped"
        index.account.leave(Reason.OTHER_TASK, others, "annotation file", what)
        version = common_version((version, *map(index.version_of, lists)))
        for file in files.values():
            file.class_names, file.columns = names, splits
            file.version = common_version((file.version, version))
        return files

    def _classes(
        self, index: FileIndex, files: Collection[AnnotationFile], used: Collection[str]
    ) -> tuple[Classes, list[str]]:
        known = (item for file in files for item in file.class_names.items())
        columns = dict.fromkeys(name for key, name in known if isinstance(key, int))
        names = dict(enumerate(columns or sorted(used)))
        return classes_by_label(names, self._label_map, "the data"), []
