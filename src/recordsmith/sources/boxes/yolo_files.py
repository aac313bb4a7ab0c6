"""Parses the descriptions of YOLO datasets: `data.yaml` and `obj.data`."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from recordsmith.dataset import is_label
from recordsmith.sources.boxes.yolo_rows import Keypoints, parse_kpt_shape
from recordsmith.sources.files.name_files import decode_text, read_lines
from recordsmith.stores import Location, read_document
from recordsmith.support.errors import OptionError, SourceError

MAX_YAML_CHARACTERS = 1 << 18
"""Of a `data.yaml`: a parsed character takes microseconds and some hundred bytes."""

_SPLIT_KEYS = ("train", "val", "valid", "validation", "test")
_NAMES_KEY = re.compile(r"^[\"']?names[\"']?\s*:", re.MULTILINE)
_SPLIT_KEY = re.compile(rf"^[\"']?({'|'.join(_SPLIT_KEYS)})[\"']?\s*:", re.MULTILINE)


def is_yaml_description(text: str) -> bool:
    """Whether a YAML file has the top-level keys of a dataset."""
    text = text.removeprefix("\ufeff")
    return _NAMES_KEY.search(text) is not None and _SPLIT_KEY.search(text) is not None


class DataFile(NamedTuple):
    """The description of a dataset.

    splits: split -> folders or lists of images.
    names: class number, from 0 -> name; empty if they are in `names_file`.
    base: the folder that paths are relative to.
    keypoints: of the objects; None if the description does not mention them.
    """

    name: str
    is_yaml: bool
    splits: dict[str, list[str]]
    names: dict[int, str]
    base: str = ""
    names_file: str = ""
    keypoints: Keypoints | None = None


def read_data_file(location: Location, name: str, encoding: str | None = None) -> DataFile | None:
    """Read `data.yaml` or `obj.data`; None for a file of another type."""
    is_darknet = name.lower().endswith(".data")
    return _read_darknet(location, name) if is_darknet else _read_yaml(location, name, encoding)


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


def _read_yaml(location: Location, name: str, encoding: str | None) -> DataFile | None:
    from recordsmith.support.libraries import yaml

    data, encoding = read_document(location), encoding or "utf-8"
    if not is_yaml_description(decode_text(data, name, encoding, "replace")):
        return None
    text = decode_text(data, name, encoding)
    if len(text) > MAX_YAML_CHARACTERS:
        raise SourceError(f"more than {MAX_YAML_CHARACTERS:,} characters", path=name)
    try:
        root = yaml.compose(text, yaml.BaseLoader)  # all scalars are texts, and nothing is created
    except (yaml.YAMLError, RecursionError) as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        line = None if mark is None else mark.line + 1
        raise SourceError(f"invalid YAML: {problem or error}", path=name, line=line) from None
    nodes: dict[str, Any] = {}
    for key, node in root.value if root.id == "mapping" else ():
        if key.id == "scalar":
            if key.value in nodes:
                raise _unclear(name, key, f"the key {key.value!r:.60} occurs twice")
            nodes[key.value] = node
    if "names" not in nodes or nodes.keys().isdisjoint(_SPLIT_KEYS):
        return None  # these words are in a text
    names = _numbered(nodes["names"], name)
    splits = {key: _texts(nodes[key], name) for key in _SPLIT_KEYS if key in nodes}
    base = nodes["path"].value if "path" in nodes else ""
    return DataFile(
        name,
        True,
        {key: paths for key, paths in splits.items() if paths},
        names,
        base if isinstance(base, str) else "",
        keypoints=_keypoints(nodes.get("kpt_shape"), name),
    )


def _keypoints(node: Any, name: str) -> Keypoints | None:
    values = [] if node is None else _texts(node, name)
    try:
        return parse_kpt_shape(",".join(values)) if values else None
    except OptionError:
        raise _unclear(name, node, "invalid kpt_shape; expected one such as [17, 3]") from None


def _texts(node: Any, name: str) -> list[str]:
    """The text of a scalar, or those of a list of scalars."""
    items = node.value if node.id == "sequence" else [node]
    for item in items:
        if item.id != "scalar":
            raise _unclear(name, item, "expected a text, or a list of texts")
    return [] if node.value in ("", "~", "null") else [item.value for item in items]


def _numbered(node: Any, name: str) -> dict[int, str]:
    """The names of a list, or of a mapping from numbers."""
    if node.id == "scalar":
        raise _unclear(name, node, f"names is {node.value!r:.60}; expected a list")
    if node.id == "sequence":
        return dict(enumerate(_texts(node, name)))
    names: dict[int, str] = {}
    for key, value in node.value:
        texts = _texts(value, name) if value.id == "scalar" else []
        if key.id != "scalar" or not is_label(key.value) or not texts:
            raise _unclear(name, key, "invalid entry in names; expected one such as 0: person")
        if int(key.value) in names:
            raise _unclear(name, key, f"class number {key.value} occurs twice")
        names[int(key.value)] = texts[0]
    return names


def _unclear(name: str, node: Any, what: str) -> SourceError:
    return SourceError(what, path=name, line=node.start_mark.line + 1)
