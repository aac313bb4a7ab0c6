"""Options that several commands share, and parsing of their values."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import typer

import recordsmith as rs
from recordsmith import words
from recordsmith.cli.wording import show_command
from recordsmith.errors import OptionError, option

if TYPE_CHECKING:
    from recordsmith.dataset import Dataset

WHICH, SHARDS = "Which records", "Shards"
"""Panels of the help that several commands share."""

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Split: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--split",
        help="Only this split, or part of one: train, train[:80%]. [default: all]",
        metavar="SPLIT",
        rich_help_panel=WHICH,
    ),
]
SplitName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--split", help="Only this split. [default: all]", metavar="SPLIT", rich_help_panel=WHICH
    ),
]
Paths: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        help="TFRecord files, folders, or quoted patterns such as 'data/*.tfrecord'.",
        metavar="PATH",
        show_default=False,
    ),
]
OnePath: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="One TFRecord file or folder; for several files, a quoted pattern such as "
        "'data/*.tfrecord'.",
        metavar="PATH",
        show_default=False,
    ),
]
Out: TypeAlias = Annotated[
    str,
    typer.Argument(help="The folder of the new dataset.", metavar="OUT", show_default=False),
]
Overwrite: TypeAlias = Annotated[
    bool, typer.Option("--overwrite", help="Replace OUT if it exists.")
]
KeptCompression: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--compression",
        help="Compression of the shards: none, gzip or zlib. [default: as in PATH]",
        metavar="NAME",
        rich_help_panel=SHARDS,
    ),
]
Threads: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--threads",
        help="Number of threads. [default: one per processor]",
        min=1,
        metavar="N",
    ),
]
WritingThreads: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--threads",
        help="Number of threads. [default: one per processor, at most 8]",
        min=1,
        metavar="N",
    ),
]

EngineName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help=(
            "What runs the job: processes:4, or a cluster: ray:auto, dask:ADDRESS, spark:MASTER, "
            "beam:RUNNER. [default: threads of this process]"
        ),
        metavar="ENGINE",
    ),
]

At: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--at",
        help="Only the records at these positions, such as 9 or 143,10-20.",
        metavar="POSITIONS",
        rich_help_panel=WHICH,
    ),
]
Where: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--where",
        help="Only records that match, such as 'image/class/label in (1, 2)'.",
        metavar="CONDITION",
        rich_help_panel=WHICH,
    ),
]


Html: TypeAlias = Annotated[
    str | None,
    typer.Option("--html", help="Also write the report as an HTML page.", metavar="FILE"),
]
OverwritePage: TypeAlias = Annotated[
    bool, typer.Option("--overwrite", help="Replace FILE if it exists.")
]


def shards_option(panel: str, default: str | None = None) -> Any:
    """Return --shards, which `shard_options` parses."""
    text = "Number of shards of each split, such as 8 or train=8,validation=2."
    return typer.Option(
        "--shards", help=_with_default(text, default), metavar="N", rich_help_panel=panel
    )


def shard_size_option(panel: str, default: str | None = "256MB") -> Any:
    """Return --shard-size, which `shard_options` parses."""
    text = "Approximate size of a shard before compression, instead of --shards."
    return typer.Option(
        "--shard-size", help=_with_default(text, default), metavar="SIZE", rich_help_panel=panel
    )


def shard_names_option(panel: str) -> Any:
    """Return --shard-names."""
    text = "Pattern of the shard names."
    return typer.Option(
        "--shard-names",
        help=_with_default(text, "{split}-{shard:05d}-of-{shards:05d}"),
        metavar="TEMPLATE",
        rich_help_panel=panel,
    )


def _with_default(text: str, default: str | None) -> str:
    return text if default is None else f"{text} [default: {default}]"


_RANGE = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?", re.ASCII)
_MOST_NUMBERS = 1_000_000


def parse_size(text: str, name: str) -> int:
    """Parse 256MB, 1.5 GiB or 500000 as a number of bytes.

    Args:
        text: the value, as typed.
        name: of the option in Python, for errors. The same holds for the functions below.
    """
    size_bytes = words.parse_size(text)
    if size_bytes is None:
        raise OptionError(option=name, value=text, expected="a size such as 256MB or 1GiB")
    return size_bytes


def parse_share(text: str, name: str) -> float:
    """Parse 10% or 0.1 as a share."""
    text = text.strip()
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise OptionError(option=name, value=text, expected="a share such as 10% or 0.1") from None


def parse_shares(text: str, name: str) -> dict[str, float]:
    """Parse train=0.7,validation=0.3 as the share of each split."""
    invalid = OptionError(
        option=name,
        value=text,
        expected="shares that add up to 1, such as train=0.7,validation=0.3",
    )
    shares: dict[str, float] = {}
    for part in text.split(","):
        split, _, share = (piece.strip() for piece in part.partition("="))
        if split in shares:
            raise _repeated(name, text, split)
        if not split:
            raise invalid
        try:
            shares[split] = parse_share(share, name)
        except OptionError:
            raise invalid from None
    return shares


def parse_names(text: str) -> list[str]:
    """Parse train,test as names."""
    return [name.strip() for name in text.split(",") if name.strip()]


def parse_counts(text: str, name: str) -> int | dict[str, int]:
    """Parse 8, or train=8,validation=2, as the number for each split."""
    if "=" not in text:
        parts = {"": text}
    else:
        parts = {
            split.strip(): number
            for split, _, number in (part.partition("=") for part in text.split(","))
        }
    try:
        counts = {split: int(number) for split, number in parts.items()}
    except ValueError:
        raise OptionError(
            option=name,
            value=text,
            expected="a number, or one for each split such as train=8,validation=2",
        ) from None
    return counts.get("", counts)


def shard_options(shards: str | None, shard_size: str | None) -> dict[str, Any]:
    """Return --shards and --shard-size as the functions take them; None for missing ones."""
    if shards is not None and shard_size is not None:
        raise OptionError(
            f"{option('shards')} and {option('shard_size_bytes')} exclude each other",
            option="shards",
            remedy="Pass only one of them.",
        )
    return {
        "shards": None if shards is None else parse_counts(shards, "shards"),
        "shard_size_bytes": (
            None if shard_size is None else parse_size(shard_size, "shard_size_bytes")
        ),
    }


def parse_keys(text: str, name: str) -> str | dict[str, str | None]:
    """Parse the name of a preset, or OLD=NEW,OLD= as new names by old ones; None drops one."""
    if "=" not in text:
        return text
    keys: dict[str, str | None] = {}
    for part in text.split(","):
        old, equals, new = (piece.strip() for piece in part.partition("="))
        if not old or not equals:
            raise OptionError(
                option=name,
                value=text,
                expected="a preset, or new names such as image/encoded=image,image/filename=",
            )
        keys[old] = new or None
    return keys


def parse_pairs(texts: Iterable[str], name: str, form: str) -> dict[str, str]:
    """Parse KEY=VALUE, which may be repeated, as values by key; the first = separates them."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals or not value:
            raise OptionError(option=name, value=text, expected=form)
        if key in pairs:
            raise _repeated(name, text, key)
        pairs[key] = value
    return pairs


def parse_value(text: str, name: str, key: str) -> Any:
    """Parse 3, 0.5, [1,2] and "3" as JSON; other text is the value itself.

    Raises:
        OptionError: the JSON is not a valid feature, such as an object.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text
    items = value if isinstance(value, list) else [value]
    if all(type(item) in (int, float, str) for item in items):
        return value
    if not isinstance(value, (dict, list)):
        return text  # true, false and null are text
    what = "an object" if isinstance(value, dict) else "a list of other values"
    quoted = json.dumps(text, ensure_ascii=False)
    raise OptionError(
        f"{option(name)} {key} is {what}",
        option=name,
        value=text,
        expected="a number, text, or a list of these",
        remedy=f"To store it as text, put it in quotes: {quoted:.200}",
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def parse_colour(text: str, name: str) -> tuple[int, int, int]:
    """Parse white, black or #rrggbb as red, green and blue."""
    known = {"white": "#ffffff", "black": "#000000"}.get(text.lower(), text)
    if not re.fullmatch("#[0-9a-fA-F]{6}", known):
        raise OptionError(option=name, value=text, expected="white, black or #rrggbb")
    red, green, blue = bytes.fromhex(known[1:])
    return red, green, blue


def parse_numbers(text: str, name: str) -> list[int]:
    """Parse 3, or 0,2,5-9, as numbers."""
    numbers: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise OptionError(option=name, value=text, expected="numbers such as 3 or 0,2,5-9")
        if last - first > _MOST_NUMBERS:
            raise OptionError(option=name, value=text, expected="at most a million numbers")
        numbers += range(first, last + 1)
    return numbers


def _repeated(name: str, text: str, repeated: str) -> OptionError:
    return OptionError(f"{option(name)} contains {repeated!r} twice", option=name, value=text)


class ChosenRecords(NamedTuple):
    """The records that the options choose.

    dataset: these records.
    positions: their positions in the dataset as opened, in order.
    """

    dataset: Dataset
    positions: Sequence[int]

    def command(self, paths: Sequence[str], split: str | None, places: Sequence[int]) -> str:
        """Return the command that shows the records at some places of `dataset`.

        Args:
            paths, split: as typed.
        """
        return show_command(paths, [self.positions[place] for place in places], split)


def chosen_records(
    paths: str | list[str], split: str | None, at: str | None, where: str | None
) -> ChosenRecords:
    """Open paths and apply --at and --where; positions count in the dataset as opened.

    Raises:
        OptionError: a position is not below the number of records, or both options are given.
    """
    if at is not None and where is not None:
        raise OptionError(
            f"{option('at')} and {option('where')} exclude each other",
            option="at",
            remedy="Pass only one of them.",
        )
    opened = rs.open(paths, split)
    if where is not None:
        found = opened.filter(where)
        return ChosenRecords(found, _positions_in(opened, found))
    if at is None:
        return ChosenRecords(opened, range(sys.maxsize))
    positions = sorted({*parse_numbers(at, "at")})
    count = len(opened)
    if positions[-1] >= count:
        of_split = "" if split is None else f" in {split}"
        raise OptionError(
            f"there is no record {positions[-1]:,}{of_split}",
            option="at",
            value=at,
            expected=f"positions from 0 to {count - 1:,}" if count else "a dataset with records",
        )
    return ChosenRecords(opened.select(positions), positions)


def _positions_in(opened: Dataset, found: Dataset) -> list[int]:
    """Return the places in `opened` of the records of `found`, which is selected from it."""
    import numpy as np

    from recordsmith.dataset import records_of

    positions, whole = records_of(found).positions.all(), records_of(opened).positions
    if not whole.is_everything:
        known = whole.all()
        order = np.argsort(known)
        positions = order[np.searchsorted(known, positions, sorter=order)]
    return list(map(int, positions))


def one_or_all(paths: list[str]) -> str | list[str]:
    """Return a single path as a string: a folder with a manifest is more than its shards."""
    return paths[0] if len(paths) == 1 else paths


def check_html(path: str | None, *, overwrite: bool) -> None:
    """Raise before the work begins if the page cannot be written."""
    if path is None:
        if overwrite:
            raise OptionError(f"{option('overwrite')} needs {option('html')}", option="overwrite")
        return
    from recordsmith.drawing.html_page import check_html_path  # NumPy only when needed
    from recordsmith.stores import as_location

    check_html_path(as_location(path), overwrite=overwrite)


def title_of(paths: list[str]) -> str:
    """Return the title of a page about these paths."""
    first = paths[0]
    if not PurePath(first).name:  # such as `.`
        from recordsmith.stores import as_folder

        first = as_folder(first).identity.rpartition("/")[2] or first
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1:,} more"
