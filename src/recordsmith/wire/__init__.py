"""Bytes <-> records: framing, CRC-32C and compression, over buffers and streams.

Knows neither paths nor payloads. tensorflow/core/lib/io/record_writer.h defines the format.
"""

from recordsmith.wire.compression import (
    COMPRESSIONS,
    HEAD_BYTES,
    Compression,
    check_compression,
    detect_compression,
)
from recordsmith.wire.damaged_compression import inflate_around_breaks
from recordsmith.wire.framing import (
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    CheckedFrames,
    Frames,
    check_frames,
    crc32c,
    encode_record,
    encode_record_into,
    encode_records,
    encode_slices,
    gather,
    join_crc32c,
    read_lengths,
    read_pieces,
    scan,
)
from recordsmith.wire.other_formats import describe_foreign
from recordsmith.wire.recovery import Finding, LostRange, Repair, Whole, rescue
from recordsmith.wire.stream import RecordBlock, RecordWriter, read_blocks, read_records

__all__ = [
    "COMPRESSIONS",
    "FOOTER_BYTES",
    "FRAME_BYTES",
    "HEADER_BYTES",
    "HEAD_BYTES",
    "CheckedFrames",
    "Compression",
    "Finding",
    "Frames",
    "LostRange",
    "RecordBlock",
    "RecordWriter",
    "Repair",
    "Whole",
    "check_compression",
    "check_frames",
    "crc32c",
    "describe_foreign",
    "detect_compression",
    "encode_record",
    "encode_record_into",
    "encode_records",
    "encode_slices",
    "gather",
    "inflate_around_breaks",
    "join_crc32c",
    "read_blocks",
    "read_lengths",
    "read_pieces",
    "read_records",
    "rescue",
    "scan",
]
