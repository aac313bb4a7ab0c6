"""Folders and annotation files -> samples. Knows nothing of shards.

To add a source: one file here with a class that has what `contract.Source` asks for.
"""

from recordsmith.sources.contract import Content, Listing, Note, Sample, Source, unheard
from recordsmith.sources.image_folder import ImageFolder
from recordsmith.sources.image_pairs import ImagePairs

__all__ = [
    "Content",
    "ImageFolder",
    "ImagePairs",
    "Listing",
    "Note",
    "Sample",
    "Source",
    "unheard",
]
