"""What does the name of a defect mean, and what to do? A sentence or two for each, for people."""

from __future__ import annotations

from typing import NamedTuple

from recordsmith.errors import Defect


class Explanation(NamedTuple):
    """What a defect is, and what helps."""

    meaning: str
    advice: str


_FETCH = "Fetch the file again and compare its size and checksum with those where it came from."
_SALVAGE = "If there is no other copy, `recordsmith salvage` rescues every intact record."

_WORDS: dict[Defect, Explanation] = {
    Defect.TRUNCATED_HEADER: Explanation(
        "The file ends inside of the first 12 bytes of a record.",
        f"Its writer was stopped, or a copy was. {_FETCH} {_SALVAGE}",
    ),
    Defect.TRUNCATED_PAYLOAD: Explanation(
        "The file ends before a record does.",
        f"Its writer was stopped, or a copy was. {_FETCH} {_SALVAGE}",
    ),
    Defect.LENGTH_CRC: Explanation(
        "The length of a record does not match its checksum, so nobody knows where the next record "
        "begins: readers stop here, and the records behind it were not looked at.",
        f"{_FETCH} {_SALVAGE}",
    ),
    Defect.PAYLOAD_CRC: Explanation(
        "At least one bit of a record changed after it was written. The records around it are not "
        "concerned.",
        f"{_FETCH} {_SALVAGE}",
    ),
    Defect.NOT_A_TFRECORD: Explanation(
        "The file is something else, whatever its name says.",
        "The line says what it is and what to do with it.",
    ),
    Defect.EMPTY_FILE: Explanation(
        "The file has no bytes at all.",
        "Its writer was stopped before it wrote anything, or a copy failed. Fetch it again.",
    ),
    Defect.BROKEN_COMPRESSION: Explanation(
        "The compressed data cannot be decompressed from some byte on.",
        f"{_FETCH} {_SALVAGE}",
    ),
    Defect.TRUNCATED_COMPRESSION: Explanation(
        "The compressed data ends without its end mark: records may be missing, though those that "
        "are there are intact.",
        f"Its writer was not closed, or the file was cut. {_FETCH} {_SALVAGE}",
    ),
    Defect.DECOMPRESSION_LIMIT: Explanation(
        "More came out of a compressed file than the cap allows: it may be a decompression bomb.",
        "If you trust the file, unpack it with another tool and verify what comes out.",
    ),
    Defect.MALFORMED_EXAMPLE: Explanation(
        "The checksum of a record is right, but its payload does not hold together as an Example.",
        "It was written like this: mend the program that wrote it, and leave the record out.",
    ),
    Defect.NOT_AN_EXAMPLE: Explanation(
        "A record, or every record of a shard, is another message than the others are.",
        "Find out which program wrote it. A shard that belongs to another dataset is moved away; "
        "single records of one that belongs here, leave out.",
    ),
    Defect.MISSING_FEATURE: Explanation(
        "A record lacks a feature that it must have.",
        "Mend the program that wrote it, or declare the feature optional with a default.",
    ),
    Defect.FEATURE_KIND: Explanation(
        "A feature is of another kind (bytes, float or int64) than elsewhere. Readers that declare "
        "one kind fail at such records.",
        "Write these records again with one kind for all.",
    ),
    Defect.FEATURE_SHAPE: Explanation(
        "A feature has another number of values than it should have.",
        "Mend these records, or declare the feature as one of variable length.",
    ),
    Defect.FEATURE_VALUE: Explanation(
        "A value of a feature is none that it can be.",
        "Mend these records, or the rule that they are held against.",
    ),
    Defect.UNEXPECTED_FEATURE: Explanation(
        "A record has a feature that the schema does not know.",
        "It may come from another dataset, or the schema is older than the records.",
    ),
    Defect.UNREADABLE_IMAGE: Explanation(
        "A picture cannot be decoded. As its record's checksum is right, it was packed like this.",
        "Fetch or mend the original, and pack again; or leave the record out.",
    ),
    Defect.IMAGE_SIZE: Explanation(
        "A picture has not the height, width or channels that its record tells.",
        "Boxes and masks may be misplaced. Pack again with sizes read from the pictures.",
    ),
    Defect.IMAGE_FORMAT: Explanation(
        "A picture is in another format than its record tells, as a PNG file named .jpg is.",
        "Readers that choose their decoder by it fail. Pack again with formats read from the "
        "pictures.",
    ),
    Defect.UNFINISHED_DATASET: Explanation(
        "A job was stopped before all files had their names, or is still at work.",
        "Run the same job again: it finishes the dataset.",
    ),
    Defect.MISSING_SHARD: Explanation(
        "A shard that the manifest or the numbering promises is not there.",
        "Fetch it. To use what is there, name the files or use a glob.",
    ),
    Defect.UNREADABLE_SHARD: Explanation(
        "The operating system cannot read a shard.",
        "Look at its permissions and at the health of the disk.",
    ),
    Defect.SHARD_SIZE: Explanation(
        "A shard has not the size that its manifest says.",
        f"It was cut, grown or replaced after it was packed. Fetch it again. {_SALVAGE}",
    ),
    Defect.SHARD_CHECKSUM: Explanation(
        "All records of a shard are intact, but it is not the file that its manifest lists.",
        "It was written anew or mixed up with another. Fetch the one that belongs there.",
    ),
    Defect.RECORD_COUNT: Explanation(
        "A shard has not as many records as its manifest says.",
        f"It was changed after it was packed. Fetch it again. {_SALVAGE}",
    ),
    Defect.SWAPPED_SHARD: Explanation(
        "A shard holds what the manifest lists under another name.",
        "Give the files their names, or fetch them again.",
    ),
    Defect.EXTRA_SHARD: Explanation(
        "A file looks like a shard of this dataset, and is none.",
        "Readers that take all files of the folder get its records too, maybe twice. Move it away.",
    ),
    Defect.LABELS: Explanation(
        "Files that name the classes disagree.",
        "One of them was changed after packing. Fetch it again, or write it anew.",
    ),
    Defect.BROKEN_MANIFEST: Explanation(
        "The manifest cannot be understood, or contradicts itself or its shards.",
        "Fetch it again; without it the shards can be opened by name or with a glob.",
    ),
    Defect.TRANSIENT_READ: Explanation(
        "Bytes were wrong when they were read, and right when they were read once more past the "
        "system's memory. The file is good.",
        "If it comes again, test the memory, the cables and the disk of this machine.",
    ),
    Defect.CHANGING_SHARD: Explanation(
        "The file changed while it was read.",
        "Another program is writing it. Verify it again when that is done.",
    ),
}


def explain(name: str | Defect) -> Explanation:
    """What a defect means and what to do about it."""
    return _WORDS[Defect(name)]
