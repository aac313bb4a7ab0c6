"""`recordsmith.reader_code`: a program that reads these files with a framework's own means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from recordsmith.dataset.locate import Paths
from recordsmith.errors import OptionError, names_like
from recordsmith.files import Progress
from recordsmith.readers import dali, grain, tensorflow, torch
from recordsmith.readers.description import Description, describe

Reader = Literal["tf", "torch", "dali", "grain"]
READERS = get_args(Reader)

_WRITERS: dict[str, Callable[[Description], str]] = {
    "tf": tensorflow.program,
    "torch": torch.program,
    "dali": dali.program,
    "grain": grain.program,
}
_OTHER_PAYLOADS = {
    "ELWC": "ranking lists (ELWC)",
    "Event": "TensorBoard events",
    "mixed": "of several kinds",
    "none": "none at all",
    "other": "no Examples",
}


def reader_code(
    paths: Paths, reader: Reader, split: str | None = None, *, progress: Progress | None = None
) -> str:
    """Write a program that reads these files: each feature with its kind and shape, pictures
    decoded. It prints what is in the first batch or example.

    Args:
        paths: a file, folder, glob or a list of these; the program has them as they are given.
        reader: tf, in plain TensorFlow; torch and grain, with recordsmith's adapters; dali, in
            plain DALI, with the files that `index(paths, format="dali")` makes.
        split: only this one.
        progress: told the bytes read and in all.

    Returns:
        Python, ready to be pasted. Nothing that comes out of the files can become code in it.

    Raises:
        OptionError: there is no such reader; the records are not what it reads; the shards are
            compressed in a way that it cannot read.
        CorruptDataError, FileAccessError: as of `inspect`.
    """
    if reader not in _WRITERS:
        raise OptionError(
            f"reader is {reader!r:.60}; {names_like(str(reader), READERS, 'there is none')}"
        )
    description = describe(paths, split, progress)
    payload = description.payload
    if payload not in ("Example", "SequenceExample"):
        raise OptionError(
            f"the records of {description.name} are {_OTHER_PAYLOADS[payload]}; code is written "
            "for Examples and, with the reader tf, for SequenceExamples"
        )
    if payload == "SequenceExample" and reader != "tf":
        raise OptionError(
            f"the records of {description.name} are SequenceExamples, which {reader} does not "
            "read; the reader tf does, and so does recordsmith.open()"
        )
    if not any(description.sections.values()):
        raise OptionError(f"the records of {description.name} have no features")
    return _WRITERS[reader](description)
