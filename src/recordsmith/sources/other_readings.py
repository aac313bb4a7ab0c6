"""Detect shards, archives, tables and annotations by names alone."""

from __future__ import annotations

from collections.abc import Iterator

from recordsmith.dataset.names import RECORD_SUFFIXES
from recordsmith.image import IMAGE_SUFFIXES
from recordsmith.sources.files.images import is_image_word
from recordsmith.sources.splits import find_split
from recordsmith.sources.survey import Reading, Strength, Survey
from recordsmith.sources.tables.table import TABLE_SUFFIXES

ARCHIVES = (".tar", ".tar.gz", ".tgz")
_YOLO_FILES = ("data.yaml", "dataset.yaml", "obj.data", "obj.names", "classes.txt")


def find_readings(survey: Survey) -> Iterator[Reading]:
    """Yield the first that fits."""
    others = list(
        survey.files(*TABLE_SUFFIXES, ".json", ".xml", ".txt", ".yaml", ".data", ".names", depth=3)
    )
    every = [
        f"{folder.path}/{name}" if folder.path else name
        for folder in survey.folders.values()
        if folder.path.count("/") < 1
        for suffix, names in folder.by_suffix.items()
        if suffix not in IMAGE_SUFFIXES
        for name in names
    ]
    records = next(
        (
            path
            for path in every
            if ("/" not in path or (path.count("/") == 1 and find_split(path) is not None))
            and any(suffix in path.lower() for suffix in RECORD_SUFFIXES)
        ),
        None,
    )
    if records is not None:
        yield Reading(
            "shards", f"TFRecord shards such as {records}", Strength.MARKED, noun="records"
        )
        return
    archive = next(survey.files(*ARCHIVES, depth=0), None)
    if archive is not None:
        yield Reading("webdataset", f"tar files such as {archive}", Strength.MARKED, noun="samples")
        return
    names = {path: path.lower().rpartition("/")[2] for path in others}
    folders = {path: path.lower().split("/")[:-1] for path in others}
    metadata = next(
        (p for p in others if names[p] in [f"metadata{suffix}" for suffix in TABLE_SUFFIXES]), None
    )
    if metadata is not None:
        yield Reading("table", f"the table {metadata}", Strength.MARKED, noun="rows")
        return
    coco = next(
        (
            path
            for path in others
            if path.lower().endswith(".json")
            and names[path] != "dataset.json"
            and (
                names[path].endswith("_annotations.coco.json")
                or "annotations" in folders[path]
                or names[path].startswith(("instances", "annotations", "coco"))
            )
        ),
        None,
    )
    if coco is not None:
        yield Reading("coco", f"the COCO file {coco}", Strength.ANNOTATED)
        return
    yolo = next((path for path in others if names[path] in _YOLO_FILES), None)
    if yolo is not None:
        yield Reading("yolo", f"the YOLO file {yolo}", Strength.MARKED)
        return
    labels = next(
        (path for path in others if path.lower().endswith(".txt") and "labels" in folders[path]),
        None,
    )
    images = next((path for path in survey.folders if is_image_word(path.rpartition("/")[2])), None)
    if labels is not None and images is not None:
        where = labels.rpartition("/")[0]
        yield Reading("yolo", f"images in {images}, labels in {where}", Strength.ANNOTATED)
        return
    xml = next((path for path in others if path.lower().endswith(".xml")), None)
    if xml is not None:
        yield Reading("voc", f"XML files such as {xml}", Strength.ANNOTATED)
        return
    table = next(
        (
            path
            for path in others
            if path.lower().endswith(TABLE_SUFFIXES)
            and ("/" not in path or folders[path] == ["data"])
        ),
        None,
    )
    if table is not None and not survey.folders[""].image_count:
        what = f"the table {table}"
        yield Reading("table", what, Strength.ANNOTATED, noun="rows", files=(table,))
