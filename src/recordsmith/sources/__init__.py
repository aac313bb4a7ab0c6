"""Sources of samples: image folders, annotation files, tables, archives, existing shards.

`source.Source` and `samples.SampleReader` are the contract, `formats.FORMATS` is the table of
sources. ARCHITECTURE.md lists what else a new source touches.
"""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "archives.arrays": "Arrays",
        "archives.lerobot": "EPISODES_FOLDER LeRobot POSITIONS TASKS_NAME VERSION",
        "archives.shards": "ShardReader Shards",
        "archives.tfds": "Tfds",
        "archives.webdataset": "EMPTY_KINDS MEMBER WebDataset",
        "boxes.formats.coco": "Coco",
        "boxes.formats.createml": "CreateML",
        "boxes.formats.csv_boxes": "CsvBoxes",
        "boxes.formats.image_labels": "ImageLabels",
        "boxes.formats.cvat": "Cvat",
        "boxes.formats.dota": "Dota",
        "boxes.formats.kitti": "Kitti",
        "boxes.formats.label_studio": "LabelStudio",
        "boxes.formats.labelme": "LabelMe",
        "boxes.formats.segment_anything": "SegmentAnything",
        "boxes.formats.via": "Via",
        "boxes.formats.voc": "Voc",
        "boxes.formats.yolo": "Yolo",
        "class_folders.captioned_images": "CaptionedImages",
        "class_folders.image_folder": "ImageFiles ImageFolder",
        "classes": "Classes check_class_names numbered_classes_notice",
        "detection": "Detection detect",
        "files.images": "has_image_name image_features",
        "files.known_names": "LEROBOT_INFO_NAME",
        "flaws": "Check Flaw FlawBox LintCheck Severity",
        "given": "source_of",
        "groups": "divided_groups join_groups with_groups with_splits",
        "hugging_face": "HuggingFace",
        "leaving_out": "numbers_of_names",
        "left_behind": "check_left_behind",
        "numbered": "Coding Names RowNames SampleTable collect",
        "pairs.image_pairs": "ImagePairs",
        "problems": "join_names join_problems reference_of",
        "samples": "Content Note Sample SampleReader StoredReader ignore_note open_reader",
        "samples_ahead": "SampleToRead SamplesAhead",
        "source": "ListedSource Listing Source",
        "listing_digest": "encoded all_encoded samples_digest source_digest",
        "splits": "joined_notice shard_splits",
        "tables.csv_rows": "CsvRows",
        "tables.encoded_rows": "EncodedRows",
        "tables.json_rows": "text_or_base64",
        "tables.precision": "EXACT",
        "tables.rows": "Rows",
        "tables.table": "Table",
        "tables.table_reader": "TableReader open_rows",
        "tables.table_rows": "EncodedTable TableRows encode_table",
    },
)
