"""`labels.txt` with gaps, and label maps of object detection."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.dataset import (
    class_names_of,
    label_map_to_bytes,
    labels_to_bytes,
    read_label_map,
    read_labels,
)

NAMES = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\r\n"), min_size=1, max_size=8
)


@given(st.lists(st.none() | NAMES, max_size=6).map(lambda names: [*names, "last"]))
def test_labels_with_gaps_read_back(
    tmp_path_factory: pytest.TempPathFactory, names: list[str | None]
) -> None:
    folder = tmp_path_factory.mktemp("labels")
    (folder / "labels.txt").write_bytes(labels_to_bytes(names))
    assert read_labels(folder) == tuple(names)


@given(st.dictionaries(st.integers(0, 50), NAMES, min_size=1))
def test_label_maps_read_back(
    tmp_path_factory: pytest.TempPathFactory, names: dict[int, str]
) -> None:
    if len(set(names.values())) < len(names):
        return
    path = tmp_path_factory.mktemp("labels") / "label_map.pbtxt"
    path.write_bytes(label_map_to_bytes(class_names_of(names)))
    assert read_label_map(path) == class_names_of(names)


@pytest.mark.parametrize(
    "text",
    [
        "item {\n    id: 1\n    name: 'b'\n}\nitem {\n    id: 3\n    name: 'B'\n}\n",
        'item { name: "b" id: 1 }\r\n\r\nitem{id:3,name:"B"}',
        (
            "# by hand\nitem {\n  name: 'b' # first\n  id: 1;\n  display_name: 'Bee'\n}\n"
            "item <\n id: 3 display_name: 'B'\n keypoints { id: 7 label: 'x' } >\n#"
        ),
        "\ufeffitem { id: 1 name: '\\142' }\nitem { id: 3 name: '\\x42' }",
    ],
)
def test_foreign_label_maps(tmp_path: Path, text: str) -> None:
    (tmp_path / "map.pbtxt").write_text(text, encoding="utf-8")
    assert read_label_map(tmp_path / "map.pbtxt") == (None, "b", None, "B")


def test_label_map_is_read_by_protobuf(tmp_path: Path) -> None:
    text_format = pytest.importorskip("google.protobuf.text_format")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="map.proto", package="t", syntax="proto2")
    item = file.message_type.add(name="Item")
    item.field.add(name="name", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    item.field.add(name="id", number=2, type=field.TYPE_INT32, label=field.LABEL_OPTIONAL)
    whole = file.message_type.add(name="Map")
    whole.field.add(
        name="item", number=1, type=field.TYPE_MESSAGE, label=field.LABEL_REPEATED, type_name="Item"
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    label_map = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Map"))()
    names = (None, "raccoon", "it's \\ odd", None, "é\t")
    text_format.Parse(label_map_to_bytes(names).decode(), label_map)
    assert {item.id: item.name for item in label_map.item} == {
        1: names[1],
        2: names[2],
        4: names[4],
    }
    path = tmp_path / "map.pbtxt"
    path.write_text(text_format.MessageToString(label_map))  # its own spelling, octal escapes
    assert read_label_map(path) == names


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# nothing\n", "no items"),
        ("item { id: 1 name: 'a' ", "truncated"),
        ("item { id: 1 }", "id and name"),
        ("item { id: 'x' name: 'a' }", "id and name"),
        ("item { id: 1 name: 'a' }\nitem { id: 1 name: 'b' }", "line 2: duplicate"),
        ("item { id: 1 name: 'a' }\nitem { id: 2 name: 'a' }", "duplicate"),
        ("item { id: -1 name: 'a' }", "id and name"),
        ("item { id: 9999999999 name: 'a' }", "9999999999"),
        (f"item {{ id: {'9' * 5000} name: 'a' }}", "id and name"),
        ("0:daisy\n1:rose\n", "expected"),
        ("thing { id: 1 name: 'a' }", "'thing'"),
        ("\x00\x01", "a label map"),
    ],
)
def test_invalid_label_maps(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "map.pbtxt").write_text(text)
    with pytest.raises(rs.OptionError, match=words):
        read_label_map(tmp_path / "map.pbtxt")


@pytest.mark.parametrize("line", ["# " * 500, "#" * 1000, "# \n" * 500, " " * 1000 + "!"])
def test_comments_and_spaces_are_parsed_in_linear_time(tmp_path: Path, line: str) -> None:
    """A regular expression with backtracking took years for each of these."""
    path = tmp_path / "map.pbtxt"
    path.write_text(f"item {{ id: 1 name: 'a' }}\n{line}")
    if line.endswith("!"):
        with pytest.raises(rs.OptionError, match=r"line 2: .*'!'"):
            read_label_map(path)
    else:
        assert read_label_map(path) == (None, "a")
