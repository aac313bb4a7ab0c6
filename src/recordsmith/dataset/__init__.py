"""Datasets of many shards: names, indexes, manifest, random access."""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # `__init__.pyi` has the same for type checkers
    __name__,
    {
        "dataset": "DEFAULT_PART_BYTES Dataset parts_of records_of",
        "indexing": "IndexFile IndexReport index",
        "labels": (
            "ClassNames LABELS_NAME LABEL_MAP_NAME background_notices carried_class_names "
            "class_names_of label_map_to_bytes labels_to_bytes read_label_map"
        ),
        "manifest": (
            "BegunNote MANIFEST_NAME Manifest ShardEntry begun_location read_begun_note "
            "read_manifest"
        ),
        "names": (
            "DEFAULT_TEMPLATE is_shard_name is_split_name parse_shard_name shard_name "
            "standard_name tells_split"
        ),
        "opening": "dataset_of open",
        "parts": "ShardPart",
        "selected_records": (
            "LocatedBlock RecordLocation SelectedRecords joined_shards records_of_part shard_parts"
        ),
        "selection": "Positions integer_positions",
        "shard": "Shard",
        "shard_sequence": "Faults ShardGroup gather payload_sizes read_bytes",
        "view": "PREVIEW_COUNT View",
        "writer": "ShardWriter",
    },
)
