"""Folders and annotation files -> samples. Knows nothing of shards.

To add a source: one file here with a class that has what `contract.Source` asks for.
"""

from recordsmith.sources.contract import Listing, Sample, Source
from recordsmith.sources.image_folder import ImageFolder

__all__ = ["ImageFolder", "Listing", "Sample", "Source"]
