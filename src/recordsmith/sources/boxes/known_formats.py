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
    "Convert it: pip install 'datumaro[cli]', then datum convert -if {} -i FOLDER -f "
    "coco_instances -o NEW_FOLDER -- --save-media."
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


def is_json_with(starts: str, *choices: str) -> Callable[[bytes], bool]:
    """Whether JSON begins with one of some characters, and has all keys of one of the choices."""

    def matches(head: bytes) -> bool:
        text = head.removeprefix(codecs.BOM_UTF8).lstrip()
        is_alike = text.startswith(tuple(start.encode() for start in starts))
        return is_alike and any(
            all(f'"{key}"'.encode() in text for key in keys.split()) for keys in choices
        )

    return matches


def _json(starts: str, *choices: str) -> _Matches:
    matches = is_json_with(starts, *choices)
    return lambda _, head: matches(head)


def _named(pattern: str) -> _Matches:
    """Whether the end of the path is like this, in any case."""
    known = re.compile(rf"(^|/){pattern}$", re.IGNORECASE)
    return lambda path, _: known.search(path) is not None


def first_rows(head: bytes, separator: bytes | None = None) -> list[list[bytes]]:
    """The cells of the first whole rows that are not blank."""
    lines = head.removeprefix(codecs.BOM_UTF8).splitlines()
    lines = lines if len(lines) == 1 or head.endswith((b"\n", b"\r")) else lines[:-1]
    rows = (line.split(separator, 40) for line in lines[:_MAX_ROWS] if line.strip())
    return [[cell.strip() for cell in row] for row in rows]


def are_numbers(cells: Sequence[bytes]) -> bool:
    return all(len(cell) < 40 and _NUMBER.fullmatch(cell) for cell in cells)


def _is_kitti_tracking(_: str, head: bytes) -> bool:
    """A frame and a track, then a row of KITTI's object labels."""
    rows = first_rows(head)
    return bool(rows) and all(
        len(row) in (17, 18)
        and are_numbers(row[:2])
        and not are_numbers(row[2:3])
        and are_numbers(row[3:])
        for row in rows
    )


def _is_visdrone(path: str, head: bytes) -> bool:
    """A box, whether it counts, a class, truncation and occlusion, in annotations/."""
    rows = first_rows(head, b",") if _named(r"annotations/[^/]+\.txt")(path, head) else []
    return bool(rows) and all(
        len(row) in (8, 9)
        and are_numbers(row[:8])
        and row[4] in (b"0", b"1")
        and row[8:] in ([], [b""])
        for row in rows
    )


def _is_json_min(path: str, head: bytes) -> bool:
    """Regions of Label Studio without the annotations that they are results of."""
    kinds = (f"original_width original_height {kind}labels" for kind in _LABEL_KINDS)
    return _json("[{", *kinds)(path, head) and b'"result"' not in head


def _is_mot(path: str, head: bytes) -> bool:
    """A frame, an object and its box in each row, in gt/gt.txt or det/det.txt."""
    rows = first_rows(head, b",") if _named(r"(gt/gt|det/det)\.txt")(path, head) else []
    return bool(rows) and all(6 <= len(row) <= 10 and are_numbers(row) for row in rows)


def _is_labelme_web(_: str, head: bytes) -> bool:
    """The tool's own elements, and nothing of PASCAL VOC's boxes."""
    if b"<annotation>" not in head or b"<bndbox>" in head or b"<robndbox>" in head:
        return False
    has_size = b"<imagesize>" in head and b"<nrows>" in head
    return has_size or b"LabelMe Webtool" in head or (b"<polygon>" in head and b"<pt>" in head)


_CELEBA = (
    "CelebA",
    "Add its list_attr_celeba.txt: the attributes of images are read as their classes.",
    _named(r"(list_(bbox|landmarks|landmarks_align)|identity)_celeba\.(txt|csv)"),
)
_VOTT = (
    "VoTT",
    _DATUM.format("vott_json"),
    _json("{", "asset regions size version", "assets securityToken tags"),
)
_JSON = (
    _VOTT,
    (
        "Datumaro",
        _DATUM.format("datumaro"),
        _json("{", "dm_format_version items", "info categories items label labels"),
    ),
    (
        "Label Studio JSON-MIN",
        "Export the project from Label Studio as JSON.",
        _is_json_min,
    ),
    (
        "Label Studio's storage, with a file for each annotation",
        "Export the project from Label Studio as JSON.",
        _json("{", "completed_by result task"),
    ),
    (
        "Supervisely",
        "Export the project from Supervisely as COCO.",
        _json("{", "size objects classTitle", "description tags size height width objects"),
    ),
    (
        "BDD100K",
        "Convert it to COCO with bdd100k.label.to_coco of the repository bdd100k/bdd100k.",
        _json("[{", "name labels category box2d"),
    ),
    (
        "VIA 3",
        "Export the project from VIA 3 in COCO format.",
        _json("{", "project vid_list config attribute"),
    ),
    (
        "V7 Darwin",
        "Convert it: pip install darwin-py, then darwin convert coco FOLDER NEW_FOLDER.",
        _json("{", "schema_ref item annotations"),
    ),
    (
        "SuperAnnotate",
        "Convert it to COCO with export_annotation of the package superannotate.",
        _json("{", "metadata instances className", "metadata instances tags comments"),
    ),
    (
        "Scale AI",
        (
            'Convert it to CSV: jq -r \'["filename", "left", "top", "width", "height", "class"], '
            "(.[] | .params.attachment as $image | .response.annotations[] | [$image, .left, .top, "
            ".width, .height, .label]) | @csv' FILE > NEW_FILE."
        ),
        _json("[", "task_id params attachment response annotations"),
    ),
    (
        "nuImages",
        "Convert it to COCO with tools/dataset_converters/nuimage_converter.py of mmdetection3d.",
        _json("[", "category_token sample_data_token bbox"),
    ),
)
_NDJSON = (
    (
        "Labelbox",
        (
            "Convert it: pip install labelformat, then labelformat convert --task "
            "object-detection --input-format labelbox --input-file FILE --category-names "
            "CLASS,CLASS --output-format coco --output-file NEW_FILE."
        ),
        _json("{[", "data_row media_attributes projects"),
    ),
    (
        "Ultralytics NDJSON",
        "Convert it to YOLO with convert_ndjson_to_yolo of the package ultralytics.",
        _json("{", "type task class_names"),
    ),
)
_TEXT = (
    ("WIDER FACE", _DATUM.format("wider_face"), _named(r"wider_face_[a-z_]+_gt\.txt")),
    ("MOT", _DATUM.format("mot_seq"), _is_mot),
    (
        "KITTI tracking",
        (
            "Write a file for each frame: in the folder of the labels, for f in *.txt; do mkdir "
            '${f%.txt}; awk -v d=${f%.txt} \'{p = sprintf("%s/%06d.txt", d, $1); $1 = $2 = ""; '
            "print substr($0, 3) > p}' $f; rm $f; done."
        ),
        _is_kitti_tracking,
    ),
    (
        "VisDrone",
        "Convert it to YOLO with the script in VisDrone.yaml of the package ultralytics.",
        _is_visdrone,
    ),
    _CELEBA,
)
_RECOGNISED: Mapping[str, Sequence[tuple[str, str, _Matches]]] = {
    ".json": (*_JSON, *_NDJSON),
    ".ndjson": _NDJSON,
    ".odgt": (
        (
            "CrowdHuman",
            "Convert it to COCO with tools/convert_crowdhuman_to_coco.py of ByteTrack.",
            _json("{", "gtboxes"),
        ),
    ),
    ".vott": (_VOTT,),
    ".xml": (("the LabelMe web tool", _DATUM.format("label_me"), _is_labelme_web),),
    ".txt": _TEXT,
    ".csv": (_CELEBA,),
}
