"""Bytes <-> records: framing, CRC-32C and compression, over buffers and streams.

Knows neither paths nor payloads. tensorflow/core/lib/io/record_writer.h defines the format.
"""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # `__init__.pyi` has the same for type checkers
    __name__,
    {
        "compression": (
            "COMPRESSIONS HEAD_BYTES Compression check_compression detect_compression "
            "starts_with_record"
        ),
        "framing": (
            "FOOTER_BYTES FRAME_BYTES HEADER_BYTES Frames check_frames crc32c "
            "encode_record encode_record_into encode_records encode_slices find_header gather "
            "is_frame lengths_of_headers scan"
        ),
        "kernel": "masked_crc32c",
        "other_formats": "detect_other_format",
        "recovery": "Finding IntactFrames LostBytes Repair inflate_damaged_stream recover",
        "stream": "RecordBlock RecordWriter read_blocks read_records",
    },
)
