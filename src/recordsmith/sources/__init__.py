"""Folders and annotation files -> samples. Knows nothing of shards.

To add a source: one file here with a class that has what `contract.Source` asks for.
"""

from recordsmith.sources.contract import Content, Listing, Note, Sample, Source, unheard
from recordsmith.sources.image_folder import ImageFolder
from recordsmith.sources.rows import Rows
from recordsmith.sources.shards import Shards
from recordsmith.sources.table import Table
from recordsmith.sources.webdataset import WebDataset

__all__ = [
    "Content",
    "ImageFolder",
    "Listing",
    "Note",
    "Rows",
    "Sample",
    "Shards",
    "Source",
    "Table",
    "WebDataset",
    "unheard",
]
