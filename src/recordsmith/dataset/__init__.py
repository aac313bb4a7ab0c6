"""Datasets of many shards: names, indexes, manifest, random access."""

from recordsmith.dataset.dataset import DEFAULT_PART_BYTES, Dataset, parts_of, records_of
from recordsmith.dataset.indexing import IndexFile, IndexReport, index
from recordsmith.dataset.labels import (
    LABEL_MAP_NAME,
    LABELS_NAME,
    ClassNames,
    background_notices,
    carried_class_names,
    class_names_of,
    label_map_to_bytes,
    labels_to_bytes,
    read_label_map,
)
from recordsmith.dataset.manifest import (
    MANIFEST_NAME,
    BegunNote,
    Manifest,
    ShardEntry,
    begun_location,
    read_begun_note,
    read_manifest,
)
from recordsmith.dataset.names import (
    DEFAULT_TEMPLATE,
    is_shard_name,
    is_split_name,
    parse_shard_name,
    shard_name,
    standard_name,
    tells_split,
)
from recordsmith.dataset.opening import dataset_of, open  # noqa: A004 - named as users say it
from recordsmith.dataset.parts import ShardPart
from recordsmith.dataset.selected_records import (
    LocatedBlock,
    RecordLocation,
    SelectedRecords,
    joined_shards,
    records_of_part,
    shard_parts,
)
from recordsmith.dataset.selection import Positions, integer_positions
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.shard_sequence import (
    Faults,
    ShardGroup,
    gather,
    payload_sizes,
    read_bytes,
)
from recordsmith.dataset.view import PREVIEW_COUNT, View
from recordsmith.dataset.writer import ShardWriter

__all__ = [
    "DEFAULT_PART_BYTES",
    "DEFAULT_TEMPLATE",
    "LABELS_NAME",
    "LABEL_MAP_NAME",
    "MANIFEST_NAME",
    "PREVIEW_COUNT",
    "BegunNote",
    "ClassNames",
    "Dataset",
    "Faults",
    "IndexFile",
    "IndexReport",
    "LocatedBlock",
    "Manifest",
    "Positions",
    "RecordLocation",
    "SelectedRecords",
    "Shard",
    "ShardEntry",
    "ShardGroup",
    "ShardPart",
    "ShardWriter",
    "View",
    "background_notices",
    "begun_location",
    "carried_class_names",
    "class_names_of",
    "dataset_of",
    "gather",
    "index",
    "integer_positions",
    "is_shard_name",
    "is_split_name",
    "joined_shards",
    "label_map_to_bytes",
    "labels_to_bytes",
    "open",
    "parse_shard_name",
    "parts_of",
    "payload_sizes",
    "read_begun_note",
    "read_bytes",
    "read_label_map",
    "read_manifest",
    "records_of",
    "records_of_part",
    "shard_name",
    "shard_parts",
    "standard_name",
    "tells_split",
]
