"""Sources of samples: image folders, annotation files, tables, archives, existing shards.

To add a source, write a class that implements `source.Source` and add a line to `formats.FORMATS`.
"""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # `__init__.pyi` has the same for type checkers
    __name__,
    {
        "archives.arrays": "Arrays",
        "archives.lerobot": "LeRobot",
        "archives.shards": "Shards",
        "archives.tfds": "Tfds",
        "archives.webdataset": "WebDataset",
        "boxes.formats.coco": "Coco",
        "boxes.formats.csv_boxes": "CsvBoxes",
        "boxes.formats.cvat": "Cvat",
        "boxes.formats.labelme": "LabelMe",
        "boxes.formats.voc": "Voc",
        "boxes.formats.yolo": "Yolo",
        "class_folders.image_folder": "ImageFiles ImageFolder",
        "detection": "Detection detect",
        "flaws": "Check Flaw",
        "formats": "FORMATS",
        "given": "check_source source_of",
        "hugging_face": "HuggingFace",
        "layouts": "LayoutCandidate",
        "pairs.image_pairs": "ImagePairs",
        "samples": "Content Note Sample SampleReader StoredReader ignore_note open_reader",
        "source": "ListedSource Listing Source",
        "tables.rows": "Rows",
        "tables.table": "Table",
    },
)
