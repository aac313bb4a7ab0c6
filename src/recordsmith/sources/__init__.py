"""Sources of samples: image folders, annotation files, tables, archives, existing shards.

To add a source, write a class that implements `source.Source` and add it to `detection._OTHERS`;
box formats register themselves.
"""

from recordsmith.sources.archives.arrays import Arrays
from recordsmith.sources.archives.lerobot import LeRobot
from recordsmith.sources.archives.shards import Shards
from recordsmith.sources.archives.tfds import Tfds
from recordsmith.sources.archives.webdataset import WebDataset
from recordsmith.sources.boxes.formats.coco import Coco
from recordsmith.sources.boxes.formats.csv_boxes import CsvBoxes
from recordsmith.sources.boxes.formats.cvat import Cvat
from recordsmith.sources.boxes.formats.labelme import LabelMe
from recordsmith.sources.boxes.formats.voc import Voc
from recordsmith.sources.boxes.formats.yolo import Yolo
from recordsmith.sources.class_folders.image_folder import ImageFiles, ImageFolder
from recordsmith.sources.detection import FORMATS, Detection, check_source, detect, source_of
from recordsmith.sources.flaws import Check, Flaw
from recordsmith.sources.hugging_face import HuggingFace
from recordsmith.sources.layouts import LayoutCandidate
from recordsmith.sources.pairs.image_pairs import ImagePairs
from recordsmith.sources.source import (
    Content,
    ListedSource,
    Listing,
    Note,
    Sample,
    SampleReader,
    Source,
    StoredReader,
    ignore_note,
    open_reader,
)
from recordsmith.sources.tables.rows import Rows
from recordsmith.sources.tables.table import Table

__all__ = [
    "FORMATS",
    "Arrays",
    "Check",
    "Coco",
    "Content",
    "CsvBoxes",
    "Cvat",
    "Detection",
    "Flaw",
    "HuggingFace",
    "ImageFiles",
    "ImageFolder",
    "ImagePairs",
    "LabelMe",
    "LayoutCandidate",
    "LeRobot",
    "ListedSource",
    "Listing",
    "Note",
    "Rows",
    "Sample",
    "SampleReader",
    "Shards",
    "Source",
    "StoredReader",
    "Table",
    "Tfds",
    "Voc",
    "WebDataset",
    "Yolo",
    "check_source",
    "detect",
    "ignore_note",
    "open_reader",
    "source_of",
]
