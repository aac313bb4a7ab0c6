"""Explains each defect for people: what it means and what to do about it."""

from __future__ import annotations

from typing import NamedTuple

from recordsmith.support.errors import Defect


class Explanation(NamedTuple):
    """What a defect means and what to do about it."""

    meaning: str
    advice: str


_FETCH = "Fetch the file again, then compare its size and checksum with the original."
_SALVAGE = "If you have no other copy, `recordsmith salvage` recovers every intact record."

EXPLANATIONS: dict[Defect, Explanation] = {
    Defect.TRUNCATED_HEADER: Explanation(
        "The file ends inside the 12-byte header of a record.",
        f"The writer or a copy was interrupted. {_FETCH} {_SALVAGE}",
    ),
    Defect.TRUNCATED_PAYLOAD: Explanation(
        "The file ends inside a record.",
        f"The writer or a copy was interrupted. {_FETCH} {_SALVAGE}",
    ),
    Defect.LENGTH_CRC: Explanation(
        "The length of a record does not match its checksum, so the start of the next record is "
        "unknown. Readers stop here; the rest of the file was not checked.",
        f"{_FETCH} {_SALVAGE}",
    ),
    Defect.PAYLOAD_CRC: Explanation(
        "At least one bit of a record changed after it was written. Other records are not "
        "affected.",
        f"{_FETCH} {_SALVAGE}",
    ),
    Defect.NOT_A_TFRECORD: Explanation(
        "The file is not a TFRecord file, whatever its name suggests.",
        "See the message for the type of the file and how to use it.",
    ),
    Defect.EMPTY_FILE: Explanation(
        "The file has 0 bytes. This is a valid TFRecord file without records; Beam and Spark "
        "write such files for empty shards.",
        "If you expect records, the writer or a copy may have been interrupted. Compare its size "
        "with the original.",
    ),
    Defect.BROKEN_COMPRESSION: Explanation(
        "The compressed data is damaged and cannot be decompressed past some byte.",
        f"{_FETCH} {_SALVAGE}",
    ),
    Defect.TRUNCATED_COMPRESSION: Explanation(
        "The compressed data ends without its end marker. Records may be missing; the records "
        "found are intact.",
        f"The writer was not closed, or the file was truncated. {_FETCH} {_SALVAGE}",
    ),
    Defect.DECOMPRESSION_LIMIT: Explanation(
        "The file decompresses to more data than the limit allows. It may be a decompression bomb.",
        "If you trust the file, decompress it with another tool and verify the result.",
    ),
    Defect.MALFORMED_EXAMPLE: Explanation(
        "The checksum of a record matches, but its payload is not a well-formed Example.",
        "The record was written like this. Fix the program that wrote it, and drop the record.",
    ),
    Defect.NOT_AN_EXAMPLE: Explanation(
        "A record, or every record of a shard, is a different message type than the others.",
        "Find the program that wrote it. Move a shard that belongs to another dataset; drop "
        "single records.",
    ),
    Defect.MISSING_FEATURE: Explanation(
        "A record lacks a required feature.",
        "Fix the program that wrote it, or declare the feature optional with a default.",
    ),
    Defect.FEATURE_KIND: Explanation(
        "A feature has a different kind (bytes, float or int64) than expected. Readers that "
        "declare one kind fail on such records.",
        "Rewrite these records with one kind for the feature.",
    ),
    Defect.FEATURE_SHAPE: Explanation(
        "A feature has an unexpected number of values.",
        "Fix these records, or declare the feature with variable length.",
    ),
    Defect.FEATURE_VALUE: Explanation(
        "A feature has a value that is not allowed.",
        "Fix these records, or fix the rule in the schema.",
    ),
    Defect.UNEXPECTED_FEATURE: Explanation(
        "A record has a feature that is not in the schema.",
        "The record may come from another dataset, or the schema may be outdated.",
    ),
    Defect.EMPTY_EPISODE: Explanation(
        "An episode has no steps. Loaders of windows fail on it or skip it.",
        "Drop the record.",
    ),
    Defect.EPISODE_FLAGS: Explanation(
        "A flag of an episode, such as is_first, is set at other steps than its name says. Readers "
        "that find the ends of episodes by it cut them in the wrong places.",
        "Fix the program that wrote the record, and write the flags again.",
    ),
    Defect.UNREADABLE_IMAGE: Explanation(
        "An image cannot be decoded. The checksum of its record matches, so it was packed like "
        "this.",
        "Fetch or fix the original and pack again, or drop the record.",
    ),
    Defect.DAMAGED_IMAGE: Explanation(
        "An image is damaged, but decoders accept it with a warning. Its pixels may be wrong "
        "after the damage. The checksum of its record matches, so it was packed like this.",
        "Preview the image. Fetch or fix the original and pack again, or drop the record.",
    ),
    Defect.IMAGE_SIZE: Explanation(
        "The height, width or channels of an image differ from the values in its record.",
        "Boxes and masks may be misplaced. Pack again with sizes read from the images.",
    ),
    Defect.IMAGE_FORMAT: Explanation(
        "The format of an image differs from the format in its record, as for a PNG file named "
        ".jpg.",
        "Readers that choose their decoder by the recorded format fail. Pack again with formats "
        "read from the images.",
    ),
    Defect.UNFINISHED_DATASET: Explanation(
        "A job was interrupted before it finished the dataset, or is still running.",
        "Rerun the job to finish the dataset.",
    ),
    Defect.MISSING_SHARD: Explanation(
        "A shard that the manifest or the shard numbering lists is missing.",
        "Fetch the shard. To use only the existing shards, list the files or use a glob.",
    ),
    Defect.UNREADABLE_SHARD: Explanation(
        "The operating system cannot read a shard.",
        "Check the permissions of the file and the health of the disk.",
    ),
    Defect.SHARD_SIZE: Explanation(
        "The size of a shard differs from the manifest.",
        f"The shard was truncated, extended or replaced after packing. Fetch it again. {_SALVAGE}",
    ),
    Defect.SHARD_CHECKSUM: Explanation(
        "All records of a shard are intact, but it is not the file that the manifest lists.",
        "The shard was rewritten, or mixed up with another. Fetch the right file.",
    ),
    Defect.RECORD_COUNT: Explanation(
        "The number of records in a shard differs from the manifest.",
        f"The shard was changed after packing. Fetch it again. {_SALVAGE}",
    ),
    Defect.SWAPPED_SHARD: Explanation(
        "A shard has the content that the manifest lists under another name.",
        "Rename the files, or fetch them again.",
    ),
    Defect.COLUMNS: Explanation(
        "A file of columns (`.recordsmith/<shard>.columns`) has other numbers than the records.",
        "`Weighted`, filters and the viewer would use them. Remove the file: it is made again from "
        "the records.",
    ),
    Defect.EXTRA_SHARD: Explanation(
        "A file looks like a shard of this dataset but does not belong to it.",
        "Readers that take all files of the folder also read its records, possibly twice. Move it "
        "to another folder.",
    ),
    Defect.LABELS: Explanation(
        "Files that list the class names disagree.",
        "One of the files was changed after packing. Fetch it again, or rewrite it.",
    ),
    Defect.BROKEN_MANIFEST: Explanation(
        "The manifest is malformed, or contradicts itself or its shards.",
        "Fetch it again. Without it, open the shards by file name or with a glob.",
    ),
    Defect.TRANSIENT_READ: Explanation(
        "The first read returned wrong bytes; a second read past all caches returned the "
        "right ones. The file is intact.",
        "If this happens again, test the memory, cables and disk of this machine.",
    ),
    Defect.CHANGING_SHARD: Explanation(
        "The file changed while it was being read.",
        "Another program is writing the file. Verify it again when that program is done.",
    ),
}
