"""Bytes <-> records: framing, CRC-32C and compression, over buffers and streams.

Knows neither paths nor payloads. tensorflow/core/lib/io/record_writer.h defines the format.
"""

from recordsmith.format.wire.compression import (
    COMPRESSIONS,
    HEAD_BYTES,
    Compression,
    check_compression,
    detect_compression,
    starts_with_record,
)
from recordsmith.format.wire.framing import (
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
    find_header,
    gather,
    is_frame,
    lengths_of_headers,
    scan,
)
from recordsmith.format.wire.kernel import masked_crc32c
from recordsmith.format.wire.other_formats import detect_other_format
from recordsmith.format.wire.recovery import (
    Finding,
    IntactFrames,
    LostBytes,
    Repair,
    inflate_damaged_stream,
    recover,
)
from recordsmith.format.wire.stream import RecordBlock, RecordWriter, read_blocks, read_records

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
    "IntactFrames",
    "LostBytes",
    "RecordBlock",
    "RecordWriter",
    "Repair",
    "check_compression",
    "check_frames",
    "crc32c",
    "detect_compression",
    "detect_other_format",
    "encode_record",
    "encode_record_into",
    "encode_records",
    "encode_slices",
    "find_header",
    "gather",
    "inflate_damaged_stream",
    "is_frame",
    "lengths_of_headers",
    "masked_crc32c",
    "read_blocks",
    "read_records",
    "recover",
    "scan",
    "starts_with_record",
]
