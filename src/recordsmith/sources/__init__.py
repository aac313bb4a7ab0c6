"""Folders and annotation files -> samples. Knows nothing of shards.

To add a source: one file here with a class that has what `contract.Source` asks for.
"""

from recordsmith.sources.coco import Coco
from recordsmith.sources.contract import Content, Listing, Note, Sample, Source, unheard
from recordsmith.sources.image_folder import ImageFolder
from recordsmith.sources.voc import Voc
from recordsmith.sources.yolo import Yolo

__all__ = [
    "Coco",
    "Content",
    "ImageFolder",
    "Listing",
    "Note",
    "Sample",
    "Source",
    "Voc",
    "Yolo",
    "unheard",
]
