"""Sources of samples: image folders, annotation files, tables, archives, existing shards.

To add a source, write a class that implements `source.Source` and add it to `recognition.KINDS`.
"""

from recordsmith.sources.coco import Coco
from recordsmith.sources.image_files import ImageFiles
from recordsmith.sources.image_folder import ImageFolder
from recordsmith.sources.image_pairs import ImagePairs
from recordsmith.sources.recognition import KINDS, DetectedSource, make_source
from recordsmith.sources.rows import Rows
from recordsmith.sources.shards import Shards
from recordsmith.sources.source import Content, Listing, Note, Sample, Source, ignore_note
from recordsmith.sources.table import Table
from recordsmith.sources.voc import Voc
from recordsmith.sources.webdataset import WebDataset
from recordsmith.sources.yolo import Yolo

__all__ = [
    "KINDS",
    "Coco",
    "Content",
    "DetectedSource",
    "ImageFiles",
    "ImageFolder",
    "ImagePairs",
    "Listing",
    "Note",
    "Rows",
    "Sample",
    "Shards",
    "Source",
    "Table",
    "Voc",
    "WebDataset",
    "Yolo",
    "ignore_note",
    "make_source",
]
