"""Parses the descriptions of YOLO datasets: `data.yaml` and `obj.data`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from recordsmith.dataset import KeypointClass, is_label
from recordsmith.sources.boxes.annotation import is_class_name
from recordsmith.sources.boxes.yolo_rows import Keypoints, parse_kpt_shape
from recordsmith.sources.files.name_files import decode_text, read_lines
from recordsmith.stores import Location, read_document
from recordsmith.support.errors import OptionError, SourceError, option

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
    point_names: of their keypoints, by class number.
    flip_idx: for each keypoint, which one it becomes where the image is flipped; empty if unknown.
    """

    name: str
    is_yaml: bool
    splits: dict[str, list[str]]
    names: dict[int, str]
    base: str = ""
    names_file: str = ""
    keypoints: Keypoints | None = None
    point_names: Mapping[int, Sequence[str]] = {}
    flip_idx: Sequence[int] = ()

    def keypoint_class(self, number: int, count: int) -> KeypointClass:
        """The `count` keypoints of a class."""
        names = self.point_names.get(number, [*map(str, range(count))])
        for key, values in (("kpt_names", names), ("flip_idx", self.flip_idx or names)):
            if len(values) != count:
                problem = f"{key} has {len(values)} values; expected one for each of {count} points"
                remedy = f"Fix {key}, kpt_shape, or {option('kpt_shape')}."
                raise SourceError(problem, path=self.name, remedy=remedy)
        pairs = tuple((a, b) for a, b in enumerate(self.flip_idx) if a < b)
        return KeypointClass(tuple(names), flip_pairs=pairs if self.flip_idx else None)


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
        point_names=_point_names(nodes["kpt_names"], name, names) if "kpt_names" in nodes else {},
        flip_idx=_flip_idx(nodes["flip_idx"], name) if "flip_idx" in nodes else (),
    )


def _keypoints(node: Any, name: str) -> Keypoints | None:
    values = [] if node is None else _texts(node, name)
    try:
        return parse_kpt_shape(",".join(values)) if values else None
    except OptionError:
        raise _unclear(name, node, "invalid kpt_shape; expected one such as [17, 3]") from None


def _point_names(node: Any, name: str, classes: Iterable[int]) -> dict[int, list[str]]:
    """The names of a list for all classes, or of lists by class number."""
    nodes = node.value if node.id == "mapping" else ()
    known = {key.value: _texts(value, name) for key, value in nodes if key.id == "scalar"}
    lists = {int(key): texts for key, texts in known.items() if is_label(key)}
    lists = lists if node.id == "mapping" else dict.fromkeys(classes, _texts(node, name))
    if not all(is_class_name(text) for texts in lists.values() for text in texts):
        raise _unclear(name, node, "empty names in kpt_names, or names of several lines")
    return lists


def _flip_idx(node: Any, name: str) -> list[int]:
    texts = _texts(node, name)
    numbers = [int(text) if is_label(text) else -1 for text in texts]
    partners = dict(enumerate(numbers))
    if any(partners.get(partner) != number for number, partner in partners.items()):
        what = "invalid flip_idx; expected the number of its partner for each point, from 0"
        raise _unclear(name, node, what)
    return numbers


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
