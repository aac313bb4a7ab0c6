"""Limits the memory for the content of small files, which can repeat without taking bytes."""

from __future__ import annotations

from recordsmith.support.errors import CorruptDataError, Defect
from recordsmith.support.words import size as format_size

MIN_LIMIT_BYTES = 1 << 27
BYTES_PER_BYTE = 32


class MemoryLimit:
    """Counts the bytes that the content of some files takes in memory.

    The limit is MIN_LIMIT_BYTES, or BYTES_PER_BYTE for each byte of the files if that is more.
    """

    def __init__(self) -> None:
        self._file_bytes = self._taken_bytes = 0

    def add_file(self, size_bytes: int) -> None:
        self._file_bytes += size_bytes

    def take(self, size_bytes: int, content: str, feature: str | None = None) -> None:
        """Count bytes, before they are allocated where their number is known.

        Args:
            content: what takes them, for the error.
            feature: the same.

        Raises:
            CorruptDataError: all content takes more than the limit.
        """
        self._taken_bytes += size_bytes
        limit = max(MIN_LIMIT_BYTES, BYTES_PER_BYTE * self._file_bytes)
        if self._taken_bytes > limit:
            raise CorruptDataError(
                Defect.DECOMPRESSION_LIMIT,
                f"{content} takes too much memory for files of {format_size(self._file_bytes)}",
                found=f"at least {format_size(self._taken_bytes)}",
                expected=f"at most {format_size(limit)}",
                remedy="If the files are intact, divide long episodes and row groups.",
                feature=feature,
            )
