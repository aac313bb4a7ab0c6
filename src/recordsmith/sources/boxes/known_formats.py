"""Annotation formats that are recognised but not read: their names, and what converts them.

Each is told from ordinary files by keys that only it has, or by rows of a fixed form.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

_MAX_ROWS = 20
"""How many rows of a text file are compared."""

_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_CELEBA = re.compile(
    r"(list_(attr|bbox|landmarks|landmarks_align)|identity)_celeba\.txt", re.IGNORECASE
)
_WIDER_FACE = re.compile(r"wider_face_[a-z_]+_gt\.txt", re.IGNORECASE)
_MOT = re.compile(r"(^|/)(gt/gt|det/det)\.txt$", re.IGNORECASE)
_DATUM = (
    "Convert it: pip install datumaro, then datum convert -if {} -i FOLDER -f coco -o NEW_FOLDER "
    "-- --save-media."
)


class KnownFormat(NamedTuple):
    """An annotation format that is recognised but not read.

    name: as people call it.
    advice: the sentence that tells how to convert it.
    """

    name: str
    advice: str


class _Recognised(NamedTuple):
    """How files of a format are recognised: by suffix, and by path and first bytes."""

    format: KnownFormat
    suffixes: tuple[str, ...]
    matches: Callable[[str, bytes], bool]


def recognise_annotations(path: str, head: bytes) -> KnownFormat | None:
    """The format of an annotation file that is not read; None for all other files.

    Args:
        path: of the file, relative and with `/`.
        head: its first bytes, at most 64 KiB.
    """
    suffix = posixpath.splitext(path)[1].lower()
    return next(
        (
            each.format
            for each in _RECOGNISED
            if suffix in each.suffixes and each.matches(path, head)
        ),
        None,
    )


def _has(starts: str, *choices: Sequence[bytes]) -> Callable[[str, bytes], bool]:
    """Whether JSON begins with one of some characters, and has all keys of one of the choices."""

    def matches(_: str, head: bytes) -> bool:
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        is_alike = text.startswith(tuple(start.encode() for start in starts))
        return is_alike and any(all(b'"%s"' % key in text for key in keys) for keys in choices)

    return matches


def _named(pattern: re.Pattern[str]) -> Callable[[str, bytes], bool]:
    return lambda path, _: pattern.fullmatch(posixpath.basename(path)) is not None


def _rows(head: bytes, separator: bytes | None = None) -> list[list[bytes]]:
    """The cells of the first whole rows that are not blank."""
    lines = head.removeprefix(b"\xef\xbb\xbf").splitlines()
    lines = lines if len(lines) == 1 or head.endswith((b"\n", b"\r")) else lines[:-1] or lines
    rows = (line.split(separator, 40) for line in lines[: _MAX_ROWS + 2] if line.strip())
    return [[cell.strip() for cell in row] for row in rows]


def _are_numbers(cells: Sequence[bytes]) -> bool:
    return all(len(cell) < 40 and _NUMBER.fullmatch(cell) for cell in cells)


def _is_kitti(_: str, head: bytes) -> bool:
    """A class, then 14 or 15 numbers: occlusion, angle, box, size, place, and a score."""
    rows = _rows(head)
    return bool(rows) and all(
        len(row) in (15, 16)
        and not _are_numbers(row[:1])
        and _are_numbers(row[1:])
        and row[2] in (b"-1", b"0", b"1", b"2", b"3")
        for row in rows
    )


def _is_dota(_: str, head: bytes) -> bool:
    """Four corners, a class and a difficulty, after lines about the image."""
    rows = [row for row in _rows(head) if not row[0].startswith((b"imagesource:", b"gsd:"))]
    return bool(rows) and all(
        len(row) in (9, 10)
        and _are_numbers(row[:8])
        and not _are_numbers(row[8:9])
        and row[9:] in ([], [b"0"], [b"1"], [b"2"])
        for row in rows
    )


def _is_mot(path: str, head: bytes) -> bool:
    rows = _rows(head, b",")
    is_named = _MOT.search(path) is not None
    return is_named and bool(rows) and all(6 <= len(r) <= 10 and _are_numbers(r) for r in rows)


def _is_labelme_web(_: str, head: bytes) -> bool:
    """The tool's own elements, and nothing of PASCAL VOC's boxes."""
    if b"<annotation>" not in head or b"<bndbox>" in head or b"<robndbox>" in head:
        return False
    has_size = b"<imagesize>" in head and b"<nrows>" in head
    return has_size or b"LabelMe Webtool" in head or (b"<polygon>" in head and b"<pt>" in head)


def _is_via_csv(_: str, head: bytes) -> bool:
    line = head.partition(b"\n")[0]
    return b"region_shape_attributes" in line and b"filename" in line


_RECOGNISED = (
    _Recognised(
        KnownFormat(
            "CreateML",
            "Export it as COCO from the tool that made it, such as Roboflow.",
        ),
        (".json",),
        _has(
            "[",
            (b"image", b"annotations", b"label", b"coordinates", b"width"),
            (b"image", b"annotation", b"label", b"coordinates", b"width"),
            (b"imagefilename", b"annotation", b"label", b"coordinates", b"width"),
        ),
    ),
    _Recognised(
        KnownFormat("VoTT", _DATUM.format("vott_json")),
        (".json", ".vott"),
        _has(
            "{",
            (b"asset", b"regions", b"size", b"version"),
            (b"assets", b"asset", b"regions", b"tags"),
            (b"assets", b"securityToken", b"tags"),
        ),
    ),
    _Recognised(
        KnownFormat("Datumaro", _DATUM.format("datumaro")),
        (".json",),
        _has(
            "{",
            (b"dm_format_version", b"items"),
            (b"info", b"categories", b"items", b"label", b"labels"),
        ),
    ),
    _Recognised(
        KnownFormat("Label Studio", "Export the project from Label Studio as COCO."),
        (".json",),
        _has(
            "[{",
            (b"from_name", b"to_name", b"result"),
            *(
                (b"original_width", b"original_height", kind)
                for kind in (b"rectanglelabels", b"polygonlabels", b"brushlabels")
            ),
        ),
    ),
    _Recognised(
        KnownFormat(
            "Segment Anything",
            "Its masks have no classes. Collect the files into one COCO file: each image becomes "
            "an entry of images, and each annotation gets an image_id and a category_id.",
        ),
        (".json",),
        _has("[{", (b"predicted_iou", b"stability_score", b"segmentation")),
    ),
    _Recognised(
        KnownFormat("the LabelMe web tool", _DATUM.format("label_me")),
        (".xml",),
        _is_labelme_web,
    ),
    _Recognised(
        KnownFormat("WIDER FACE", _DATUM.format("wider_face")), (".txt",), _named(_WIDER_FACE)
    ),
    _Recognised(KnownFormat("MOT", _DATUM.format("mot_seq")), (".txt",), _is_mot),
    _Recognised(
        KnownFormat(
            "CelebA",
            "Save it as a CSV file with the image names in a column image, next to the folder of "
            "images.",
        ),
        (".txt",),
        _named(_CELEBA),
    ),
    _Recognised(
        KnownFormat(
            "KITTI object labels",
            "Convert it: pip install labelformat, then labelformat convert --task "
            "object-detection --input-format kitti --input-folder LABELS --category-names NAMES "
            "--images-rel-path IMAGES --output-format pascalvoc --output-folder NEW_FOLDER.",
        ),
        (".txt",),
        _is_kitti,
    ),
    _Recognised(
        KnownFormat(
            "DOTA",
            "Convert it to YOLO's oriented boxes, with convert_dota_to_yolo_obb of the package "
            "ultralytics.",
        ),
        (".txt",),
        _is_dota,
    ),
    _Recognised(
        KnownFormat("Supervisely", "Export the project from Supervisely as COCO."),
        (".json",),
        _has(
            "{",
            (b"size", b"objects", b"classTitle"),
            (b"description", b"tags", b"size", b"height", b"width", b"objects"),
        ),
    ),
    _Recognised(
        KnownFormat("VGG Image Annotator (VIA)", "Export the annotations from VIA in COCO format."),
        (".json",),
        _has(
            "{",
            (b"_via_settings", b"_via_img_metadata"),
            (b"filename", b"regions", b"file_attributes"),
            (b"filename", b"regions", b"shape_attributes"),
        ),
    ),
    _Recognised(
        KnownFormat("VGG Image Annotator (VIA)", "Export the annotations from VIA in COCO format."),
        (".csv",),
        _is_via_csv,
    ),
    _Recognised(
        KnownFormat(
            "BDD100K",
            "Convert it to COCO with to_coco of the package scalabel.",
        ),
        (".json",),
        _has("[{", (b"name", b"labels", b"category", b"box2d")),
    ),
)
