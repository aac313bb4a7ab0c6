"""`recordsmith.reader_code`: generate a program that reads a dataset with a framework."""

from __future__ import annotations

from typing import Literal, get_args

from recordsmith.dataset.locate import Paths
from recordsmith.errors import OptionError
from recordsmith.examining.shard_summaries import PAYLOADS
from recordsmith.readers import programs
from recordsmith.readers.description import describe
from recordsmith.words import did_you_mean
from recordsmith.work import Progress

Reader = Literal["tf", "torch", "dali", "grain"]
READERS = get_args(Reader)

_PROGRAMS = {
    "tf": programs.tensorflow,
    "torch": programs.torch,
    "dali": programs.dali,
    "grain": programs.grain,
}
_NEED_RANDOM_ACCESS = ("dali", "grain", "torch")


def reader_code(
    paths: Paths, reader: Reader, split: str | None = None, *, progress: Progress | None = None
) -> str:
    """Generate a program that reads a dataset and prints its first batch or example.

    Args:
        paths: a file, folder, glob or a list of these; the program contains them unchanged.
        reader: tf for plain TensorFlow; torch or grain with recordsmith's adapters; dali for plain
            DALI, with the index files of `index(paths, format="dali")`.
        split: read only this split.
        progress: called as `progress(done, total)` with bytes.

    Returns:
        Python source. Text from the files is always quoted, so it cannot become code.

    Raises:
        OptionError: the reader is unknown, or cannot read these records or this compression.
        CorruptDataError, FileAccessError: as for `inspect`.
    """
    if reader not in _PROGRAMS:
        raise OptionError(
            option="reader",
            value=reader,
            expected=f"one of {', '.join(READERS)}",
            remedy=did_you_mean(str(reader), READERS),
        )
    description = describe(paths, split, progress)
    payload = description.payload
    if payload not in ("Example", "SequenceExample", "none"):
        raise OptionError(
            f"the records of {description.name} are {PAYLOADS[payload][1]}",
            expected="Examples, or SequenceExamples with the reader tf",
        )
    if payload == "SequenceExample" and reader != "tf":
        raise OptionError(
            f"the records of {description.name} are SequenceExamples, which the reader {reader} "
            "does not support",
            option="reader",
            value=reader,
            remedy="Use the reader tf, or recordsmith.open.",
        )
    if not any(description.sections.values()):
        raise OptionError(f"the records of {description.name} have no features")
    if reader in _NEED_RANDOM_ACCESS and description.compression != "none":
        raise OptionError(
            f"{description.name} is compressed with {description.compression}, but {reader} needs "
            "random access",
            remedy="Write others with `recordsmith reshard PATH OUT --compression none`.",
        )
    return _PROGRAMS[reader](description)
