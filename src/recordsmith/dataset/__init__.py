"""Datasets of many shards: names, indexes, manifest, random access.

A `Dataset` is what users see. Other rooms read its `view`, and the records of `records_of`.
"""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "arrow.arrays": "ArrowDecoder",
        "arrow.columns": "ArrowColumns as_stored feature_kinds is_list kind_of_type plain",
        "arrow.library": "ArrowStream import_pyarrow",
        "arrow.restoring": "schema_as_text",
        "arrow.schema": "arrow_schema columns_of",
        "arrow_stream": "DEFAULT_ROWS open_stream",
        "column_file": (
            "ColumnSurvey ColumnsOrigin column_pieces keep_for_copy kept_values wrong_columns"
        ),
        "dataset": "DEFAULT_PART_BYTES Dataset parts_of records_of",
        "documents": (
            "NOT_AS_EXPECTED count_in_json describe_fault integer_in_json is_line "
            "json_fault json_of line_in_json text_of write_json"
        ),
        "episode_layout": (
            "EpisodeLayout find_count_key find_layout is_inner_lengths row_lengths_key "
            "step_counts step_prefix"
        ),
        "examples": "begin_of bytes_text probe",
        "findings_file": ("FindingsFile FindingsWriter FoundPlace KEEP_RULES chosen read_findings"),
        "indexing": "IndexReport index",
        "keypoint_classes": (
            "KeypointClass KeypointClasses MAX_KEYPOINTS join_keypoint_classes "
            "keypoint_classes_in_json keypoint_classes_to_json"
        ),
        "labels": (
            "ClassNames LABELS_NAME LABEL_MAP_NAME LARGEST_LABEL background_notices "
            "carried_class_names class_names_in_json class_names_of is_label "
            "label_map_to_bytes labels_to_bytes read_label_map read_labels"
        ),
        "layers": "LAYERS_FOLDER Layer ShardEntry",
        "locating.located": "ListedFolder Located",
        "locating.no_shards": "detect_foreign_folder",
        "locating.paths": (
            "Paths as_places check_split locate locate_each locate_whole split_names"
        ),
        "locating.record_files": "looks_like_records",
        "manifest": (
            "BegunNote MANIFEST_NAME Manifest begun_location listed_digest "
            "read_begun_note read_manifest"
        ),
        "measuring": "readable_counts readable_values",
        "names": (
            "DEFAULT_TEMPLATE DONE_SUFFIX INTERNAL_FOLDER INTERNAL_NAMES PARTIAL_SUFFIX "
            "RECORD_SUFFIXES SIDE_SUFFIXES TFDS_FEATURES_NAME TFDS_INFO_NAME has_split_word "
            "is_shard_name is_split_name is_split_slice parse_shard_name part_name "
            "shard_name split_of split_of_part split_word standard_name tells_split"
        ),
        "opening": "dataset_of open open_around_defects open_packed",
        "parts": (
            "ShardRange blocks_of part_for_task part_from_task shard_for_task shard_from_task"
        ),
        "record_document": (
            "contents_of feature_document json_value key_text kind_of section_documents to_document"
        ),
        "record_positions": "RecordPositions",
        "selected_records": (
            "LocatedBlock RecordLocation SelectedRecords joined_shards records_of_part shard_parts"
        ),
        "selection": (
            "Draw Positions check_shares draws_of_splits exact_share integer_positions share_counts"
        ),
        "shard": "Shard",
        "shard_index": "version_of",
        "shard_layout": (
            "DEFAULT_SHARD_SIZE_BYTES ShardCounts ShardPlan check_shard_options "
            "is_valid_file_name plan_shards shard_bounds shard_counts shard_files_by_split"
        ),
        "shard_sequence": (
            "Faults OpenShards ShardGroup ShardSequence gather payload_sizes "
            "reading_threads scattered_blocks"
        ),
        "tfds.features": (
            "BOX BOX_FORMAT CLASSES CLASS_LABEL DATASET DICT IMAGE Leaf SCALAR SEQUENCE TENSOR TEXT"
        ),
        "tfds.folder": (
            "LABELS_SUFFIX TfdsInfo TfdsSplit find_tfds_folder is_tfds_folder is_tfds_info "
            "other_versions read_class_names read_documents read_features read_info "
            "without_features"
        ),
        "tfds.records": "BOXES TEXT_KEYS TfdsRecords standard_keys",
        "view": "PREVIEW_COUNT View",
        "where.expression": "Where parse_where",
        "writer": "ShardWriter",
    },
)
