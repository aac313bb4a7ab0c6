"""Values of options, from what a user types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias

import typer

from recordsmith.errors import OptionError

WHICH, SHARDS = "Which records", "Shards"
"""Panels of the help that several commands have."""

Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document, for programs.")
]
Split: TypeAlias = Annotated[
    str | None, typer.Option("--split", help="Only this split. [default: all]", metavar="NAME")
]
Paths: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        help="TFRecord files, a folder of them, or a glob.",
        metavar="PATH",
        show_default=False,
    ),
]
OnePath: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="A TFRecord file, a folder of them, or a glob.", metavar="PATH", show_default=False
    ),
]
Out: TypeAlias = Annotated[
    str,
    typer.Argument(help="The folder of the new dataset.", metavar="OUT", show_default=False),
]
Overwrite: TypeAlias = Annotated[
    bool, typer.Option("--overwrite", help="Replace the dataset that is there.")
]
KeptCompression: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--compression",
        help="none, gzip or zlib. [default: as it was, if all files are alike]",
        metavar="NAME",
        rich_help_panel=SHARDS,
    ),
]
Threads: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--threads",
        help="How many shards at once. [default: as many as processors]",
        min=1,
        metavar="N",
    ),
]
WritingThreads: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--threads",
        help="How many shards at once. [default: as many as processors, at most 8]",
        min=1,
        metavar="N",
    ),
]

Where: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--where",
        help='Only records for which this holds, such as "image/class/label in (1, 2)".',
        metavar="CONDITION",
        rich_help_panel=WHICH,
    ),
]


def shards_option(panel: str, default: str | None = None) -> Any:
    """--shards, which `shard_options` reads."""
    words = "How many shards each split has, such as 8 or train=8,validation=2."
    return typer.Option(
        "--shards", help=_with_default(words, default), metavar="N", rich_help_panel=panel
    )


def shard_size_option(panel: str, default: str | None = "256MB") -> Any:
    """--shard-size, which `shard_options` reads."""
    words = "About how large a shard shall be instead, before compression."
    return typer.Option(
        "--shard-size", help=_with_default(words, default), metavar="SIZE", rich_help_panel=panel
    )


def shard_names_option(panel: str) -> Any:
    """--shard-names, of all commands that name new shards."""
    words = "Template of their names."
    return typer.Option(
        "--shard-names",
        help=_with_default(words, "{split}-{shard:05d}-of-{shards:05d}"),
        metavar="TEMPLATE",
        rich_help_panel=panel,
    )


def _with_default(words: str, default: str | None) -> str:
    return words if default is None else f"{words} [default: {default}]"


_SIZE = re.compile(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
_RANGE = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?", re.ASCII)
_MOST_NUMBERS = 1_000_000
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_size(text: str, option: str) -> int:
    """256MB, 1.5 GiB, 500000 -> bytes."""
    match = _SIZE.fullmatch(text)
    if match is None or (match[3] and not match[2]):
        raise OptionError(f"{option} is {text!r}; expected a size such as 256MB or 1GiB")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2].lower()])


def parse_share(text: str, option: str) -> float:
    """10% or 0.1 -> a share."""
    text = text.strip()
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise OptionError(f"{option} is {text!r}; expected a share such as 10% or 0.1") from None


def parse_shares(text: str, option: str) -> dict[str, float]:
    """train=0.7,validation=0.3 -> the share of each split."""
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = (piece.strip() for piece in part.partition("="))
        if name in shares:
            raise OptionError(f"{option} names {name!r} twice")
        if not name:
            raise _not_shares(text, option)
        try:
            shares[name] = parse_share(share, option)
        except OptionError:
            raise _not_shares(text, option) from None
    return shares


def parse_counts(text: str, option: str) -> int | dict[str, int]:
    """8, or train=8,validation=2 -> the number of each split."""
    if "=" not in text:
        parts = {"": text}
    else:
        parts = {
            name.strip(): number
            for name, _, number in (part.partition("=") for part in text.split(","))
        }
    try:
        counts = {name: int(number) for name, number in parts.items()}
    except ValueError:
        raise OptionError(
            f"{option} is {text!r}; expected a number, or one for each split such as "
            "train=8,validation=2"
        ) from None
    return counts.get("", counts)


def shard_options(shards: str | None, shard_size: str | None) -> dict[str, Any]:
    """What --shards and --shard-size say, as the functions take it; None for what is not said."""
    if shards is not None and shard_size is not None:
        raise OptionError("give --shards or --shard-size, not both")
    return {
        "shards": None if shards is None else parse_counts(shards, "--shards"),
        "shard_size_bytes": None if shard_size is None else parse_size(shard_size, "--shard-size"),
    }


def parse_keys(text: str, option: str) -> str | dict[str, str | None]:
    """The name of a preset, or OLD=NEW,OLD= -> new names by old ones, None to leave one out."""
    if "=" not in text:
        return text
    keys: dict[str, str | None] = {}
    for part in text.split(","):
        old, equals, new = (piece.strip() for piece in part.partition("="))
        if not old or not equals:
            raise OptionError(
                f"{option} is {text!r}; expected a preset, or new names such as "
                "image/encoded=image,image/filename="
            )
        keys[old] = new or None
    return keys


def parse_pairs(texts: Iterable[str], option: str, form: str) -> dict[str, str]:
    """KEY=VALUE, several times -> values by key; the first = counts."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals or not value:
            raise OptionError(f"{option} is {text!r:.80}; expected {form}")
        if key in pairs:
            raise OptionError(f"{option} names {key!r} twice")
        pairs[key] = value
    return pairs


def parse_value(text: str, where: str) -> Any:
    """3, 0.5, [1,2] and "3" as JSON has them; whatever else -> the text itself.

    Raises:
        OptionError: it is JSON that no feature can hold, such as an object; `where` begins it.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text
    items = value if isinstance(value, list) else [value]
    if all(type(item) in (int, float, str) for item in items):
        return value
    if not isinstance(value, (dict, list)):
        return text  # true, false, null are words like any others
    what = "an object" if isinstance(value, dict) else "a list of other things"
    quoted = json.dumps(text, ensure_ascii=False)
    raise OptionError(
        f"{where} is {what}, which no feature can be; expected a number, text, or a list of these. "
        f"To store it as text, put it in quotes: {quoted:.200}"
    )


def _no_constant(name: str) -> None:
    raise ValueError(name)


def parse_colour(text: str, option: str) -> tuple[int, int, int]:
    """White, black or #rrggbb -> red, green, blue."""
    known = {"white": "#ffffff", "black": "#000000"}.get(text.lower(), text)
    if not re.fullmatch("#[0-9a-fA-F]{6}", known):
        raise OptionError(f"{option} is {text!r}; expected white, black or #rrggbb")
    red, green, blue = bytes.fromhex(known[1:])
    return red, green, blue


def parse_numbers(text: str, option: str) -> list[int]:
    """3, or 0,2,5-9 -> the numbers."""
    numbers: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise OptionError(f"{option} is {text!r:.80}; expected numbers such as 3 or 0,2,5-9")
        if last - first > _MOST_NUMBERS:
            raise OptionError(f"{option} is {text!r:.80}; expected a million numbers at most")
        numbers += range(first, last + 1)
    return numbers


def _not_shares(text: str, option: str) -> OptionError:
    return OptionError(
        f"{option} is {text!r}; expected shares that add up to 1, such as train=0.7,validation=0.3"
    )


def one_or_all(paths: list[str]) -> str | list[str]:
    """One path as itself: a folder with a manifest is more than a list of its shards."""
    return paths[0] if len(paths) == 1 else paths
