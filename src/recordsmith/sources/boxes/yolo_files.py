"""Parses the text files of YOLO datasets: `data.yaml`, `obj.data`, lists of names.

Only the YAML that occurs in a `data.yaml` is supported: top-level keys whose values are scalars,
lists in brackets or with dashes, or mappings from numbers to names. Other keys may have any value;
an unsupported value of a needed key is an error with its line.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from recordsmith.dataset.labels import is_label
from recordsmith.errors import SourceError
from recordsmith.sources.files.name_files import Lines, read_lines, read_text
from recordsmith.stores import Location

_SPLIT_KEYS = ("train", "val", "valid", "validation", "test")
_KEY = re.compile(r"""(?P<key>[A-Za-z_][\w-]*|"[^"]*"|'[^']*')\s*:(?:\s+|$)(?P<value>.*)""")
_QUOTE_OR_HASH = re.compile(r"""["'#]""")
_STRINGS = {'"': re.compile(r"""[^"\\]*(?:\\.[^"\\]*)*\""""), "'": re.compile(r"[^']*'")}
"""Opening quote -> the rest of a string."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<mark>[\[\]{},:])|(?P<double>"(?:[^"\\]|\\.)*")|(?P<single>'(?:[^']|'')*')"""
    r"""|(?P<plain>[^\[\]{},:"'\s](?:[^\[\]{},:]|:(?=\S))*))"""
)
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0", "r": "\r"}


class DataFile(NamedTuple):
    """The description of a dataset.

    splits: split -> folders or lists of images.
    names: class number, from 0 -> name; empty if they are in `names_file`.
    base: the folder that paths are relative to; bases: where it may be, relative to the root.
    """

    name: str
    is_yaml: bool
    splits: dict[str, list[str]]
    names: dict[int, str]
    base: str = ""
    names_file: str = ""
    has_keypoints: bool = False
    bases: list[str] = []  # noqa: RUF012 - replaced, never changed


def read_names(location: Location) -> dict[int, str]:
    """Read class names, one per line, numbered from 0; a blank line is a class without a name."""
    return {number - 1: name for number, name in read_lines(location)}


def read_data_file(location: Location, name: str) -> DataFile | None:
    """Read `data.yaml` or `obj.data`; None for a file of another type."""
    is_darknet = name.lower().endswith(".data")
    return _read_darknet(location, name) if is_darknet else _read_yaml(location, name)


def _read_darknet(location: Location, name: str) -> DataFile | None:
    """Lines of `key = value`."""
    values = {}
    for _, line in read_lines(location):
        key, mark, value = line.partition("=")
        if mark and not line.startswith("#"):
            values[key.strip()] = value.strip()
    if "names" not in values:
        return None
    splits = {key: [values[key]] for key in _SPLIT_KEYS if values.get(key)}
    if not splits:
        raise SourceError("no list of images; expected a line train = train.txt", path=name)
    return DataFile(name, False, splits, {}, names_file=values["names"])


def _read_yaml(location: Location, name: str) -> DataFile | None:
    blocks = _blocks(read_text(location))
    if "names" not in blocks or not blocks.keys() & set(_SPLIT_KEYS):
        return None
    values = {
        key: _value(blocks[key], name) for key in ("names", "path", *_SPLIT_KEYS) if key in blocks
    }
    splits = {}
    for key in _SPLIT_KEYS:
        value = values.get(key)
        if isinstance(value, dict):
            raise _unclear(name, blocks[key][0][0], f"{key} is a mapping; expected a path or list")
        if value:
            splits[key] = value if isinstance(value, list) else [value]
    names, base = values["names"], values.get("path", "")
    if isinstance(names, str):
        raise _unclear(name, blocks["names"][0][0], f"names is {names!r}; expected a list")
    return DataFile(
        name,
        True,
        splits,
        dict(enumerate(names)) if isinstance(names, list) else names,
        base if isinstance(base, str) else "",
        has_keypoints="kpt_shape" in blocks,
    )


def _blocks(text: str) -> dict[str, Lines]:
    """Key -> the text after and below it, with line numbers, without comments."""
    blocks: dict[str, Lines] = {}
    here: Lines = []
    for number, raw in enumerate(text.splitlines(), 1):
        if raw.rstrip() in ("---", "..."):  # start and end of a document
            continue
        line = _without_comment(raw).rstrip()
        key = _KEY.match(line)
        if key is not None:
            here = blocks.setdefault(key["key"].strip("\"'"), [])
            here.append((number, key["value"].strip()))
        elif line.strip():
            here.append((number, line))
    return blocks


def _without_comment(line: str) -> str:
    """A line without its comment, which starts at a # after a space and outside strings."""
    position = 0
    unclosed = ""  # quotes without a closing quote on the line
    while match := _QUOTE_OR_HASH.search(line, position):
        mark, position = match[0], match.end()
        if mark == "#":
            if position == 1 or line[position - 2].isspace():
                return line[: position - 1]
        elif mark not in unclosed:
            string = _STRINGS[mark].match(line, position)
            if string is None:
                unclosed += mark
            else:
                position = string.end()
    return line


def _value(lines: Lines, name: str) -> str | list[str] | dict[int, str]:
    """A scalar, a list, or a mapping from numbers."""
    number, first = lines[0]
    rest = lines[1:]
    if first == "{}":
        return {}
    if first[:1] == "[":
        return _flow("\n".join(line for _, line in lines), number, name)
    if not rest or first[:1] in ("|", ">", "&", "*", "!"):
        return "" if first in ("", "~", "null") else _scalar(first, number, name)
    if first:
        raise _unclear(name, rest[0][0], f"unexpected continuation {rest[0][1].strip()!r}")
    if all(line.lstrip().startswith(("- ", "-\t")) for _, line in rest):
        return [_scalar(line.lstrip()[1:].strip(), line_number, name) for line_number, line in rest]
    names: dict[int, str] = {}
    for line_number, line in rest:
        key, _, value = line.strip().partition(":")
        _add(names, key, _scalar(value.strip(), line_number, name), line_number, name)
    return names


def _flow(text: str, line: int, name: str) -> list[str]:
    """A list in brackets, over any number of lines."""
    values: list[str] = []
    is_open, position = False, 0  # `is_open`: a value is expected
    text = text.rstrip()
    while (match := _TOKEN.match(text, position)) is not None:
        kind, position = str(match.lastgroup), match.end()
        if kind != "mark" and is_open:
            values.append(_plain(kind, match[kind]))
        is_expected = match["mark"] in ("[", ",", "]") if kind == "mark" else is_open
        if not is_expected or (match["mark"] == "[") != (match.start() == 0):
            raise _unclear(name, line + text.count("\n", 0, position), "expected a list of names")
        is_open = match["mark"] in ("[", ",")
        if match["mark"] == "]":
            break
    if match is None or position < len(text):
        raise _unclear(name, line + text.count("\n", 0, position), "expected ']' at the end")
    return values


def _add(names: dict[int, str], key: str, value: str, line: int, name: str) -> None:
    """Add the name of a class."""
    key = key.strip("\"' ")
    if not is_label(key) or not value:
        entry = f"{key}: {value}"
        raise _unclear(name, line, f"invalid entry {entry!r}; expected one such as 0: person")
    if int(key) in names:
        raise _unclear(name, line, f"class number {key} occurs twice")
    names[int(key)] = value


def _scalar(text: str, line: int, name: str) -> str:
    match = _TOKEN.fullmatch(text)
    kind = None if match is None else match.lastgroup
    if text[:1] in ("&", "*", "!", "|", ">", "[", "{") or (text[:1] in "\"'" and kind is None):
        raise _unclear(name, line, f"unsupported YAML {text!r}")
    return _plain(kind, text) if kind in ("single", "double") else text


def _plain(kind: str, text: str) -> str:
    if kind == "single":
        return text[1:-1].replace("''", "'")
    if kind == "double":
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1])
    return text.strip()


def _unclear(name: str, line: int, what: str) -> SourceError:
    return SourceError(
        what,
        path=name,
        line=line,
        remedy="Use values on one line, lists as [a, b] or with dashes, and mappings of numbers to "
        "names.",
    )
