"""Public datasets as they are downloaded, by someone who has not read the detector.

Each folder follows the public description of a dataset: its names, columns and classes, with
images of our own. A file that names the images and holds their labels or splits must be read, or
the folder must be refused; everything else that is left out must be mentioned.
"""

from . import documents, downloads, driving, medicine, nature, people, products, satellites

__all__ = [
    "documents",
    "downloads",
    "driving",
    "medicine",
    "nature",
    "people",
    "products",
    "satellites",
]
