"""Annotation formats that are recognised but not read: their names, and what converts them.

Each is told from ordinary files by keys that only it has, or by rows of a fixed form.
"""

from __future__ import annotations

import codecs
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

_Matches: TypeAlias = Callable[[str, bytes], bool]
"""Whether a file is of a format, from its path and first bytes."""

_MAX_ROWS = 20
"""How many rows of a text file are compared."""

_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DATUM = (
    "Convert it: pip install datumaro, then datum convert -if {} -i FOLDER -f coco -o NEW_FOLDER "
    "-- --save-media."
)
_LABEL_KINDS = ("rectangle", "polygon", "brush")  # of Label Studio


class KnownFormat(NamedTuple):
    """An annotation format that is recognised but not read.

    name: as people call it.
    advice: the sentence that tells how to convert it.
    """

    name: str
    advice: str

    @property
    def problem(self) -> str:
        return f"the format {self.name} is recognised but not read"


def recognise_annotations(path: str, head: bytes) -> KnownFormat | None:
    """The format of an annotation file that is not read; None for all other files.

    Args:
        path: of the file, relative and with `/`.
        head: its first bytes, at most 64 KiB.
    """
    suffix = posixpath.splitext(path)[1].lower()
    for name, advice, matches in _RECOGNISED.get(suffix, ()):
        if matches(path, head):
            return KnownFormat(name, advice)
    return None


def _json(starts: str, *choices: str) -> _Matches:
    """Whether JSON begins with one of some characters, and has all keys of one of the choices."""

    def matches(_: str, head: bytes) -> bool:
        text = head.removeprefix(codecs.BOM_UTF8).lstrip()
        is_alike = text.startswith(tuple(start.encode() for start in starts))
        return is_alike and any(
            all(f'"{key}"'.encode() in text for key in keys.split()) for keys in choices
        )

    return matches


def _named(pattern: str) -> _Matches:
    """Whether the end of the path is like this, in any case."""
    known = re.compile(rf"(^|/){pattern}$", re.IGNORECASE)
    return lambda path, _: known.search(path) is not None


def _rows(head: bytes, separator: bytes | None = None) -> list[list[bytes]]:
    """The cells of the first whole rows that are not blank."""
    lines = head.removeprefix(codecs.BOM_UTF8).splitlines()
    lines = lines if len(lines) == 1 or head.endswith((b"\n", b"\r")) else lines[:-1]
    rows = (line.split(separator, 40) for line in lines[:_MAX_ROWS] if line.strip())
    return [[cell.strip() for cell in row] for row in rows]


def _are_numbers(cells: Sequence[bytes]) -> bool:
    return all(len(cell) < 40 and _NUMBER.fullmatch(cell) for cell in cells)


def _is_kitti(_: str, head: bytes) -> bool:
    """A class, then 14 or 15 numbers: occlusion, angle, box, size, position, and a score."""
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
    """A frame, an object and its box in each row, in gt/gt.txt or det/det.txt."""
    rows = _rows(head, b",") if _named(r"(gt/gt|det/det)\.txt")(path, head) else []
    return bool(rows) and all(6 <= len(row) <= 10 and _are_numbers(row) for row in rows)


def _is_labelme_web(_: str, head: bytes) -> bool:
    """The tool's own elements, and nothing of PASCAL VOC's boxes."""
    if b"<annotation>" not in head or b"<bndbox>" in head or b"<robndbox>" in head:
        return False
    has_size = b"<imagesize>" in head and b"<nrows>" in head
    return has_size or b"LabelMe Webtool" in head or (b"<polygon>" in head and b"<pt>" in head)


def _is_via_csv(_: str, head: bytes) -> bool:
    line = head.partition(b"\n")[0]
    return b"region_shape_attributes" in line and b"filename" in line


_CELEBA = (
    "CelebA",
    "Add its list_attr_celeba.txt: the attributes of images are read as their classes.",
    _named(r"(list_(bbox|landmarks|landmarks_align)|identity)_celeba\.(txt|csv)"),
)
_VIA = ("VGG Image Annotator (VIA)", "Export the annotations from VIA in COCO format.")
_VOTT = (
    "VoTT",
    _DATUM.format("vott_json"),
    _json("{", "asset regions size version", "assets securityToken tags"),
)
_JSON = (
    (
        "CreateML",
        "Export it as COCO from the tool that made it, such as Roboflow.",
        _json(
            "[",
            "image annotations label coordinates width",
            "image annotation label coordinates width",
            "imagefilename annotation label coordinates width",
        ),
    ),
    _VOTT,
    (
        "Datumaro",
        _DATUM.format("datumaro"),
        _json("{", "dm_format_version items", "info categories items label labels"),
    ),
    (
        "Label Studio",
        "Export the project from Label Studio as COCO.",
        _json(
            "[{",
            "from_name to_name result",
            *(f"original_width original_height {kind}labels" for kind in _LABEL_KINDS),
        ),
    ),
    (
        "Segment Anything",
        "Its masks have no classes: convert it to a COCO file with a category for each mask.",
        _json("[{", "predicted_iou stability_score segmentation"),
    ),
    (
        "Supervisely",
        "Export the project from Supervisely as COCO.",
        _json("{", "size objects classTitle", "description tags size height width objects"),
    ),
    (
        *_VIA,
        _json(
            "{",
            "_via_settings _via_img_metadata",
            "filename regions file_attributes",
            "filename regions shape_attributes",
        ),
    ),
    (
        "BDD100K",
        "Convert it to COCO with to_coco of the package scalabel.",
        _json("[{", "name labels category box2d"),
    ),
)
_TEXT = (
    ("WIDER FACE", _DATUM.format("wider_face"), _named(r"wider_face_[a-z_]+_gt\.txt")),
    ("MOT", _DATUM.format("mot_seq"), _is_mot),
    _CELEBA,
    (
        "KITTI object labels",
        "Convert it with labelformat (pip): --input-format kitti, --output-format pascalvoc.",
        _is_kitti,
    ),
    (
        "DOTA",
        "Convert it to YOLO with convert_dota_to_yolo_obb of the package ultralytics.",
        _is_dota,
    ),
)
_RECOGNISED: Mapping[str, Sequence[tuple[str, str, _Matches]]] = {
    ".json": _JSON,
    ".vott": (_VOTT,),
    ".xml": (("the LabelMe web tool", _DATUM.format("label_me"), _is_labelme_web),),
    ".txt": _TEXT,
    ".csv": ((*_VIA, _is_via_csv), _CELEBA),
}
