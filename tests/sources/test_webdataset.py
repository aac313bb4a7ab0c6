"""WebDataset: tar archives whose members make samples."""

from __future__ import annotations

import gzip
import json
import pickle
import re
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.format.example import encode_example
from recordsmith.sources import Source, WebDataset

from ..raising import raises
from ..reading import read_sample
from .layouts.files import npy_bytes, tar_bytes
from .source_contract import SourceContract


def tar(path: Path, members: Any, **options: Any) -> Path:
    """An archive, compressed if it is named like one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = "w:gz" if path.suffix in (".gz", ".tgz") else "w"
    path.write_bytes(tar_bytes(members, mode, **options))
    return path


def _read(source: WebDataset) -> list[Any]:
    return [read_sample(source, sample) for sample in source.list_samples().samples]


def _sample(number: int, images: ModuleType) -> dict[str, bytes]:
    return {
        f"{number:04d}.jpg": images.jpeg(number, width=30, height=20),
        f"{number:04d}.seg.png": images.encode(images.noise(30, 20, "L"), "PNG"),
        f"{number:04d}.cls": str(number % 3).encode(),
        f"{number:04d}.json": json.dumps({"score": number if number % 2 else number / 4}).encode(),
        f"{number:04d}.npy": npy_bytes(np.arange(40.0, dtype=np.float32)),
        f"{number:04d}.txt": b"words",
    }


class TestContract(SourceContract):
    suffix = ".tar"

    def make_source(self, folder: Path, images: ModuleType) -> Source:
        for shard, numbers in {
            "train-0": range(4),
            "train-1": range(4, 7),
            "test-0": range(9),
        }.items():
            members: dict[str, bytes] = {}
            for number in numbers:
                members |= _sample(number, images)
            tar(folder / f"{shard}{self.suffix}", members)
        return WebDataset(folder)


def test_what_members_become(tmp_path: Path, images: ModuleType) -> None:
    image = images.jpeg(1)
    mask = images.encode(images.noise(12, 8, "L"), "PNG")
    array = np.arange(6, dtype=">f8").reshape(2, 3)
    members = {
        "a/x.JPG": image,
        "a/x.mask.png": mask,
        "a/x.cls": b" 17\n",
        "a/x.txt": "é\n".encode(),
        "a/x.npy": npy_bytes(array),
        "a/x.ids.npy": npy_bytes(np.asfortranarray([[1, 2], [3, 4]], np.int32)),
        "a/x.pkl": pickle.dumps({"a": 1}),
        "a/x.depth.png": mask,
        "a/x.json": json.dumps(
            {"n": 1, "f": [0.5], "t": "text", "deep": {"a": [[1]]}, "ll": [[1]], "no": None}
        ).encode(),
    }
    source = WebDataset(tar(tmp_path / "s.tar", members))
    (sample,) = source.list_samples().samples
    assert sample.name == "s.tar/a/x"
    assert sample.size_bytes == sum(map(len, members.values()))
    features: Any = read_sample(source, sample)
    arrays = {key: features.pop(key) for key in ("npy", "ids.npy", "f")}
    assert features == {
        "image/encoded": image,
        "image/format": "jpeg",
        "image/height": 8,
        "image/width": 12,
        "image/filename": b"a/x.jpg",
        "image/segmentation/class/encoded": mask,
        "image/segmentation/class/format": "png",
        "image/class/label": 17,
        "txt": "é\n".encode(),
        "npy/shape": [2, 3],
        "ids.npy/shape": [2, 2],
        "pkl": pickle.dumps({"a": 1}),
        "depth.png": mask,
        "n": 1,
        "t": b"text",
        "deep": b'{"a":[[1]]}',
        "ll": b"[[1]]",
    }
    assert arrays["npy"].tolist() == array.ravel().tolist()
    assert arrays["ids.npy"].tolist() == [1, 2, 3, 4]
    assert arrays["f"].tolist() == [0.5]
    rs.decode_example(encode_example(features | arrays, source.list_samples().reader.kinds()))


def test_kinds_of_json_are_decided_by_all_samples(tmp_path: Path) -> None:
    path = tar(
        tmp_path / "s.tar", {"1.json": b'{"x": 1, "l": []}', "2.json": b'{"x": 0.5, "l": ["a"]}'}
    )
    source = WebDataset(path)
    assert "stored as float" in source.list_samples().notices[0]
    assert source.list_samples().reader.kinds() == {"x": "float", "l": "bytes"}
    assert _read(source) == [{"x": 1.0, "l": []}, {"x": 0.5, "l": [b"a"]}]
    tar(path, {"1.json": b'{"x": 1}', "2.json": b'{"x": "a"}'})
    with pytest.raises(rs.SourceError, match=r"1\.json .* 2\.json"):
        WebDataset(path).list_samples()
    assert _read(WebDataset(tar(path, {"1.json": b"[1, {}]"}))) == [{"json": b"[1,{}]"}]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"base64": "/w=="}, b"\xff"),
        (["a", {"base64": "/w=="}], [b"a", b"\xff"]),
        ({"base64": "/w"}, b'{"base64":"/w"}'),
        ({"base64": "/w==", "x": 1}, b'{"base64":"/w==","x":1}'),
        ([{"base64": "/w=="}, 1], b'[{"base64":"/w=="},1]'),
        ([{"base64": "/w=="}, {"x": 1}], b'[{"base64":"/w=="},{"x":1}]'),
        ({"deep": {"base64": "/w=="}}, b'{"deep":{"base64":"/w=="}}'),
    ],
)
def test_base64_in_json(tmp_path: Path, value: Any, expected: Any) -> None:
    source = WebDataset(tar(tmp_path / "s.tar", {"1.json": json.dumps({"v": value}).encode()}))
    assert _read(source) == [{"v": expected}]
    assert source.list_samples().reader.kinds() == {"v": "bytes"}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, b"1.jpg"),
        ({"image/filename": None}, None),
        ({"image/filename": "a/b.jpg"}, b"a/b.jpg"),
        ({"image/filename": ["a", "b"]}, [b"a", b"b"]),
        ({"image/filename": []}, []),
    ],
)
def test_name_of_an_image_in_json(
    tmp_path: Path, images: ModuleType, document: Any, expected: Any
) -> None:
    members = {"1.json": json.dumps(document).encode()}
    image = {"1.jpg": images.jpeg()}
    source = WebDataset(tar(tmp_path / "s.tar", members | image))
    notes: list[str] = []
    (sample,) = source.list_samples().samples
    features = read_sample(source, sample, lambda what, _: notes.append(what))
    assert features.get("image/filename") == expected
    assert notes == []


def test_wrong_members_are_reported_and_the_rest_is_packed(
    tmp_path: Path, images: ModuleType
) -> None:
    members = {
        "1.cls": b"cat",
        "1.json": b"{",
        "1.npy": npy_bytes(np.array([{"a": 1}], object), allow_pickle=True),
        "2.jpg": b"words",
        "3.cls": str(-(2**63)).encode(),
        "4.npy": npy_bytes(np.arange(10))[:-1],
        "5.npy": b"words",
        "6.npy": npy_bytes(np.array([1e300])),
        "7.npy": npy_bytes(np.array([2**63], np.uint64)),
    }
    path = tar(tmp_path / "s.tar", members)
    with pytest.raises(rs.SourceError) as caught:
        rs.pack(WebDataset(path), tmp_path / "out")
    words = "\n".join(caught.value.problems)
    assert len(caught.value.problems) == 6
    for part in (
        "s.tar: 1.cls: expected a class number, found b'cat'",
        "s.tar: 1.json: not valid JSON: Expecting property name",
        "s.tar: 1.npy: the array has type object; expected integers, floats or bools",
        "s.tar: 2.jpg: unreadable-image: this is a text file, not an image",
        "s.tar: 4.npy: the header announces 10 values of int64, but 79 bytes follow",
        "s.tar: 5.npy: not a .npy file, or damaged",
        "s.tar: 6.npy: a value does not fit a 32-bit float",
        "s.tar: 7.npy: 9223372036854775808 does not fit int64",
    ):
        assert part in words
    assert rs.pack(WebDataset(path), tmp_path / "out", skip_errors=True).sample_count == 1


def test_two_images_and_clashing_fields(tmp_path: Path, images: ModuleType) -> None:
    members = {"1.png": images.encode(images.noise(3, 2), "PNG"), "1.jpg": images.jpeg()}
    members |= {"1.txt": b"words", "1.json": b'{"txt": "other", "x": 1}'}
    source = WebDataset(tar(tmp_path / "s.tar", members))
    notes: list[str] = []
    (sample,) = source.list_samples().samples
    features: Any = read_sample(source, sample, lambda _what, where: notes.append(where))
    assert features["image/format"] == "png"
    assert features["jpg"] == images.jpeg()
    assert (features["txt"], features["x"]) == (b"words", 1)
    assert [note.rpartition("s.tar: ")[2] for note in notes] == ["1.jpg", "1.json: txt"]


def test_names_lead_nowhere(tmp_path: Path) -> None:
    keys = ["/abs/a", "../../a", "a", "./a", r"C:\x\a", "x/a", "a//b", "..//", "é", "b\udcff"]
    source = WebDataset(
        tar(tmp_path / "s.tar", [(f"{key}.t", key.encode("utf-8", "replace")) for key in keys])
    )
    samples = source.list_samples().samples
    names = [sample.name.removeprefix("s.tar/") for sample in samples]
    assert names == ["abs/a", "a", "a~2", "a~3", "x/a", "x/a~2", "a/b", "é", "b\udcff"]
    found = [features["t"] for features in _read(source)]
    assert found == [key.encode("utf-8", "replace") for key in keys if key != "..//"]
    assert "outside samples skipped" in source.list_samples().notices[0]
    rs.pack(source, tmp_path / "out")


def test_skipped_members_are_noticed(tmp_path: Path) -> None:
    link, folder = tarfile.TarInfo("2.txt"), tarfile.TarInfo("folder.d")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    folder.type = tarfile.DIRTYPE
    members = [("1.txt", b"old"), (link, b""), (folder, b""), (".hidden", b"x"), ("README", b"x")]
    members += [("1.txt", b"new"), ("3.cls", b"1")]
    source = WebDataset(tar(tmp_path / "s.tar", members))
    notices = source.list_samples().notices
    assert _read(source) == [{"txt": b"new"}, {"image/class/label": 1}]
    path = tmp_path / "s.tar"
    outside, repeated, bare = notices
    assert re.findall(rf"{path}: ([\w.]+)", outside) == [".hidden", "README", "2.txt"]
    assert repeated.startswith("1 repeated")
    assert all(words in bare for words in ("2 samples", "1 without .txt", "1 without .cls"))


def test_paths(tmp_path: Path) -> None:
    for number in range(12):
        tar(tmp_path / "in" / f"x-{number:03d}.tar", {f"{number}.t": str(number).encode()})
    (tmp_path / "in" / "words.txt").touch()

    def found(path: str) -> list[int]:
        return [int(features["t"]) for features in _read(WebDataset(f"{tmp_path}/in{path}"))]

    assert found("") == list(range(12))
    assert found("/x-00?.tar") == list(range(10))
    assert found("/x-{003..011}.tar") == list(range(3, 12))
    assert found("/x-0{00..01}.tar") == [0, 1]
    assert found("/x-{0..0}{0..0}{5..6}.tar") == [5, 6]
    assert found("/x-007.tar") == [7]
    with raises(rs.FileAccessError, path=tmp_path / "in/x-012.tar"):
        found("/x-{000..012}.tar")
    with raises(
        rs.OptionError, option="path", value=tmp_path / "in/x-{5..1}.tar", match="0 archives"
    ):
        found("/x-{5..1}.tar")
    with raises(rs.OptionError, option="path", match="ascending numbers"):
        found("/x-{0..9999}{0..9999}{0..9999}.tar")
    with raises(rs.SourceError, path=tmp_path / "in/z*.tar", match="no file matches"):
        found("/z*.tar")
    with pytest.raises(FileNotFoundError):
        found("/missing.tar")
    assert WebDataset(tmp_path / "in").describe() == {"kind": "WebDataset", "folder": "in"}


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["train-0000.tar", "train-0001.tar", "val-0000.tar"], ("train", "val")),
        (["train/0.tar", "test/0.tar"], ("train", "test")),
        (["train.tar", "test.tar.gz"], ("train", "test")),
        (["a-0.tar", "b-0.tar"], ()),
        (["train-0.tar", "b-0.tar"], ()),
        (["train-0.tar", "train-1.tar"], ()),
    ],
)
def test_splits(tmp_path: Path, names: list[str], splits: tuple[str, ...]) -> None:
    for number, name in enumerate(names):
        tar(tmp_path / "in" / name, {f"{number}.t": b"x"})
    listing = WebDataset(tmp_path / "in").list_samples()
    assert listing.splits == splits
    for sample in listing.samples:
        expected = next((split for split in splits if sample.name.startswith(split)), None)
        assert sample.split == expected


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(rs.SourceError, match="found no files") as caught:
        WebDataset(tmp_path).list_samples()
    assert caught.value.path == str(tmp_path)
    tar(tmp_path / "s.tar", {"README": b"x"})
    with raises(rs.SourceError, path=tmp_path / "s.tar", match="README"):
        WebDataset(tmp_path / "s.tar").list_samples()


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]


def test_damaged_archives(tmp_path: Path) -> None:
    path = tar(tmp_path / "s.tar", {f"{n}.t": b"x" * 600 for n in range(10)})
    data = path.read_bytes()
    for broken in (
        _flipped(data, 1536 * 5 + 3),  # a header in the middle: the rest must not vanish
        data[: 1536 * 5 + 100],  # in a header
        data[: 1536 * 5 + 700],  # in the data
        b"words",
        b"",
    ):
        path.write_bytes(broken)
        with raises(rs.SourceError, path=path, match="not a tar"):
            WebDataset(path).list_samples()
    path.write_bytes(b"PK\x03\x04" + data)
    with raises(rs.SourceError, path=tmp_path / "s.tar", match=r"zip archive.*Unpack it"):
        WebDataset(path).list_samples()
    path.write_bytes(gzip.compress(data)[:-20])
    with pytest.raises(rs.CorruptDataError) as corrupt:
        WebDataset(path).list_samples()
    assert corrupt.value.defect == rs.Defect.TRUNCATED_COMPRESSION
    path.write_bytes(data + data)  # one archive behind the other
    source = WebDataset(path)
    assert "after the end" in source.list_samples().notices[0]
    assert len(source.list_samples().samples) == 10
    path.write_bytes(data[: 1536 * 10])  # no end mark, nothing missing
    assert len(WebDataset(path).list_samples().samples) == 10


@given(
    st.dictionaries(
        st.from_regex(r"[a-c]{1,3}", fullmatch=True),
        st.dictionaries(st.sampled_from(["t", "bin", "a.b"]), st.binary(max_size=600), min_size=1),
        min_size=1,
    ),
    st.booleans(),
)
def test_any_archive(
    tmp_path_factory: pytest.TempPathFactory, groups: dict[str, dict[str, bytes]], packed: bool
) -> None:
    members = {
        f"{key}.{name}": data for key, group in groups.items() for name, data in group.items()
    }
    folder = tmp_path_factory.mktemp("tar")
    source = WebDataset(tar(folder / ("s.tar.gz" if packed else "s.tar"), members))
    assert _read(source) == list(groups.values())
