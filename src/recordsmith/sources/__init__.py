"""Sources of samples: image folders, annotation files, tables, archives, existing shards.

To add a source, write a class that implements `source.Source` and add it to `recognition.KINDS`.
"""

from recordsmith.sources.archives.arrays import Arrays
from recordsmith.sources.archives.shards import Shards
from recordsmith.sources.archives.webdataset import WebDataset
from recordsmith.sources.boxes.coco import Coco
from recordsmith.sources.boxes.voc import Voc
from recordsmith.sources.boxes.yolo import Yolo
from recordsmith.sources.class_folders.image_files import ImageFiles
from recordsmith.sources.class_folders.image_folder import ImageFolder
from recordsmith.sources.detection import KINDS, DetectedSource, make_source
from recordsmith.sources.hugging_face.hugging_face import HuggingFace
from recordsmith.sources.pairs.image_pairs import ImagePairs
from recordsmith.sources.reader_registry import open_reader
from recordsmith.sources.source import (
    Content,
    Listing,
    Note,
    Sample,
    SampleReader,
    Source,
    StoredReader,
    ignore_note,
)
from recordsmith.sources.tables.rows import Rows
from recordsmith.sources.tables.table import Table

__all__ = [
    "KINDS",
    "Arrays",
    "Coco",
    "Content",
    "DetectedSource",
    "HuggingFace",
    "ImageFiles",
    "ImageFolder",
    "ImagePairs",
    "Listing",
    "Note",
    "Rows",
    "Sample",
    "SampleReader",
    "Shards",
    "Source",
    "StoredReader",
    "Table",
    "Voc",
    "WebDataset",
    "Yolo",
    "ignore_note",
    "make_source",
    "open_reader",
]
