"""Annotation formats that are recognised but not read: their names, and what converts them.

Each is told from ordinary files by keys that only it has, or by rows of a fixed form.
"""

from __future__ import annotations

import codecs
import posixpath
import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple, TypeAlias

_Matches: TypeAlias = Callable[[str, bytes], bool]
"""Whether a file is of a format, from its path and first bytes."""

_MAX_ROWS = 20
"""How many rows of a text file are compared."""

_NUMBERED = re.compile(rb"[^\s#]{1,250}\.(jpe?g|png)#\d{1,3}\t", re.IGNORECASE)
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DATUM = (
    "Convert it: pip install 'datumaro[cli]', then datum convert -if {} -i FOLDER -f "
    "coco_instances -o NEW_FOLDER -- --save-media."
)
_LABEL_STUDIO = "Export the project from Label Studio as JSON."
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
    for name, matches, advice in _RECOGNISED.get(suffix, ()):
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


def are_rows(rows: Sequence[Sequence[bytes]], lengths: Container[int], text: int = -1) -> bool:
    """Whether there are rows, all with so many cells: numbers, except the one at `text`."""
    return bool(rows) and all(
        len(row) in lengths
        and all(are_numbers([cell]) != (place == text) for place, cell in enumerate(row))
        for row in rows
    )


def _is_kitti_tracking(_: str, head: bytes) -> bool:
    """A frame and a track, then a row of KITTI's object labels."""
    return are_rows(first_rows(head), (17, 18), text=2)


def _is_visdrone(path: str, head: bytes) -> bool:
    """A box, whether it counts, a class, truncation and occlusion, in annotations/."""
    rows = first_rows(head, b",") if _named(r"annotations/[^/]+\.txt")(path, head) else []
    rows = [row[:-1] if row[8:] == [b""] else row for row in rows]
    return are_rows(rows, (8,)) and all(row[4] in (b"0", b"1") for row in rows)


def _is_json_min(path: str, head: bytes) -> bool:
    """Regions of Label Studio without the annotations that they are results of."""
    kinds = (f"original_width original_height {kind}labels" for kind in _LABEL_KINDS)
    return _json("[{", *kinds)(path, head) and b'"result"' not in head


def _is_mot(path: str, head: bytes) -> bool:
    """A frame, an object and its box in each row, in gt/gt.txt or det/det.txt."""
    is_named = _named(r"(gt/gt|det/det)\.txt")(path, head)
    return is_named and are_rows(first_rows(head, b","), range(6, 11))


def _is_labelme_web(_: str, head: bytes) -> bool:
    """The tool's own elements, and nothing of PASCAL VOC's boxes."""
    if b"<annotation>" not in head or b"<bndbox>" in head or b"<robndbox>" in head:
        return False
    has_size = b"<imagesize>" in head and b"<nrows>" in head
    return has_size or b"LabelMe Webtool" in head or (b"<polygon>" in head and b"<pt>" in head)


def _are_captions(_: str, head: bytes) -> bool:
    """Names of images with numbers, each with a text behind a tab."""
    rows = head.splitlines()[:_MAX_ROWS]
    return bool(rows) and all(map(_NUMBERED.match, rows))


_CAPTIONS = (
    "In the folder of the images: python -c 'import csv, json, sys; d = {{}}; [d.setdefault({}, [])"
    '.append({}) for r in {}]; [print(json.dumps({{"file_name": k, "caption": v}})) for k, v in '
    "d.items()]' FILE > metadata.jsonl."
)
_CELEBA = (
    "CelebA",
    _named(r"(list_(bbox|landmarks|landmarks_align)|identity)_celeba\.(txt|csv)"),
    "Add its list_attr_celeba.txt: the attributes of images are read as their classes.",
)
_VOTT = (
    "VoTT",
    _json("{", "asset regions size version", "assets securityToken tags"),
    _DATUM.format("vott_json"),
)
_JSON = (
    _VOTT,
    ("Datumaro", _json("{", "dm_format_version items", "info categories items label labels"),
     _DATUM.format("datumaro")),
    ("Label Studio JSON-MIN", _is_json_min, _LABEL_STUDIO),
    ("Label Studio's storage, with a file for each annotation",
     _json("{", "completed_by result task"), _LABEL_STUDIO),
    ("Supervisely",
     _json("{", "size objects classTitle", "description tags size height width objects"),
     "Export the project from Supervisely as COCO."),
    ("BDD100K", _json("[{", "name labels category box2d"),
     "Convert it to COCO with bdd100k.label.to_coco of the repository bdd100k/bdd100k."),
    ("VIA 3", _json("{", "project vid_list config attribute"),
     "Export the project from VIA 3 in COCO format."),
    ("V7 Darwin", _json("{", "schema_ref item annotations"),
     "Convert it: pip install darwin-py, then darwin convert coco FOLDER NEW_FOLDER."),
    ("SuperAnnotate",
     _json("{", "metadata instances className", "metadata instances tags comments"),
     "Convert it to COCO with export_annotation of the package superannotate."),
    ("Scale AI", _json("[", "task_id params attachment response annotations"),
     ('Convert it to CSV: jq -r \'["filename", "left", "top", "width", "height", "class"], '
      "(.[] | .params.attachment as $image | .response.annotations[] | [$image, .left, .top, "
      ".width, .height, .label]) | @csv' FILE > NEW_FILE.")),
    ("nuImages", _json("[", "category_token sample_data_token bbox"),
     "Convert it to COCO with tools/dataset_converters/nuimage_converter.py of mmdetection3d."),
)  # fmt: skip
_NDJSON = (
    ("Labelbox", _json("{[", "data_row media_attributes projects"),
     ("Convert it: pip install labelformat, then labelformat convert --task object-detection "
      "--input-format labelbox --input-file FILE --category-names CLASS,CLASS --output-format "
      "coco --output-file NEW_FILE.")),
    ("Ultralytics NDJSON", _json("{", "type task class_names"),
     "Convert it to YOLO with convert_ndjson_to_yolo of the package ultralytics."),
)  # fmt: skip
_TEXT = (
    ("WIDER FACE", _named(r"wider_face_[a-z_]+_gt\.txt"), _DATUM.format("wider_face")),
    ("MOT", _is_mot, _DATUM.format("mot_seq")),
    ("KITTI tracking", _is_kitti_tracking,
     ("Write a file for each frame: in the folder of the labels, for f in *.txt; do mkdir "
      '${f%.txt}; awk -v d=${f%.txt} \'{p = sprintf("%s/%06d.txt", d, $1); $1 = $2 = ""; '
      "print substr($0, 3) > p}' $f; rm $f; done.")),
    ("VisDrone", _is_visdrone,
     "Convert it to YOLO with the script in VisDrone.yaml of the package ultralytics."),
    ("captions of Flickr8k", _are_captions,
     _CAPTIONS.format('r.split("#")[0]', 'r.split("\\t")[1].strip()', "open(sys.argv[1])")),
    ("captions of Kaggle's Flickr8k",
     lambda _, head: head.removeprefix(codecs.BOM_UTF8).startswith(b"image,caption"),
     _CAPTIONS.format('r["image"]', 'r["caption"]', "csv.DictReader(open(sys.argv[1]))")),
    _CELEBA,
)  # fmt: skip
_CROWD_HUMAN = "Convert it to COCO with tools/convert_crowdhuman_to_coco.py of ByteTrack."
_RECOGNISED: Mapping[str, Sequence[tuple[str, _Matches, str]]] = {
    ".json": (*_JSON, *_NDJSON),
    ".ndjson": _NDJSON,
    ".odgt": (("CrowdHuman", _json("{", "gtboxes"), _CROWD_HUMAN),),
    ".vott": (_VOTT,),
    ".xml": (("the LabelMe web tool", _is_labelme_web, _DATUM.format("label_me")),),
    ".txt": _TEXT,
    ".csv": (_CELEBA,),
}
