"""What the programs say: paths, kinds, shapes, comments; and that nothing in a file becomes code.

That they read what they were written for is tested in tests/adapters/test_reader_programs.py.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any, get_args

import hypothesis.strategies as st
import pytest
from hypothesis import given
from PIL import Image

import recordsmith as rs
from recordsmith.exporting.readers import READERS, Reader, comment, literal

from ..raising import raises

HOSTILE = (
    "\"]; import os; os.system('x') #",
    "'''\nimport os\n'''",
    '"""\nimport os\n"""',
    "\nimport os\n# ",
    "\\",
    "\\'",
    '\\"',
    "{__import__('os')}",
    "a\rimport os",
    "a\u2028import os\u2029\x85\x0b\x0c",
    "\x1b[2J\x00",
    "größe 花 \u202e",
)


def constants(code: str) -> set[Any]:
    return {node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)}


def names(code: str) -> set[str]:
    """Every name and attribute that the program uses, and what it imports."""
    tree = ast.parse(code)
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {alias.name for alias in node.names}
    return found


def comments(code: str) -> Iterator[str]:
    """The comment of each line that has one."""
    for line in code.splitlines():
        _, mark, note = line.partition("  # ")
        if mark:
            yield note


@given(
    st.text(max_size=300) | st.text(st.sampled_from("a'\"\\\n\r\t\x00\x0c{}#\u2028\u202e\udcff"))
)
def test_literals_and_comments_of_any_text(text: str) -> None:
    assert ast.literal_eval(literal(text)) == text
    source = f"x = {literal(text)}{comment(text)}\n"
    kinds = [token.type for token in tokenize.generate_tokens(StringIO(source).readline)]
    assert kinds.count(tokenize.NEWLINE) == 1
    assert kinds.count(tokenize.COMMENT) == bool(text)
    assert len(source.splitlines()) == 1


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """Features of every shape; some are missing in some records."""
    path = tmp_path / "numbers.tfrecord"
    with rs.ShardWriter(path) as writer:
        for number in range(6):
            example: dict[str, Any] = {
                "one": number,
                "three": [0.5, 1.0, float(number)],
                "ragged": list(range(number)),
                "word": f"word {number}",
                "words": ["a", "b"],
                "raw": b"\xff\0\xfe" * number,
            }
            if number % 2:
                example |= {"sometimes": 1.5, "pair": [1, 2], "note": "x"}
            writer.write_example(example)
    return path


def test_dali_leaves_out_unsupported_features(numbers: Path) -> None:
    code = rs.reader_code(numbers, "dali")
    features = {
        "one": "tfrec.FixedLenFeature([], tfrec.int64, 0)",
        "three": "tfrec.FixedLenFeature([3], tfrec.float32, 0.0)",
        "ragged": "tfrec.VarLenFeature(tfrec.int64, 0)",
        "word": 'tfrec.FixedLenFeature([], tfrec.string, "")',
        "raw": 'tfrec.FixedLenFeature([], tfrec.string, "")',
    }
    for key, feature in features.items():
        assert f'\n    "{key}": {feature},' in code
    assert "'sometimes' is left out: missing in 3 of 6 records, for which DALI" in code
    assert "'words' is left out: DALI reads one byte string" in code
    assert not constants(code) & {"sometimes", "pair", "note", "words"}
    assert f"# made by: recordsmith index {shlex.quote(str(numbers))} --format dali\n" in code


def write_images(path: Path, images: Any, **more: Any) -> Path:
    with rs.ShardWriter(path) as writer:
        for number in range(3):
            example = {"image/encoded": images.jpeg(height=20 + number), **more}
            writer.write_example({key: value for key, value in example.items() if value})
    return path


def test_unsupported_images_stay_bytes(images: Any, tmp_path: Path) -> None:
    tiff = images.encode(Image.new("RGB", (8, 6)), "TIFF")
    gif = images.encode(Image.new("RGB", (8, 6)), "GIF")
    path = write_images(tmp_path / "x.tfrecord", images, tiff=tiff, gif=gif, two=[gif, gif])
    code = rs.reader_code(path, "tf")
    assert 'example["gif"] = ' in code
    assert 'example["tiff"] = ' not in code
    assert 'example["two"] = ' not in code
    code = rs.reader_code(path, "dali")
    assert 'example["tiff"] = ' in code
    assert 'example["gif"] = ' not in code


@pytest.fixture
def packed_flowers(tmp_path: Path, images: Any) -> Path:
    source = rs.ImageFolder(images.make_folder(tmp_path / "f", {"daisy": 4, "rose": 4, "tulip": 4}))
    splits = {"train": 0.5, "validation": 0.5}
    return Path(
        rs.pack(
            source, tmp_path / "out", splits=splits, shards={"train": 6, "validation": 2}
        ).folder
    )


def shards(folder: Path, split: str) -> list[str]:
    return [str(path) for path in sorted(folder.glob(f"{split}-*.tfrecord"))]


def test_programs_list_local_files_only() -> None:
    location = rs.stores.as_location("memory://reader-code/a.tfrecord")
    with rs.ShardWriter(location) as writer:
        writer.write_example({"label": 1})
    with raises(rs.OptionError, option="reader", value=str(location)):
        rs.reader_code(str(location), "tf")


def files_of(code: str) -> list[str]:
    """What the program's `files` are, as it says it."""
    tree = ast.parse(code)
    (at,) = [
        number
        for number, node in enumerate(tree.body)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "files"
    ]
    imports = [node for node in tree.body[:at] if ast.unparse(node) == "import glob"]
    variables: dict[str, Any] = {}
    exec(compile(ast.Module([*imports, tree.body[at]], []), "files", "exec"), variables)
    found: list[str] = variables["files"]
    return found


def test_files_are_listed(packed_flowers: Path) -> None:
    for split in ("train", "validation"):
        code = rs.reader_code(packed_flowers, "tf", split)
        assert "  # 0 daisy, 1 rose, 2 tulip\n" in code
        assert files_of(code) == shards(packed_flowers, split)
    assert "# 2 shards; 6 records\n" in code
    code = rs.reader_code(packed_flowers, "tf")
    assert "12 records of the splits train, validation; use --split to select one\n" in code
    assert files_of(code) == shards(packed_flowers, "*")


def test_glob_is_kept(packed_flowers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(packed_flowers)
    code = rs.reader_code("validation-*.tfrecord", "tf")
    assert 'files = sorted(glob.glob("validation-*.tfrecord"))\n' in code
    assert "--split train --format dali\n" in rs.reader_code(".", "dali", "train")
    code = rs.reader_code("**/train-*", "tf")
    assert files_of(code) == [Path(path).name for path in shards(packed_flowers, "train")]
    rs.index("validation-*", format="dali")
    code = rs.reader_code("validation-*", "dali")  # which finds the indexes, too
    assert files_of(code) == [Path(path).name for path in shards(packed_flowers, "validation")]


@pytest.mark.posix
def test_several_paths_and_paths_with_glob_characters(packed_flowers: Path) -> None:
    odd = packed_flowers.parent / "a [b] * 'c' \"d\" \\n"
    shutil.copytree(packed_flowers, odd)
    for reader in get_args(Reader):
        code = rs.reader_code(odd, reader, "train")
        assert os.fspath(odd) in constants(code) or files_of(code) == shards(odd, "train")
        paths = [odd / "train-00000-of-00006.tfrecord", str(odd / "train-00002-of-00006.tfrecord")]
        code = rs.reader_code(paths, reader)
        assert {*map(os.fspath, paths)} <= constants(code)


def test_compression(tmp_path: Path) -> None:
    for compression, word in (("gzip", "GZIP"), ("zlib", "ZLIB")):
        path = tmp_path / f"x.tfrecord.{compression}"
        with rs.ShardWriter(path, compression=compression) as writer:  # type: ignore[arg-type]
            writer.write_example({"a": 1})
        code = rs.reader_code(path, "tf")
        assert f'tf.data.TFRecordDataset(files, compression_type="{word}")' in code
        with pytest.raises(rs.OptionError, match=f"compressed with {compression}"):
            rs.reader_code(path, "dali")
    with pytest.raises(rs.OptionError, match="different compressions"):
        rs.reader_code(tmp_path, "tf")


@pytest.mark.posix
def test_text_from_files_never_becomes_code(tmp_path: Path, images: Any) -> None:
    """Keys, and the names of classes and of files."""
    plain = tmp_path / "plain.tfrecord"
    with rs.ShardWriter(plain) as writer:
        writer.write_example({**{f"k{n}": 1 for n in range(len(HOSTILE))}, "label": 1})
    hostile = tmp_path / "'] + open(chr(120)) # \n\t.tfrecord"
    with rs.ShardWriter(hostile) as writer:
        writer.write_example({**dict.fromkeys(HOSTILE, 1), "label": 1})
        # these are missing in some records, so that DALI leaves them out, in a comment
        writer.write_example({**dict.fromkeys(HOSTILE[3:], 1), "label": 1})
    labels = b"0:a\rimport os\x0cimport os\x1b[2J\n1:\xe2\x80\xa8b\n"
    (tmp_path / "labels.txt").write_bytes(labels)
    for reader in READERS:
        code = rs.reader_code(hostile, reader)
        assert names(code) == names(rs.reader_code(plain, reader))
        keys = HOSTILE[3:] if reader == "dali" else HOSTILE
        assert {*keys, str(hostile)} <= constants(code)
        assert "\x1b" not in code
        assert code.isascii() or "größe 花" in code


def test_keys_that_are_not_utf8(tmp_path: Path) -> None:
    odd = b"\xff\xfe".decode("utf-8", "surrogateescape")
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        writer.write_example({odd: 1, "a": 1})
    for reader in READERS:
        code = rs.reader_code(tmp_path / "x.tfrecord", reader)
        code.encode()  # it can be printed
        assert odd not in constants(code)
        assert "left out" in code


def test_other_payloads_are_rejected(zoo: Path, tmp_path: Path) -> None:
    steps = tmp_path / "steps.tfrecord"
    with rs.ShardWriter(steps) as writer:
        writer.write(rs.encode_sequence_example({}, {"step": [[1], [2]]}))
    for name, note in (
        ("tensorflow+lingvo/events.out.tfevents.test", "TensorBoard events"),
        ("tensorflow+ranking/eval_elwc.tfrecord", "ELWC"),
        ("kuangyh+tfrecord/test.tfrecord", "not Examples"),
        (str(steps), "SequenceExamples"),
    ):
        for reader in READERS:
            with pytest.raises(rs.OptionError, match=note):
                rs.reader_code(zoo / name, reader)


def test_wrong_options(numbers: Path, tmp_path: Path) -> None:
    with pytest.raises(rs.OptionError) as caught:
        rs.reader_code(numbers, "pytorch")  # type: ignore[arg-type]
    assert (caught.value.option, caught.value.value) == ("reader", "'pytorch'")
    assert "tf, dali" in caught.value.expected
    with raises(rs.OptionError, option="split"):
        rs.reader_code(numbers, "tf", "test")
    with pytest.raises(rs.FileAccessError):
        rs.reader_code(tmp_path / "none", "tf")
    with rs.ShardWriter(tmp_path / "bare.tfrecord") as writer:
        writer.write(b"")
    with pytest.raises(rs.OptionError, match="have no features"):
        rs.reader_code(tmp_path / "bare.tfrecord", "tf")


def test_the_page_shows_the_program(
    tmp_path: Path, images: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "dali.md").read_text("utf-8")
    (shown,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    images.make_folder(tmp_path / "flowers", {"daisy": 20, "rose": 20, "tulip": 20})
    rs.pack(rs.ImageFolder("flowers"), "out", splits={"train": 0.7, "validation": 0.3}, shards=2)
    assert rs.reader_code("out", "dali", "train") == shown
