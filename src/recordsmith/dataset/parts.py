"""Cuts a dataset into parts that other processes read, each on its own."""

from __future__ import annotations

from collections.abc import Iterator

from recordsmith.dataset.dataset import Dataset, of_one_shard, records_of
from recordsmith.dataset.selected_records import AnyShard, SelectedRecords, ShardPart
from recordsmith.dataset.shard_sequence import ShardSequence
from recordsmith.errors import OptionError
from recordsmith.words import parse_size

DEFAULT_PART_BYTES = 128 << 20


def parts_of(dataset: Dataset, part_bytes: int | str = DEFAULT_PART_BYTES) -> list[Dataset]:
    """Cut a dataset into parts, in the order of its records.

    Each part is a Dataset of one shard, or of records in a row of a large uncompressed shard. It
    has the columns of the whole dataset, and another process that unpickles it reads it without
    listing a folder or reading a manifest. Record counts that are unknown are found out only for
    large shards.

    Args:
        part_bytes: the size from which a shard is cut, such as "64MB", and the most bytes of a
            part, if records are of equal size.

    Raises:
        OptionError: the size is invalid, or the records are not in the order of the files.

    Example:
        >>> import recordsmith as rs
        >>> with rs.ShardWriter("rows.tfrecord") as writer:
        ...     writer.write_columns({"x": [1, 2, 3]})
        >>> [len(part) for part in parts_of(rs.open("rows.tfrecord"), "32B")]
        [1, 1, 1]
    """
    most = parse_size(part_bytes) if isinstance(part_bytes, str) else part_bytes
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise OptionError(
            option="part_bytes", value=part_bytes, expected="a size such as 64MB or 1GiB"
        )
    return [_as_dataset(dataset, part) for part in shard_parts(records_of(dataset), most)]


def shard_parts(records: SelectedRecords, most: int) -> Iterator[AnyShard]:
    """Yield the shards of records, and large ones in parts of at most so many bytes, in order.

    Raises:
        OptionError: as `parts_of`.
    """
    if not records.positions.is_ascending:
        raise OptionError(
            "the records are not in the order of their files, so they have no parts",
            option="dataset",
            remedy="Pass the dataset before it was shuffled, and shuffle what is read.",
        )
    for part in records.parts():
        yield from _cut(part, most)


def _cut(part: AnyShard, most: int) -> Iterator[AnyShard]:
    shard = part.shard if isinstance(part, ShardPart) else part
    size = shard.size_bytes if shard.compression == "none" else 0
    if part is shard and size <= most:
        yield shard
        return
    numbers = part.numbers()
    count = len(numbers)
    pieces = min(count, -(-size * count // (most * max(1, shard.record_count)))) or 1
    for piece in range(pieces):
        own = numbers[count * piece // pieces : count * (piece + 1) // pieces]
        yield ShardPart(ShardSequence([shard]), shard, 0, own)


def _as_dataset(dataset: Dataset, part: AnyShard) -> Dataset:
    """Return the records of a part as a Dataset with the columns of the whole."""
    if not isinstance(part, ShardPart):
        return of_one_shard(dataset, part.portable())
    numbers = part.numbers()
    records = of_one_shard(dataset, part.shard.portable(int(numbers[0]) if len(numbers) else 0))
    if isinstance(numbers, range):
        return records[numbers.start : numbers.stop : numbers.step]
    return records.select(numbers)
